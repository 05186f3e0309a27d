"""Why numbers are wrong that no hazard explains: a few small runs, which of them are right, and what that says.

The runs are PROBES, the conclusions FINDINGS. A task may know more of its causes: the field "Cause:" of its patch.
"""
import re

PROBES = {
    "plain": "",
    "ones": "--input=ones",
    "identity": "--input=identity --seqlen=64 --heads=1",
    "one tile": "--seqlen=64",
    "many tiles": "--seqlen=512 --heads=1",
    "one head": "--heads=1",
    "odd": "--seqlen=97",
    "wide": "--head-dim=128",
    "causal": "--causal",
    "large": "--input=large",
    "waves": "--input=waves --seqlen=512 --heads=1",
    "other order": "--schedule=1",
    "far below 0": "--seqlen=2 --heads=32 --causal --input=large",
}

# The same for a decode stage.
DECODE_PROBES = {
    "plain": "",
    "ones": "--input=ones",
    "one part": "--splits=1",
    "few keys": "--keys=16",
    "many keys": "--keys=2048",
    "even": "--keys=512",
    "one query": "--heads=2",
    "large group": "--heads=16 --kv-heads=1",
    "wide": "--head-dim=128",
    "large": "--input=large",
    "few and large": "--keys=1 --heads=64 --kv-heads=64 --input=large",
    "waves": "--input=waves",
    "other order": "--schedule=1",
}

# Probes that are right, probes that are wrong, and what follows. Each that fits is printed, from the narrowest on.
FINDINGS = (
    (("one tile", "plain"), ("many tiles",),
     "only long sequences are wrong: look at what goes from one tile to the next"),
    (("one tile",), ("plain",),
     "one tile of 64 keys is right, two are wrong: look at what goes from one tile to the next"),
    (("plain",), ("odd",),
     "only a sequence that ends inside a tile is wrong: look at the rows and keys behind its end"),
    (("one part",), ("plain",),
     "with one part it is right, with four it is wrong: look at where the parts lie and how they are combined"),
    (("few keys",), ("plain",),
     "16 keys are right, 400 are wrong: look at what goes from one tile to the next, and at how warps are combined"),
    (("plain",), ("many keys",),
     "400 keys are right, 2048 are wrong: then each slot of a ring is used several times"),
    (("even",), ("plain",), "only a last tile that is not full is wrong: look at the keys behind the end"),
    (("one query",), ("plain",), "one query for each key head is right, four are wrong: whose row is it?"),
    (("plain",), ("large group",),
     "up to 8 query heads of a key head are right, 16 are wrong: an mma has 8 columns, so these are two of them"),
    (("plain", "large"), ("few and large",),
     "only a row whose scores are all far below 0 is wrong: with what does the maximum begin?"),
    (("plain",), ("causal",), "only the causal mask is wrong: which keys may query i see, and in which tiles?"),
    (("plain",), ("wide",), "D = 64 is right and D = 128 is wrong: something counts on 64 columns"),
    (("wide",), ("plain",), "D = 128 is right and D = 64 is wrong: something counts on 128 columns"),
    (("one head",), ("plain",), "one head is right, two are wrong: whose memory is read or written?"),
    (("plain",), ("large",),
     "only large scores are wrong: look at the maximum, what it begins with and what follows it"),
    (("plain", "many tiles"), ("waves",),
     "only a maximum that grows from tile to tile is wrong: look at what was added up with the older one"),
    (("large", "causal"), ("far below 0",),
     "only a row whose scores are all far below 0 is wrong: with what does the maximum begin?"),
    (("plain",), ("other order",), "only another order of the warps is wrong: something is not waited for"),
    (("ones", "identity"), ("plain",),
     "with equal numbers, and with one key for each query, it is right. So rows and keys are in their place, and the "
     "right keys count: a factor or the softmax is wrong, or a piece is transposed (the identity is its own "
     "transpose)"),
    (("ones",), ("few keys", "plain"),
     "where all numbers are equal it is right. So the right number of keys counts, and the division fits. Look at which "
     "elements meet, and where results go"),
    (("ones",), ("identity", "plain"),
     "where all numbers are equal it is right. So the right number of keys counts, and the division fits. Look at "
     "which elements meet and where results go, and at what a whole row must share: its maximum"),
    (("identity",), ("ones", "plain"),
     "with one key for each query it is right. So each element is in its place: how many keys count, or what their sum "
     "is divided by, is wrong"),
)
MOST = 3  # findings


def is_explained(text):
    """Whether the report of a run shows a hazard, or no wrong numbers at all."""
    return not re.search(r"^hazards +none", text, re.MULTILINE) or not re.search(r"WRONG|NaN", text)


def outcomes(run, probes):
    """For each probe, whether its run was right, and the report. `run` takes options, and returns a report and an exit
    code. A probe is left out if its kernel was not compiled, or if the program does not know its options."""
    found = {}
    for name, options in probes.items():
        text, code = run(options.split())
        if code in (0, 1) and "the module has no kernel" not in text:
            found[name] = code == 0, text
    return found


def found_place(text):
    """With the identity as Q and K, O is V, whose numbers show their position. Where at least three of the elements
    shown have the number of another one, equally far away: a sentence. (common/harness/problem.c, fill_arange)"""
    moves = {}
    for row, column, got in re.findall(r" O\[0\]\[0\]\[(\d+)\]\[(\d+)\]: got (-?[\d.]+(?:e-?\d+)?),", text):
        number = (float(got) + 1) * 1024
        if abs(number - round(number)) > 0.01:
            continue
        place = int(row) * 64 + int(column)
        # The numbers begin again after 2039 of them: the same row or column is likelier than another one.
        nearest = min((round(number), round(number) + 2039), key=lambda other, place=place: (
            other // 64 != place // 64 and other % 64 != place % 64, abs(other - place)))
        moves.setdefault(nearest - place, []).append((place, nearest))
    same = max(moves.values(), key=len, default=())
    if len(same) < 3 or same[0][0] == same[0][1]:
        return None
    (row, column), (other_row, other_column) = (divmod(position, 64) for position in same[0])
    return (f"with {PROBES['identity']} O should be V, and O[{row}][{column}] is what belongs to "
            f"row {other_row}, column {other_column}")


def first_wrong_row(text):
    """With one key for each query, which row is the first that is wrong: a sentence unless it is row 0."""
    row = re.search(r" O\[0\]\[0\]\[(\d+)\]", text)
    return f"with {PROBES['identity']} row {row[1]} is the first that is wrong" if row and row[1] != "0" else None


def right_before(report):
    """Of the run that failed, what stands before the first wrong element: a sentence if there is anything."""
    place = re.search(r" \w+\[0\]\[0\]\[(\d+)\]\[(\d+)\]: got", report)
    if not place or place[1] + place[2] == "00":
        return None
    return (f"the first row is right up to column {int(place[2]) - 1}" if place[1] == "0" else
            f"the rows up to {int(place[1]) - 1} are right in this run")


def ratio_of_ones(text):
    """With inputs of 1, each element of O is 1: a sentence if all that are shown are the same other number."""
    got = set(re.findall(r" O\[.*: got (-?[\d.]+(?:e-?\d+)?),", text))
    return f"with {PROBES['ones']} all of O should be 1, and is {got.pop()}" if len(got) == 1 else None


def tensors(text):
    """Of a backward pass, which gradients are right and which are wrong: a sentence, or None."""
    wrong, right = re.findall(r"elements of (d[QKV]) differ", text), re.findall(r"right: .* of (d[QKV])", text)
    if len(wrong) == 3:
        return "dQ, dK and dV are wrong: all three need the weights, so look at P first"
    return f"{' and '.join(right)} right, {' and '.join(wrong)} wrong" if wrong and right else None


def diagnosis(report, run):
    """Lines for a run whose report shows wrong numbers; none where a hazard explains them."""
    if is_explained(report):
        return []
    probes = DECODE_PROBES if re.search("^problem +decode", report, re.MULTILINE) else PROBES
    found = outcomes(run, probes)
    right = [probes[name] or "default options" for name, (is_right, _) in found.items() if is_right]
    wrong = [probes[name] or "default options" for name, (is_right, _) in found.items() if not is_right]
    lines = [f"{word}     {'; '.join(options)}" for word, options in (("right", right), ("wrong", wrong)) if options]
    if not right:
        lines = [f"wrong     with each of {len(wrong)} inputs and shapes"] if wrong else []
    said = [sentence for good, bad, sentence in FINDINGS if all(found.get(name, (False,))[0] for name in good) and
            all(not found.get(name, (True,))[0] for name in bad)]
    if not found.get("identity", (True,))[0]:
        said.insert(0, found_place(found["identity"][1]) or first_wrong_row(found["identity"][1]))
    if not found.get("ones", (True,))[0]:
        said.insert(0, ratio_of_ones(found["ones"][1]))
    if "got NaN" in report:
        said.insert(0, "NaN comes from 0 / 0 and from calculations with infinity: which number is infinite, or divides "
                       "by a sum of nothing?")
    said.insert(0, tensors(report))
    if not any(said):
        said.append(right_before(report))
    return lines + [f"so        {sentence}" for sentence in said if sentence][:MOST]
