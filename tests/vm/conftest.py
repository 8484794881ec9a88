# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Fixtures for tests of homa.ko: a kernel, the module for it, guests with both.

Each test runs under every kernel in HOMA_VM_KERNELS (the runner gives one at a time; without
it: all of lab.vm.TESTED that are in the cache or can be had). What a machine cannot have is skipped with the
reason. lab/vm/__init__.py says what guests can do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.vm import guest as guests
from lab.vm.kernels import BUILT
from lab.vm import TESTED, Guest, Kernel, Missing, Options, Result, build, prepare, run

BUILD = Path(os.environ.get("HOMA_BUILD") or Path(__file__).resolve().parents[2] / "build")
KERNELS = [k for k in os.environ.get("HOMA_VM_KERNELS", ",".join(TESTED)).split(",") if k]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "once: the kernel makes no difference, one is enough")
    config.addinivalue_line(
        "markers", "oldest: one kernel is enough in every run, all before a release"
    )
    config.addinivalue_line("markers", "long: before a release is enough (./homa test --vm-all)")
    config.addinivalue_line("markers", "debug: short enough for the debug kernel in every run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """HOMA_VM_ONCE=0: leave out what is marked "once" (another process runs it), but under the kernels
    that notice mistakes what is marked "debug", too. HOMA_VM_DEBUG=0: nothing else there. HOMA_VM_LONG=0: leave
    out what is marked "long". With both ONCE=0 and LONG=0 also what is marked "oldest"."""
    only_elsewhere = os.environ.get("HOMA_VM_ONCE") == "0"
    short = os.environ.get("HOMA_VM_LONG") == "0"
    only_marked = os.environ.get("HOMA_VM_DEBUG") == "0"
    left_out = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        name = item.callspec.params.get("kernel", "") if hasattr(item, "callspec") else ""
        here = name in BUILT and "debug" in marks
        one_kernel = "once" in marks or not name or (short and "oldest" in marks)
        elsewhere = only_elsewhere and not here and one_kernel
        slow = only_marked and name == "debug" and "debug" not in marks
        if elsewhere or slow or (short and "long" in marks):
            left_out.append(item)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often a guest had to be started again is part of the result."""
    for name in sorted(set(guests.crashes)):
        count = f"{guests.crashes.count(name)} of {guests.boots.count(name)}"
        terminalreporter.write_line(
            f"homa-note: {count} boots of kernel {name} failed before our first program"
        )
    if guests.races:
        kinds = len(set(guests.races))
        terminalreporter.write_line(
            f"homa-note: {len(guests.races)} data races ({kinds} kinds) without homa.ko"
        )


@pytest.fixture(scope="session", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """A kernel that is ready to boot."""
    try:
        return prepare(request.param, build=False)
    except Missing as reason:
        pytest.skip(f"kernel {request.param}: {reason}")


@pytest.fixture(scope="session")
def module(kernel: Kernel) -> Path:
    """homa.ko for the kernel."""
    return build(kernel)


def program(name: str) -> Path:
    """A program of tests/vm (vm_NAME), of the examples or the tools, as it was built."""
    for path in (
        f"tests/vm/vm_{name}",
        f"tests/vm/{name}",
        f"examples/{name}",
        f"bench/{name}",
        f"tools/streams/{name}",
    ):
        if os.access(BUILD / path, os.X_OK):
            return (BUILD / path).resolve()
    raise FileNotFoundError(f"{name} is not built in {BUILD} (HOMA_BUILD names the build)")


def with_module(module: Path, options: Options | None, programs: tuple[str | Path, ...]) -> Options:
    """`options` and homa.ko and the programs: of ours by name, of the machine by path. Ours have
    two names in a guest, vm_NAME and NAME."""
    made = options or Options()
    found = tuple(program(p) if isinstance(p, str) else p for p in programs)
    short = {f"usr/bin/{p.name.removeprefix('vm_')}": p for p in found if p.name[:3] == "vm_"}
    return replace(
        made,
        modules=(module, *made.modules),
        programs=(*found, *made.programs),
        files={**short, **made.files},
    )


# guest("script", "rpc", ...): the finished run; a complaint of the kernel fails the test.
RunGuest = Callable[..., Result]


@pytest.fixture
def guest(kernel: Kernel, module: Path) -> RunGuest:
    """Boot, load homa.ko, run a script with our programs in it, power off.

    The result has passed Result.check() unless `check=False`.
    """

    def boot(
        script: str,
        *programs: str | Path,
        options: Options | None = None,
        timeout: float = 60,
        check: bool = True,
    ) -> Result:
        result = run(kernel, script, with_module(module, options, programs), timeout)
        if check:
            result.check()
        return result

    return boot


# with live("rpc") as machine: machine.run("..."): several scripts in one guest.
@pytest.fixture
def live(kernel: Kernel, module: Path) -> Callable[..., Guest]:
    """A guest that stays up: a context; leaving it checks the kernel's log."""

    def boot(*programs: str | Path, options: Options | None = None) -> Guest:
        return Guest(kernel, with_module(module, options, programs))

    return boot
