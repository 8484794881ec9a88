# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""KUnit tests of the module's glue: in homa.ko, when it is built with HOMA_KUNIT=1."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.vm import Kernel, Options, build, run

HERE = Path(__file__).resolve()
SOURCES = HERE.parents[2] / "host/kernel/kunit"


@pytest.fixture(scope="module")
def tests(kernel: Kernel) -> Path:
    return build(kernel, arguments=("HOMA_KUNIT=1",))


@pytest.mark.once
@pytest.mark.debug
def test_kunit__all_pass(kernel: Kernel, tests: Path) -> None:
    script = "echo 1 >/sys/module/homa/parameters/selftest; dmesg"
    # One test makes a socket's end give up. What it says of itself is a warning.
    given_up = r"WARNING: .* homak_destroy_sock\+|a socket's RPCs do not end|Call Trace:"
    options = Options(modules=(tests,), expected=given_up)
    result = run(kernel, script, options, timeout=120)
    results = re.findall(r"(not ok|ok) \d+ (?:- )?(\w+)", result.check())
    assert [name for state, name in results if state != "ok"] == []
    wanted = {
        name
        for path in SOURCES.glob("kunit_*.c")
        for name in re.findall(r"KUNIT_CASE\((\w+)\)", path.read_text())
    }
    assert wanted
    assert wanted <= {name for _, name in results}
