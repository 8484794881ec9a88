# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --cbmc` with a program in CBMC's place: what is a proof and what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.test import cbmc
from lab.test.context import Context

END = "[main.assertion.9] line 60 this line is reached: FAILURE\n"
GOOD = f"[main.assertion.1] line 50 n == 3: SUCCESS\n{END}** 1 of 2 failed\nVERIFICATION FAILED\n"
BAD = "[homa_ranges_add_slow.overflow.1] file x.c line 97 arithmetic overflow in u32: FAILURE\n"
NOWHERE = "[main.precondition_instance.1] memcpy source region readable: FAILURE\n"
UNWOUND = "[main.unwind.0] line 25 unwinding assertion loop 0: FAILURE\n"


def test_proofs__each_says_what_it_needs() -> None:
    found = cbmc.proofs()
    assert len(found) >= 4
    for proof in found:
        text = (cbmc.FOLDER / f"{proof.name}.c").read_text()
        sources = [word for word in proof.words if word.startswith("engine/")]
        assert sources + re.findall(r'^#include "\w+\.c"$', text, re.M), proof.name
        assert "--unwind" in proof.words and "reached();" in text, proof.name
        for name in proof.refuses:
            assert all(path.startswith("engine/") for path in cbmc.fault(name).apply()), name
    assert {r for p in found for r in p.refuses} >= {
        p.stem for p in cbmc.PATCHES[0].glob("*.patch")
    }


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (10, GOOD, ""),
        (10, BAD + GOOD, "arithmetic overflow"),
        (10, UNWOUND + GOOD, "unwinding assertion"),
        (10, NOWHERE + GOOD, "memcpy source region"),
        (0, GOOD.replace(END, ""), "nothing leads to its end"),
        (6, "main.c:3: error: no such file\n", "status 6"),
        (None, GOOD.replace(END, ""), "timeout"),
    ],
)
def test_judge__takes_only_a_proof_for_one(status: int | None, text: str, says: str) -> None:
    said = cbmc.judge(status, text)
    if says:
        assert says in said
    else:
        assert not said


@pytest.mark.parametrize(
    ("status", "text", "refused"),
    [
        (10, BAD + GOOD, True),
        (10, GOOD, False),
        (0, GOOD.replace(END, ""), False),
        (6, "main.c:3: error: no such file\n", False),
        (None, BAD, False),
    ],
)
def test_judge_refusal__takes_only_a_property_that_fails_for_one(
    status: int | None, text: str, refused: bool
) -> None:
    assert (not cbmc.judge_refusal(status, text)) == refused


def test_run__fails_for_a_fault_that_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault is in the sources that CBMC is given, and nowhere else."""
    program = tmp_path / "bin/cbmc"
    program.parent.mkdir()
    (tmp_path / "good").write_text(GOOD)
    (tmp_path / "bad").write_text(BAD + GOOD)
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "6.6.0" && exit\n'
        f"grep -q 'if (slot)' engine/base/homa_wheel.c && cat {tmp_path}/bad || cat {tmp_path}/good\n"
        "exit 10\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    proof = cbmc.Proof(
        "base_wheel", ("--unwind", "5"), ("wheel_loses_a_deadline", "wheel_stale_base")
    )
    monkeypatch.setattr(cbmc, "proofs", lambda: [proof])
    tally = cbmc.run(Context(False, []), [])
    assert tally.passed == 2
    assert [f.name for f in tally.failures] == ["cbmc/base_wheel+wheel_stale_base"]
    assert "it holds with the fault" in tally.failures[0].output


def test_run__fails_for_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CBMC of this machine that is new enough is the one that is run."""
    program = tmp_path / "bin/cbmc"
    program.parent.mkdir()
    answer = tmp_path / "answer"
    answer.write_text(BAD + GOOD)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "6.6.0" && exit\ncat {answer}\nexit 10\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    context = Context(False, [])
    tally = cbmc.run(context, ["wire_decode"])
    assert [f.name for f in tally.failures] == ["cbmc/wire_decode"]
    assert "arithmetic overflow" in tally.failures[0].output
    context.log("cbmc-wire_decode").unlink()
    answer.write_text(GOOD)
    tally = cbmc.run(context, [])
    assert tally.passed == len(cbmc.proofs())
    assert tally.failed == sum(len(p.refuses) for p in cbmc.proofs())


def test_run__of_no_proof_at_all_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    tally = cbmc.run(Context(False, []), ["wire_decoed"])
    assert tally.failed == 1 and "wire_decoed" in tally.failures[0].output
