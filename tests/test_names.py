"""Names in common/ lead to one place: grep, ctags and cscope find what a name means, and no more. Lines fit a window.

Runs in the repository's root (or a folder that looks like it): python3 tests/test_names.py
"""
import collections
import glob
import os
import re
import unittest

# Device code for kernels is apart: a stage includes what it uses. common/web/absent.c stands in for functions of others.
FILES = [path for path in glob.glob("common/**/*.[ch]", recursive=True)
         if not path.startswith("common/ptx/") and path != "common/web/absent.c"]
PROGRAMS = 3  # each has a main
EMULATOR = [path for path in FILES if path.startswith("common/emulator/")]
COLUMNS = 120  # .clang-format's ColumnLimit, which does not hold for comments
# Recordings name line numbers of tests/hazards and tests/golden; the others are tables of instructions.
LONGER = re.compile("tests/(golden|gpu|hazards|isa|mathematics|ptx)/")
DEFINITION = re.compile(r"^(?!typedef|extern|return|else|struct \w+;)[A-Za-z_][^;={}#]*[;={]", re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def defined(text):
    """The names of functions and variables that a text defines or declares `static` at file scope."""
    for match in DEFINITION.finditer(without_comments(text)):
        head = re.sub(r"__attribute__\(\(.*?\)\)|\[[^]]*\]", "", match[0][:-1], flags=re.DOTALL)
        is_private = re.match(r"(static|ALWAYS_INLINE)\b", head)
        if "(" in head and (is_private or match[0].endswith("{")):
            name = re.search(r"(\w+)\s*\(", head)[1]
            if not name.isupper():  # the use of a macro
                yield name
        elif is_private and match[0].endswith("{"):  # of a type without a name, before its name
            yield re.search(r"^\} *\**(\w+)", match.string[match.end():], re.MULTILINE)[1]
        elif is_private:
            yield re.search(r"(\w+)\s*$", head)[1]
    yield from re.findall(r"^[A-Z][A-Z0-9_]+\(([a-z]\w+),", text, re.MULTILINE)  # LANE_OPERATION(add_s32, ...


def declared(text):
    """The names of the functions that a header leaves to a .c file."""
    for match in DEFINITION.finditer(without_comments(text)):
        if match[0].endswith(";") and "(" in match[0] and not re.match(r"static|ALWAYS_INLINE|[A-Z_]+\(", match[0]):
            yield re.search(r"(\w+)\s*\(", match[0])[1]


class Names(unittest.TestCase):
    def test_stand_in_one_file(self):
        files = collections.defaultdict(set)
        for path in FILES:
            for name in defined(read(path)):
                files[name].add(path)
        self.assertGreater(len(files), 2500)
        for name, where in files.items():
            with self.subTest(name):
                self.assertEqual(len(where), PROGRAMS if name == "main" else 1, sorted(where))

    def test_are_written_and_not_pasted(self):
        """A suffix may be pasted, as _ftz in forms.h: grep finds what stands before it."""
        for path in EMULATOR:
            pasted = [line for line in read(path).splitlines() if re.search(r"[a-z0-9]_##|\" #[A-Z]|#[A-Z]\w* \"", line)]
            self.assertEqual(pasted, [], path)

    def test_of_forms_lead_to_functions(self):
        """grep 'add.s32' finds one row, grep add_s32 the function that it names."""
        forms = 0
        for path in glob.glob("common/emulator/scalar/*.c"):
            text, names = read(path), set(defined(read(path)))
            for syntax, function in re.findall(r'FORM\w*\("([^"]+)",\s*"[^"]*",\s*(\w+)', text):
                self.assertIn(function, names, syntax)
                forms += 1
        self.assertGreater(forms, 350)

    def test_are_declared_where_they_are_defined(self):
        """x.h declares what x.c defines. A header of several files says which."""
        home = {name: path for path in EMULATOR if path.endswith(".c") for name in defined(read(path))}
        functions = 0
        for path in EMULATOR:
            text = read(path) if path.endswith(".h") and path != "common/emulator/emulator.h" else ""
            for name in declared(text):
                functions += 1
                with self.subTest(f"{path}: {name}"):
                    self.assertTrue(home[name][:-2] == path[:-2] or f" {os.path.basename(home[name])}" in text, home[name])
        self.assertGreater(functions, 350)


class Lines(unittest.TestCase):
    def test_fit_the_columns_of_clang_format(self):
        paths = [path for top in ("common", "stages", "tests") for ending in ("c", "h", "cu")
                 for path in glob.glob(f"{top}/**/*.{ending}", recursive=True) if not LONGER.match(path)]
        paths += glob.glob("common/course/*.py")
        self.assertGreater(len(paths), 300)
        for path in paths:
            long = [number for number, line in enumerate(read(path).splitlines(), 1) if len(line) > COLUMNS]
            self.assertEqual(long, [], path)


if __name__ == "__main__":
    unittest.main()
