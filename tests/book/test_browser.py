"""The book in a real browser: pages open without an error, the keyboard suffices, and axe finds nothing to say.

Runs in the repository's root, after make book: build/book-tools/bin/python tests/book/test_browser.py. Without Chromium
and its driver nothing is opened, and it says so.
"""
import functools
import glob
import http.server
import importlib.resources
import os
import shutil
import sys
import threading
import unittest

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

sys.path.insert(0, "common/book")
# pylint: disable=wrong-import-position
from tree import address, markdown

BOOK = "build/book"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
LESSON = "stages/06-tma/index.html"
SOME = ("index.html", LESSON, "stages/00-scalar/index.html", "stages/06-tma/kernel.cu.html", "stages/06-tma/try-3.html",
        "stages/06-tma/break-5.html", "notes/glossary.html", "notes/counters.html", "notes/quizzes/13-parities.html")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
# The characters of a full line of a paragraph: its text, cut where the rectangle of a character begins further down.
LINE_LENGTHS = """
const lengths = [];
for (const node of [...document.querySelectorAll("article > p")].map(p => p.firstChild).filter(node => node?.length > 150)) {
  const range = document.createRange();
  let line = 0, top = null;
  for (let i = 0; i < node.length; i++) {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const box = range.getBoundingClientRect();
    if (top !== null && box.top > top + 5) { lengths.push(line); line = 0; }
    top = box.top;
    line++;
  }
}
return lengths;
"""
# A pixel near the corner of a picture.
PIXEL = """
const [png, done] = arguments, image = new Image();
image.onload = () => {
  const paper = document.createElement("canvas").getContext("2d");
  paper.drawImage(image, 0, 0);
  done([...paper.getImageData(5, 5, 1, 1).data]);
};
image.src = "data:image/png;base64," + png;
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that does not print what it serves."""

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class InBrowser(unittest.TestCase):
    """A server and a browser for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=BOOK))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.base = f"http://127.0.0.1:{cls.server.server_port}/"
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        cls.browser.set_script_timeout(120)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.server.shutdown()

    def open(self, path, width=1400, theme=""):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        self.browser.get(self.base + path)
        if theme:
            self.browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)

    def type(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def focused(self):
        return self.browser.switch_to.active_element

    def wait(self, condition):
        return WebDriverWait(self.browser, 20).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)


class Pages(InBrowser):
    """What each page must be as it is opened."""

    def test_open_without_an_error_and_without_another_host(self):
        for path in (*SOME, *map(address, markdown())):
            self.open(path)
            with self.subTest(path):
                self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])
                loaded = self.script("return performance.getEntriesByType('resource').map(entry => entry.name)")
                self.assertEqual([name for name in loaded if not name.startswith(self.base)], [])

    def test_fit_a_phone(self):
        for path in (*SOME, *map(address, markdown())):
            self.open(path, 360)
            with self.subTest(path):
                self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 360)

    def test_have_lines_of_about_seventy_characters(self):
        for width in (1400, 800):
            self.open(LESSON, width)
            lengths = sorted(self.script(LINE_LENGTHS))
            self.assertGreater(len(lengths), 5)
            middle = lengths[len(lengths) // 2]
            self.assertTrue(60 <= middle <= 78, f"{middle} characters, {width} pixels wide")

    def test_have_nothing_that_axe_objects_to(self):
        axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        for path in SOME:
            for theme, width in (("light", 1400), ("dark", 1400), ("light", 360)):
                self.open(path, width, theme)
                self.script(axe)
                found = self.browser.execute_async_script(
                    "axe.run({runOnly: arguments[0]}).then(arguments[1])", list(RULES))
                with self.subTest(f"{path}, {theme}, {width}"):
                    self.assertEqual([(one["id"], one["nodes"][0]["html"][:150]) for one in found["violations"]], [])

    def test_pictures_follow_the_theme(self):
        """The same picture has a dark paper in the dark theme, whatever the system prefers."""
        for theme, is_dark in (("light", False), ("dark", True)):
            self.open(LESSON, 1400, theme)
            picture = self.find(".picture img")
            self.script("arguments[0].scrollIntoView()", picture)
            self.wait(lambda picture=picture: self.script("return arguments[0].complete", picture))
            red, green, blue, _ = self.browser.execute_async_script(PIXEL, picture.screenshot_as_base64)
            self.assertEqual(red + green + blue < 3 * 128, is_dark)


class Keyboard(InBrowser):
    """All that a page does can be done without a mouse."""

    def test_skips_to_the_text(self):
        self.open(LESSON)
        self.type(Keys.TAB)
        self.assertEqual(self.focused().text, "To the text")
        self.type(Keys.ENTER)
        self.wait(lambda: self.focused().get_attribute("id") == "text")

    def test_searches(self):
        self.open(LESSON)
        self.find("body").send_keys("/")
        self.assertEqual(self.focused().get_attribute("id"), "search")
        self.type("parity of a ring")
        self.wait(lambda: self.browser.find_elements(By.CSS_SELECTOR, "#found a"))
        links = [link.get_attribute("href") for link in self.browser.find_elements(By.CSS_SELECTOR, "#found a")]
        self.assertTrue(any("06-tma" in link for link in links), links)
        self.type(Keys.ARROW_DOWN)
        self.assertEqual(self.focused().get_attribute("href"), links[0])
        self.type(Keys.ESCAPE)
        self.assertFalse(self.find("#found").is_displayed())
        self.type(Keys.ENTER)
        self.wait(lambda: self.browser.current_url == links[0])

    def test_says_what_it_does_not_find(self):
        self.open(LESSON)
        self.find("#search").send_keys("xyzzy")
        self.wait(lambda: "No page has" in self.find("#found").text)

    def test_unfolds_terms_and_answers(self):
        self.open(LESSON)
        term = self.find("a.term")
        self.script("arguments[0].focus()", term)
        self.type(Keys.ENTER)
        self.assertEqual(term.get_attribute("aria-expanded"), "true")
        self.assertIn("tensor", self.find("aside.definition").text.lower())
        self.type(Keys.ENTER)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "aside.definition"), [])
        answers = self.find("article details:last-of-type")
        self.script("arguments[0].querySelector('summary').focus()", answers)
        self.type(Keys.ENTER)
        self.assertTrue(answers.get_property("open"))

    def test_switches_the_theme_and_keeps_it(self):
        self.open(LESSON)
        before = self.script("return getComputedStyle(document.body).backgroundColor")
        self.script("document.getElementById('theme').focus()")
        self.type(Keys.SPACE)
        after = self.script("return getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(before, after)
        self.open("index.html")
        self.assertEqual(self.script("return getComputedStyle(document.body).backgroundColor"), after)
        self.script("localStorage.clear()")

    def test_opens_the_contents_on_a_phone(self):
        self.open(LESSON, 360)
        self.assertFalse(self.find("#contents").is_displayed())
        self.script("document.getElementById('menu').focus()")
        self.type(Keys.ENTER)
        self.assertTrue(self.find("#contents [aria-current]").is_displayed())
        self.type(Keys.ESCAPE)
        self.assertFalse(self.find("#contents").is_displayed())

    def test_names_lines_by_the_address(self):
        self.open("stages/06-tma/kernel.cu.html#L30-L32")
        self.wait(lambda: len(self.browser.find_elements(By.CSS_SELECTOR, ".source .chosen")) == 3)
        self.assertTrue(self.find("#L30").is_displayed())


if __name__ == "__main__":
    if not CHROMIUM or not DRIVER:
        print("test-book: no chromium and chromedriver here, so no page was opened (on Debian: chromium chromium-driver)")
        sys.exit(0)
    if not glob.glob(os.path.join(BOOK, "*.html")):
        sys.exit("test-book: make book comes first")
    unittest.main()
