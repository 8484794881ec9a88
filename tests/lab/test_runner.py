# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import os
import sys
import time
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.net import runner
from lab.net.runner import (
    Job, Standstill, last_words, measure_again, measure_until_still, real_time, run_jobs,
)  # fmt: skip

WRITE = "import sys, json; json.dump({'n': int(sys.argv[2])}, open(sys.argv[1], 'w'))"


def python(name: str, code: str, *argv: str, background: bool = False) -> Job:
    return Job(name, [sys.executable, "-c", code, *argv], background=background)


def test_run_jobs__results_in_order_and_ticks() -> None:
    ticks = []
    slow = python("slow", "import time; time.sleep(.3);" + WRITE, "{json}", "1")
    quiet = python("quiet", "pass")
    assert run_jobs(
        [slow, python("b", WRITE, "{json}", "2"), quiet], 60, lambda: ticks.append(1)
    ) == [
        {"n": 1},
        {"n": 2},
        None,
    ]
    assert ticks


def test_run_jobs__ends_background_jobs() -> None:
    server = python("server", "import time; time.sleep(1000)", background=True)
    assert run_jobs([server, python("b", WRITE, "{json}", "2")], 60)[1] == {"n": 2}


def test_run_jobs__a_failure_ends_all_and_speaks() -> None:
    bad = python("bad one", "import sys; sys.exit('homa-bench: port 4000 is taken; use --bind')")
    with pytest.raises(LabError, match="bad one: port 4000 is taken; use --bind"):
        run_jobs([python("long", "import time; time.sleep(1000)"), bad], 60)


def test_run_jobs__a_server_that_ends_is_a_failure() -> None:
    with pytest.raises(LabError, match="server: ended with status 0"):
        run_jobs(
            [
                python("server", "pass", background=True),
                python("long", "import time; time.sleep(1000)"),
            ],
            60,
        )


def test_run_jobs__damaged_result_and_overtime() -> None:
    with pytest.raises(LabError, match="not JSON"):
        run_jobs([python("x", "import sys; open(sys.argv[1], 'w').write('{')", "{json}")], 60)
    with pytest.raises(LabError, match="long did not come to an end"):
        run_jobs([python("long", "import time; time.sleep(1000)")], 0.3)


def how_it_runs(job: dict[str, bool]) -> dict:
    code = (
        "import json, os, sys; json.dump({'class': os.sched_getscheduler(0), 'nice': os.nice(0)},"
        " open(sys.argv[1], 'w'))"
    )
    found = run_jobs([Job("a", [sys.executable, "-c", code, "{json}"], **job)], 60)[0]
    assert found
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root goes before others")
def test_run_jobs__who_goes_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = how_it_runs({})
    assert usual["class"] == os.SCHED_OTHER
    assert how_it_runs({"urgent": True}) == {**usual, "nice": max(-20, usual["nice"] - 10)}
    if real_time():
        assert how_it_runs({"punctual": True})["class"] == os.SCHED_FIFO
    # Where nobody may have the real-time class a punctual job is an urgent one.
    real_time.cache_clear()
    monkeypatch.setattr(runner, "REAL_TIME", ["false"])
    assert how_it_runs({"punctual": True})["class"] == os.SCHED_OTHER
    real_time.cache_clear()


def test_real_time__a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    real_time.cache_clear()
    monkeypatch.setattr(runner, "REAL_TIME", [str(Path("/nowhere/chrt"))])
    assert not real_time()
    real_time.cache_clear()


def test_last_words() -> None:
    assert last_words("a\nhoma-bench: no such peer\n\n", 1) == "no such peer"
    assert last_words("", -9) == "ended by signal 9"


def test_run_jobs__notices_a_standstill() -> None:
    stops = iter([0.7])
    with pytest.raises(Standstill, match="stood still for 0.[789]") as caught:
        run_jobs(
            [python("b", "import time; time.sleep(1.2);" + WRITE, "{json}", "2")],
            60,
            lambda: time.sleep(next(stops, 0)),
        )
    assert caught.value.results == [{"n": 2}]


@pytest.mark.parametrize(
    ("begins", "ends", "counts"),
    [(-9, 0.1, False), (1.0, 9, False), (-9, 9, True), (0.0, 0.9, True)],
)
def test_run_jobs__a_standstill_of_what_is_measured(
    begins: float, ends: float, counts: bool
) -> None:
    """A job that stops the machine for 0.8 s, in the part that is measured, outside of it."""
    stops = iter([0.8])
    now = time.monotonic()
    job = python("b", "import time; time.sleep(1.3);" + WRITE, "{json}", "2")

    def stop() -> None:
        time.sleep(next(stops, 0))

    try:
        found = run_jobs([job], 60, stop, measured=(now + begins, now + ends))
    except Standstill as still:
        assert counts
        found = still.results
    else:
        assert not counts
    assert found == [{"n": 2}]


def test_measure_again__once_and_says_so() -> None:
    outcomes: list = [[{"n": 1}]]

    def measure() -> list[dict | None]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert measure_again(measure) == ([{"n": 1}], "")
    outcomes[:] = [Standstill(2, [None]), [{"n": 2}]]
    assert measure_again(measure) == (
        [{"n": 2}],
        "measured again because the machine stood still for 2.0 s",
    )
    outcomes[:] = [Standstill(2, [None]), Standstill(3, [{"n": 3}])]
    found, note = measure_again(measure)
    assert found == [{"n": 3}] and "stood still for 3.0 s" in note
    # An experiment's run counts if the second one was good.
    outcomes[:] = [Standstill(2, [None]), [{"n": 2}]]
    assert measure_until_still(measure) == ([{"n": 2}], "")
    outcomes[:] = [Standstill(2, [None]), Standstill(3, [{"n": 3}])]
    found, why = measure_until_still(measure)
    assert found == [{"n": 3}] and "stood still for 3.0 s" in why
