# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import sys
import time

import pytest

from lab.errors import LabError
from lab.net.runner import Job, Standstill, last_words, measure_again, run_jobs

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
