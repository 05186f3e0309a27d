"""What the tests of plots/peers.py share: where its modules are, its program without PyTorch, and a comparison of
structures with those of C."""
import _ctypes
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "plots")

ANOTHER_LIBRARY = _ctypes.__file__  # none of this project's


class ProgramTest(unittest.TestCase):
    """Runs peers.py with the options of the class and more, where there is no PyTorch."""
    options = ()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with open(os.path.join(cls.folder, "torch.py"), "w", encoding="ascii") as made_up:
            made_up.write("raise ImportError('no PyTorch here')\n")

    def expect(self, arguments, code, words):
        """The exit code, and what the only line of standard error has."""
        environment = dict(os.environ, PYTHONPATH=self.folder, PYTHONDONTWRITEBYTECODE="1")
        command = [sys.executable, "plots/peers.py", *self.options, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)
        self.assertIn(words, done.stderr)


def field_names(structure):
    """Those of a ctypes.Structure, with those that it inherits."""
    return [name for each in reversed(structure.__mro__) for name, _ in vars(each).get("_fields_", ())]


class StructureTest(unittest.TestCase):
    def expect_as_in_c(self, source, structures):
        """The offsets of all fields, and the sizes, of {name in C: ctypes.Structure}."""
        fields = [(name, field) for name in structures for field in field_names(structures[name])]
        lines = [f'printf("%zu ", offsetof({name}, {field}));' for name, field in fields]
        sizes = [f'printf("%zu ", sizeof({name}));' for name in structures]
        program = f"#include <stddef.h>\n#include <stdio.h>\n{source}\nint main(void) {{ {''.join(lines + sizes)} }}"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "offsets")
            subprocess.run(["cc", "-xc", "-I.", "-w", "-", "-o", path], input=program, text=True, check=True)
            printed = subprocess.run([path], capture_output=True, text=True, check=True).stdout.split()
        ours = [getattr(structures[name], field).offset for name, field in fields]
        ours += [ctypes.sizeof(each) for each in structures.values()]
        self.assertEqual(list(map(int, printed)), ours)
