"""What is the learner's: the folder of their files, notes of what has passed there, and requests that make no sense."""
import hashlib
import os
import signal
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
