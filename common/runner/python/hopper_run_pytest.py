"""A plugin of pytest, which hopper-run loads: a test fails when the emulator has found a fault in a kernel of it."""

import ctypes

import pytest

SIZE = 1 << 16


def new_findings():
    """How many faults the emulator has found since the last call, and all of its new findings as text."""
    function = getattr(ctypes.CDLL(None), "hopper_run_new_findings", None)
    if function is None:
        return 0, ""
    text = ctypes.create_string_buffer(SIZE)
    faults = function(text, ctypes.c_size_t(SIZE))
    return faults, text.value.decode(errors="replace")


def judge(item, outcome, when):
    """Fails a phase of a test for the faults that it has brought. If it has failed by itself, they are added."""
    faults, text = new_findings()
    if not faults:
        return
    if outcome.excinfo is not None:
        item.add_report_section(when, "hopper-run", text)
        return
    try:
        pytest.fail("hopper-run has found this in the test's kernels:\n" + text, pytrace=False)
    except pytest.fail.Exception as failure:
        outcome.force_exception(failure)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Also judges the launches of the test's fixtures."""
    outcome = yield
    judge(item, outcome, "call")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    """Judges what the fixtures launch at their end."""
    outcome = yield
    judge(item, outcome, "teardown")
