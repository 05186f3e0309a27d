"""Markdown as HTML, with the headings' anchors as GitHub makes them. The text stays as it is, except that

- links lead to pages of the book: `link` gives the address of what a link leads to;
- comments, which are for the tests, are left out; but <!-- watch: ring --> is an explorable;
- wide things can scroll by themselves: tables and pictures stand in a box.
"""
import html
import itertools
import re

from markdown_it import MarkdownIt

import listing
from tree import Broken

NUMBER = re.compile(r"[-+]?[\d,.]+( ?(%|x|TFLOPS|ms|µs|GB/s))?( to [\d,.]+)?|")
SHORT = 24  # characters of code that stay in one line
COMMAND = re.compile(r"(?:^|(?<=<code>))make [a-z]+-[a-z0-9]+(?:-[a-z0-9]+)?\b|"
                     r"\./stage-\w+(?: --[\w-]+(?:=[\w.,:-]+)?)*", re.MULTILINE)
WATCH = re.compile(r"<!-- watch: ([a-z-]+) -->\s*")
TAGS = re.compile(r"</?(details|summary)>")


def anchor_of(title):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def words_of(token):
    """The text of an inline token, without its marks."""
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children
                   if child.type in ("text", "code_inline", "softbreak"))


def is_in_link(tokens, place):
    """Whether a token stands in a link."""
    kinds = [token.type for token in tokens[:place]]
    return kinds.count("link_open") > kinds.count("link_close")


def mark_numbers(tokens, place):
    """Numbers stand at the right of a column that has nothing else. The empty head of a first column heads nothing."""
    rows, last = [], place
    while tokens[last].type != "table_close":
        if tokens[last].type == "tr_open":
            rows.append([])
        elif tokens[last].type in ("th_open", "td_open"):
            rows[-1].append((tokens[last], tokens[last + 1].content, tokens[last + 2]))
        last += 1
    for column in zip(*rows):
        below = [content for _, content, _ in column[1:]]
        has_numbers = any(below) and all(NUMBER.fullmatch(content) for content in below)
        for opening, content, closing in column:
            if has_numbers:
                opening.attrSet("class", "number")
            if opening.type == "th_open" and not content:
                opening.tag = closing.tag = "td"


class Writer:
    """Turns the Markdown of one page into HTML. `link` gives (address, attributes) for an address in the text,
    `command` an address or None for the words of a piece of code, `picture` the address and the SVG of a picture,
    `watch` the HTML of an explorable."""

    def __init__(self, path, link, command=lambda words: None, picture=None, watch=lambda name: ""):
        self.path, self.link, self.command, self.picture, self.watch = path, link, command, picture, watch
        self.headings = []  # (level, anchor, title)
        self.pictures, self.tag = 0, ""
        self.markdown = MarkdownIt("commonmark").enable("table")
        rules = {"heading_open": self.heading_open, "heading_close": self.heading_close, "link_open": self.link_open,
                 "image": self.image, "code_inline": self.code_inline, "table_open": self.table_open,
                 "table_close": lambda *_: "</table></div>\n", "html_block": self.html, "html_inline": self.html,
                 "code_block": self.block, "fence": self.block}
        for name, rule in rules.items():
            self.markdown.add_render_rule(name, self._as_rule(rule))

    @staticmethod
    def _as_rule(rule):
        """What markdown-it calls: it would take the rule for a method of its renderer."""
        return lambda renderer, tokens, place, options, env: rule(renderer, tokens, place)

    def html_of(self, text):
        """The HTML of a text; its headings are in `headings` then."""
        return self.markdown.render(text)

    def heading_open(self, _, tokens, place):
        """Where a page skips a level, as the glossary does, only the size shows it: screen readers need every level."""
        name = anchor_of(tokens[place + 1].content)
        known = {anchor for _, anchor, _ in self.headings}
        names = itertools.chain([name], (f"{name}-{more}" for more in itertools.count(1)))
        anchor = next(each for each in names if each not in known)
        level = int(tokens[place].tag[1])
        small = level == 3 and 2 not in {above for above, *_ in self.headings}
        self.tag = "h2" if small else tokens[place].tag
        self.headings.append((level, anchor, words_of(tokens[place + 1]).strip()))
        kind = ' class="small"' if small else ""
        return f'<{self.tag}{kind} id="{html.escape(anchor)}">'

    def heading_close(self, *_):
        level, anchor, title = self.headings[-1]
        if level == 1:
            return f"</{self.tag}>\n"
        words = f'href="#{html.escape(anchor)}" aria-label="{html.escape(title)}: link"'
        return f' <a class="mark" tabindex="-1" {words}>#</a></{self.tag}>\n'

    def table_open(self, _, tokens, place):
        mark_numbers(tokens, place)
        return '<div class="wide"><table>\n'

    def link_open(self, renderer, tokens, place):
        href, attributes = self.link(tokens[place].attrGet("href"))
        tokens[place].attrSet("href", href)
        for name, value in attributes.items():
            tokens[place].attrSet(name, value)
        return renderer.renderToken(tokens, place, {}, {})

    def image(self, _, tokens, place):
        """A picture, as large as it is drawn, and its text, which says the same, for who cannot see it."""
        href, svg = self.picture(tokens[place].attrGet("src"))
        width, height = (re.search(rf'<svg[^>]* {name}="([\d.]+)"', svg) for name in ("width", "height"))
        if not width or not height:
            raise Broken(f"{self.path}: the picture {tokens[place].attrGet('src')} does not say its width and height")
        self.pictures += 1
        when = ' loading="lazy"' if self.pictures > 1 else ""
        return (f'<a class="picture" href="{html.escape(href)}"><img src="{html.escape(href)}" width="{width[1]}" '
                f'height="{height[1]}" alt="{html.escape(words_of(tokens[place]))}"{when}></a>')

    def code_inline(self, _, tokens, place):
        kind = ' class="short"' if len(tokens[place].content) <= SHORT else ""
        code = f"<code{kind}>{html.escape(tokens[place].content)}</code>"
        found = None if is_in_link(tokens, place) else self.command(" ".join(tokens[place].content.split()))
        return self.named(found, code) if found else code

    @staticmethod
    def named(address, words):
        """A link to what a piece of code names: a place, or a run."""
        kind = "code runs" if "#run&" in address else "code"
        return f'<a class="{kind}" href="{html.escape(address)}">{words}</a>'

    def html(self, _, tokens, place):
        """Comments go, folded blocks stay. Other tags would be a surprise."""
        marker = WATCH.fullmatch(tokens[place].content)
        if marker:
            return self.watch(marker[1])
        text = re.sub(r"<!--.*?-->\n?", "", tokens[place].content, flags=re.DOTALL)
        if "<" in TAGS.sub("", text):
            raise Broken(f"{self.path}: the book knows <details> and <summary>, and not {text.strip()}")
        return text

    def block(self, _, tokens, place):
        """A block of commands leads to their pages, as a command in a sentence does."""
        text = listing.block(tokens[place].content, tokens[place].info)
        return COMMAND.sub(self.linked, text) if listing.COMMAND.match(tokens[place].content) else text

    def linked(self, match):
        """A command of a block, as a link if it has a page."""
        found = self.command(match[0])
        return self.named(found, match[0]) if found else match[0]
