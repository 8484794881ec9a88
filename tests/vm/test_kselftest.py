# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The kernel's self-tests as the series has them (tools/testing/selftests/net/homa): what is
compiled and run here is taken from the tree after the last patch."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import RunGuest

from lab.series import layout, table
from lab.vm import Kernel, Options, run

SKIPPED = 4


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tests with its program."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    tree = tmp_path_factory.mktemp("tree")
    state = layout.states(table.read().patches, {}, "Nobody <nobody@localhost>")[-1]
    for name, text in state.items():
        if name.startswith((layout.TESTS, layout.UAPI)):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
    folder = tree / layout.TESTS
    # What lib.mk does with the Makefile's variables.
    makefile = (folder / "Makefile").read_text()
    (program,) = re.findall(r"^TEST_GEN_FILES := (\S+)$", makefile, re.M)
    (flags,) = re.findall(r"^CFLAGS \+= (.*) \$\(KHDR_INCLUDES\)$", makefile, re.M)
    words = ["gcc", *flags.split(), "-Werror", f"-I{tree}/include/uapi"]
    words += [str(folder / f"{program}.c"), "-o", str(folder / program)]
    subprocess.run(words, check=True, timeout=60)
    assert re.findall(r"^TEST_PROGS := (\S+)$", makefile, re.M) == ["homa.sh"]
    return folder


def script(tests: Path) -> tuple[str, Options]:
    files: dict[str, bytes | str | Path] = {"t/homa.sh": tests / "homa.sh"}
    return "sh /t/homa.sh; echo status $?", Options(programs=(tests / "homa_rpc",), files=files)


def test_kselftest__passes(guest: RunGuest, tests: Path) -> None:
    words, options = script(tests)
    # The program is beside the script, as in the kernel's tree.
    said = guest(
        f"ln -s /usr/bin/homa_rpc /t/homa_rpc; {words}", options=options, timeout=200
    ).check()
    (plan,) = re.findall(r"^1\.\.(\d+)$", said, re.M)
    assert "TAP version 13" in said
    assert re.findall(r"^not ok .*(?:\n# .*)*", said, re.M) == []
    assert len(re.findall(r"^ok \d+ ", said, re.M)) == int(plan) > 20
    assert "status 0" in said


@pytest.mark.once
def test_kselftest__is_skipped_without_the_module(kernel: Kernel, tests: Path) -> None:
    words, options = script(tests)
    said = run(kernel, f"ln -s /usr/bin/homa_rpc /t/homa_rpc; {words}", options, timeout=60).check()
    assert "1..0 # SKIP the kernel has no Homa" in said
    assert f"status {SKIPPED}" in said
