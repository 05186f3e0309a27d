"""Where the names that a lesson mentions are defined in its stage's code."""
import collections
import re

from tree import files_of, headers_of, read

QUALIFIER = r"(?:template <[^;{]*>|static|inline|extern \"C\"|constexpr|const|__\w+__(?:\([^)]*\))?)"
FUNCTION = re.compile(rf"^\s*(?:{QUALIFIER} )*{QUALIFIER} (?:[\w:<>,*& ]+[ *&])?(\w+)\(")
OTHERS = (re.compile(r"^\s*(?:template <.*> ?)?(?:typedef )?(?:struct|enum|union)(?: \w+\([^)]*\))? (\w+)[^;]*\{"),
          re.compile(r"^\s*(?:static )?(?:const|constexpr)(?:expr)? \w+ (\w+) ="), re.compile(r"^#define (\w+)"))


def definitions(stage):
    """{name: (path, line)} of what one line of the stage's files, or of their headers, defines."""
    found = collections.defaultdict(list)
    for path in files_of(stage) + headers_of(stage):
        for number, line in enumerate(read(path).split("\n"), 1):
            for pattern in (FUNCTION, *OTHERS):
                match = pattern.match(line)
                if match:
                    found[match[1]].append((path, number))
                    break
    return {name: places[0] for name, places in found.items() if len(places) == 1 and len(name) > 1}
