"""What is the learner's: the folder of their files, notes of what has passed there, and requests that make no sense."""
import hashlib
import os
import signal
import subprocess
import sys

MINE = os.environ.get("MINE", "mine")


class Wrong(Exception):
    """What the learner did, in one line: exit code 2."""


def read_note(path):
    """What a note of ours says; "" if there is none."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def write_note(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def state_of(paths):
    """What identifies these files as they are now; a missing one counts as empty."""
    text = b"".join(open(path, "rb").read() for path in paths if os.path.exists(path))
    return hashlib.sha256(text).hexdigest()


def passed_as(folder):
    """The state of the files in a folder of the learner's when they passed; "" if they have not."""
    return read_note(os.path.join(folder, ".passed"))


def note_passed(folder, state):
    write_note(os.path.join(folder, ".passed"), state)


def keep_given(folder, name, text):
    """Keeps a file of the learner's as it was given: see merge_update."""
    os.makedirs(os.path.join(folder, ".given"), exist_ok=True)
    with open(os.path.join(folder, ".given", name), "w", encoding="utf-8") as file:
        file.write(text)


def merge_update(folder, name, now):
    """Merges into the learner's file what has changed in the repository since it was given; `now` is what would be given
    today. Where both have changed the same lines the learner's stay. Returns a line about it, or None if nothing has
    changed."""
    given, mine = os.path.join(folder, ".given", name), os.path.join(folder, name)
    if not os.path.exists(given) or not os.path.exists(mine):
        return None
    with open(given, encoding="utf-8") as file:
        if file.read() == now:
            return None
    with open(f"{given}.now", "w", encoding="utf-8") as file:
        file.write(now)
    done = subprocess.run(["git", "merge-file", "-p", "--ours", mine, given, f"{given}.now"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise Wrong(f"{mine} cannot be brought up to date: {done.stderr.strip()}")
    os.replace(mine, f"{mine}.old")
    with open(mine, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    os.replace(f"{given}.now", given)
    return (f"{mine}: the stage has changed since you began. Its changes are now in your file, but for lines that you had "
            f"changed as well; {mine}.old is as it was.")


def indented(lines):
    return "\n".join(f"    {line}" for line in lines)


def run_command(name, command, faults=(Wrong,)):
    """Ends the program with the exit code that command() returns, or with 2 and one line on what is wrong."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for make progress | head
    try:
        sys.exit(command())
    except faults as fault:
        print(f"{name}: {fault}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error.filename}: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    sys.exit(2)
