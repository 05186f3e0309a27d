"""The index of the full-text search: search.json, which book.js reads when somebody searches.

    pages: [[address, title], ...]       of each section, its page's title and its own
    words: {word: [place, times, ...]}   where a word stands: the difference to the section before, and how often
"""
import collections
import json
import re

WORD = re.compile(r"[a-z0-9_]{2,}")
IN_A_TITLE = 8  # a word in a title counts as much as so many in the text


class Index:
    """Collects sections."""

    def __init__(self):
        self.sections = []
        self.words = collections.defaultdict(list)

    def add(self, address, page, title, text):
        """A section: its address, the titles of its page and of itself, its words."""
        place = len(self.sections)
        self.sections.append([address, page, title])
        times = collections.Counter(WORD.findall(text.lower()))
        for word in WORD.findall(f"{title} {page if page == title else ''}".lower()):
            times[word] += IN_A_TITLE
        for word, count in times.items():
            self.words[word].append((place, count))

    def json(self):
        """The index as text."""
        words = {}
        for word, places in sorted(self.words.items()):
            words[word], last = [], 0
            for place, count in places:
                words[word] += [place - last, count]
                last = place
        return json.dumps({"pages": self.sections, "words": words}, separators=(",", ":"), ensure_ascii=False)
