"""What figures.py draws with: colours that are told apart by everybody, and an SVG with words, boxes and lines.

Each picture has a background of its own and a second set of colours for readers whose browser is dark.
"""
from html import escape

# Okabe and Ito's colours, as in style.gp. Words on the first three are white, on the others dark.
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, SKY, AMBER, YELLOW, PALE = "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#c9ced6"
DEEP = BLUE, ORANGE, GREEN
QUAD = SKY, AMBER, YELLOW, PURPLE  # a colour for each lane of a quad

# What depends on the reader's scheme has a class.
STYLE = """<style>
text { font-family: sans-serif; fill: #222222 } rect { shape-rendering: crispEdges }
.paper { fill: #ffffff } .panel { fill: #eef1f4; stroke: #8a9099 } .line { stroke: #222222; fill: none }
.faint { stroke: #b4bac2; fill: none } .grey { fill: #59616b } .tip { fill: #222222 }
.white { fill: #ffffff } .dark { fill: #111111 } .rule { stroke: #111111 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.paper { fill: #0d1117 } .panel { fill: #1c232c; stroke: #7d8590 } .line { stroke: #e6edf3 }
.faint { stroke: #4a525c } .grey { fill: #a5adb7 } .tip { fill: #e6edf3 }
}
</style>
<defs>
<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path class="tip" d="M0,0 L10,5 L0,10 z"/></marker></defs>
"""


class Picture:
    """An SVG, 800 wide. Coordinates grow to the right and down; a text's are those of its baseline."""
    WIDTH = 800

    def __init__(self, name, height, title, subtitle):
        self.name, self.height = name, height
        self.parts = []
        self.text(20, 30, title, size=20, bold=True)
        self.text(20, 54, subtitle, size=15, style="grey")

    def text(self, x, y, words, size=15, at="start", style="", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        style = f' class="{style}"' if style else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{at}"{weight}{style}>'
                          f"{escape(words)}</text>")

    def box(self, x, y, width, height, fill="", words="", size=14):
        """A rectangle with words in its middle; without a colour it is a panel."""
        look = f'fill="{fill}"' if fill else 'class="panel"'
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {look}/>')
        self.words(x + width / 2, y + height / 2, words, size, style_on(fill))

    def words(self, x, y, words, size, style=""):
        """Lines of words around a point."""
        lines = words.split("\n") if words else []
        for i, line in enumerate(lines):
            self.text(x, y + size * (0.36 + 1.25 * (i - (len(lines) - 1) / 2)), line, size, "middle", style)

    def row(self, places, y, words, size=14, style=""):
        """Several words on one baseline, each around its own x: shorter than a text for each."""
        style = f' class="{style}"' if style else ""
        parts = "".join(f'<tspan x="{x:g}">{escape(str(word))}</tspan>' for x, word in zip(places, words))
        self.parts.append(f'<text y="{y:g}" font-size="{size}" text-anchor="middle"{style}>{parts}</text>')

    def frame(self, x, y, width, height, line=3):
        self.parts.append(f'<rect class="line" stroke-width="{line}" x="{x:g}" y="{y:g}" width="{width:g}" '
                          f'height="{height:g}"/>')

    def line(self, *points, style="line", width=1.5, tips="", dash=""):
        """Through points; tips says at which ends there are arrow heads: "", "end" or "both"."""
        marks = {"": "", "end": ' marker-end="url(#tip)"',
                 "both": ' marker-end="url(#tip)" marker-start="url(#tip)"'}[tips]
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline class="{style}" stroke-width="{width}" points="{path}"{dash}{marks}/>')

    def legend(self, x, y, entries, size=15):
        """Coloured squares with their meaning, one behind the other: (colour, words, how wide)."""
        for colour, words, width in entries:
            self.box(x, y - 13, 16, 16, colour)
            self.text(x + 22, y, words, size)
            x += width

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.WIDTH} {self.height}" '
                f'width="{self.WIDTH}" height="{self.height}">\n{STYLE}'
                f'<rect class="paper" width="{self.WIDTH}" height="{self.height}"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


def style_on(fill):
    return "white" if fill in DEEP else "dark" if fill else ""
