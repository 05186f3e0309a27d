"""What is done with other people's programs: fetch a pinned commit, change some of it, compile it, run it."""
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ["-w", "-std=c++17", "-lineinfo", "-cudart", "shared", "-gencode", "arch=compute_90a,code=compute_90a"]


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, **options)


def address(url):
    """Where a repository is fetched from. The variable MIRROR names another place, as /mirror/{owner}+{name}/repo."""
    owner, name = url.split("/")[-2:]
    return os.environ.get("MIRROR", "").format(owner=owner, name=name) or url


def fetch(repository, parent):
    """The repository's folder below a parent folder, with the pinned commit checked out."""
    folder = os.path.join(parent, repository["name"])
    head = run(["git", "rev-parse", "HEAD"], folder).stdout.strip() if os.path.isdir(folder) else ""
    if head == repository["commit"]:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for command in (["init", "-q"], ["fetch", "-q", "--depth=1", address(repository["url"]), repository["commit"]],
                    ["checkout", "-q", "FETCH_HEAD"]):
        done = run(["git"] + command, folder)
        if done.returncode:
            shutil.rmtree(folder)
            sys.exit(f"{repository['name']}: git {command[0]}: {done.stderr.strip()}")
    return folder


def edit(folder, files, edits):
    """Replaces patterns in files. One that is found nowhere is an error: then the program is not what it was."""
    for pattern, text in edits:
        found = 0
        for file in files:
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as stream:
                content, count = re.subn(pattern, text, stream.read())
            if count:
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(content)
            found += count
        if not found:
            sys.exit(f"{folder}: nothing matches {pattern!r}")


def findings(text):
    """The numbers of faults, formal findings and notes that hopper-run counts in its last line of that kind."""
    heads = re.findall(r"^hopper-run: [\d,]+ launch(?:es)?, (.*)", text, re.MULTILINE)
    numbers = dict.fromkeys(("fault", "formal", "note"), 0)
    for count, kind in re.findall(r"([\d,]+) (fault|formal|note)", heads[-1] if heads else ""):
        numbers[kind] = int(count.replace(",", ""))
    return numbers


def hopper_run(folder, command, seconds):
    """Runs a command with hopper-run. The exit code (None: stopped after so many seconds), the output, the seconds."""
    begin = time.time()
    try:
        done = run([os.path.join(ROOT, "hopper-run")] + command, folder, timeout=seconds)
        code, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as stopped:
        code, output = None, (stopped.stdout or b"").decode(errors="replace")
    return code, output, time.time() - begin


def write_table(page, name, lines):
    """Replaces what stands in a page between <!-- NAME --> and <!-- end of NAME -->."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    with open(page, encoding="utf-8") as file:
        before, _, rest = file.read().partition(begin)
    _, _, after = rest.partition(end)
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n".join(lines) + "\n" + end + after)
