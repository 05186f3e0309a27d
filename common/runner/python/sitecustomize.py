"""Python runs this when it starts under hopper-run: PyTorch and Triton are prepared as soon as they are imported."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


# What prepares a module.
PREPARED_BY = {"torch": "hopper_run_torch", "triton.testing": "hopper_run_triton"}


class Prepared:  # pylint: disable=too-few-public-methods
    """A module's loader, with a step at the end."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def exec_module(self, module):
        """Runs the module, and prepares it."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        importlib.import_module(PREPARED_BY[module.__name__]).install()


class Preparer:  # pylint: disable=too-few-public-methods
    """Asks the other finders for such a module, and puts its loader into Prepared."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """The spec of a module that is prepared; None for any other one."""
        others = sys.meta_path if name in PREPARED_BY else []
        for finder in others:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not Preparer else None
            if spec is not None:
                spec.loader = Prepared(spec.loader) if hasattr(spec.loader, "exec_module") else spec.loader
                return spec
        return None


class Finders(list):
    """The list of finders. The first one stays the first: pytest, for example, puts its own there."""

    def insert(self, index, finder):
        """Inserts a finder, at the front behind the first one."""
        super().insert(index or 1, finder)


def run_the_users():
    """Runs the sitecustomize that Python would have found without this one."""
    others = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "HOPPER_RUN_REPORT" in os.environ:
    sys.meta_path = Finders([Preparer, *sys.meta_path])
run_the_users()
