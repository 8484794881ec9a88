# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Single numbers for `./homa targets`: a quick figure's, the simulator's speed, its scale."""

from __future__ import annotations

from collections.abc import Callable

from lab.errors import LabError, UsageError
from lab.sim import program, warmup
from lab.sim import spec as specs
from lab.sim.figures import FIGURES
from lab.sim.figures.base import Options
from lab.sim.pool import Lab
from lab.sim.spec import Spec

SPEED_ROUNDS = 3


def speed(_lab: Lab, options: Options) -> dict[str, object]:
    """144 hosts, W4 at 80 %, Homa, one process at a time and nothing from the store.

    At its true load: the run begins with what the oracle left under way, which is not timed.
    """
    rounds = []
    for seed in range(1, (options.seeds or SPEED_ROUNDS) + 1):
        said: Spec = {"protocol": "homa", "workload": "w4", "load": 0.8, "seed": seed}
        said |= warmup.begin(said)
        said |= {"measure": f"{30 * options.scale:g}ms", "drain": "1ms"}
        rounds.append(_cost(program.run(specs.normal(said))))
    return {key: [row[key] for row in rounds] for key in rounds[0]}


def _cost(result: dict) -> dict[str, float]:
    """By seconds of the processor: what else the machine does is not the simulator's."""
    sim = result["sim"]
    used = sim["cpu_s"] or 1e-9
    return {
        "simulated_ms_per_s": 1e3 * sim["simulated_s"] / used,
        "hops_per_s": sim["counts"]["hops"] / used,
        "memory_mib": sim["memory_bytes"] / 2**20,
        "cpu_s": sim["cpu_s"],
        "wall_s": sim["wall_s"],
        "simulated_s": sim["simulated_s"],
        "carried_load": sim["utilisation"]["total"],
    }


# 1,024 hosts: less than `sim run` takes, for the time it costs; carried_load says what came of it.
_SCALE_BEGIN: Spec = {"warm-start": "100ms", "warmup": "1ms"}
NETWORKS: dict[int, dict[str, object]] = {
    144: {"topology": "leaf-spine"},
    432: {"topology": "fat-tree", "k": 12},
    1024: {"topology": "fat-tree", "k": 16},
}


def scale(_lab: Lab, options: Options) -> dict[str, object]:
    """W4 at 60 % in three sizes: time per simulated second and memory, per host."""
    found: dict[str, object] = {}
    for hosts, network in NETWORKS.items():
        spec = specs.normal(
            {
                "protocol": "homa",
                "workload": "w4",
                "load": 0.6,
                **network,
                **_SCALE_BEGIN,
                "measure": f"{5 * options.scale:g}ms",
                "drain": "1ms",
            }
        )
        result = program.run(spec)
        cost = _cost(result)
        backlog = result["sim"].get("backlog", {})
        found[str(hosts)] = {
            **cost,
            "memory_kib_per_host": cost["memory_mib"] * 1024 / hosts,
            "cpu_ms_per_simulated_ms_and_host": cost["cpu_s"] / cost["simulated_s"] / hosts,
            "carried": int(bool(backlog.get("stable", False))),
        }
    return found


CHECKS: dict[str, Callable[[Lab, Options], dict[str, object]]] = {"speed": speed, "scale": scale}


def names() -> list[str]:
    """What can be checked."""
    return [*CHECKS, *FIGURES]


def run(name: str, lab: Lab, options: Options) -> dict[str, object]:
    """The document of check `name`; a figure's comparisons and values without its drawing."""
    if name in CHECKS:
        return CHECKS[name](lab, options)
    if name not in FIGURES:
        raise UsageError(f"there is no check '{name}'; choose from {', '.join(names())}")
    figure = FIGURES[name]
    output = figure.compute(lab, options)
    if lab.problems:
        raise LabError(f"{len(lab.problems)} runs failed, the first: {lab.problems[0]}")
    judged = [row for row in output.rows if row.met is not None]
    return {
        "values": output.values,
        "rows": [row.as_json() for row in output.rows],
        "met": sum(row.met is True for row in judged),
        "missed": sum(row.met is False for row in judged),
        "seeds": len(options.seed_list()),
        "spread": {row.what: row.ours.as_json() for row in output.rows if row.ours is not None},
    }
