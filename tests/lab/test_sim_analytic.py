# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the simulator is compared with is right itself."""

import random
from itertools import pairwise

import pytest

from lab.sim.figures import analytic


def test_waiting__is_md1() -> None:
    """By a queue of its own: Lindley's recursion."""
    rng, wait, total, count = random.Random(3), 0.0, 0.0, 400_000
    for _ in range(count):
        wait = max(0.0, wait + 100 - rng.expovariate(0.7 / 100))
        total += wait
    assert total / count == pytest.approx(analytic.waiting_ns(0.7, 100), rel=0.03)
    assert analytic.waiting_ns(0.5, 100) == 50 and analytic.waiting_ns(0.0, 100) == 0


def test_poisson__has_the_load_that_it_says() -> None:
    lines, load = analytic.poisson(1, 0.8, 877.0, 20_000)
    rows = [tuple(map(int, line.split(","))) for line in lines]
    assert len(rows) == 20_000 and all(a[0] <= b[0] for a, b in pairwise(rows))
    assert load == pytest.approx(0.8, rel=0.03) and load != 0.8
    assert rows[-1][0] == pytest.approx(20_000 * 877 / load, rel=1e-6)
    assert {row[2] for row in rows} == {0} and 0 not in {row[1] for row in rows}
    assert (
        analytic.poisson(1, 0.8, 877.0, 9)[0] == lines[:9] != analytic.poisson(2, 0.8, 877.0, 9)[0]
    )


def test_conserved() -> None:
    counts = {
        "packets_sent": 10, "packets_received": 7, "packets_dropped": 2, "packets_on_their_way": 1,
        "messages_started": 5, "messages_delivered": 4, "messages_failed": 0,
    }  # fmt: skip
    assert analytic.conserved({"sim": {"counts": counts, "unfinished": 1}})
    assert not analytic.conserved({"sim": {"counts": counts, "unfinished": 0}})
    lost = {**counts, "packets_received": 6}
    assert not analytic.conserved({"sim": {"counts": lost, "unfinished": 1}})
