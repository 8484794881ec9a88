# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Whether a load is sustained, from series that are known."""

import random

import pytest

from lab.sim import sustain
from lab.sim.stats import Stat
from lab.sim.sustain import Verdict

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


def stopped(whole: dict, count: int = 100) -> dict:
    """The same run, ended after `count` of its samples; meanwhile something else was offered."""
    backlog = dict(whole["sim"]["backlog"])
    backlog |= {"samples": backlog["samples"][:count], "aborted": True}
    backlog["offered_gbps"] = whole["throughput"]["offered_gbps"]
    return {"sim": {"backlog": backlog}, "throughput": {"offered_gbps": 3.0}}


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
    ended = stopped(run(steady(0)), count=90)
    assert sustain.growth(ended, (0, 1 / 3)) is None and sustain.growth(ended, (0, 1)) is None


def test_growth__of_a_run_that_was_stopped_is_that_of_the_whole_one() -> None:
    whole = run(steady(0.2), 0.3)
    short = stopped(whole)
    for own in (False, True):
        first, second = sustain.WINDOWS
        assert sustain.growth(short, first, own) == sustain.growth(whole, first, own) is not None
        assert sustain.growth(short, second, own) is None


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


def own(share: float, excess: float, seed: int) -> dict:
    """A run whose own backlog grows by `share`, and by `excess` above the oracle's."""
    one = run(steady(0), seed=seed)
    step = OFFERED * INTERVAL
    backlog = one["sim"]["backlog"]
    backlog["samples"] = [share * step * n for n in range(300)]
    backlog["reference"] = [(share - excess) * step * n for n in range(300)]
    return one


def test_verdict__stopped_runs_say_no_or_nothing() -> None:
    """No only if it is no whichever backlog the second window would have had judged."""
    for share, excess, verdict in ((0.3, 0.3, False), (0.3, 0.0, None), (0.0, 0.3, None)):
        runs = [stopped(own(share, excess, seed)) for seed in range(3)]
        found = sustain.judge(runs)
        assert found.short and found.sustained is verdict, (share, excess)
        assert found.shown is found.windows[0]
    # One that went to its end does not make a second window of the others.
    runs[0] = own(0.3, 0.3, 0)
    assert sustain.judge(runs).sustained is None


@pytest.mark.parametrize("seed", range(20))
def test_verdict__of_stopped_runs_is_never_another_than_that_of_whole_ones(seed: int) -> None:
    rng = random.Random(seed)
    runs = []
    for n in range(5):
        late, early = rng.uniform(-0.3, 0.3), rng.uniform(-0.02, 0.3)
        whole = run(lambda t, a=early, b=late: a if t < 0.1 else b, 0.1, n)
        growths = [sustain.growth(whole, sustain.WINDOWS[0], alone) for alone in (False, True)]
        runs.append((whole, min(growths) > sustain.STOP_GROWTH))
    short = sustain.judge(stopped(r) if stop else r for r, stop in runs)
    whole = sustain.judge(r for r, _ in runs)
    if short.short and short.sustained is not None:
        assert short.sustained is whole.sustained is False


def test_verdict__figures_show_the_window_that_says_most_against_it() -> None:
    calm, wide, high = Stat(0.001, 0.001, 3), Stat(0.002, 0.02, 3), Stat(0.01, 0.001, 3)
    assert Verdict((high, calm)).shown is high and Verdict((calm, wide)).shown is wide
    assert Verdict((None, calm)).shown is calm and Verdict((None, None)).shown is None


def test_verdict__early_ones_need_wider_intervals() -> None:
    def verdict(half: float, stretch: float) -> bool | None:
        window = Stat(0.002, half, 3)
        return Verdict((window, window), (window, window), stretch).sustained

    assert verdict(0.003, 1.0) is True and verdict(0.003, sustain.EARLY) is True
    assert verdict(0.005, 1.0) is True and verdict(0.005, sustain.EARLY) is None
    # Student's t of two degrees of freedom: 99 % to 95 %.
    assert pytest.approx(9.925 / 4.303) == sustain.EARLY
    assert sustain.judge([run(steady(0), seed=n) for n in range(3)], sustain.EARLY).how() == (
        "3 seeds, 99 %"
    )
