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
    "wide": "--head-dim=128 --seqlen=256 --heads=1",
    "causal": "--causal",
    "large": "--input=large",
    "waves": "--input=waves --seqlen=512 --heads=1",
    "other order": "--schedule=1",
    "far below 0": "--seqlen=2 --heads=32 --causal --input=large",
    "rows": "--input=rows --seqlen=64 --heads=1",
    "columns": "--input=columns --seqlen=64 --heads=1",
    "places": "--input=places --seqlen=64 --heads=1",
    "many heads": "--seqlen=2 --heads=32 --causal",
    "causal tiles": "--seqlen=300 --heads=4 --causal",
    "wide causal": "--head-dim=128 --seqlen=300 --heads=2 --causal",
    "cliff": "--seqlen=300 --heads=1 --input=cliff",
}
E4M3 = {"rows", "columns"}  # show the places of numbers that e4m3 has; fp16 has those of identity
BACKWARD = {"places"}
# Of these dS is 0 or the maximum counts: a backward pass learns nothing.
FORWARD = {"ones", "identity", "waves", "far below 0"}

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
ANY_PASS = (
    (("one tile", "plain"), ("many tiles",),
     "only long sequences are wrong: look at what goes from one tile to the next"),
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
    (("causal",), ("plain", "one head"),
     "with a causal mask it is right, without one it is wrong: what is masked or skipped that every query may see?"),
    (("plain", "many tiles"), ("wide",), "D = 64 is right and D = 128 is wrong: something counts on 64 columns"),
    (("wide",), ("plain", "many tiles"), "D = 128 is right and D = 64 is wrong: something counts on 128 columns"),
    (("plain", "many keys"), ("wide",), "D = 64 is right and D = 128 is wrong: something counts on 64 columns"),
    (("wide",), ("plain", "many keys"), "D = 128 is right and D = 64 is wrong: something counts on 128 columns"),
    (("wide", "causal tiles"), ("wide causal",),
     "D = 64 is right and D = 128 is wrong: something counts on 64 columns"),
    (("one head",), ("plain",), "one head is right, two are wrong: whose memory is read or written?"),
    (("plain",), ("other order",), "only another order of the warps is wrong: something is not waited for"),
)
FINDINGS_BACKWARD = ANY_PASS + (
    (("one tile",), ("plain",),
     "64 queries and keys are right, 128 are wrong. A warpgroup has 64 of them: look at what the second one reads and "
     "writes"),
    (("plain",), ("large",), "only large scores are wrong: which number becomes infinite, or too small for fp16?"),
)
FINDINGS = ANY_PASS + (
    (("one tile",), ("plain",),
     "one tile of 64 keys is right, two are wrong: look at what goes from one tile to the next"),
    (("plain",), ("large",),
     "only large scores are wrong: look at the maximum, what it begins with and what follows it"),
    (("plain", "many tiles"), ("waves",),
     "only a maximum that grows from tile to tile is wrong: look at what was added up with the older one"),
    (("plain", "waves", "causal tiles"), ("cliff",),
     "only scores that rise very far from one tile to the next are wrong: which numbers become infinite, or are lost?"),
    (("plain", "causal"), ("many heads",),
     "few heads are right, many are wrong: look at what a block keeps from one tile of queries to the next"),
    (("causal", "many tiles", "many heads"), ("causal tiles",),
     "with a causal mask only longer sequences are wrong: look at the order of the tiles, and at which keys are hidden "
     "in each"),
    (("large", "causal", "many heads"), ("far below 0",),
     "only a row whose scores are all far below 0 is wrong: with what does the maximum begin? And does it take in "
     "hidden keys?"),
    (("ones", "identity"), ("plain", "causal"),
     "with equal numbers, and with one key for each query, it is right. So rows and keys are in their place, and the "
     "right keys count: a factor or the softmax is wrong, or a piece is transposed (the identity is its own "
     "transpose)"),
    (("ones",), ("few keys", "plain"),
     "where all numbers are equal it is right. So the right number of keys counts, and the division fits. Look at "
     "which elements meet, and where results go"),
    (("ones",), ("identity", "plain"),
     "where all numbers are equal it is right. So the right number of keys counts, and the division fits. Look at "
     "which elements meet and where results go, and at what a whole row must share: its maximum"),
    (("identity",), ("ones", "plain"),
     "with one key for each query it is right. So each element is in its place: how many keys count, or what their sum "
     "is divided by, is wrong"),
)
MOST = 3  # findings
SHAPES = ("plain", "many tiles", "wide", "one head", "odd", "causal")  # the probes of a run with hazards


def is_explained(text):
    """Whether the report of a run shows a hazard, or no wrong numbers at all."""
    return not re.search(r"^hazards +none", text, re.MULTILINE) or not re.search(r"WRONG|NaN", text)


def outcomes(run, probes):
    """For each probe, whether its run was right, and the report. `run` takes options, and returns a report and an exit
    code. The result lacks probes whose kernel was not compiled and probes whose options the program does not know."""
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
    swizzled = row % 8 and all(other == place ^ place // 64 % 8 * 8 for place, other in same)
    return (f"with {PROBES['identity']} O should be V, and O[{row}][{column}] is what belongs to "
            f"row {other_row}, column {other_column}" +
            (": chunks of 8 columns have changed places as a swizzle does it, by the row's number. So only one of two "
             "sides swizzles, the one that writes a tile or the one that reads it" if swizzled else ""))


NUMBERS = [step * 2 ** octave for octave in range(8) for step in (7.5, 8, 9, 10, 11, 12, 13, 14)]  # number_of_place
SHOWN = r" {}\[0\]\[0\]\[(\d+)\]\[(\d+)\]: got (-?[\d.]+(?:e-?\d+)?),"  # of a report's wrong elements


def numbers_shown(text):
    """Of a run with the input rows or columns, the wrong elements and the row or column whose number each has; nothing
    unless at least three have a number."""
    found = []
    for row, column, got in re.findall(SHOWN.format("O"), text):
        nearest = min(range(64), key=lambda i, got=float(got): abs(NUMBERS[i] - got))
        if abs(NUMBERS[nearest] - float(got)) > 0.02 * NUMBERS[nearest]:
            return []
        found.append(((int(row), int(column)), nearest))
    return found if len(found) >= 3 else []


def found_place_e4m3(rows, columns):
    """The same of an FP8 kernel, of which two runs show the row and the column of an element: a sentence, or None."""
    rows, columns = numbers_shown(rows), numbers_shown(columns)
    if not rows and not columns:
        return None
    place = min(found[0][0] for found in (rows, columns) if found)
    row, column = (found[0][1] if found and found[0][0] == place else here
                   for found, here in zip((rows, columns), place))
    return (f"with {PROBES['rows']}, and with columns for rows, O should be V, and O[{place[0]}][{place[1]}] is what "
            f"belongs to row {row}, column {column}")


def place_of_ds(text):
    """Of a backward pass with the input places, where dQ shows dS: a sentence on the first element that is another one,
    or None. (common/harness/problem.c, fill_places)"""
    shown = [(int(row), int(column), float(got)) for row, column, got in re.findall(SHOWN.format("dQ"), text)]
    places = [got * 2048 for _, _, got in shown]
    if len(shown) < 3 or any(not round(place) or abs(place - round(place)) > 0.01 for place in places):
        return None
    row, column, got = shown[0]
    key, query = divmod(round(abs(got) * 2048) - 1, 64)
    return (f"with {PROBES['places']} dQ should show dS, and dQ[{row}][{column}] is what belongs to query {query}, key "
            f"{key + 32 * (got < 0)}")


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
    hint = {"dQ": "look at what dQ alone needs, from dS on", "dK": "look at what dK alone needs, from dS on",
            "dV": "look at what dV alone needs, from P on",
            "dQdK": "both need dS, and dV does not: look at dP, delta and dS",
            "dKdV": "both are sums over queries"}.get("".join(wrong))
    if not wrong or not right:
        return None
    return f"{' and '.join(right)} right, {' and '.join(wrong)} wrong" + f": {hint}" * bool(hint)


def forms(report):
    """Of stage 04's single products, which forms and layouts are wrong: a sentence, or None. A in shared memory is
    always K-major; so is the B of half of the products."""
    rows = {(a, b): [count != "0" for count in counts.split()] for a, b, counts in re.findall(
        r"^ +A (shared|registers), B ([KN])-major((?: +[\d,]+){4})$", report, re.MULTILINE)}
    wrong = {form for form, layouts in rows.items() if any(layouts)}
    layouts = {"".join("x" if one else "." for one in rows[form]) for form in wrong}  # no swizzle, 32B, 64B, 128B
    if not wrong:
        return None
    where = {".xx.": "with 32B and 64B, where a line is cut into panels: where does the next panel begin? ",
             "x...": "without a swizzle: which distance leads along K, and which to the next eight lines? ",
             ".xxx": "with a swizzle: what does place() do with the chunks of a line? "}.get("".join(layouts), "")
    tile = {frozenset({("registers", "K"), ("registers", "N")}):
            "A from shared memory is right, A from registers is wrong: which numbers of A does a thread hold?",
            frozenset({("shared", "N"), ("registers", "N")}): "only products with an MN-major tile are wrong",
            frozenset({("shared", "K"), ("shared", "N"), ("registers", "K")}):
            "only products with a K-major tile are wrong (A in shared memory always is one)"}.get(frozenset(wrong))
    if len(wrong) == 4 and layouts == {"xxxx"}:
        return ("every layout is wrong, so no descriptor is the cause: which numbers of D does a thread hold, and what "
                "was in them before?")
    return ": ".join(words for words in (tile, where and f"wrong {where.strip()}") if words) or None


def conclusions(found, findings=FINDINGS):
    """The sentences that fit the probes."""
    return [sentence for good, bad, sentence in findings if all(found.get(name, (False,))[0] for name in good) and
            all(not found.get(name, (True,))[0] for name in bad)]


def beside_hazards(report, run):
    """Of a run with hazards and wrong numbers: whether one shape alone is wrong, because then a race may be a
    consequence of a wrong address. At most one line."""
    if not re.search(r"elements differ", report):
        return []
    shapes = {name: options for name, options in probes_for(report).items() if name in SHAPES}
    return [f"so        {sentence}" for sentence in conclusions(outcomes(run, shapes))][:1]


def is_backward(report):
    return "; backward\n" in report


def probes_for(report):
    """The probes of a report's kind of kernel."""
    if re.search("^problem +decode", report, re.MULTILINE):
        return DECODE_PROBES
    left_out = (FORWARD if is_backward(report) else BACKWARD) | (set() if "; e4m3" in report else E4M3)
    return {name: options for name, options in PROBES.items() if name not in left_out}


def diagnosis(report, run):
    """Lines for a run whose report shows wrong numbers; hardly any where a hazard explains them."""
    if is_explained(report):
        return beside_hazards(report, run)
    if "leaves its counter" in report and "differ" not in report:
        return ["so        all elements are right. The last request of a launch must leave 0: how many requests are there, "
                "and what does the last one return?"]
    probes = probes_for(report)
    found = outcomes(run, probes)
    right = [probes[name] or "default options" for name, (is_right, _) in found.items() if is_right]
    wrong = [probes[name] or "default options" for name, (is_right, _) in found.items() if not is_right]
    lines = [f"{word}     {'; '.join(options)}" for word, options in (("right", right), ("wrong", wrong)) if options]
    if not right:
        lines = [f"wrong     with each of {len(wrong)} inputs and shapes"] if wrong else []
    said = conclusions(found, FINDINGS_BACKWARD if is_backward(report) else FINDINGS)
    if not found.get("identity", (True,))[0]:
        place = None if "rows" in found else found_place(found["identity"][1])  # e4m3 rounds identity's numbers
        said.insert(0, place or first_wrong_row(found["identity"][1]))
    if "rows" in found:
        said.insert(0, found_place_e4m3(found["rows"][1], found["columns"][1]))
    if "places" in found and "elements of dQ differ" in report and "elements of dV differ" not in report:
        said.insert(0, place_of_ds(found["places"][1]) if not found["places"][0] else
                    f"with {PROBES['places']} dQ shows dS and is right. There K is its own transpose, and there is one "
                    "tile")
    if not found.get("ones", (True,))[0]:
        said.insert(0, ratio_of_ones(found["ones"][1]))
    if "(never written: " in report:
        said.insert(0, "some elements are never written: which rows and columns of the output does no thread store?")
    elif "got NaN" in report:
        said.insert(0, "NaN comes from 0 / 0 and from calculations with infinity: which number is infinite, or divides "
                       "by a sum of nothing?")
    said.insert(0, tensors(report) or forms(report))
    if not any(said):
        said.append(right_before(report))
    return lines + [f"so        {sentence}" for sentence in said if sentence][:MOST]
