"""The plots of recorded times: gnuplot draws made-up recordings, and the texts of the SVG are what was recorded. What
cannot be drawn is one line. The pictures of what has no recording: they are what the script draws.

Runs in the repository's root (or a folder that looks like it): python3 tests/test_plots.py
"""
import html
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = os.getcwd()
sys.path.insert(0, f"{ROOT}/plots")
import figures  # pylint: disable=wrong-import-position
import first_figures as first  # pylint: disable=wrong-import-position
import summit_figures as summit  # pylint: disable=wrong-import-position
import lean_svg  # pylint: disable=wrong-import-position
HEADER = ("stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,max_ms,"
          "repeats,tflops")
TRACE = "stage,device,date,block,warpgroup,role,phase,start_ns,end_ns,tile"
WORK = ("stage,batch,heads,seqlen,head_dim,causal,tensor_flops,inst_mufu,smsp__inst_executed.sum,"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum,"
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum,wgmma_shared_read_bytes,cp_async_shared_write_bytes,"
        "bulk_shared_write_bytes,bulk_shared_read_bytes,global_store_bytes,bulk_global_write_bytes")
USUAL = "4,16,4096,128,0"
HEAD_DIM_64 = "4,32,4096,64,0"


def row(stage, tflops, shape=USUAL, more=""):
    return f"{stage},Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z,{shape},1.5,1.4,1.6,17,{tflops}{more}"


def phase(name, start, end, block=5, warpgroup=0, stage="07-x"):
    return f"{stage},Test GPU,2001-02-03T04:05:06Z,{block},{warpgroup},all,{name},{start},{end},0"


def work(stage, **counts):
    """A row of WORK for one head; a column's first word names it."""
    names = {"flops": 6, "mufu": 7, "instructions": 8, "loads": 9, "stores": 10, "atomics": 11, "wgmma": 12,
             "cp_async": 13, "bulk_write": 14, "bulk_read": 15, "stored": 16, "bulk_stored": 17}
    fields = [stage, "1", "1", "4096", "64", "0", *12 * ["0"]]
    for name, count in counts.items():
        fields[names[name]] = str(count)
    return ",".join(fields)


DECODE = ("stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,kv_heads,keys,head_dim,queries,page,lengths,cache,"
          "repeats,gb_per_s,read_gb_per_s")


def decode(name, keys, rate, batch=1, heads=32, queries=1, page=0, lengths="full", cache="bf16"):
    return (f"{name},Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z,{batch},{heads},8,{keys},128,{queries},{page},{lengths},"
            f"{cache},15,{rate},2900")


class Drawn:
    """A picture: its texts and its bars, and how high up each stands."""

    def __init__(self, svg):
        text = r"<g transform=\"translate\([\d.]+,([\d.]+)\).*?\">\s*<text[^>]*>(.*?)</text>"
        found = re.findall(text, svg, re.DOTALL)
        self.texts = [(html.unescape(re.sub("<[^>]*>", "", inside)).strip(), float(y)) for y, inside in found]
        corners = re.findall(r"<polygon[^>]* points = '([\d.]+),([\d.]+) ([\d.]+),[\d.]+ [\d.]+,([\d.]+) ", svg)
        self.bars = [(float(right) - float(left), -(float(low) + float(high)) / 2)
                     for left, low, right, high in corners]

    def count(self, text):
        return [each for each, _ in self.texts].count(text)

    def height(self, text):
        return -next(y for each, y in self.texts if each == text)

    def bar_height(self, share):
        """Of the bar that has this share of the widest one's width."""
        widest = max(width for width, _ in self.bars)
        return next(height for width, height in self.bars if abs(width / widest - share) < 0.001)


def boxes(svg):
    """(colour, left, right, top, bottom) of each bar as gnuplot draws it."""
    for colour, corners in re.findall(r"<polygon fill = 'rgb\((.*?)\)' points = '(.*?) '", svg):
        x, y = zip(*(map(float, corner.split(",")) for corner in corners.split()))
        yield "#%02x%02x%02x" % tuple(map(int, colour.split(","))), min(x), max(x), min(y), max(y)


def lean_boxes(svg):
    """The same after lean_svg.py: paths of three level and upright lines and back."""
    for colour, x, y, steps in re.findall(r'<path fill="(.*?)".* d="M([\d.]+) ([\d.]+)((?:[hv][-\d.]+){3})z"/>', svg):
        sums = {"h": [float(x)], "v": [float(y)]}
        for direction, by in re.findall(r"([hv])([-\d.]+)", steps):
            sums[direction].append(sums[direction][-1] + float(by))
        yield colour, min(sums["h"]), max(sums["h"]), min(sums["v"]), max(sums["v"])


class Plots(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, header, rows):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write("".join(f"{line}\n" for line in [header, *rows]))

    def gnuplot(self, script, *arguments):
        command = ["gnuplot", "-c", f"{ROOT}/plots/{script}", *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def draw(self, script, rows, *arguments, header=HEADER, files=("data.csv",)):
        """The picture of some rows, which must go well."""
        self.write("data.csv", header, rows)
        self.assertEqual(self.gnuplot(script, *files, "drawn", *arguments), (0, ""))
        with open(os.path.join(self.folder, "drawn.svg"), encoding="utf-8") as file:
            return Drawn(file.read())

    def refuse(self, script, rows, words, *arguments, header=HEADER, files=("data.csv",), code=1):
        self.write("data.csv", header, rows)
        got, printed = self.gnuplot(script, *files, "drawn", *arguments)
        self.assertEqual((got, printed.count("\n")), (code, 1), printed)
        self.assertTrue(printed.startswith(script + ": "), printed)
        self.assertIn(words, printed)

    def expect(self, drawn, *texts):
        for text in texts:
            self.assertTrue(drawn.count(text), f"no '{text}' in {[each for each, _ in drawn.texts]}")

    def test_ladder(self):
        rungs = [row("00-scalar", 1.75), row("02-b", 7), row("02b-c", 84), row("03-d", 42.04)]
        others = [row("cuDNN", 48.1), row("FA", 9.9), row("00-scalar", 0.91, "4,16,4096,128,1")]
        drawn = self.draw("ladder.gp", others + rungs)
        self.expect(drawn, "scalar  00", "c  02b", "1.75", "7.00", "84.0", "42.0", "4.0x", "12x", "0.50x",
                    "batch 4, 16 heads, sequence length 4096, head dim 128, no mask",
                    "plain loops; scores in device memory",
                    "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs")
        heights = [drawn.height(text) for text in ("1.75", "7.00", "84.0", "42.0", "9.90", "48.1")]
        self.assertEqual(heights, sorted(heights), "rungs in the file's order, and above them the peers by their speed")
        self.assertFalse(drawn.count("0.91"), "another problem")
        self.expect(self.draw("ladder.gp", others + rungs, *"4 16 4096 128 1".split()), "0.91")
        self.refuse("ladder.gp", [row("cuDNN", 1)], "no row of a stage with batch 4, 16 heads, sequence length 4096")

    def test_the_backward_pass(self):
        """Where all stages are of it; its peers have the names of the forward pass's."""
        rows = [row("12-backward", 200, "4,16,4096,128,0", ",cold"), row("12b-one", 300, "4,16,4096,128,0", ",cold"),
                row("12b-one", 999, "4,16,4096,128,0", ",sustained"), row("cuDNN", 250, "4,16,4096,128,0", ",cold"),
                row("FlashAttention-3 deterministic", 280, "4,16,4096,128,0", ",cold"),
                row("12c-wrong", "", "4,16,4096,128,0", ",wrong")]
        for script, texts in (("ladder.gp", ("200", "300", "250", "1.50x")),
                              ("seqlen.gp", ("12b", "FA3 det", "cuDNN"))):
            drawn = self.draw(script, rows, header=HEADER + ",mode")
            self.expect(drawn, "Attention, backward pass, on one Test GPU", *texts)
            self.assertEqual(drawn.count("999") + drawn.count("12c"), 0)
            drawn = self.draw(script, [*rows, row("10-x", 500, more=",cold")], header=HEADER + ",mode")
            self.expect(drawn, "Attention, forward pass, on one Test GPU")
            self.assertEqual(drawn.count("12b") + drawn.count("one  12b"), 0)

    def test_the_clock_that_ran(self):
        """Its range in the rows that are drawn; a row without it says nothing."""
        other = row("03-d", 2, "4,16,4096,128,1", ",1100")
        clocks = {"00-a": 1900, "01-b": 1500, "02-c": "", "03-d": 1700}
        rows = [row(name, 1, more=f",{clock}") for name, clock in clocks.items()] + [other]
        header = HEADER + ",clock_mhz"
        rest = "driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs"
        self.expect(self.draw("ladder.gp", rows, header=header), f"SM at 1500-1900 MHz, {rest}")
        drawn = self.draw("ladder.gp", rows, *"4 16 4096 128 1".split(), header=header)
        self.expect(drawn, f"SM at 1100 MHz, {rest}")

    def test_sequence_lengths(self):
        rungs = [f"{i:02}{letter}-s" for i in range(10) for letter in ("", "b")]
        speeds = {name: 400 + i for i, name in enumerate(rungs)} | {"cuDNN": 405.5, "FlashAttention-3": 407.5}
        bench = [row(name, speed, "16,16,1024,128,1") for name, speed in speeds.items()]
        drawn = self.draw("seqlen.gp", [*bench, row("10-other", 999, "15,16,1024,128,1"), row("11-none", ""),
                                        row("12-backward", 998, "16,16,1024,128,1")])
        names = [*(name[:-2] for name in rungs), "cuDNN", "FA3"]
        self.assertEqual([drawn.count(name) for name in names], [1] * 22, "one label for each line")
        self.assertFalse(drawn.count("10") + drawn.count("11"), "not of the bench's problems")
        self.assertFalse(drawn.count("12"), "not of the forward pass")
        heights = sorted((drawn.height(name), speed) for name, speed in zip(names, speeds.values()))
        self.assertEqual([speed for _, speed in heights], sorted(speeds.values()), "the fastest is highest")
        self.assertTrue(all(b[0] - a[0] > 12 for a, b in zip(heights, heights[1:])), "labels overlap")
        self.expect(drawn, "09b s", "dashed: cuDNN, FlashAttention-3 (FA3)")
        modes = [row("07-a", 1, more=",sustained"), row("08-b", 1, more=",cold")]
        drawn = self.draw("seqlen.gp", modes, header=HEADER + ",mode")
        self.assertEqual((drawn.count("07"), drawn.count("08")), (0, 1))
        self.refuse("seqlen.gp", [row("00-a", 1, "1,1,64,64,0")], "no row with batch x sequence length = 16384")

    def test_inputs(self):
        """Of the last stage, whatever the rows' order, on problems that cuDNN has too: 4 and 1 times, in the mean 2."""
        rows = [row("10b-last", 400, more=",cold,sink"), row("10-before", 1100, more=",cold,sink"),
                row("cuDNN", 100, more=",cold,sink"), row("cuDNN", 50, "16,16,1024,128,1", ",cold,sink"),
                row("10b-last", 50, "16,16,1024,128,1", ",cold,sink"), row("10b-last", 9, more=",cold,alone")]
        drawn = self.draw("inputs.gp", rows, header=HEADER + ",mode,input")
        self.expect(drawn, "Stage 10b last on other inputs, on one Test GPU", "sink", "2.00", "1.00")
        drawn = self.draw("inputs.gp", sorted(rows), header=HEADER + ",mode,input")
        self.expect(drawn, "Stage 10b last on other inputs, on one Test GPU", "2.00")
        self.assertFalse(drawn.count("alone"))
        self.refuse("inputs.gp", rows[:2], "has no problem on which both", header=HEADER + ",mode,input")

    def test_roofline(self):
        """128 heads in 1.5 ms at 1234 MHz: 14,460.9 clocks a head, 1,908,844 of all SMs. Each row's work is some
        percent of that, at 4096 operations, half a warp's special functions, 128 bytes or 4 instructions a clock."""
        stored = 4096 * 64 * 2  # O, which has to be written
        rows = {"tensor 50 %": work("00-a", flops=954422 * 4096, stored=stored),
                "exp 40 %": work("01-b", mufu=763538 // 2, stored=stored),
                "shared 30 %": work("02-c", loads=272653, stores=200000, atomics=100000, stored=stored),
                "issue 20 %": work("03-d", instructions=4 * 381769, stored=stored),
                "device 60 %": work("04-e", stored=15472664),
                "shared 70 %": work("05b-f", cp_async=10**8, bulk_write=5 * 10**7, bulk_read=2 * 10**7, wgmma=1032448,
                                    bulk_stored=stored)}
        self.write("work.csv", WORK, rows.values())
        files = "data.csv", "work.csv"
        times = [row(name.split(",")[0], 1, HEAD_DIM_64) for name in rows.values()]
        drawn = self.draw("roofline.gp", times, files=files)
        self.expect(drawn, *rows, "f 05b",
                    "132 SMs at 1234 MHz (the highest), 4.56 TB/s, 2001-02-03, median of 17 runs")
        self.assertEqual(drawn.count("1.50 ms"), 6)
        self.refuse("roofline.gp", [row("07-x", 1)], "no stage has both a time", files=files)

    def test_roofline_at_the_clock_that_ran(self):
        """At half the clock the same work takes twice as long, but that of device memory."""
        stored = 4096 * 64 * 2
        self.write("work.csv", WORK, [work("00-tensor", flops=381769 * 4096, stored=stored),
                                      work("01-exp", mufu=763538 // 2, stored=stored),
                                      work("04-memory", stored=15472664)])
        clocks = {"00-tensor": 617, "01-exp": "", "04-memory": 617}
        rows = [row(name, 1, HEAD_DIM_64, f",{clock}") for name, clock in clocks.items()]
        drawn = self.draw("roofline.gp", rows, header=HEADER + ",clock_mhz", files=("data.csv", "work.csv"))
        self.expect(drawn, "tensor 40 %", "exp 40 %", "device 60 %",
                    "132 SMs at 617 MHz (measured), 4.56 TB/s, 2001-02-03, median of 17 runs")

    def test_timeline(self):
        """5000 ns before the first store to 3000 ns after it, or a window: what is outside has no lane, and its name is
        not in the key."""
        rows = [phase("copy", 0, 100), phase("QK", 100, 5000), phase("softmax", 5000, 6000),
                phase("turn wait", 6000, 6100), phase("PV in flight", 6100, 9000),
                phase("rescale", 10100, 12000, warpgroup=2),
                *(phase("store", start, start + 100, warpgroup=1) for start in (7300, 7000, 7500))]
        drawn = self.draw("timeline.gp", rows, header=TRACE)
        self.expect(drawn, "Test GPU, 2001-02-03, -5000 to 3000 ns, counted from the first store", "QK", "softmax",
                    "store", "warpgroup 0", "warpgroup 1", "block 5", "low: waits; thin: in flight, until noticed")
        self.assertEqual(drawn.count("copy") + drawn.count("warpgroup 2"), 0)
        drawn = self.draw("timeline.gp", rows, "-1500", "-900", header=TRACE)
        self.expect(drawn, "Test GPU, 2001-02-03, -1500 to -900 ns, counted from the first store", "softmax")
        self.assertEqual(drawn.count("QK") + drawn.count("store"), 0)
        self.refuse("timeline.gp", rows[:1], "has no phase between 130 and 140 ns", "130", "140", header=TRACE)
        many = [phase("QK", 0, 900, block) for block in range(129)]
        self.refuse("timeline.gp", many, "room is for 128 warpgroups", header=TRACE)

    def test_timeline_from_the_start(self):
        """Without a store, or with one near the start, the window begins where the recording does."""
        rows = [phase("copy", 0, 100), phase("PV", 8500, 9000)]
        drawn = self.draw("timeline.gp", rows, header=TRACE)
        self.expect(drawn, "Test GPU, 2001-02-03, 0 to 8000 ns, counted from the start")
        rows = [phase("copy", 0, 100), phase("store", 4000, 9000)]
        drawn = self.draw("timeline.gp", rows, header=TRACE)
        self.expect(drawn, "Test GPU, 2001-02-03, -4000 to 4000 ns, counted from the first store")
        self.expect(self.draw("timeline.gp", rows[:1], header=TRACE), "Test GPU, 2001-02-03, all phases")

    def test_timeline_of_what_is_in_flight(self):
        """Products are thin bars above the lane, copies below."""
        rows = [phase("softmax", 0, 1000), phase("PV in flight", 0, 600), phase("copy in flight", 0, 300)]
        drawn = self.draw("timeline.gp", rows, header=TRACE)
        copy, lane, product = (drawn.bar_height(share) for share in (0.3, 1, 0.6))
        self.assertLess(copy, lane)
        self.assertLess(lane, product)

    def test_timelines_of_several_stages(self):
        """One below the other, each under its name and counted from its own first store."""
        below = [phase("PV", 11500, 13000, 4, 2, "08b-y"), phase("store", 13000, 14000, 4, 2, "08b-y")]
        self.write("below.csv", TRACE, below)
        rows = [phase("QK", 0, 900), phase("softmax", 900, 2500), phase("store", 3000, 3100)]
        drawn = self.draw("timeline.gp", rows, "-2000", "-100", "below.csv", header=TRACE)
        self.expect(drawn, "Test GPU, 2001-02-03, -2000 to -100 ns, counted from the stage's first store", "PV",
                    "softmax")
        self.assertEqual(drawn.count("QK") + drawn.count("store"), 0)
        heights = [drawn.height(text) for text in ("block 5", "08b y", "block 4")]
        self.assertEqual(heights, sorted(heights, reverse=True))

    def test_decode(self):
        rows = [decode("13-decode", 1024, 300), decode("13-decode", 4096, 900), decode("13d-ragged", 4096, 1800),
                decode("13f-multi-token", 4096, 1790), decode("cuDNN", 4096, 1700, batch=4),
                decode("other heads", 4096, 2000, heads=64), decode("in pages", 4096, 2100, page=16),
                decode("ragged", 4096, 2200, lengths="ragged"), decode("in e4m3", 4096, 2300, cache="e4m3"),
                decode("two queries", 4096, 2400, queries=2), decode("another batch", 4096, 2500, batch=3)]
        drawn = self.draw("decode.gp", rows, header=DECODE)
        self.expect(drawn, "batch 1", "batch 128", "1k", "4k", "13", "13d", "read", "cuDNN", "13d ragged", "dashed: cuDNN",
                    "Decode: keys and values read a second, on one Test GPU",
                    "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 15 runs")
        self.assertEqual((drawn.count("read"), drawn.count("13f")), (2, 0), "in two panels there is something")
        for words in "other heads", "in pages", "ragged", "in e4m3", "two queries", "another batch":
            self.assertEqual(drawn.count(words[:8]), 0, words)
        heights = [drawn.height(text) for text in ("13", "13d")]
        self.assertEqual(heights, sorted(heights), "the faster one above")
        self.refuse("decode.gp", [decode("13-a", 1024, 1, heads=64)], "has no row with heads 32 and 8", header=DECODE)

    def test_files_that_are_none(self):
        for script, header, rows, record, usage in (
                ("ladder.gp", HEADER, [row("00-a", 1)], "make bench", ["4"]),
                ("seqlen.gp", HEADER, [row("00-a", 1)], "make bench", ["4"]),
                ("inputs.gp", HEADER + ",mode,input", [row("00-a", 1, more=",cold,x")], "make peers", ["4"]),
                ("decode.gp", DECODE, [decode("13-a", 1024, 1)], "make peers OPTIONS=--pass=decode", ["4"]),
                ("timeline.gp", TRACE, [phase("QK", 0, 1)], "make trace-NN", ["4"])):
            with self.subTest(script):
                self.refuse(script, [], f"no recorded data in none.csv; on a Hopper GPU, {record}", files=["none.csv"])
                self.refuse(script, [], "no recorded data in data.csv", header=header)
                self.refuse(script, ["00-a,b"], "has no column", header="stage,device")
                self.refuse(script, [*rows, "01-wmma-qk,Test GPU"], "data.csv, line 3: 2 fields", header=header)
                self.refuse(script, rows, "usage:", *usage, header=header, code=2)

    def test_names_are_no_commands(self):
        """A file's name is a name, whatever it means to a shell or to gnuplot, and so is that of the picture."""
        for name in ("it's $(touch found) `touch found`", "< touch found", "|touch found", "-", "$rungs", 'a=b "c"'):
            for script in "ladder.gp", "seqlen.gp":
                with self.subTest(name, script=script):
                    self.write(name + ".csv", HEADER, [row("00-a", 1)])
                    self.assertEqual(self.gnuplot(script, name + ".csv", name), (0, ""))
                    os.remove(os.path.join(self.folder, name + ".svg"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "found")))


    def lean(self, script, rows, header=HEADER):
        """A picture before and after plots/lean_svg.py."""
        self.draw(script, rows, header=header)
        path = os.path.join(self.folder, "drawn.svg")
        with open(path, encoding="utf-8") as file:
            before = file.read()
        lean_svg.main([path])
        with open(path, encoding="utf-8") as file:
            return before, file.read()

    def test_lean_bars(self):
        """Texts and bars stay what they are, where they are, and in their order."""
        rows = [phase("QK", 0, 900), phase("softmax", 900, 2500), phase("turn wait", 2500, 2600),
                phase("store", 3000, 3100)]
        before, after = self.lean("timeline.gp", rows, header=TRACE)
        texts = re.findall(r"<text [^>]*>(.*?)</text>", after)
        self.assertEqual(texts, [text for text, _ in Drawn(before).texts if text])
        bars, lean_bars = list(boxes(before)), list(lean_boxes(after))
        self.assertEqual((len(bars), len(lean_bars)), (8, 8), "four bars, and four in the key")
        for (colour, *box), (lean_colour, *lean_box) in zip(bars, lean_bars):
            self.assertEqual(colour, lean_colour)
            for number, lean_number in zip(box, lean_box):
                self.assertAlmostEqual(number, lean_number, delta=0.061)

    def test_lean_symbols(self):
        """Each symbol stays in its place; its definition comes along, and no other."""
        rows = [row("00-a", speed, f"{batch},16,{16384 // batch},128,{causal}")
                for batch, speed in ((16, 1), (8, 2), (4, 3)) for causal in (0, 1)]
        before, after = self.lean("seqlen.gp", rows)
        place = r"<use[^>]* transform=['\"]translate\(([\d.]+)[, ]([\d.]+)"
        places, lean_places = ([(float(x), float(y)) for x, y in re.findall(place, svg)] for svg in (before, after))
        self.assertEqual(len(lean_places), 6)
        for (x, y), (lean_x, lean_y) in zip(places, lean_places):
            self.assertAlmostEqual(x, lean_x, delta=0.051)
            self.assertAlmostEqual(y, lean_y, delta=0.051)
        wanted = set(re.findall(r'href="#(\w+)"', after))
        self.assertEqual(wanted, set(re.findall(r'id="(\w+)"', after)))
        with self.assertRaises(SystemExit, msg="it is lean already"):
            lean_svg.main([os.path.join(self.folder, "drawn.svg")])


class Figures(unittest.TestCase):
    def test_up_to_date(self):
        """What lies in plots/ is what the script draws, no file more or less, and well-formed."""
        drawn = {f"figure-{picture.name}.svg": picture.svg() for picture in (draw() for draw in figures.FIGURES)}
        kept = {name for name in os.listdir(f"{ROOT}/plots") if name.startswith("figure-")}
        self.assertEqual(kept, set(drawn))
        for name, svg in drawn.items():
            with open(f"{ROOT}/plots/{name}", encoding="utf-8") as file:
                self.assertEqual(file.read(), svg, f"{name} is not up to date: make plot")
            xml.etree.ElementTree.fromstring(svg)

    def test_accumulator(self):
        """Each number of D has one owner, and lane 5 of warp 1 those of rows 17 and 25 that PTX gives it."""
        threads = [(warp, lane) for warp in range(4) for lane in range(32)]
        places = [figures.place_in_d(*thread, i) for thread in threads for i in range(32)]
        self.assertEqual(sorted(places), [(row, column) for row in range(64) for column in range(64)])
        mine = {figures.place_in_d(1, 5, i) for i in range(32)}
        self.assertEqual(mine, {(row, 8 * n + 2 + e) for row in (17, 25) for n in range(8) for e in range(2)})

    def test_swizzle(self):
        """It changes bits 4 to 6 of an address by bits 7 to 9."""
        for address in range(0, 1024, 16):
            row, chunk = address // 128, address % 128 // 16
            self.assertEqual(row * 128 + figures.place_in_row(row, chunk) * 16, address ^ (address >> 3 & 0x70))

    def test_tensor_box(self):
        """Each chunk lies where lesson 05b's program finds it after a load of the same box."""
        box = figures.TensorBox
        done = subprocess.run([f"{ROOT}/stage-05b", "--device=emulator", f"--at={8 * box.CHUNK},{box.ROW},0"],
                              capture_output=True, text=True, check=False)
        lines = [re.split(" {2,}", line.strip())[1:] for line in re.findall("    0x.*", done.stdout)]
        expected = [["0"] * box.BOX_CHUNKS for _ in range(box.BOX_ROWS)]
        for row, chunk, inside in box.cells():
            if inside:
                expected[row][figures.place_in_row(row, chunk)] = f"r{box.ROW + row} c{8 * (box.CHUNK + chunk)}"
        self.assertEqual(lines, expected, done.stderr)

    def test_ring(self):
        """No tile is loaded before the last one has left the slot, or used before it has landed."""
        times = [figures.RingTime(tile) for tile in range(20)]
        for before, after in zip(times, times[figures.RingTime.SLOTS:]):
            self.assertEqual(before.slot, after.slot)
            self.assertNotEqual(before.parity, after.parity)
            self.assertLessEqual(before.release, after.load)
        self.assertTrue(all(time.landed <= time.use for time in times))

    def test_slots(self):
        """No copy begins before the slot's last tile has been used, or ends after its own tile is needed."""
        for kind in "KV":
            for rings in (1, 2):
                lives = [summit.Slots.life(kind, tile, rings) for tile in range(8)]
                for (*_, used), (begin, landed, use, _) in zip(lives, lives[summit.Slots.COUNT:]):
                    self.assertLessEqual(used, begin)
                    self.assertLessEqual(landed, use)

    def test_registers(self):
        """They move, and none is made: what A releases is what B takes. setmaxnreg takes multiples of 8 only."""
        numbers = summit.Registers
        self.assertEqual(numbers.FEW + numbers.MANY, 2 * numbers.LAUNCH)
        self.assertEqual([number % 8 for number in (numbers.FEW, numbers.MANY)], [0, 0])

    def test_stmatrix(self):
        """Lane l holds two neighbours of row l / 4: PTX ISA 9.7.14.5.16."""
        places = {lane: [(row, column) for row in range(8) for column in range(8) if summit.holder(row, column) == lane]
                  for lane in range(32)}
        self.assertEqual(places, {lane: [(lane // 4, lane % 4 * 2 + e) for e in range(2)] for lane in range(32)})

    def test_schedule(self):
        """A tile goes to the SM that is free first, and the lesson's two orders end after 18 and after 20 steps."""
        self.assertEqual(summit.schedule([3, 1, 1, 2], 2), [(0, 0, 3), (1, 0, 1), (1, 1, 1), (1, 2, 2)])
        drawn = summit.longest_first().svg()
        self.assertIn("longest first: done after 18 steps", drawn)
        self.assertIn("shortest first: done after 20 steps", drawn)

    def test_attention(self):
        """The pictures have the numbers of the note: its table's, and the length at which attention overtakes."""
        with open(f"{ROOT}/notes/attention.md", encoding="utf-8") as file:
            note = file.read()
        weights = first.softmax(first.SCORES[3])
        for token, (key, score, weight, value) in enumerate(zip(first.KEYS, first.SCORES[3], weights, first.VALUES)):
            dot, power = f"{2 * score:.0f}", f"{math.exp(score):.3f}"
            row = f"| {token} | {key} | {dot} | {score:.0f} | {power} | {weight:.3f} | {value} |"
            self.assertIn(row, note)
        self.assertIn(f"overtakes at {first.Llama.LINEAR / first.Llama.PER_KEY:,.0f} tokens", note)

    def test_butterfly(self):
        """After the last step all lanes have the maximum, wherever it was."""
        for lane in range(32):
            numbers = [-5] * lane + [7] + [3] * (31 - lane)
            steps = first.butterfly_steps(numbers)
            self.assertEqual((len(steps), set(steps[-1]), set(steps[-2]) == {7}), (6, {7}, False))

    def test_scalar_and_tiles(self):
        """Sizes of the blocks are the stages'."""
        for drawn, stage, wanted in ((first.Scalar, "00-scalar", 4), (first.Tile, "00b-tiles", 4)):
            text = ""
            for name in "tiles.h", "kernel.cu":
                with open(f"{ROOT}/stages/{stage}/{name}", encoding="utf-8") as file:
                    text += file.read()
            sizes = dict(re.findall(r"\b([A-Z_]+) = (\d+)", text))
            shared = vars(drawn).keys() & sizes.keys() - {"WARP"}
            self.assertEqual({name: sizes[name] for name in shared}, {name: str(vars(drawn)[name]) for name in shared})
            self.assertEqual(len(shared), wanted)

    def test_padding(self):
        """Without padding chunk 0 of eight rows lies in one group of banks, with it in eight. No place twice."""
        for pitch, groups in ((128, 1), (144, 8)):
            self.assertEqual(len({first.group_of(row, 0, pitch)[1] for row in range(8)}), groups)
            places = [first.group_of(row, chunk, pitch) for row in range(8) for chunk in range(pitch // 16)]
            self.assertEqual(len(set(places)), len(places))

    def test_online_softmax(self):
        """The running numbers end at the softmax, however the row is cut."""
        for scores in first.SCORES:
            for tile in (1, 2, 4):
                *_, (_, _, _, total, output) = first.running(scores, tile)
                for one, other in zip(output, first.average(first.softmax(scores))):
                    self.assertAlmostEqual(one / total, other)

    def test_lazy(self):
        """No weight exceeds 2 ** 8, and the lazy maximum follows less often."""
        held, exact = first.maxima(first.LARGEST, 8), first.maxima(first.LARGEST, 0)
        self.assertLessEqual(max(score - stale for score, stale in zip(first.LARGEST, held)), 8)
        self.assertEqual(exact, [max(first.LARGEST[:i + 1]) for i in range(len(exact))])
        self.assertLess(len(set(held)), len(set(exact)))

    def test_double_buffer(self):
        """A tile has landed before it is used, and no copy goes into a slot in use. Two slots are faster than one."""
        for ahead, slots in ((False, 1), (True, 2)):
            times = [first.BufferTime(tile, ahead) for tile in range(9)]
            for tile, time in enumerate(times):
                self.assertEqual(time.slot, tile % slots)
                self.assertGreaterEqual(time.use, time.landed)
                self.assertTrue(tile < slots or time.copy >= times[tile - slots].end)
                self.assertTrue(tile == 0 or time.use >= times[tile - 1].end)
        self.assertLess(first.BufferTime(8, True).end, first.BufferTime(8, False).end)

    def test_new_ones_are_small(self):
        for draw in first.FIGURES:
            self.assertLess(len(draw().svg().encode()), 20000, draw.__name__)


if __name__ == "__main__":
    unittest.main(verbosity=0)
