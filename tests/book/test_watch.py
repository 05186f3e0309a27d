"""The explorables in a real browser: each shows something by itself, its player works without a mouse, and its numbers
are those of the program of the terminal, of make explain, or of arithmetic.

Runs in the repository's root, after make book-runs: build/book-tools/bin/python tests/book/test_watch.py [tests].
BROWSER=firefox in the environment runs them in Firefox. Without the browser, or the emulator for it, nothing is opened,
and it says so.
"""
import array
import functools
import gzip
import importlib.resources
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path[:0] = ["common/course", "tests/book"]
# pylint: disable=wrong-import-position
import explain
from test_browser import BOOK, CHROMIUM, DRIVER, FIREFOX, IN_FIREFOX, RULES, InBrowser

PAGES = {"swizzle": "02d-swizzle", "phases": "06-tma", "ring": "07-warp-specialization",
         "descriptor": "04-single-wgmma", "ping-pong": "08b-ping-pong", "online-softmax": "02-online-softmax",
         "stale-max": "10-stale-max"}
FIELDS = "kind block warp lanes ptx file line what mbarrier phase pending bytes".split()
KINDS = ("launch", "instruction", "begins", "ends", "initialised", "changes", "phase ends", "passes", "fails", "value")

NARROW = 500 if IN_FIREFOX else 390  # no window of Firefox is as narrow as a phone
BUSY = "return document.getElementById(arguments[0])?.getAttribute('aria-busy')"
IN_SCENE = "return [...document.querySelectorAll(`#Watch-${arguments[0]} .scene ${arguments[1]}`)]"
OPENED = """
document.documentElement.dataset.theme = arguments[0];
for (const one of document.querySelectorAll(".watch details")) one.open = true;"""
PHASES = "model.states.map(now => now.map(({text, phase, pending, bytes}) => [text, phase, pending, bytes]))"
STALE = """model.tiles.map(({largest, sum, factor, number, isAgain}) =>
  ({largest: String(largest), sum: String(sum), factor, number, isAgain}))"""


class Step:
    """A step of a record: EmulatorStep in common/emulator/emulator.h."""

    def __init__(self, numbers, run):
        for name, number in zip(FIELDS, numbers):
            setattr(self, name, number)
        self.kind = KINDS[self.kind]
        lines = run["sources"][self.file] if self.file >= 0 else []
        self.source = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        self.opcode = re.sub(r"^@!?%p\d+\s+", "", run["ptx"][self.ptx - 1].strip()).split()[0] if self.ptx else ""

    def value(self):
        """The result that it records, as fp32."""
        return struct.unpack("f", struct.pack("i", self.what))[0]


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


@functools.cache
def native(stage, options, kernel=""):
    """The steps of the first block of a run of the stage's program, of its own kernel or of another one."""
    number = stage.split("-")[0]
    with tempfile.TemporaryDirectory() as folder:
        steps, report, ptx = (os.path.join(folder, name) for name in ("steps", "json", "ptx"))
        path = f"build/kernels/{stage}.ptx"
        if kernel:
            path = ptx
            with gzip.open(f"build/book-ptx/{kernel}.ptx.gz") as packed, open(ptx, "wb") as file:
                file.write(packed.read())
        subprocess.run([f"./stage-{number}", f"--steps={steps}", f"--json={report}", f"--ptx={path}", *options.split()],
                       check=True, capture_output=True)
        with open(steps, "rb") as file:
            numbers = array.array("i", file.read())
        with open(report, encoding="utf-8") as file:
            run = {"sources": [lines_of(name) for name in json.load(file)["step_files"]]}
        run["ptx"] = lines_of(path)
    each = len(FIELDS)
    return [Step(numbers[i:i + each], run) for i in range(each, len(numbers), each) if numbers[i + 1] == 0]


@unittest.skipUnless(os.path.exists(f"{BOOK}/web/worker.js"), "no emulator for the browser here: make book-runs")
class Watches(InBrowser):
    """What all tests do with an explorable."""

    def watch(self, name, width=1400, stage=None, **state):
        """Opens one, with these choices, and waits until it shows its run. Returns what model and page say."""
        hash_ = "".join(f"&{key}={value}" for key, value in {"name": name, **state}.items())
        self.browser.get("about:blank")
        self.open(f"stages/{stage or PAGES[name]}/index.html#watch{hash_}", width)
        self.wait(lambda: self.script(BUSY, f"Watch-{name}") == "false", 60)
        self.assertNotIn("cannot be shown", self.now(name))

    def objections(self, within="body"):  # pylint: disable=arguments-differ
        """What axe finds in a part of the page."""
        self.script(importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = self.browser.execute_async_script("axe.run(arguments[0], {runOnly: arguments[1]}).then(arguments[2])",
                                                  within, list(RULES))
        return [(one["id"], one["nodes"][0]["html"][:150]) for one in found["violations"]]

    def choose(self, name, **state):
        """Other choices in an explorable that is open."""
        state = {key: str(value) for key, value in state.items()}
        self.browser.execute_async_script("watches.get(arguments[0]).set(arguments[1]).then(arguments[2])", name, state)
        self.assertNotIn("cannot be shown", self.now(name))

    def now(self, name):
        return self.find(f"#Watch-{name} .now").get_property("textContent")

    def count(self, name):
        return self.find(f"#Watch-{name} .count").get_property("textContent")

    def button(self, name, words):
        return self.find(f"#Watch-{name} .player").find_element(By.XPATH, f"button[.='{words}']")

    def model(self, name, expression):
        """What an expression about the model, `model`, is."""
        return self.script(f"const model = watches.get(arguments[0]).model; return {expression}", name)

    def go(self, name, at):
        self.script("watches.get(arguments[0]).go(arguments[1])", name, at)

    def rows(self, name):
        """The first table below the player."""
        return self.script("""return [...document.querySelector(`#Watch-${arguments[0]} .below table`).rows].map(row =>
            [...row.cells].map(cell => cell.textContent))""", name)


class Player(Watches):
    """The same for each explorable."""

    def test_all_lessons_have_theirs(self):
        for name, stage in PAGES.items():
            with open(f"{BOOK}/stages/{stage}/index.html", encoding="utf-8") as file:
                self.assertIn(f'id="Watch-{name}"', file.read())

    def test_runs_when_it_comes_into_sight_and_not_before(self):
        """A page weighs less than 1 MB before its first run."""
        for name, stage in PAGES.items():
            self.browser.get("about:blank")
            self.open(f"stages/{stage}/index.html")
            self.wait(lambda: self.script("return document.readyState") == "complete")
            weight, loaded = self.weight()
            self.assertLess(weight, 1_000_000, stage)
            self.assertEqual([path for path in loaded if "wasm" in path or ".ptx" in path], [])
            self.script("document.getElementById(arguments[0]).scrollIntoView()", f"Watch-{name}")
            self.wait(lambda name=name: self.script("return Boolean(watches.get(arguments[0]).model)", name), 60)
            self.assertNotIn("#", self.browser.current_url)

    def test_shows_something_by_itself(self):
        for name in PAGES:
            with self.subTest(name):
                self.watch(name)
                self.assertTrue(all(one.get_attribute("aria-label") for one in self.script(IN_SCENE, name, "svg")))
                self.assertGreater(len(self.script(IN_SCENE, name, ":is(rect, circle)")), 10)
                self.assertGreaterEqual(len(self.rows(name)), 2)
                self.assertGreater(len(self.now(name)), 20)
                self.assertEqual(self.errors(), [])

    def test_needs_no_mouse(self):
        for name in PAGES:
            with self.subTest(name):
                self.watch(name, at=0)
                slider = self.find(f"#Watch-{name} [type=range]")
                before = self.now(name)
                slider.send_keys(Keys.ARROW_RIGHT)
                self.assertTrue(self.count(name).startswith("2 of"))
                self.assertNotEqual(self.now(name), before)
                self.assertIn(self.now(name), slider.get_attribute("aria-valuetext"))
                slider.send_keys(Keys.END)
                last, moments = self.count(name).split(" of ")
                self.assertEqual(last, moments)
                for words, place in (("First", "1"), ("Next", "2"), ("Back", "1")):
                    self.button(name, words).send_keys(Keys.ENTER)
                    self.assertTrue(self.count(name).startswith(f"{place} of"), words)
                self.focused().send_keys(Keys.ARROW_RIGHT)
                self.assertTrue(self.count(name).startswith("2 of"))
                self.assertIn(f"name={name}", self.browser.current_url)

    def test_plays_and_pauses(self):
        self.watch("swizzle", at=0)
        self.button("swizzle", "Play").send_keys(Keys.ENTER)
        self.assertEqual(self.find("#Watch-swizzle .now").get_attribute("aria-live"), "off")
        self.wait(lambda: self.count("swizzle").startswith("3 of"))
        self.button("swizzle", "Pause").send_keys(Keys.ENTER)
        self.assertEqual(self.find("#Watch-swizzle .now").get_attribute("aria-live"), "polite")

    def test_keeps_its_state_in_the_address(self):
        self.watch("ring", slots=2, ring="v", at=9)
        said, address = self.now("ring"), self.browser.current_url
        self.assertTrue(self.count("ring").startswith("10 of"))
        self.browser.get("about:blank")
        self.browser.get(address)
        self.wait(lambda: self.count("ring").startswith("10 of"), 60)
        self.assertEqual(self.now("ring"), said)
        self.assertEqual(self.script("return watches.get('ring').chosen().slots"), "2")

    def test_has_nothing_that_axe_objects_to_and_fits_a_phone(self):
        for name in PAGES:
            for width, themes in ((1400, ("light", "dark")), (NARROW, ("light",))):
                self.watch(name, width)
                for theme in themes:
                    with self.subTest(f"{name}, {theme}, {width}"):
                        self.script(OPENED, theme)
                        self.wait(lambda name=name: name in ("swizzle", "descriptor") or
                                  self.browser.find_elements("css selector", f"#Watch-{name} .lanes svg"))
                        self.assertEqual(self.objections(f"#Watch-{name}"), [])
                        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width)

    def test_names_the_line_of_the_source(self):
        self.watch("phases", at=0)
        line = re.search(r":(\d+)$", self.find("#Watch-phases .lines .file").text)[1]
        with open("stages/06-tma/kernel.cu", encoding="utf-8") as file:
            text = file.read().split("\n")[int(line) - 1]
        self.assertIn("mbarrier_init(", text)
        shown = self.find("#Watch-phases .lines .chosen").get_property("textContent")
        self.assertEqual(shown.strip(), f"{line}{text}".strip())

    def test_shows_all_warps(self):
        self.watch("ring")
        self.script("document.querySelector('#Watch-ring .lanes').open = true")
        self.wait(lambda: self.script("return document.querySelectorAll('#Watch-ring .lanes svg .label').length") == 9)
        rows = self.script("return document.querySelectorAll('#Watch-ring .lanes tbody tr').length")
        self.assertEqual(rows, 9)


class Numbers(Watches):
    """What they show is what is so."""

    def test_of_swizzle_and_banks(self):
        self.watch("swizzle")
        for pitch in range(128, 257, 16):
            self.choose("swizzle", pitch=pitch)
            for at, (plain, swizzled) in enumerate(self.model("swizzle", "model.loads")):
                for load, places in ((plain, [row * pitch + at * 16 for row in range(8)]),
                                     (swizzled, [explain.swizzled(row * 128 + at * 16, 128) for row in range(8)])):
                    columns = [place // 16 % 8 for place in places]
                    self.assertEqual(load, {"addresses": places, "wavefronts": max(map(columns.count, columns))})
        report = subprocess.run(["./stage-02d", "--device=emulator"], check=True, capture_output=True, text=True).stdout
        self.assertIn("loads with 0 bank conflicts", report)

    def test_of_descriptors_as_make_explain_and_the_program_have_them(self):
        """Without a swizzle stage 04 puts the pieces elsewhere than TMA would, so there is no make explain for it."""
        told = subprocess.run(["./stage-04", "--explain"], check=True, capture_output=True, text=True).stdout
        self.watch("descriptor")
        for operand, mn_major, start in (("a", False, 0x400), ("b", False, 0x2400), ("t", True, 0x2400)):
            for swizzle in explain.CODES:
                tile = explain.Tile(64, 64, 2, mn_major, swizzle, start)
                for mn, k in ((0, 0), (3, 9), (42, 7), (63, 15)):
                    self.choose("descriptor", operand=operand, swizzle=swizzle, m=mn, k=k)
                    for at in range(4):
                        bits = int(self.model("descriptor", f"String(model.slices[{at}].bits)"))
                        said, address = explain.Descriptor.of(bits), self.model("descriptor", f"model.addressOf({at})")
                        place = (16 * at + k, mn) if mn_major else (mn, 16 * at + k)
                        within = k % 8 * 16 + mn % 8 * 2 if mn_major else mn % 8 * 16 + k % 8 * 2
                        if at == 0:
                            self.assertIn(f"{bits:#018x}", told)
                        if swizzle:
                            self.assertEqual(bits, tile.descriptor(at).bits())
                            self.assertEqual(address, tile.address(*place))
                        else:
                            core = said.start + k // 8 * said.leading + mn // 8 * said.stride
                            self.assertEqual(address, core + within)

    def test_of_the_accumulator(self):
        """PTX ISA, "WGMMA .m64nNk16 register fragment layout (matrix D)"."""
        self.watch("descriptor")
        for m, n in ((0, 0), (3, 10), (21, 33), (40, 63), (63, 62)):
            self.choose("descriptor", m=m, n=n)
            holder = {"warp": m // 16, "lane": m % 8 * 4 + n % 8 // 2, "register": n // 8 * 4 + m % 16 // 8 * 2 + n % 2}
            self.assertEqual(self.model("descriptor", "model.holder"), holder)

    def test_of_the_phases(self):
        """Moment by moment, what a native run says of each barrier."""
        steps = native("06-tma", "--heads=1 --seqlen=512")
        for slot in (0, 2):
            self.watch("phases", slot=slot)
            places = self.model("phases", "model.moments")
            shown = self.model("phases", PHASES)
            address_of, counts, now = {}, {}, {}
            states = {}
            for place, step in enumerate(steps):
                if step.kind == "initialised":
                    name = re.search(r"shared_address\(&?(\w+)", step.source)[1]
                    counts[name] = counts.get(name, -1) + 1
                    address_of[step.mbarrier] = name if name == "q_full" else f"{name}[{counts[name]}]"
                if step.kind in ("initialised", "changes", "phase ends"):
                    ended = step.kind == "phase ends"
                    now[address_of[step.mbarrier]] = [step.phase + ended, step.pending, step.bytes]
                states[place] = dict(now)
            self.assertGreater(len(places), 30)
            for place, barriers in zip(places, shown):
                for name, *numbers in barriers:
                    if name in states[place]:
                        self.assertEqual(numbers, states[place][name], f"{name} at step {place}")
            expected = {"q_full", *(f"{name}[{slot}]" for name in ("k_full", "v_full", "empty"))}
            self.assertEqual({name for name, *_ in shown[-1]}, expected)
            self.assertEqual(max(phase for _, phase, *_ in shown[-1]), 2)

    def waits_of(self, steps, name):
        """How often a thread waited for an empty slot, counting once what it asks again."""
        address = {step.mbarrier for step in steps if step.kind == "initialised" and name in step.source}
        waits, waiting = 0, None
        for step in steps:
            if step.mbarrier in address and step.kind == "fails" and waiting != step.mbarrier:
                waits, waiting = waits + 1, step.mbarrier
            elif step.mbarrier in address and step.kind == "passes":
                waiting = None
        return waits

    def test_of_the_ring(self):
        """Fewer slots, more waits."""
        waits = {}
        for slots in (4, 3, 2):
            if slots < 4 and not os.path.exists(f"build/book-ptx/07-slots-{slots}.ptx.gz"):
                self.skipTest("its kernels are not here: make book-runs")
            steps = native("07-warp-specialization", "--heads=1 --seqlen=512", f"07-slots-{slots}" if slots < 4 else "")
            self.watch("ring", slots=slots)
            waits[slots] = self.model("ring", "model.told.waits")
            self.assertEqual(waits[slots], self.waits_of(steps, "k_empty"))
            told = self.model("ring", "[model.told.slots.length, model.told.most, model.told.tiles]")
            self.assertEqual(told, [slots, slots, 8])
            states = self.model("ring", "model.told.states.map(state => state.slots.map(one => one.state))")
            self.assertTrue(all(len(state) == slots for state in states))
            self.assertEqual(states[-1], ["empty"] * slots)
        self.assertGreater(waits[2], waits[4])

    def test_of_turns(self):
        """The wgmma of one consumer that stand between the products of another one: none, and many without turns."""
        for kernel, are_there in (("", False), ("6", True)):
            if kernel and not os.path.exists(f"build/book-ptx/08b-{kernel}.ptx.gz"):
                self.skipTest("its kernels are not here: make book-runs")
            self.watch("ping-pong", kernel=kernel)
            self.assertEqual(self.model("ping-pong", "model.others") > 0, are_there)
            options = "--heads=1 --seqlen=512 --head-dim=128"
            steps = native("08b-ping-pong", options, f"08b-{kernel}" if kernel else "")
            order = [step.warp // 4 for step in steps
                     if step.kind == "begins" and step.opcode.startswith("wgmma") and step.warp % 4 == 0]
            changes = sum(one != other for one, other in zip(order, order[1:]))
            pairs = 2 * (512 // 128 + 1)  # of products, of two consumers
            self.assertEqual(changes > pairs, are_there, order)

    def test_of_the_online_softmax(self):
        """From the scores alone: both threads of a row have the maximum, and each its half of the sum."""
        for kind in ("normal", "large"):
            options = f"--heads=1 --seqlen=512 --input={kind} --values="
            scores, scale = [], None
            for thread in (10, 11):
                values = [step for step in native("02-online-softmax", options + str(thread)) if step.kind == "value"]
                scores.append([step.value() for step in values if "score[e] = s[column(e)]" in step.source])
                scale = next(step.value() for step in values if "scale *= 1.44" in step.source)
            self.watch("online-softmax", input=kind, row=5)
            tiles = self.model("online-softmax", "model.tiles")
            self.assertEqual(len(tiles), 8)
            maximum, total = None, 0
            for number, tile in enumerate(tiles):
                own, other = (half[32 * number:32 * number + 32] for half in scores)
                self.assertEqual(tile["scores"], own)
                new = max(own + other + ([maximum] if number else []))
                self.assertEqual(tile["max"], new)
                factor = 2 ** ((maximum - new) * scale) if number else 0
                self.assertAlmostEqual(tile["factor"], factor, delta=1e-5)
                total = total * factor + sum(2 ** ((score - new) * scale) for score in own)
                self.assertAlmostEqual(tile["sum"] / total, 1, delta=1e-4)
                maximum = new

    def test_of_the_stale_maximum(self):
        """Its sums are those that the kernel has checked, and it acts when one of the warp is larger than 32768."""
        for kind, acts in (("waves", True), ("normal", False), ("cliff", True)):
            self.watch("stale-max", input=kind, row=1)
            tiles = self.model("stale-max", STALE)
            self.assertEqual(tiles[-1]["number"], 4)
            self.assertEqual(any(tile["factor"] for tile in tiles), acts, tiles)
            steps = native("10-stale-max", f"--heads=1 --seqlen=556 --input={kind} --values=132")
            sums = [step.value() for step in steps if step.kind == "value" and "new_sum[0] += odd[0]" in step.source]
            own = [float(tile["sum"].replace("Infinity", "inf")) for tile in tiles]
            for value in own:
                is_near = [value == one or abs(value - one) <= 1e-3 * one for one in sums]
                self.assertTrue(any(is_near), f"{value} is none of {sums}")
            for tile, value in zip(tiles, own):
                if value > 4 * 32768 and value != float("inf"):
                    self.assertTrue(tile["factor"], tile)
            self.assertEqual(any(tile["isAgain"] for tile in tiles), kind == "cliff")


if __name__ == "__main__":
    if IN_FIREFOX and not FIREFOX:
        print("test-book-firefox: without Firefox no explorable was opened")
        sys.exit(0)
    if not IN_FIREFOX and (not CHROMIUM or not DRIVER):
        print("test-book: without chromium and chromedriver no explorable was opened")
        sys.exit(0)
    unittest.main()
