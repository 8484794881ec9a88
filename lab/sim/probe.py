# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The runs behind a verdict on a load: no more seeds, and no longer ones, than decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.sim import sustain
from lab.sim.knee import Pair
from lab.sim.pool import Lab
from lab.sim.spec import Spec, merge
from lab.sim.sustain import Verdict

_STOP: Spec = {"stop-growth": sustain.STOP_GROWTH}


@dataclass
class Prober:
    """Judges loads of `cases` by runs with `seeds`. `results`: the runs behind each verdict."""

    lab: Lab
    cases: dict[object, Spec]
    seeds: Sequence[int]
    results: dict[Pair, list[dict]] = field(default_factory=dict)

    def judge(self, wanted: Sequence[Pair], whole: bool) -> dict[Pair, Verdict | None]:
        """The verdict of each; None where a run is missing or failed."""
        found: dict[Pair, Verdict | None] = {}
        rest = list(wanted)
        if not whole and len(self.seeds) > sustain.FIRST_SEEDS:
            first = self._verdicts(rest, self.seeds[: sustain.FIRST_SEEDS], sustain.EARLY, False)
            found = {pair: v for pair, v in first.items() if v is None or v.sustained is not None}
            rest = [pair for pair in rest if pair not in found]
        return {**found, **self._verdicts(rest, self.seeds, 1.0, True)}

    def _verdicts(
        self, wanted: Sequence[Pair], seeds: Sequence[int], stretch: float, whole: bool
    ) -> dict[Pair, Verdict | None]:
        runs = self._runs([(pair, seed, True) for pair in wanted for seed in seeds])
        verdicts = self._judged(wanted, seeds, runs, stretch, whole)
        # Runs that ended early and prove nothing by it.
        again = [
            (pair, seed, False)
            for pair, verdict in verdicts.items()
            if verdict and verdict.short and verdict.sustained is None
            for seed in seeds
            if sustain.stopped(runs[pair, seed] or {})
        ]
        if not again:
            return verdicts
        runs.update(self._runs(again))
        return self._judged(wanted, seeds, runs, stretch, whole)

    def _runs(
        self, wanted: Sequence[tuple[Pair, int, bool]]
    ) -> dict[tuple[Pair, int], dict | None]:
        specs = [
            merge(self.cases[case], {"load": load, "seed": seed}, _STOP if stop else {})
            for (case, load), seed, stop in wanted
        ]
        found = self.lab.results(specs)
        return {(pair, seed): r for (pair, seed, _), r in zip(wanted, found, strict=True)}

    def _judged(
        self,
        wanted: Sequence[Pair],
        seeds: Sequence[int],
        runs: dict[tuple[Pair, int], dict | None],
        stretch: float,
        whole: bool,
    ) -> dict[Pair, Verdict | None]:
        verdicts: dict[Pair, Verdict | None] = {}
        for pair in wanted:
            here = [runs[pair, seed] for seed in seeds]
            there = [run for run in here if run]
            self.results[pair] = there
            verdicts[pair] = (
                sustain.judge(there, stretch, whole) if len(there) == len(here) else None
            )
        return verdicts
