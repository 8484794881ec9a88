# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa fuzz --kernel` without a guest: every finding is told with the command that repeats it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lab.test import fuzz, fuzz_kernel
from lab.test.fuzz_kernel import LIFE_S, REPLAY, Guest, judge, plan, replayed
from lab.vm import Done, Kernel, Options, VmError

GOOD = "# seed 5\n# at 0 1f\n# at 1 2f\n# 3400 packets\n# 12 rounds, 70 edges\nok\n"


@pytest.mark.parametrize("seconds", [1, LIFE_S, LIFE_S + 1, 2 * LIFE_S - 1, 600])
def test_plan__takes_the_time_that_was_asked_for(seconds: int) -> None:
    guests = list(plan(["packets", "calls"], seconds, 7))
    assert sum(g.seconds for g in guests) == seconds
    assert len({(g.kind, g.seed) for g in guests}) == len(guests)
    assert guests[0] == Guest("packets", 7, guests[0].seconds)


def test_replay__is_the_same_guest_and_its_rounds(tmp_path: Path) -> None:
    for guest in plan(["packets", "calls"], 600, 41):
        log = tmp_path / "log"
        log.write_text(f"{guest.program}\n# seed 41\n# at 0 1f\n# at 1 1f/3:2+4=5\nBUG: x\n")
        again = replayed(log)
        assert again.program == f"{guest.program} {REPLAY}"
        assert again.replay == "# at 0 1f\n# at 1 1f/3:2+4=5\n"


@pytest.mark.parametrize("text", ["", "vm_fuzz_calls 1 60\n", "vm_rpc 1 60\n# at 0 1f\n"])
def test_replay__of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(VmError, match="no log of"):
        replayed(tmp_path / "log")


def test_judge__counts_of_a_good_end() -> None:
    guest = Guest("packets", 5, 60)
    judge(guest, GOOD, "", 0)
    assert guest.counts == {"packets": 3400, "rounds": 12, "edges": 70}
    assert guest.finding == ""


@pytest.mark.parametrize(
    ("output", "problems", "status"),
    [
        (GOOD, "BUG: KASAN: use-after-free", 0),
        ("# seed 5\n# at 3\nround 3: no response\n", "", 1),
        ("# seed 5\n# at 3\n", "", 0),
    ],
)
def test_judge__everything_else_is_a_finding(output: str, problems: str, status: int) -> None:
    guest = Guest("packets", 5, 60)
    judge(guest, output, problems, status)
    assert guest.finding
    assert problems in guest.finding


class Machine:
    """A guest whose packet fuzzer brings the kernel down, if `dies`."""

    dies = True

    def __init__(self, _kernel: Kernel, options: Options, first: str) -> None:
        self.dead = self.dies and "fuzz_packets" in first
        self.options = options

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, timeout: float) -> Done:
        assert timeout > 60
        if self.dead:
            raise VmError("the guest went down\n--- kernel:\nBUG: KASAN: x")
        return Done(0, GOOD)

    def said(self) -> str:
        return "# at 17 1f\n"

    def finish(self) -> str:
        return "all is well"


@pytest.fixture
def no_guests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel("debug", "6.1-debug", tmp_path, tmp_path)
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(fuzz_kernel, "prepare", lambda _: kernel)
    monkeypatch.setattr(fuzz_kernel, "build", lambda _: tmp_path / "homa.ko")
    monkeypatch.setattr(fuzz_kernel.builds, "ensure", lambda *_: tmp_path)
    monkeypatch.setattr(fuzz_kernel, "Machine", Machine)
    monkeypatch.setattr(fuzz.process, "prepare", lambda: None)


@pytest.mark.usefixtures("no_guests")
def test_command__a_guest_that_dies_is_told_and_the_others_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--kernel", "--seconds", str(2 * LIFE_S), "--seed", "3", "--json", str(figures)]
    assert fuzz.main(arguments) == 1
    said = capsys.readouterr().out
    assert "round 17" in said
    assert "BUG: KASAN: x" in said
    assert f"calls, seed 3, {LIFE_S} s: 3,400 packets" in said
    assert json.loads(figures.read_text())["findings"] == 1
    (log,) = re.findall(r"again: ./homa fuzz --kernel --replay (\S+)", said)
    again = replayed(Path(log))
    assert (again.kind, again.seed, again.replay) == ("packets", 3, "# at 17 1f\n")


@pytest.mark.usefixtures("no_guests")
def test_command__without_findings_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Machine, "dies", False)
    assert fuzz.main(["--kernel", "packets", "--seconds", "60"]) == 0
    assert "0 findings" in capsys.readouterr().out


@pytest.mark.usefixtures("no_guests")
def test_command__names_what_it_can_fuzz(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz.main(["--kernel", "wire"])
    assert "packets and calls" in capsys.readouterr().err
