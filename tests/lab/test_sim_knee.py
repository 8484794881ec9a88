# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The search for the highest load that is sustained: what it finds, and with how many runs."""

import random
from pathlib import Path

import pytest

from lab.sim import knee, sustain
from lab.sim.figures import limits
from lab.sim.knee import Knee, Plan
from lab.sim.pool import Lab, Outcome
from lab.sim.probe import Prober
from lab.sim.stats import Stat
from lab.sim.store import Store
from lab.sim.sustain import Verdict

FULL = Plan()


def fixed(value: float, half: float = 0.001, whole: bool = True) -> Verdict:
    window = Stat(value, half, 3)
    return Verdict((window, window), whole=whole)


UNSURE = fixed(0.01, 0.02)
YES, NO = fixed(0.0), fixed(0.2)


def searched(place: float, guess: float, plan: Plan = FULL) -> tuple[Knee, list[float]]:
    """The knee of a network that sustains loads up to `place`, and all that was asked."""
    asked: list[float] = []

    def judge(wanted, whole):
        asked.extend(load for _, load in wanted)
        value = {True: 0.0, False: 0.2}
        return {pair: fixed(value[pair[1] <= place + 1e-9], whole=whole) for pair in wanted}

    return knee.search({"a": guess}, plan, judge)["a"], asked


@pytest.mark.parametrize("guess", [0.4, 0.63, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("place", [0.3, 0.4, 0.41, 0.55, 0.63, 0.79, 0.89, 0.99, 1.0])
def test_search__finds_it_wherever_it_begins(place: float, guess: float) -> None:
    found, asked = searched(place, guess)
    assert found.highest == (None if place < 0.4 else pytest.approx(place))
    assert found.known and found.complete
    # Both sides of the knee, and only they, are judged by all seeds.
    sides = {found.highest, found.above} - {None}
    assert {load for load, v in found.tried.items() if v.whole} == sides
    assert all(0.4 <= load <= 1.0 for load in asked) and len(asked) <= 13


def test_search__a_good_guess_is_cheap() -> None:
    _, near = searched(0.87, 0.85)
    assert len(set(near)) == 5
    _, far = searched(0.5, 0.85)
    assert len(set(far)) <= 9


def test_search__quick_steps() -> None:
    found, asked = searched(0.88, 0.8, Plan(0.4, 1.0, 0.05, 0.1))
    assert found.highest == 0.85 and set(asked) == {0.7, 0.9, 0.8, 0.85}


def test_search__goes_on_if_all_seeds_overturn_what_the_first_said() -> None:
    """0.82 seems sustained to the first seeds and is not; 0.8 is."""

    def judge(wanted, whole):
        limit = 0.8 if whole else 0.82
        return {
            pair: fixed(0.0 if pair[1] <= limit + 1e-9 else 0.2, whole=whole) for pair in wanted
        }

    found = knee.search({"a": 0.8}, FULL, judge)["a"]
    assert found.highest is not None and found.highest <= 0.81
    assert found.tried[found.highest].whole and found.tried[found.highest].sustained


def test_search__begins_with_what_is_known() -> None:
    asked = []

    def judge(wanted, whole):
        asked.extend(load for _, load in wanted)
        return {pair: fixed(0.0 if pair[1] <= 0.72 else 0.2) for pair in wanted}

    known = {"a": {0.6: YES, 0.65: UNSURE, 0.7: YES, 0.75: NO}}
    found = knee.search({"a": 0.8}, FULL, judge, known)["a"]
    assert found.highest == 0.72 and set(asked) == {0.72, 0.73, 0.74}


def test_search__missing_runs_end_that_case_only() -> None:
    def judge(wanted, whole):
        return {
            (case, load): None if case == "b" and load < 0.8 else fixed(0.0 if load < 0.9 else 0.2)
            for case, load in wanted
        }

    found = knee.search({"a": 0.8, "b": 0.8}, FULL, judge, groups=[["b"], ["a", "c"]])
    assert found["a"].complete and found["a"].highest == 0.89
    assert not found["b"].complete and not found["b"].known


def test_knee__undecided_loads() -> None:
    """Below a sustained load they count for nothing; above it they bound the search."""
    plan = Plan(0.4, 1.0, 0.05, 0.1)
    found = Knee({0.4: UNSURE, 0.7: YES, 0.9: UNSURE, 1.0: NO}, plan)
    assert found.highest == 0.7 and found.above == 0.9 and found.next(0.8) == [0.8]
    assert Knee({0.4: UNSURE, 0.7: NO}, plan).highest is None
    assert Knee({0.4: UNSURE}, plan).next(0.4) == []
    assert not Knee({0.4: UNSURE, 0.7: NO}, plan).known
    assert Knee({0.4: NO}, plan).known and Knee({0.4: UNSURE, 0.7: YES}, plan).known
    assert Knee({0.4: YES, 0.5: NO, 0.6: YES}, plan).highest == 0.4
    assert Knee({0.5: YES, 1.0: YES}, plan).next(0.8) == []


def test_knee__is_decided_if_the_next_load_is_not_sustained() -> None:
    assert Knee({0.7: YES, 0.8: NO}).decided and Knee({0.9: YES, 1.0: YES}).decided
    found = Knee({0.4: YES, 0.5: UNSURE, 0.7: UNSURE, 0.8: NO})
    assert not found.decided and found.highest == 0.4 and found.over == 0.8
    assert not Knee({0.9: YES, 1.0: UNSURE}).decided


def test_limits__what_runs_cannot_tell_is_judged_only_if_it_is_missed_anyway() -> None:
    unsure = Knee({0.4: YES, 0.5: UNSURE, 0.8: NO})
    ours = Stat(40.0, 1.0, 3)
    row = limits.limit_row("W5", 79, ours, 3, unsure)
    assert row.met is None and row.what == "W5 (at least; at most 80, the runs cannot tell)"
    assert limits.limit_row("W5", 84, ours, 3, unsure).met is False
    assert limits.limit_row("W5", 36, ours, 3, unsure).met is False
    assert limits.limit_row("W5", 41, ours, 3, Knee({0.4: YES, 0.45: NO})).met is True
    assert limits.limit_row("W5", 79, ours, 3, Knee({0.4: YES, 0.45: NO})).met is False
    assert limits.limit_row("W5", 79, None, 3, Knee({0.4: NO})).met is False


class Network:
    """Stands in for a lab: growth by load, with noise of each seed; counts simulated windows."""

    def __init__(self, place: float, noise: float) -> None:
        self.place, self.noise, self.windows, self.runs = place, noise, 0, 0

    def results(self, specs: list[dict]) -> list[dict]:
        return [self._one(spec) for spec in specs]

    def _one(self, spec: dict) -> dict:
        rng = random.Random(f"{spec['load']} {spec['seed']}")
        rise = max(0.0, 4 * (spec["load"] - self.place)) + rng.gauss(0, self.noise)
        backlog = {
            "interval_s": 0.001, "offered_gbps": 8.0,
            "samples": [1e9 * 0.001 * rise * n for n in range(250)], "reference": [0.0] * 250,
        }  # fmt: skip
        if rise > spec.get("stop-growth", 9):
            backlog |= {"samples": backlog["samples"][:83], "aborted": True}
        self.runs += 1
        self.windows += 1 if "aborted" in backlog else 3
        return {"sim": {"backlog": backlog}, "throughput": {"offered_gbps": 8.0}}


def _all_of_it(network: Network, seeds: range) -> dict[float, Verdict]:
    """Every load that may be tried, all seeds, to the end."""
    loads = [round(0.4 + n * 0.01, 4) for n in range(61)]
    return {
        load: sustain.judge(network.results([{"load": load, "seed": n} for n in seeds]))
        for load in loads
    }


@pytest.mark.parametrize("place", [0.45, 0.6, 0.73, 0.92])
def test_probes__find_what_all_runs_of_all_loads_find(place: float) -> None:
    seeds = range(1, 6)
    network = Network(place, 0.0005)
    every = Knee(_all_of_it(network, seeds))
    spared = Network(place, 0.0005)
    judges = Prober(spared, {"a": {}}, seeds)  # type: ignore[arg-type]
    found = knee.search({"a": 0.8}, FULL, judges.judge)["a"]
    assert found.highest == every.highest
    assert all(v.sustained in (None, every.tried[x].sustained) for x, v in found.tried.items())
    # By halving alone, all seeds to the end: four loads at first, then five.
    assert spared.windows < 0.75 * 9 * 5 * 3


def test_probes__runs_that_stopped_and_prove_nothing_are_made_again() -> None:
    """One seed of three grows much: all have to be seen to the end."""
    network = Network(0.9, 0.04)
    judges = Prober(network, {"a": {}}, range(1, 4))  # type: ignore[arg-type]
    whole = _all_of_it(network, range(1, 4))
    again = 0
    for load, verdict in whole.items():
        before = network.runs
        assert judges.judge([("a", load)], True)["a", load].sustained is verdict.sustained, load
        again += network.runs - before - 3
    assert again > 0


def test_lab__whole_runs_and_runs_that_were_not_stopped_are_the_same(tmp_path: Path) -> None:
    """Figures 12 and 13 share them: nothing is made that is there under the other name."""

    class Made:
        def where(self) -> str:
            return "here"

        def run(self, todo, tell):
            for index, spec in enumerate(todo):
                stopped = "stop-growth" in spec and spec["load"] == "1"
                result = {"complete": not stopped, "sim": {"backlog": {"aborted": stopped}}}
                yield Outcome(index, result)

    lab = Lab(Store(tmp_path, "build"), Made())
    easy, hard = ({"load": load, "against-oracle": True} for load in (0.5, 1))
    stop = {"stop-growth": sustain.STOP_GROWTH}
    first = lab.results([{**easy, **stop}, {**hard, **stop}])
    assert lab.fresh == 2 and sustain.stopped(first[1])
    assert lab.results([easy]) == [first[0]] and lab.fresh == 2
    assert not sustain.stopped(lab.results([hard])[0]) and lab.fresh == 3
    # Another seed: the whole run serves whoever would have let it stop.
    whole = lab.results([{**hard, "seed": 2}])
    assert lab.results([{**hard, "seed": 2, **stop}]) == whole and lab.fresh == 4
    # A run without the oracle's is another run.
    lab.results([{"load": 0.5}])
    assert lab.fresh == 5
    lab.only_finished = True
    assert lab.results([{"load": 0.6}]) == [None] and lab.missing == 1
