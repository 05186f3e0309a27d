#!/usr/bin/env python3
"""Other people's programs on the emulator: fetches, builds and runs them with hopper-run.

    python3 tests/others/run.py                     every program of programs.toml
    python3 tests/others/run.py fast.cu 'llm.c/*'   those whose name matches a pattern, * for anything
    python3 tests/others/run.py --table             writes the table in notes/other-programs.md from the last results

The sources come from public repositories, at the commits that programs.toml pins, into build/others; nothing of them is
kept in this one. They run as they are, but for the sizes and repeat counts that programs.toml edits: an emulator is
slower than a GPU. Each result is kept in build/others/results.

Exit code: 0, when each program has ended as programs.toml says; otherwise 1.
"""
import fnmatch
import json
import os
import re
import shutil
import sys
import tomllib

from programs import FLAGS, ROOT, edit, fetch, findings, hopper_run, run, write_table

FOLDER = os.path.join(ROOT, "build", "others")
NOTE = os.path.join(ROOT, "notes", "other-programs.md")
SECONDS = 600  # after which a program is stopped


# ---- one program ----

def build(repository, program):
    """Builds a program in a copy of its folder. Returns the copy and None, or what the compiler reported."""
    source = os.path.join(fetch(repository, FOLDER), program.get("folder", repository.get("folder", ".")))
    copy = os.path.join(FOLDER, "built", repository["name"], program["name"].replace("/", "-"))
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
    edit(copy, program.get("edited", program["files"]), program.get("edits", []))
    include = [os.path.join(fetch(repository, FOLDER), path) for path in repository.get("include", [])]
    command = ["nvcc"] + FLAGS + repository.get("flags", []) + program.get("flags", []) + \
        [f"-I{path}" for path in include] + program["files"] + ["-o", "program"] + program.get("libraries", [])
    if "fatbin" in program:  # a kernel that the program loads from a file
        run(["nvcc"] + FLAGS + ["-fatbin", program["fatbin"] + ".cu", "-o", program["fatbin"] + "64.fatbin"], copy)
    done = run(command, copy)
    return copy, done.stderr[-2000:] if done.returncode else None


def execute(copy, program, arguments):
    """Runs it. A dictionary: exit code (None: stopped after SECONDS), output, seconds, findings, right."""
    code, output, seconds = hopper_run(copy, ["./program"] + arguments, SECONDS)
    found = findings(output)
    ends_well = code == 0 or (code == 1 and found["fault"] > 0)  # hopper-run's own exit code for faults
    right = ends_well and bool(re.search(program["right"], output)) and \
        not re.search(program.get("wrong", r"(?!)"), output)
    return {"code": code, "seconds": round(seconds, 1), "right": right, "output": output[-60000:], "findings": found}


def judgement(program, arguments):
    """What programs.toml says of a run, (kind, sentence): "fault", "formal", "fails" (for its own reasons) or None."""
    for kind in ("fault", "formal", "fails"):
        sentences = program.get(kind, {})
        if " ".join(arguments) in sentences:
            return kind, sentences[" ".join(arguments)]
    return None, ""


def as_expected(kind, result):
    """Whether a result is what programs.toml says: right, with the faults that it names and no others."""
    if "error" in result:
        return False
    faults = result["findings"]["fault"] > 0
    if kind == "fault":
        return faults
    return not faults and result["right"] == (kind != "fails")


def runs(programs, patterns):
    """(repository, program, arguments, name) of each run whose name matches."""
    for repository in programs["repository"]:
        for program in repository["program"]:
            for arguments in program.get("arguments", [[]]):
                name = "/".join([repository["name"], program["name"]] + arguments)
                if not patterns or any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")
                                       for pattern in patterns):
                    yield repository, program, arguments, name


def result_path(name):
    return os.path.join(FOLDER, "results", re.sub(r"[^\w.-]", "-", name) + ".json")


def run_all(programs, patterns):
    os.makedirs(os.path.join(FOLDER, "results"), exist_ok=True)
    built, all_right = {}, True
    for repository, program, arguments, name in runs(programs, patterns):
        key = repository["name"], program["name"]
        if key not in built:
            built[key] = build(repository, program)
        copy, error = built[key]
        result = {"error": error} if error else execute(copy, program, arguments)
        with open(result_path(name), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        good = as_expected(judgement(program, arguments)[0], result)
        all_right &= good
        print(f"{'ok  ' if good else 'NOT '}{name}: {describe(result)}", flush=True)
    return 0 if all_right else 1


def describe(result):
    if "error" in result:
        return "does not compile: " + result["error"].strip().split("\n")[0]
    if result["code"] is None:
        return f"not done after {SECONDS} s"
    found = ", ".join(f"{count} {kind}{'s' * (count > 1 and kind != 'formal')}"
                      for kind, count in result["findings"].items() if count) or "no findings"
    return f"{'right' if result['right'] else 'NOT right'}, {found}, {result['seconds']} s"


# ---- the table ----

def kept(name):
    """The last result of a run, or None."""
    if not os.path.exists(result_path(name)):
        return None
    with open(result_path(name), encoding="utf-8") as file:
        return json.load(file)


def row(name, results, sentence):
    """One line of the table for runs of which the same is to be said."""
    counts = {kind: sum(result["findings"][kind] for result in results) for kind in ("fault", "formal", "note")}
    found = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "none"
    right = "yes" if all(result["right"] for result in results) else "no"
    return f"| {name} | {right} | {found} | {sum(result['seconds'] for result in results):.0f} | {sentence} |"


def table(programs):
    """The lines of the notes' table: a row for the runs of a program without findings, and one for each other run."""
    yield "| program, kernel | right | findings | seconds | our judgement |"
    yield "|---|---|---|---|---|"
    for repository in programs["repository"]:
        for program in repository["program"]:
            name = "/".join([repository["name"], program["name"]])
            runs_of = [(arguments, kept("/".join([name] + arguments))) for arguments in program.get("arguments", [[]])]
            runs_of = [(arguments, result) for arguments, result in runs_of if result and "findings" in result]
            plain = [(arguments, result) for arguments, result in runs_of
                     if not judgement(program, arguments)[0] and result["right"] and not any(result["findings"].values())]
            if plain:
                kernels = ", ".join(" ".join(arguments[:1]) for arguments, _ in plain)
                yield row(f"{name} {kernels}".strip(), [result for _, result in plain], "")
            for arguments, result in runs_of:
                if (arguments, result) not in plain:
                    yield row(" ".join([name] + arguments[:1]), [result], judgement(program, arguments)[1])


def main(arguments):
    with open(os.path.join(ROOT, "tests", "others", "programs.toml"), "rb") as file:
        programs = tomllib.load(file)
    if arguments == ["--table"]:
        write_table(NOTE, "table", table(programs))
        return 0
    if arguments and arguments[0].startswith("-"):
        sys.exit(__doc__)
    return run_all(programs, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
