# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the text of SIGCOMM'18 says about which protocol is better where, as checks of our curves.

The text gives no numbers for it. "Better" is taken as a smaller geometric mean of P99 over the
sizes that it speaks of; "equal" as within the factors in published.toml's [goals].
"""

from __future__ import annotations

from lab.sim.figures.base import WORKLOADS, middle
from lab.sim.published import published
from lab.sim.stats import Stat, geometric

_SMALL, _LARGE = 0.2, 0.9  # the smallest fifth, the largest tenth of the messages


def average(bins: list[dict], first: float = 0.0, last: float = 1.0) -> Stat | None:
    """Geometric mean of P99 over the bins from `first` to `last` of the messages."""
    rows = [r["p99"].mean for r in bins if r["p99"] and first <= middle(r) <= last]
    value = geometric(rows)
    return Stat(value, None, 1) if value else None


def _claims() -> list[tuple[str, str, str, tuple[float, float], float]]:
    """(workload, better, worse, sizes, tolerance): better's mean <= worse's times tolerance."""
    theirs, goals = published()["fig10"]["order"], published()["goals"]
    everything = (0.0, 1.0)
    found = []
    for w in WORKLOADS:
        one, other = theirs["equal"]
        for a, b in ((one, other), (other, one)):
            found.append((w, a, b, everything, goals["pfabric_factor"]))
        # The paper has NDP for W5 only.
        found += [
            (w, "homa", p, everything, 1.0) for p in theirs["worse"] if p != "ndp" or w == "w5"
        ]
    found += [("w5", p, "ndp", everything, 1.0) for p in ("pfabric", "phost", "pias")]
    found += [(w, "pias", "homa", (_LARGE, 1.0), 1.0) for w in theirs["pias_better"]]
    for w in theirs["pias_equal_small"]:
        for a, b in (("pias", "homa"), ("homa", "pias")):
            found.append((w, a, b, (0.0, _SMALL), goals["pias_small_factor"]))
    return found


def order(bins: dict, protocols: list[str]) -> list[dict]:
    """Each claim about `protocols` with our two numbers and whether it holds."""
    rows = []
    for w, better, worse, sizes, tolerance in _claims():
        if better not in protocols or worse not in protocols:
            continue
        one = average(bins.get((better, w), []), *sizes)
        other = average(bins.get((worse, w), []), *sizes)
        if one and other:
            rows.append(
                {
                    "workload": w,
                    "better": better,
                    "worse": worse,
                    "from": sizes[0],
                    "to": sizes[1],
                    "tolerance": tolerance,
                    "p99_better": one.mean,
                    "p99_worse": other.mean,
                    "holds": one.mean <= other.mean * tolerance,
                }
            )
    return rows
