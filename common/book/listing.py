"""Code as HTML: one element for each line, whose name is the line's number, L1, L2 and so on."""
import html
import posixpath
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import (AwkLexer, BashLexer, CLexer, CudaLexer, DiffLexer, GasLexer, GnuplotLexer, MakefileLexer,
                             PythonLexer, TextLexer)

LEXERS = {".cu": CudaLexer, ".cuh": CudaLexer, ".h": CudaLexer, ".c": CLexer, ".py": PythonLexer, ".sh": BashLexer,
          ".awk": AwkLexer, ".mk": MakefileLexer, ".gp": GnuplotLexer, ".patch": DiffLexer, ".S": GasLexer}
COMMAND = re.compile(r"(\$ )?(make|\./|python3|nvcc|git|sh|pip|cd|cuobjdump|compute-sanitizer|[A-Z_]+=\S+ )")
FORMATTER = HtmlFormatter(nowrap=True)


def coloured(text, lexer):
    """The lines of a text as HTML. Each is complete by itself: a comment of two lines is two elements."""
    return highlight(text, lexer(stripnl=False, ensurenl=False), FORMATTER).removesuffix("\n").split("\n")


def lexer_of(path):
    """What colours a file, by its name."""
    name = posixpath.basename(path)
    return MakefileLexer if name == "Makefile" else LEXERS.get(posixpath.splitext(name)[1], TextLexer)


def listing(path, text):
    """A whole file, with the number of each line as its anchor."""
    lines = coloured(text.removesuffix("\n"), lexer_of(path))
    body = "".join(f'<span id="L{number}">{line}\n</span>' for number, line in enumerate(lines, 1))
    return f'<pre class="source" data-path="{html.escape(path)}"><code>{body}</code></pre>'


def block(text, language=""):
    """A block of a page: commands, whose remarks are coloured; code; or a report, which is not coloured."""
    text = text.removesuffix("\n")
    if COMMAND.match(text):
        body = re.sub(r"((?:^|\s)#\s.*)$", r'<span class="c">\1</span>', html.escape(text), flags=re.MULTILINE)
    else:
        is_code = re.search(r"[;{]\s*(//.*)?$|^\s*(//|#include|__\w+__)", text, re.MULTILINE)
        lexer = LEXERS.get(f".{language}") or (CudaLexer if is_code else TextLexer)
        body = "\n".join(coloured(text, lexer))
    return f"<pre><code>{body}</code></pre>\n"
