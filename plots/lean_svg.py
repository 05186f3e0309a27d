"""Makes a picture that gnuplot has drawn small: it looks the same, and has about a sixth of the bytes.

    python3 plots/lean_svg.py PICTURE.svg...

gnuplot wraps each line and each word in groups that repeat its whole look, and defines symbols that no picture of ours
has. Here neighbours of one look share a group, a bar and its border are one path, and coordinates have one decimal.
"""
import itertools
import re
import sys
import xml.etree.ElementTree as xml
from xml.sax.saxutils import escape

NAMESPACE = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
COLOURS = {"black": "#000000", "gray": "#808080"}
# The properties that change how each kind of shape looks; the others that it inherits do not.
LOOKS = {"path": ("fill", "stroke", "stroke-width", "stroke-dasharray"),
         "polygon": ("fill", "shape-rendering"),
         "text": ("fill", "font-size", "text-anchor", "font-weight"),
         "use": ("color",), "rect": ("fill",)}
# The values that need not be written: SVG's own defaults, and the root's fill.
USUAL = {"fill": "none", "stroke": "none", "stroke-width": "1", "text-anchor": "start"}
ROOT = 'xmlns="http://www.w3.org/2000/svg" fill="none" font-family="sans-serif"'


class Shape:
    """A line, a bar, a word or a symbol: its element's name, its look, its own attributes, and its text."""

    def __init__(self, tag, look, own, text=None):
        self.tag, self.look, self.own, self.text = tag, look, own, text

    def svg(self, look):
        attributes = "".join(f' {name}="{value}"' for name, value in (look | self.own).items())
        return f"<{self.tag}{attributes}/>" if self.text is None else \
            f"<{self.tag}{attributes}>{escape(self.text)}</{self.tag}>"


# ---- numbers and colours ----

def short(number):
    """A number with one decimal at most, and no 0 before the point."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{float(number):.1f}".removesuffix(".0"))


def tenths(number):
    return round(10 * float(number))


def colour(text, current):
    """#rrggbb of a colour as gnuplot writes it; currentColor is the one at hand."""
    text = current if text == "currentColor" else text
    parts = re.findall(r"\d+", text) if text.startswith("rgb") else None
    return "#%02x%02x%02x" % tuple(map(int, parts)) if parts else COLOURS.get(text, text.lower())


# ---- paths ----

def lines(data):
    """The corners of each line of a path, in tenths, and whether it is closed. A move alone draws nothing."""
    for part in data.split("M")[1:]:
        corners = [tuple(map(tenths, place.split(","))) for place in re.findall(r"[-\d.]+,[-\d.]+", part)]
        closed = "Z" in part
        if closed and corners[0] == corners[-1]:
            corners.pop()
        if len(corners) > 1:
            yield corners, closed


def step(dx, dy):
    """A line by so many tenths; none by 0."""
    if dx and dy:
        return f"l{short(dx / 10)} {short(dy / 10)}"
    return f"h{short(dx / 10)}" if dx else f"v{short(dy / 10)}" if dy else ""


def lean_path(data):
    """A path whose corners are counted each from the one before."""
    lean = ""
    for corners, closed in lines(data):
        steps = [step(x - from_x, y - from_y) for (from_x, from_y), (x, y) in zip(corners, corners[1:])]
        lean += f"M{short(corners[0][0] / 10)} {short(corners[0][1] / 10)}{''.join(steps)}{'z' * closed}"
    return lean


# ---- from gnuplot's tree to shapes ----

def look_of(tag, style):
    """What of the inherited style concerns a shape."""
    look = {name: style[name] for name in LOOKS[tag] if name in style}
    for name in ("fill", "stroke", "color"):
        if name in look:
            look[name] = colour(look[name], style.get("color", ""))
    for name in ("stroke-width", "font-size"):
        if name in look:
            look[name] = f"{float(look[name]):g}"
    return {name: value for name, value in look.items() if USUAL.get(name) != value}


def place_of(transform):
    """Where a word stands: x and y, or a transform where it is turned."""
    x, y, rest = re.match(r"translate\((.*?),(.*?)\)(.*)", transform).groups()
    x, y = short(x), short(y)
    return {"transform": f"translate({x} {y}){rest.replace(' ', '')}"} if rest.strip() else {"x": x, "y": y}


def word(element, style):
    """A text in one font; gnuplot puts it into a span."""
    span, = element
    preserve = {"xml:space": "preserve"} if " ".join(span.text.split()) != span.text else {}
    return Shape("text", look_of("text", style | span.attrib), place_of(style["transform"]) | preserve, span.text)


def symbol(element, style):
    x, y, scale = re.match(r"translate\((.*?),(.*?)\) scale\((.*?)\)", element.get("transform")).groups()
    return Shape("use", look_of("use", style), {
        "href": element.get(HREF), "transform": f"translate({short(x)} {short(y)})scale({scale})"})


def line(element, style):
    return Shape("path", look_of("path", style), {"d": lean_path(element.get("d"))})


def bar(element, style):
    corners = " ".join(f"L{corner}" for corner in element.get("points").split())
    return Shape("path", look_of("polygon", style), {"d": lean_path("M" + corners[1:] + " Z")})


def ground(element, style):
    return Shape("rect", look_of("rect", style), {name: element.get(name) for name in ("width", "height")})


MAKERS = {"path": line, "polygon": bar, "use": symbol, "rect": ground}


def shapes(element, style):
    """The shapes below an element, in the order in which they are drawn."""
    tag = element.tag.removeprefix(NAMESPACE)
    style = style | element.attrib
    if tag == "text":
        if len(element):
            yield word(element, style)
    elif tag in MAKERS:
        yield MAKERS[tag](element, style)
    elif tag in ("svg", "g"):
        for child in element:
            yield from shapes(child, style)


def framed(found):
    """The same, where a bar and the border that is drawn next are one shape."""
    found = list(found)
    borders = {i + 1 for i, (one, other) in enumerate(zip(found, found[1:])) if "shape-rendering" in one.look and
               "stroke" in other.look and other.own["d"].endswith("z")}
    for i, shape in enumerate(found):
        if i + 1 in borders:
            yield Shape("path", found[i + 1].look | {"fill": shape.look["fill"]}, found[i + 1].own)
        elif i not in borders:
            yield shape


# ---- from shapes to SVG ----

def common(run):
    """What all shapes of a run look like."""
    return {name: value for name, value in run[0].look.items() if all(shape.look.get(name) == value for shape in run)}


def grouped(found):
    """Lines of SVG: shapes of one look, colour aside, are a group."""
    for _, run in itertools.groupby(found, lambda shape: (shape.tag, {**shape.look, "fill": "fill" in shape.look})):
        run = list(run)
        look = common(run) if len(run) > 1 else {}
        inside = [shape.svg({name: value for name, value in shape.look.items() if name not in look}) for shape in run]
        group = "".join(f' {name}="{value}"' for name, value in look.items())
        yield from [f"<g{group}>", *inside, "</g>"] if look else inside


def symbols(root, names):
    """The definitions of symbols, and of those that they use in turn."""
    known = {element.get("id"): element for element in root.iter() if element.get("id")}
    needed = set()
    while names:
        needed |= names
        names = {known[name].get(HREF, "")[1:] for name in names} - needed - {""}
    for name in sorted(needed):
        attributes = {("href" if key == HREF else key): value for key, value in known[name].attrib.items()}
        yield Shape(known[name].tag.removeprefix(NAMESPACE), {}, attributes).svg({})


def lean(picture):
    root = xml.fromstring(picture)
    found = list(framed(shapes(root, {})))
    used = list(symbols(root, {shape.own["href"][1:] for shape in found if shape.tag == "use"}))
    size = "".join(f' {name}="{root.get(name)}"' for name in ("width", "height", "viewBox"))
    defined = ["<defs>", *used, "</defs>"] if used else []
    return "\n".join([f"<svg {ROOT}{size}>", *defined, *grouped(found), "</svg>", ""])


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            picture = file.read()
        if "gnuplot_canvas" not in picture:
            sys.exit(f"lean_svg.py: {path} is no picture as gnuplot draws it")
        with open(path, "w", encoding="utf-8") as file:
            file.write(lean(picture))


if __name__ == "__main__":
    main(sys.argv[1:])
