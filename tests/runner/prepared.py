"""Imports a module that hopper-run prepares, a stand-in for triton.testing, as programs and tools find modules."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile


class Loader:
    """One loader of all modules, as pytest's."""

    @staticmethod
    def create_module(_spec):
        """Python's own kind of module will do."""

    @staticmethod
    def exec_module(module):
        """Runs its file."""
        with open(module.__spec__.origin, encoding="ascii") as file:
            exec(file.read(), module.__dict__)  # pylint: disable=exec-used


class Finder:
    """Finds all modules below a folder, wherever Python itself would look."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, _path=None, _target=None):
        """The spec of a module that is there."""
        place = os.path.join(self.folder, *name.split("."))
        for file, below in ((os.path.join(place, "__init__.py"), [place]), (place + ".py", None)):
            if os.path.isfile(file):
                return importlib.util.spec_from_file_location(
                    name, file, loader=Loader, submodule_search_locations=below
                )
        return None


def is_prepared(loader):
    """Whether the module is prepared when it is imported, and knows its own loader."""
    importlib.invalidate_caches()
    for name in ("triton", "triton.testing", "hopper_run_triton"):
        sys.modules.pop(name, None)
    testing = importlib.import_module("triton.testing")
    assert testing.__loader__ is testing.__spec__.loader and (loader in (testing.__loader__, type(testing.__loader__)))
    calls = []
    return testing.do_bench(lambda: calls.append(1)) != 1.0 and calls == [1]


def main():
    """The module on Python's path; with a finder before all others; with one after them that alone knows the module."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "triton"))
        with open(os.path.join(folder, "triton", "__init__.py"), "w", encoding="ascii"):
            pass
        with open(os.path.join(folder, "triton", "testing.py"), "w", encoding="ascii") as file:
            file.write("def do_bench(fn):\n    fn()\n    return 1.0\n")
        finder = Finder(folder)
        sys.path.insert(0, folder)
        assert is_prepared(importlib.machinery.SourceFileLoader)
        sys.meta_path.insert(0, finder)
        assert is_prepared(Loader)
        sys.meta_path.remove(finder)
        sys.path.remove(folder)
        sys.meta_path.append(finder)  # Python's own finder looks where the package lies
        assert is_prepared(importlib.machinery.SourceFileLoader)
    print("prepared")


main()
