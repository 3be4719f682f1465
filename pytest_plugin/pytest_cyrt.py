"""``pytest --cyrt-check``: tests run on cyrt's emulated device in checking mode.

pytest imports this module in every run, so it is beside the package and imports that only with the
option.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

GONE = (
    "cyrt has reset device {}: the arrays that were made on it before are gone, those of fixtures "
    "of wider scope (class, module, package, session) and of modules included. Tests that use them "
    "raise RuntimeError. Kernels are loaded again."
)
EXPECTED = (
    "A test that expects a fault has the launch and the wait for it inside pytest.raises, and "
    "calls cyrt.Device().reset() afterwards."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("cyrt").addoption(
        "--cyrt-check",
        action="store_true",
        help="run cyrt's kernels on the emulated device in checking mode; a fault fails its test "
        "with the device's report, and the device is reset",
    )


@pytest.hookimpl(tryfirst=True)  # a conftest.py may open the device
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if early_config.known_args_namespace.cyrt_check:
        set_checking_mode()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("cyrt_check"):
        config.pluginmanager.register(Checks(), "cyrt-check")


def set_checking_mode() -> None:
    """Set the variables that cyrt reads when it opens the device."""
    if os.environ.get("CYRT_DEVICE") == "cuda":
        raise pytest.UsageError(
            "--cyrt-check runs kernels on the emulated device: unset CYRT_DEVICE=cuda"
        )
    wanted = {"CYRT_DEVICE": "emulated", "CYRT_CHECK": "1"}
    if "cyrt" in sys.modules and any(os.environ.get(name) != wanted[name] for name in wanted):
        from cyrt import settings
        from cyrt.driver import table

        if table.is_open():
            raise pytest.UsageError(
                "--cyrt-check: the device is in use already, without checks: set "
                "CYRT_DEVICE=emulated and CYRT_CHECK=1 in the environment"
            )
        settings.get.cache_clear()
    os.environ.update(wanted)


def kernel_first(fault: str) -> str:
    """Put the kernel and its fault before the place and the driver's call, for pytest's summary."""
    call, _, report = fault.partition("\n")
    line, _, rest = report.partition("\n")
    kernel, _, place = line.partition(", block ")
    place, _, what = place.partition(": ")
    if not what:
        return fault
    return "\n".join([f"{kernel}: {what}", f"block {place}", call, *([rest] if rest else [])])


def fault_report(seen: str) -> str:
    """Wait for the devices, reset those that faulted, and return their reports.

    `seen` is the text of the test's own error; a report that it contains is not repeated.
    """
    table = sys.modules.get("cyrt.driver.table")
    if table is None or not table.is_open():
        return ""
    import cyrt

    reports = []
    for index in range(cyrt.Device.count()):
        device, refused = cyrt.Device(index), None
        try:
            with device:
                cyrt.synchronize()
        except cyrt.CudaError as error:
            refused = error
        fault = table.faults.get(index)
        if fault is not None:
            device.reset()
            if str(fault) not in seen:
                reports.append(kernel_first(str(fault)))
            reports.append(GONE.format(index))
            if not seen:
                reports.append(EXPECTED)
        elif refused is not None:  # by the driver: the device works
            reports.append(str(refused))
    return "\n".join(reports)


def judge(item: pytest.Item, when: str, outcome: Any) -> None:
    """Fail a phase of a test that left a fault."""
    error = outcome.excinfo[1] if outcome.excinfo else None
    if isinstance(error, (KeyboardInterrupt, pytest.exit.Exception)):
        return
    passed = error is None or isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception))
    report = fault_report("" if passed else str(error))
    if not report:
        return
    if passed:
        outcome.force_exception(pytest.fail.Exception(report, pytrace=False))
    else:
        item.add_report_section(when, "cyrt", report)


class Checks:
    """The hooks that are called with the option."""

    def pytest_report_header(self) -> str:
        return "cyrt: the emulated device, in checking mode"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, None]:
        judge(item, "setup", (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        judge(item, "call", (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, None]:
        judge(item, "teardown", (yield))
