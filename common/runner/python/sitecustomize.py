"""Python runs this when it starts under hopper-run: PyTorch is prepared as soon as the program imports it."""

import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


class TorchFinder:  # pylint: disable=too-few-public-methods
    """Finds torch where it is, and adds a step to the end of its import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """The spec of torch; None for any other module."""
        if name != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            import hopper_run_torch  # pylint: disable=import-outside-toplevel

            hopper_run_torch.install()

        spec.loader.exec_module = exec_module
        return spec


def run_the_users():
    """Runs the sitecustomize that Python would have found without this one."""
    others = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "HOPPER_RUN_REPORT" in os.environ:
    sys.meta_path.insert(0, TorchFinder)
run_the_users()
