# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Whether a load is sustained, from series that are known, and the search for the knee."""

import random

import pytest

from lab.sim import sustain
from lab.sim.stats import Stat
from lab.sim.sustain import Knee, Verdict

INTERVAL, OFFERED = 0.001, 1e9  # seconds between samples; bytes a second


def run(growth, noise: float = 0.0, seed: int = 1, count: int = 300) -> dict:
    """A run whose backlog is the oracle's plus growth(second), a share of what is offered.

    The oracle's wanders by more than any growth here: it has to cancel out.
    """
    rng = random.Random(seed)
    theirs, ours, level, extra = [], [], 5e9, 0.0
    for n in range(count):
        level += rng.gauss(0, 0.05) * OFFERED * INTERVAL * 50
        extra += growth(n * INTERVAL) * OFFERED * INTERVAL
        theirs.append(level)
        ours.append(level + extra + rng.gauss(0, noise) * OFFERED * INTERVAL)
    backlog = {"interval_s": INTERVAL, "samples": ours, "reference": theirs}
    return {"sim": {"backlog": backlog}, "throughput": {"offered_gbps": OFFERED * 8 / 1e9}}


def steady(share: float):
    return lambda _t: share


def test_slope() -> None:
    assert sustain.slope([5.0, 7.0, 9.0, 11.0]) == pytest.approx(2)
    assert sustain.slope([3.0, 1.0, 3.0]) == pytest.approx(0)
    assert sustain.slope([1.0, 2.0]) is None


@pytest.mark.parametrize("share", [0.0, 0.004, 0.02, 0.3, -0.05])
def test_growth__is_what_was_put_in(share: float) -> None:
    for window in sustain.WINDOWS:
        assert sustain.growth(run(steady(share)), window) == pytest.approx(share, abs=1e-9)


def test_growth__second_window_is_twice_the_first() -> None:
    (a, b), (c, d) = sustain.WINDOWS
    assert b == c and d - c == pytest.approx(2 * (b - a)) and (a, d) == (0, 1)
    only_late = run(lambda t: 0.1 if t > 0.1 else 0.0)
    first, second = (sustain.growth(only_late, w) for w in sustain.WINDOWS)
    assert first == pytest.approx(0, abs=1e-9) and second > 0.09


def test_growth__unknown() -> None:
    for broken in (
        {},
        {"sim": {"backlog": {}}, "throughput": {"offered_gbps": 8}},
        {"sim": {"backlog": {"samples": [1, 2, 3]}}},
    ):
        assert sustain.growth(broken, (0, 1)) is None
    ended = run(steady(0))
    ended["sim"]["backlog"]["aborted"] = True
    assert sustain.growth(ended, (0, 1)) is None


@pytest.mark.parametrize(
    ("growths", "verdict"),
    [
        ([0.001, 0.002, 0.003], True),
        ([0.02, 0.021, 0.022], False),
        ([0.000, 0.008, 0.016], None),  # the mean is below 1 %, the interval is not
        ([0.004, 0.012, 0.020], None),  # the mean is above 1 %, the interval is not
        ([0.001, 0.002], None),  # two seeds are too few for either
        ([0.5, 0.5], None),
        ([], None),
        ([-0.009, -0.008, -0.007], True),
    ],
)
def test_verdict__upper_and_lower_end(growths: list[float], verdict: bool | None) -> None:
    runs = [run(steady(share), seed=n) for n, share in enumerate(growths)]
    assert sustain.judge(runs).sustained is verdict


def test_verdict__both_windows_count() -> None:
    for late in (lambda t: 0.05 if t > 0.15 else 0.0, lambda t: 0.05 if t < 0.08 else 0.0):
        runs = [run(late, 0.2, seed) for seed in range(3)]
        assert sustain.judge(runs).sustained is False


def test_verdict__more_seeds_decide() -> None:
    """The same spread of growths: three seeds cannot tell, thirty can."""
    spread = [-0.012, 0.004, 0.020]
    few = [run(steady(share), seed=n) for n, share in enumerate(spread)]
    many = [run(steady(share), seed=n) for n, share in enumerate(spread * 10)]
    assert sustain.judge(few).sustained is None and sustain.judge(many).sustained is True


def test_verdict__an_oracle_that_falls_behind_is_no_reference() -> None:
    """Then the protocol's own backlog counts: with it growing, less than the oracle's is not enough."""
    for own, verdict in ((0.05, False), (0.0, True)):
        runs = []
        for seed in range(3):
            one = run(steady(-0.03), seed=seed)
            backlog = one["sim"]["backlog"]
            step = OFFERED * INTERVAL
            backlog["samples"] = [own * step * n for n in range(300)]
            backlog["reference"] = [(own + 0.03) * step * n for n in range(300)]
            runs.append(one)
        assert sustain.judge(runs).sustained is verdict


def fixed(value: float, half: float = 0.001) -> Verdict:
    return Verdict((Stat(value, half, 3), Stat(value, half, 3)))


def test_knee__finds_it_to_a_step() -> None:
    for place in (0.41, 0.55, 0.63, 0.89, 0.99):
        asked = []

        def results(wanted: list, place=place, asked=asked) -> dict:
            asked.extend(wanted)
            return {
                (case, load): [
                    run(steady(0.0 if load <= place else 0.5), 0.01, seed) for seed in range(3)
                ]
                for case, load in wanted
            }  # fmt: skip

        knees, found = sustain.search(["a"], (0.4, 0.6, 0.8, 1.0), 0.01, results)
        assert (
            knees["a"].highest == pytest.approx(place, abs=0.0101) and knees["a"].highest <= place
        )
        assert len(asked) == len(set(asked)) == len(found) <= 10


def test_knee__undecided_loads() -> None:
    """Below a sustained load they count for nothing; above it they bound the search."""
    unsure = fixed(0.01, 0.02)
    knee = Knee({0.4: unsure, 0.7: fixed(0.001), 0.9: unsure, 1.0: fixed(0.2)}, 0.05)
    assert knee.highest == 0.7 and knee.next() == pytest.approx(0.8)
    assert Knee({0.4: unsure, 0.7: fixed(0.2)}, 0.05).highest is None
    assert Knee({0.4: unsure}, 0.05).next() is None
    assert not Knee({0.4: unsure, 0.7: fixed(0.2)}, 0.05).known
    assert Knee({0.4: fixed(0.1)}, 0.05).known and Knee({0.4: unsure, 0.7: fixed(0.0)}, 0.05).known
    assert Knee({0.4: fixed(0.0), 0.5: fixed(0.3), 0.6: fixed(0.0)}, 0.05).highest == 0.4


def test_knee__all_sustained() -> None:
    knee = Knee({0.5: fixed(0.0), 1.0: fixed(0.0)}, 0.05)
    assert knee.highest == 1.0 and knee.next() is None
