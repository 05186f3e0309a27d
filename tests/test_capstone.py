"""Capstones: the empty kernel fails, ours passes, and kernels that are right but miss a goal fail by it.

Runs in the repository's root: python3 tests/test_capstone.py. PART=2/3 tries a third of the wrong kernels (part.py).
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import capstone
import course
from part import part_of
from workshop import make, number_of, read, run


def command(word, mine):
    """The exit code of a command of the course, and what it prints."""
    done = subprocess.run([sys.executable, "common/course/course.py", word], env=dict(os.environ, MINE=mine), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def write_ours(name, mine, stage=None, **changes):
    """Our stage, or another one, as the learner's files. changes: FILE=(OLD, NEW, ...), where _ stands for the dot in
    FILE."""
    folder = os.path.join(mine, f"capstone-{name}")
    os.makedirs(folder)
    for path in glob.glob(f"stages/{stage or capstone.CAPSTONES[name].stage}/*.[ch]*"):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r'"\.\./(\w)', rf'"{os.getcwd()}/stages/\1', file.read())
        for where, pairs in changes.items():
            if where == os.path.basename(path).replace(".", "_"):
                for old, new in zip(pairs[::2], pairs[1::2]):
                    assert text.count(old) == 1, f"{old} in {path}"
                    text = text.replace(old, new)
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(text)


class KernelAlone(capstone.Capstone):
    """A capstone, and its own workshop, in which only the kernel's PTX is made, and our stage's program runs it: for
    kernels that differ from ours in nothing that the host or ptxas sees. Several may be tried at a time."""

    def __init__(self, ours, mine):  # pylint: disable=super-init-not-called
        self.__dict__.update(ours.__dict__)
        self.folder = os.path.join(mine, f"capstone-{ours.name}")
        self.ptx = os.path.join(self.folder, "kernel.ptx")
        self.program = f"stage-{number_of(ours.stage)}"

    def workshop(self):
        return self

    def build(self):
        words = f"{read('build/nvcc-flags').strip()} -ptx {self.folder}/kernel.cu -o {self.ptx}"
        done = subprocess.run(words, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        return done.stdout, done.returncode == 0

    def run(self, options):
        return run(self.program, ["--device=emulator", f"--ptx={self.ptx}", *options])


def verdict(name, mine, changes):
    """Whether a kernel passes, and what the judge says."""
    write_ours(name, mine, **changes)
    if set(changes) - {"kernel_cu", "share_h"}:
        code, text = command(f"capstone-{name}", mine)
        return code == 0, text
    alone = KernelAlone(capstone.CAPSTONES[name], mine)
    passed, lines = capstone.judge(alone, lambda text: course.first(course.trouble(text)))
    return passed, "\n".join(lines)


# Wrong kernels for `window`, as learners write them: what the judge must say of each, and the change.
WRONG_WINDOWS = (
    # A window of W means W keys with the query's own: the first runs, whose windows hide nothing, do not show it.
    (("a window of one key: O is V", "right for a window of 2: the query sees a key too many"),
     {"kernel_cu": ("if (i / 4 * 8 + i % 2 <= hidden", "if (i / 4 * 8 + i % 2 < hidden")}),
    (("a window of one key: O is V", "got NaN"),
     {"kernel_cu": ("if (i / 4 * 8 + i % 2 <= hidden", "if (i / 4 * 8 + i % 2 <= hidden + 1")}),
    # No window at all.
    (("a window of one key: O is V", "right for a causal mask alone: the query sees the keys before its window"),
     {"kernel_cu": ("{ return max(0, row - problem.window + 1) / KEYS * KEYS; }", "{ return 0; }",
                    "    int first = max(0, row - problem.window + 1), accumulate = 0;",
                    "    int first = 0, accumulate = 0;",
                    "if (i / 4 * 8 + i % 2 <= hidden", "if (i + hidden < -1000000",
                    "begin = row - problem.window >= key + HALF - 1 ? HALF : 0;", "begin = 0;")}),
    # The window's edge crosses two key tiles, and a tile that the first query sees in full has no mask.
    (("the query sees a key too many",),
     {"kernel_cu": ("return first >= row + WARPGROUP_ROWS - problem.window;", "return first > row - problem.window;")}),
    # A window that begins before the first key: keys with negative numbers arrive as zeros, and count.
    (("one tile, and a window as long", "differ"),
     {"kernel_cu": ("{ return max(0, row - problem.window + 1) / KEYS * KEYS; }",
                    "{ return (row - problem.window + 1 - KEYS + 1) / KEYS * KEYS; }",
                    "    int first = max(0, row - problem.window + 1), accumulate = 0;",
                    "    int first = row - problem.window + 1, accumulate = 0;")}),
    (("one tile, and a window as long", "deadlock"),
     {"kernel_cu": ("skips = last_key_tile(problem, row) > last_key_tile(problem, tile.row);",
                    "skips = row % KEYS > 0;")}),
    (("a short window", "deadlock"),
     {"kernel_cu": ("skips = last_key_tile(problem, row) > last", "skips = last_key_tile(problem, row) < last")}),
    # Key tiles outside the window are computed and masked: right, and slow.
    (("FLOP of the tensor cores",),
     {"kernel_cu": ("{ return max(0, row - problem.window + 1) / KEYS * KEYS; }", "{ return 0; }",
                    "    int first = max(0, row - problem.window + 1), accumulate = 0;",
                    "    int first = 0, accumulate = 0;")}),
    # Both consumers compute the block's last key tile, in full.
    (("FLOP of the tensor cores", "--window=449"),
     {"kernel_cu": ("    int first = max(0, row - problem.window + 1), accumulate = 0;",
                    "    int first = max(0, row - warpgroup * WARPGROUP_ROWS - problem.window + 1), accumulate = 0;",
                    "      if (key - HALF > first)\n", "      if (key > first)\n",
                    "    skips = last_key_tile(problem, row) > last_key_tile(problem, tile.row);",
                    "    skips = false;")}),
    (("instructions of a lane for each score",),
     {"kernel_cu": ("    if (EDGE) mask_before<N>();", "    mask_before<N>();")}),
    (("instructions while products",),
     {"kernel_cu": ("    wgmma_wait<1>();\n    wgmma_results(s);\n    release(k, shared.k_empty);\n    if (EDGE)",
                    "    wgmma_wait<0>();\n    wgmma_results(s);\n    release(k, shared.k_empty);\n    if (EDGE)")}),
    (("a short window", "deadlock"), {"tiles_h": ("SLOTS = 3 };", "SLOTS = 1 };")}),
    (("overwrite in flight",), {"kernel_cu": ("      tma_store_wait_read<0>();\n", "")}))


# What a tile's use consists of, but for the zeros behind the last key.
USE_A_TILE = "Base::use(slots + ring.slot * SLOT_BYTES, tile, keys);"
USE_WITHOUT_ZEROS = """{
        uint32_t to = slots + ring.slot * SLOT_BYTES;
        float s[KEYS / 16][Base::COLUMNS][4];
        uint32_t p[KEYS / 16][Base::COLUMNS][2];
        Base::multiply_keys(to, s);
        if ((tile + 1) * KEYS > keys) Base::mask(tile, keys, s);
        Base::update_max(s);
        Base::weigh(s, p);
        Base::multiply_values(to + TILE_BYTES, p);
      }"""
BEGUN = "  cluster_arrive();  // this block has begun, so that the others may write to its shared memory\n"
ALL_BEGUN = "  cluster_wait();  // all blocks have begun\n"
ALL_PARTS = "  mbarrier_wait_cluster(shared_address(&exchange.arrived), 0);  // all parts are there\n"
PAIRS = "pairs = (group * HEAD_DIM / 2 + blocks - 1) / blocks;"
WITH_KEYS = "share.first < share.end ? merge<"
PAGE = "int page = page_of(i);"
NEIGHBOURS = "sequence * work.table_row + (tile * KEYS >> work.page_shift)"
NEIGHBOURING_PAGES = f"int page = work.block_table ? {NEIGHBOURS} : sequence;"
LAST_TILE = "int tile = min(share.first + (i + (int)threadIdx.x % WARP) * WARPS, share.end - 1);"
SHARES = "Share share = {tiles * rank / blocks, tiles * (rank + 1) / blocks};"
SHARES_OF_THE_LONGEST = """int most = (work.problem.keys + 15) / 16;
  Share share = {min(most * rank / blocks, tiles), min(most * (rank + 1) / blocks, tiles)};"""
# Wrong and lazy kernels for `decode`: what the judge must say of each, and the change.
WRONG_DECODERS = (
    # The two products and the end of a sequence.
    (("several tiles, of which the last is not full", "differ"),
     {"share_h": ("tile, keys);", "tile, (keys + 15) / 16 * 16);")}),
    (("the rows behind its end are NaN", "got NaN"), {"share_h": (USE_A_TILE, USE_WITHOUT_ZEROS)}),
    (("shared-memory race",), {"share_h": ("      __syncwarp();  // all lanes have used the slot\n", "")}),
    # What the blocks of a cluster send each other.
    (("four blocks share the keys of a head", "out-of-bounds"), {"kernel_cu": (ALL_BEGUN, "", BEGUN, "")}),
    (("four blocks share the keys of a head", "read before wait"),
     {"kernel_cu": (ALL_PARTS, "  __syncthreads();\n")}),
    (("four blocks share the keys of a head", "differ"),
     {"kernel_cu": ("__float_as_uint(merged.lse)", "__float_as_uint(0.6931f * merged.lse)")}),
    (("the maxima of the parts are far apart", "got NaN"),
     {"kernel_cu": ("max = fmaxf(max, exchange.lse[b][query]);", "max = exchange.lse[blocks - 1][query];")}),
    (("columns of O that three blocks cannot share evenly", "out-of-bounds"),
     {"kernel_cu": (PAIRS, "pairs = group * HEAD_DIM / 2 / blocks;")}),
    # Blocks without keys, sequences without keys.
    (("fewer tiles than blocks", "got NaN"), {"kernel_cu": (WITH_KEYS, "true ? merge<")}),
    (("a sequence without keys", "got NaN"), {"kernel_cu": ("= keys ? pack", "= true ? pack")}),
    # Pages.
    (("pages of 16 keys, in any order", "differ"), {"share_h": (PAGE, NEIGHBOURING_PAGES)}),
    (("pages of 128 keys", "differ"), {"share_h": ("key &= (1 << work.page_shift) - 1;", "key &= 0;")}),
    (("a block has more than 128 tiles", "differ"), {"share_h": ("if (i % WARP == 0) {", "if (i == 0) {")}),
    (("out-of-bounds",), {"share_h": (LAST_TILE, LAST_TILE.replace("min(", "(").replace(", share.end - 1", ""))}),
    # Right and lazy: a counter shows each.
    (("bytes that threads store to global memory",),
     {"stage": "13d-ragged",
      "stage_c": (".ragged = true,", ".ragged = true,\n    .splits = wanted,\n    .head_dim = 128,", "const Stage stage",
                  "static int wanted(const Decode *decode, int sm_count) { return decode->splits + 0 * sm_count; }\n\n"
                  "const Stage stage")}),
    (("loads of global memory by a warp",),
     {"share_h": ("if (i % WARP == 0) {", "{", LAST_TILE, "int tile = share.first + i * WARPS;")}),
    (("FLOP of the tensor cores",), {"kernel_cu": ("    decode<QUERIES>(maps", "    decode<16>(maps")}),
    (("loads in flight",), {"stage_c": ("(unsigned)blocks_of", "1 + 0 * (unsigned)blocks_of")}),
    (("loads in flight",), {"kernel_cu": (SHARES, SHARES_OF_THE_LONGEST)}),
    (("loads in flight",),
     {"share_h": ("i < SLOTS; i++) load(i, i);", "i < 1; i++) load(i, i);", "Ring<SLOTS> ring;", "Ring<1> ring;",
                  "load(ring.slot, i + SLOTS);", "load(ring.slot, i + 1);")}))


class Capstones(unittest.TestCase):
    def setUp(self):
        self.mine = tempfile.mkdtemp(dir="build")

    def tearDown(self):
        shutil.rmtree(self.mine)

    def test_begin_with_an_empty_kernel_that_fails_and_show_no_solution(self):
        for name in capstone.CAPSTONES:
            with self.subTest(name):
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 0, text)
                self.assertIn("README.md", text)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 1, text)
                self.assertIn("got NaN", text)
                self.assertEqual(command(f"grade-{name}", self.mine)[0], 1)
                code, text = command(f"solution-{name}", self.mine)
                self.assertEqual((code, text.count("\n")), (2, 1), text)

    def test_pass_with_our_kernels_and_then_show_them(self):
        for name in capstone.CAPSTONES:
            with self.subTest(name):
                write_ours(name, self.mine)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 0, text)
                self.assertEqual(command(f"grade-{name}", self.mine)[0], 0)
                solution = f"---- stages/{capstone.CAPSTONES[name].stage}/kernel.cu\n"
                self.assertIn(solution, command(f"solution-{name}", self.mine)[1])

    def test_fail_by_the_goal_that_is_missed(self):
        for name, line, changes in part_of((
                ("gemm", "bytes that TMA reads", {"tiles_h": ("COLUMNS = 256", "COLUMNS = 128")}),
                ("gemm", "special functions", {"kernel_cu": ("      start(1);\n",
                                                             "      start(problem.depth / k < problem.depth);\n")}),
                ("gemm", "overwrite in flight", {"kernel_cu": ("      wgmma_wait<1>();\n", "")}),
                ("gemm", "it does not build", {"tiles_h": ("CONSUMER_REGISTERS = 240", "CONSUMER_REGISTERS = 152")}),
                ("gemm", "instructions while products", {"kernel_cu": ("wgmma_wait<1>()", "wgmma_wait<0>()")}),
                ("gemm", "instructions while loads", {"tiles_h": ("SLOTS = 4", "SLOTS = 2")}),
                ("multicast", "bytes that TMA reads", {"stage": "20-gemm"}),  # the first capstone's files as they are
                ("multicast", "instructions while products", {"kernel_cu": ("wgmma_wait<1>()", "wgmma_wait<0>()")}))):
            with self.subTest(line, name=name):
                shutil.rmtree(os.path.join(self.mine, f"capstone-{name}"), ignore_errors=True)
                write_ours(name, self.mine, **changes)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 1, text)
                self.assertIn(line, text)

    def fail_with_their_cause(self, name, wrong):
        """Those that need a whole build one after another: they share a workshop."""
        def judged(number):
            return verdict(name, os.path.join(self.mine, str(number)), wrong[number][1])
        alone = [number for number, (_, changes) in enumerate(wrong) if not set(changes) - {"kernel_cu", "share_h"}]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = dict(zip(alone, pool.map(judged, alone)))
        for number, (words, changes) in enumerate(wrong):
            passed, text = verdicts[number] if number in verdicts else judged(number)
            with self.subTest(words=words, changes=changes):
                self.assertFalse(passed, text)
                for each in words:
                    self.assertIn(each, text)

    def test_wrong_windows_fail_with_their_cause(self):
        self.fail_with_their_cause("window", part_of(WRONG_WINDOWS))

    def test_wrong_and_lazy_decoders_fail_with_their_cause(self):
        self.fail_with_their_cause("decode", part_of(WRONG_DECODERS))

    def test_a_counted_run_that_is_wrong_is_shown(self):
        class Counted(KernelAlone):
            def build(self):
                return "", True

            def run(self, options):
                return ("result    WRONG: 1 of 2 elements", 1) if "--counters-csv=-" in options else ("", 0)
        passed, lines = capstone.judge(Counted(capstone.CAPSTONES["decode"], self.mine), lambda text: [text])
        self.assertFalse(passed)
        self.assertIn("--lengths=2000,1,530,0", lines[0])
        self.assertEqual(lines[-1], "result    WRONG: 1 of 2 elements")

    def test_a_decoder_passes_with_one_block_that_answers(self):
        """The others send it all that they have."""
        write_ours("decode", self.mine,
                   kernel_cu=(PAIRS, "pairs = group * HEAD_DIM / 2;",
                              "float2 o[GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST];",
                              "float2 o[GROUP_AT_MOST * HEAD_DIM / 2 * BLOCKS_AT_MOST];"),
                   tiles_h=("(GROUP_AT_MOST * HEAD_DIM / 2 + BLOCKS_AT_MOST)",
                            "GROUP_AT_MOST * HEAD_DIM / 2 * BLOCKS_AT_MOST"))
        code, text = command("capstone-decode", self.mine)
        self.assertEqual(code, 0, text)

    def test_a_decoder_passes_with_neighbouring_tiles_for_each_warp(self):
        """Each warp has a part of the block's tiles that lies together."""
        stride = "{share.first + warp, share.end}"
        write_ours("decode", self.mine,
                   kernel_cu=(stride, "{share.first + (share.end - share.first) * warp / WARPS, "
                                      "share.first + (share.end - share.first) * (warp + 1) / WARPS}"),
                   share_h=("(i + (int)threadIdx.x % WARP) * WARPS", "i + (int)threadIdx.x % WARP",
                            "share.first + i * WARPS, key", "share.first + i, key",
                            "i++, tile += WARPS", "i++, tile++"))
        code, text = command("capstone-decode", self.mine)
        self.assertEqual(code, 0, text)

    def test_a_window_passes_with_a_block_for_each_tile(self):
        write_ours("window", self.mine,
                   stage_c=("problem.tiles < sm_count ? problem.tiles : sm_count", "problem.tiles"))
        code, text = command("capstone-window", self.mine)
        self.assertEqual(code, 0, text)

    def test_a_window_passes_with_boxes_of_64_and_32_columns(self):
        """Of Q, K and O. V keeps boxes of 32."""
        write_ours("window", self.mine)
        patch = os.path.abspath("tests/capstones/window-two-boxes.patch")
        done = subprocess.run(["patch", "-s", "-p3", "-i", patch], cwd=os.path.join(self.mine, "capstone-window"),
                              check=False)
        self.assertEqual(done.returncode, 0)
        code, text = command("capstone-window", self.mine)
        self.assertEqual(code, 0, text)

    def test_products_may_take_few_more_instructions_than_ours(self):
        for name in ("gemm", "multicast"):
            each = capstone.CAPSTONES[name]
            ours = capstone.counters(course.Stage(each.stage), each.kind.counted)[capstone.ALL_ONCE]
            limit = next(goal.limit for goal in each.goals if goal.counter == capstone.ALL_ONCE)
            with self.subTest(name, ours=ours):
                self.assertTrue(1.1 * ours < limit < 1.5 * ours, limit)

    def test_specifications_name_their_goals(self):
        for name, each in capstone.CAPSTONES.items():
            with open(f"common/course/capstones/{name}.md", encoding="utf-8") as file:
                text = file.read()
            for goal in each.goals if name != "multicast" else ():  # whose page names what differs from the product's
                if goal.limit and not (goal.at_least and goal.limit == 0.5):  # "half"
                    self.assertIn(goal.shown(goal.limit), text, f"{name}: {goal.words}")

    def test_name_what_there_is(self):
        for word in ("capstone-none", "try-gemm", "hint-multicast"):
            code, text = command(word, self.mine)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn("capstones are gemm, multicast, window, decode", text)
        for word, name in (("try-20", "gemm"), ("grade-20", "gemm"), ("hint-20b", "multicast"), ("try-21", "window"),
                           ("try-22", "decode")):
            code, text = command(word, self.mine)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn(f"make capstone-{name}", text)


if __name__ == "__main__":
    stages = [f"stage-{number_of(each.stage)}" for each in capstone.CAPSTONES.values()]
    built = make(stages)
    if built.returncode:
        sys.exit(built.stdout)
    unittest.main(verbosity=0)
