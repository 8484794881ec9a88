# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What came out of a run of bursts, on real packets and simulated."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from lab.cluster.real_and_simulated import divided
from lab.incast.bursts import Cell


@dataclass(frozen=True)
class Measured:
    """One cell: percentiles of the RPCs' round trips, ns, None of too few; `least` is what the
    responses of a burst take on the client's link, ns. `facts` of the simulator begin with "sim_".
    `doubts` say why it does not count."""

    cell: Cell
    count: int
    sim_count: int
    least: float
    lab: dict[str, float | None]
    sim: dict[str, float | None]
    facts: dict[str, float] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def ratio(self, percentile: str) -> float | None:
        """The simulator's over the lab's."""
        return divided(self.sim[percentile], self.lab[percentile])

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        ratios = {f"ratio_{name}": self.ratio(name) for name in self.lab}
        return {**asdict(self), **ratios, "counts": not self.doubts}


def from_json(document: dict) -> Measured:
    """What as_json() gave."""
    names = ("count", "sim_count", "least", "lab", "sim", "facts", "doubts")
    return Measured(Cell(**document["cell"]), **{name: document[name] for name in names})
