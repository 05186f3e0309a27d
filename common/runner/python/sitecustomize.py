"""Python runs this when it starts under hopper-run: PyTorch and Triton are prepared as soon as they are imported."""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


# What prepares a module.
PREPARED_BY = {"torch": "hopper_run_torch", "triton.testing": "hopper_run_triton"}


class Preparer:  # pylint: disable=too-few-public-methods
    """Finds such a module where it is, and adds a step to the end of its import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """The spec of a module that is prepared; None for any other one."""
        if name not in PREPARED_BY:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            importlib.import_module(PREPARED_BY[name]).install()

        spec.loader.exec_module = exec_module
        return spec


def run_the_users():
    """Runs the sitecustomize that Python would have found without this one."""
    others = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "HOPPER_RUN_REPORT" in os.environ:
    sys.meta_path.insert(0, Preparer)
run_the_users()
