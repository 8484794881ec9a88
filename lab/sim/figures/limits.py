# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How much load the network sustains: SIGCOMM'18 Figures 12 (by search) and 13 (waste)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.sim import compare, draw, program, sustain
from lab.sim.figures import knees
from lab.sim.figures.base import (
    WORKLOADS,
    Figure,
    Options,
    Output,
    Points,
    cell,
    finish,
    network_words,
    sigcomm,
)
from lab.sim import knee as searching
from lab.sim.knee import Knee
from lab.sim.pool import Lab
from lab.sim.probe import Prober
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick

PROTOCOLS = ("homa", "pfabric", "phost", "pias", "ndp")
# Protocols with the packet sizes that their simulators in the study counted (no Ethernet framing, no
# shortest frame), shown as protocols of their own: which protocol, which setting.
VARIANTS = {
    "pfabric-sizes": ("pfabric", "ns2-sizes"),
    "phost-sizes": ("phost", "bare-sizes"),
    "pias-sizes": ("pias", "ns2-sizes"),
}


@dataclass
class Found:
    """What a search gives: the knee of each case, and the results of every (case, load)."""

    knees: dict[object, Knee]
    results: dict[tuple[object, float], list[dict]]

    def use(self, case: object, what: str) -> Stat | None:
        """Percent of the receivers' links at the highest load: "application", "once", "total"."""
        load = self.knees[case].highest
        if load is None or not self.knees[case].complete:
            return None
        place = ("sim", "utilisation", what)
        values = (pick(result, place) for result in self.results[case, load])
        return stat(100 * v for v in values if v is not None)

    def probes(self) -> list[dict[str, object]]:
        """Every load that was tried, with what was seen."""
        return [
            {
                "case": case_name(case),
                "load": load,
                "verdict": verdict.words(),
                "judged_by": verdict.how(),
                "growth": [window.as_json() if window else None for window in verdict.windows],
                "own_growth": [window.as_json() if window else None for window in verdict.own],
            }
            for case, found in self.knees.items()
            for load, verdict in sorted(found.tried.items())
        ]


def _warmup_note(options: Options) -> str:
    limits = [options.limit(w) for w in WORKLOADS]
    times = ", ".join(f"{w.upper()} {x['warmup']}" for w, x in zip(WORKLOADS, limits, strict=True))
    return (
        "Before the windows each protocol runs by itself, beginning with the oracle's backlog, until "
        f"its own has come to its level: {times}."
    )


_GUESS = 0.8  # the load of the paper's other figures


def prober(lab: Lab, cases: dict[object, Spec], options: Options) -> Prober:
    """What judges loads of `cases`, with as many seeds as a verdict needs at least."""
    most = max(sustain.SEEDS, len(options.seed_list()))
    return Prober(lab, cases, range(1, most + 1))


def search(
    lab: Lab, cases: dict[object, Spec], options: Options, groups: Iterable[Iterable[object]] = ()
) -> Found:
    """The highest load that each case sustains."""
    judges = prober(lab, cases, options)
    guesses = {case: options.guesses.get(case_name(case), _GUESS) for case in cases}
    knees = searching.search(guesses, options.limit_plan(), judges.judge, groups=groups)
    return Found(knees, judges.results)


def case_name(case: object) -> str:
    """("homa", "w4") as homa.w4."""
    return ".".join(map(str, case)) if isinstance(case, tuple) else str(case)


def notes_on(options: Options) -> list[str]:
    """How limits were found and how far they can be trusted, beside the figure."""
    plan = options.limit_plan()
    notes = [
        "Sustained: the backlog above the oracle's, under the same arrivals, grows by less than "
        f"{100 * sustain.LIMIT:g} % of what is offered: the upper end of the 95 % interval over at "
        f"least {sustain.SEEDS} seeds, in two windows of which the second is twice as long. Searched "
        f"between {100 * plan.least:.0f} and {100 * plan.most:.0f} % by halving, down to "
        f"{100 * plan.step:.3g} %; a load about which the runs cannot tell counts as not "
        "sustained. Every probe is in the JSON (values.probes).",
        f"A probe ends after the first window if the backlog grew by more than "
        f"{100 * sustain.STOP_GROWTH:g} % there, if that alone proves it not sustained; and its first "
        f"{sustain.FIRST_SEEDS} seeds decide if they do by intervals of 99 %. The highest load and "
        "the one above it are judged by all seeds.",
        "Where the oracle falls behind the protocol by more than that, the protocol's own backlog is "
        "judged. A limit without a number: no load that was tried is known to be sustained.",
        "Total is without packets that bring a message nothing new, as in the paper.",
        "Three racks (48 hosts) of the nine, so that windows can be long.",
        _warmup_note(options),
    ]
    if options.quick:
        notes.append(
            "Quick: windows 0.3 to 0.4 times as long; a limit of W3 to W5 may be too low, because fewer "
            "loads can be told apart."
        )
    return notes


def _case(protocol: str, workload: str, options: Options) -> Spec:
    if protocol in VARIANTS:
        base, setting = VARIANTS[protocol]
        return sigcomm(workload, 0.8, options, protocol=base, set={setting: 1})
    return sigcomm(workload, 0.8, options, protocol=protocol)


def _variants(protocol: str) -> list[str]:
    """The other forms of a protocol that this homa-sim knows."""
    return [v for v, (p, s) in VARIANTS.items() if p == protocol and program.has_setting(p, s)]


def _title(protocol: str) -> str:
    if protocol in VARIANTS:
        return f"{draw.TITLES[_base(protocol)]}, the study's sizes"
    return draw.TITLES[protocol]


def _base(protocol: str) -> str:
    return VARIANTS[protocol][0] if protocol in VARIANTS else protocol


def _groups(protocols: list[str]) -> list[list[tuple[str, str]]]:
    """What is measured first: Homa, of it W4, the workload of Figure 13; then the others' W4 and so on."""
    order = ("w4", "w3", "w5", "w1", "w2")
    groups = [[("homa", "w4")], [("homa", w) for w in order[1:]]]
    return groups + [[(p, w) for p in protocols if p != "homa"] for w in order]


def fig12(lab: Lab, options: Options) -> Output:
    """Highest load that each protocol sustains."""
    protocols = options.chosen(PROTOCOLS)
    if options.quick and not options.protocols:
        protocols = ["homa"]  # the others: without --quick, or --protocols all
    protocols = [shown for p in protocols for shown in (p, *_variants(p))]
    cases = {
        (p, w): merge(_case(p, w, options), options.limit(w)) for p in protocols for w in WORKLOADS
    }
    found = search(lab, cases, options, _groups(protocols))
    use: dict[tuple[str, str], tuple[Stat | None, Stat | None, float | None]] = {}
    for key, knee in found.knees.items():
        load = 100 * knee.highest if knee.highest and knee.complete else None
        use[key] = (found.use(key, "application"), found.use(key, "once"), load)
    theirs, points = published()["fig12"], published()["goals"]["fig12_points"]
    shown = [p for p in protocols if any(found.knees[p, w].complete for w in WORKLOADS)]
    rows = []
    for (p, w), (application, total, _) in use.items():
        if p not in shown:
            continue
        numbers = theirs.get(_base(p), {}).get(w)
        for index, (name, ours) in enumerate((("application", application), ("total", total))):
            what = f"{_title(p)} {w.upper()}, {name}"
            what += "" if found.knees[p, w].complete else " (not measured yet)"
            if numbers and found.knees[p, w].known:
                rows.append(limit_row(what, numbers[index], ours, points, found.knees[p, w]))
            else:
                rows.append(compare.info(what, numbers[index] if numbers else None, ours, "%", 1))

    def paint(stem: Path) -> list[Path]:
        bars = _paint_limits(stem, options, shown, use, found.knees)
        named = [(p, _title(p), _base(p)) for p in protocols]
        return [*bars, *knees.paint(stem, options, named, found.knees)]

    gaps = [
        abs(ours[i].mean - theirs["homa"][w][i])
        for (p, w), ours in use.items()
        for i in (0, 1)
        if p == "homa" and ours[i]
    ]
    return Output(
        "Figure 12: highest sustainable load",
        ["workload", "protocol", "application", "application_ci95", "total", "total_ci95", "load"],
        [[w, p, *cell(a), *cell(t), load] for (p, w), (a, t, load) in use.items() if p in shown],
        rows,
        paint,
        {
            "homa_worst_gap_points": max(gaps) if len(gaps) == 10 else None,
            "limits": {
                f"{p}.{w}": {"application": v[0].mean, "total": v[1].mean}
                for (p, w), v in use.items()
                if v[0] and v[1]
            },
            "probes": found.probes(),
        },
        [*notes_on(options), *_unmeasured([p for p in protocols if p not in shown])],
    )


def limit_row(
    what: str, published: float, ours: Stat | None, points: float, knee: Knee
) -> compare.Row:
    """A limit beside the published one. Where the runs could not tell of loads above it, it is the
    least that the limit may be; then it is judged only if no place that is left for it is met."""
    if knee.decided or ours is None or not knee.highest:
        return compare.about(what, published, ours, points)
    most = ours.mean * (knee.over or knee.plan.most) / knee.highest
    what += f" (at least; at most {most:.0f}, the runs cannot tell)"
    if ours.mean - points <= published <= most + points:
        return compare.info(what, published, ours, "%", 1)
    return compare.about(what, published, ours, points)


def _unmeasured(protocols: list[str]) -> list[str]:
    """What is left out because no workload of it is measured yet."""
    if not protocols:
        return []
    return [f"Not measured yet and left out: {', '.join(_title(p) for p in protocols)}."]


def _paint_limits(
    stem: Path, options: Options, protocols: list[str], use: dict, found: dict[object, Knee]
) -> list[Path]:
    theirs = published()["fig12"]
    with draw.canvas(10.2, 4.9) as (figure, panels):
        figure.subplots_adjust(left=0.065, right=0.985, top=0.785, bottom=0.09)
        draw.headline(
            figure,
            "Highest load that the network sustains (SIGCOMM’18, Figure 12)",
            network_words(options, options.limit_hosts()),
            0.065,
        )
        panel = panels[0, 0]
        draw.plain(panel)
        width = 0.8 / max(len(protocols), 2)
        for at, w in enumerate(WORKLOADS):
            for index, p in enumerate(protocols):
                x = at + (index - (len(protocols) - 1) / 2) * width
                application, total, _ = use[p, w]
                color = draw.COLORS[_base(p)]
                if application and total:
                    panel.bar(x, total.mean, width * 0.88, color=color, alpha=0.38)
                    panel.bar(
                        x, application.mean, width * 0.88, color=color, yerr=application.half,
                        error_kw={"elinewidth": 0.8, "ecolor": draw.INK},
                    )  # fmt: skip
                    panel.annotate(
                        _title(p), (x, 1.5), rotation=90, ha="center", va="bottom",
                        fontsize=8.2, color="white", fontweight="bold",
                    )  # fmt: skip
                else:
                    why = "no limit known" if found[p, w].complete else "not measured yet"
                    panel.annotate(
                        f"{_title(p)}: {why}", (x, 1.5), rotation=90, ha="center", va="bottom",
                        fontsize=8.2, color=draw.GREY,
                    )  # fmt: skip
                for value in theirs.get(_base(p), {}).get(w, []):
                    panel.plot(
                        [x - width * 0.46, x + width * 0.46], [value] * 2,
                        color=draw.PAPER, linewidth=1.6, solid_capstyle="butt", zorder=5,
                    )  # fmt: skip
        panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
        panel.tick_params(axis="x", length=0)
        panel.set_xlim(-0.5, len(WORKLOADS) - 0.5)
        panel.set_ylim(0, 100)
        panel.set_ylabel("% of the receivers' links")
        _limit_legend(figure, protocols[0] if protocols else "homa")
        return finish(figure, stem)


def _limit_legend(figure, protocol: str) -> None:  # noqa: ANN001
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    color = draw.COLORS[protocol]
    draw.legend(
        figure,
        [
            Patch(color=color),
            Patch(color=color, alpha=0.38),
            Line2D([], [], color=draw.PAPER, linewidth=1.6),
        ],
        ["application data", "with headers and control, no repeats", "published, both"],
    )


LEVELS = (1, 2, 3, 4, 5, 6, 7)
_QUICK_LEVELS = (1, 2, 4, 7)
_LOADS = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
_QUICK_LOADS = (0.5, 0.7, 0.9)


def _levels_spec(options: Options, levels: int, load: float) -> Spec:
    # Seven and one are what the preset has for W4: the runs of Figure 12.
    more = {} if levels == LEVELS[-1] else {"set": _settings(levels)}
    return merge(sigcomm("w4", load, options, **more), options.limit("w4"))


def _settings(levels: int) -> dict[str, int]:
    return {"scheduled-levels": levels, "unscheduled-levels": 1}


@dataclass
class Grid:
    """Waste by (levels, load), and what the same runs say about the load.

    Each number of levels is measured up to the first load that is not sustained: the waste beyond
    would say for how long a backlog was watched that grows.
    """

    points: dict[tuple[int, float], list[dict]] = field(default_factory=dict)
    verdicts: dict[int, dict[float, sustain.Verdict]] = field(default_factory=dict)

    def measure(self, lab: Lab, options: Options, levels: Sequence[int]) -> None:
        """All loads of some numbers of levels."""
        going = list(levels)
        for load in _QUICK_LOADS if options.quick else _LOADS:
            points = Points(
                lab, options, {(n, load): _levels_spec(options, n, load) for n in going}
            )
            for n in going:
                if runs := points[n, load]:
                    self.points[n, load] = runs
                    self.verdicts.setdefault(n, {})[load] = sustain.judge(runs)
            going = [n for n in going if not self._over(n, load)]

    def _over(self, n: int, load: float) -> bool:
        verdict = self.verdicts.get(n, {}).get(load)
        return verdict is not None and verdict.sustained is False

    def known(self, least: float) -> dict[object, dict[float, sustain.Verdict]]:
        """Verdicts that a search can begin with: those of enough seeds."""
        return {
            n: {
                load: verdict for load, verdict in found.items()
                if load >= least and len(self.points[n, load]) >= sustain.SEEDS
            }
            for n, found in self.verdicts.items()
        }  # fmt: skip

    def waste(self) -> dict[tuple[int, float], Stat | None]:
        """Percent of the receivers' time."""
        values = {
            key: [pick(run, ("sim", "waste")) for run in runs] for key, runs in self.points.items()
        }
        return {key: stat(100 * v for v in vs if v is not None) for key, vs in values.items()}


# What is measured first: the numbers of levels of which the paper prints a limit.
_FIRST_LEVELS = (1, 7)


def _levels_found(lab: Lab, options: Options, levels: Sequence[int]) -> tuple[Grid, Found]:
    """The grid, then the knees between its loads."""
    grid = Grid()
    judges = prober(lab, {n: _levels_spec(options, n, 0.8) for n in levels}, options)
    plan, knees = options.limit_plan(), {}
    first = [n for n in levels if n in _FIRST_LEVELS]
    for group in (first, [n for n in levels if n not in first]):
        grid.measure(lab, options, group)
        known = grid.known(plan.least)
        judges.results.update(grid.points)
        knees |= searching.search(dict.fromkeys(group, _GUESS), plan, judges.judge, known)
    return grid, Found(knees, judges.results)


def fig13(lab: Lab, options: Options) -> Output:
    """Receivers' bandwidth that nobody uses although messages wait, by degree of overcommitment."""
    levels = _QUICK_LEVELS if options.quick else LEVELS
    loads = _QUICK_LOADS if options.quick else _LOADS
    grid, found = _levels_found(lab, options, levels)
    limit = {n: found.use(n, "once") for n in levels}
    kept = {(n, load): load <= (found.knees[n].highest or 0.0) + 1e-9 for n, load in grid.points}
    waste = grid.waste()
    theirs = published()["fig13"]
    rows = [
        limit_row(
            f"W4, {n} scheduled level{'s' if int(n) > 1 else ''}, sustained load",
            value,
            limit.get(int(n)),
            published()["goals"]["fig13_points"],
            found.knees[int(n)],
        )
        for n, value in theirs["sustained"].items()
    ]
    rows += [
        compare.info(f"W4, {n} scheduled levels, sustained load", None, limit[n], "%", 1)
        for n in levels
        if str(n) not in theirs["sustained"]
    ]

    def paint(stem: Path) -> list[Path]:
        return _paint_waste(stem, options, levels, loads, kept, waste)

    one, seven = limit.get(1), limit.get(7)
    return Output(
        "Figure 13: wasted bandwidth by load and scheduled priorities, W4",
        ["scheduled_levels", "load", "waste_percent", "waste_ci95", "carried", "runs"],
        [
            [n, load, *cell(waste[n, load]), kept[n, load], len(grid.points[n, load])]
            for n in levels
            for load in loads
            if (n, load) in grid.points
        ],
        rows,
        paint,
        {
            "sustained_percent": {str(n): value.mean for n, value in limit.items() if value},
            "sustained_off_points": max(abs(one.mean - 63), abs(seven.mean - 89))
            if one and seven
            else None,
            "probes": found.probes(),
        },
        [
            "Wasted: the share of time in which a receiver's link is idle although the receiver "
            "knows of a message that it holds back. Loads beyond the limit are hollow; above the "
            "first that is not sustained nothing is measured.",
            *notes_on(options),
        ],
    )  # fmt: skip


def _paint_waste(
    stem: Path,
    options: Options,
    levels,  # noqa: ANN001
    loads,  # noqa: ANN001
    kept: dict,
    waste: dict,
) -> list[Path]:
    theirs = published()["fig13"]["sustained"]
    shades = dict(zip(levels, draw.ramp(len(levels)), strict=True))
    with draw.canvas(9.2, 5.0) as (figure, panels):
        figure.subplots_adjust(left=0.08, right=0.87, top=0.85, bottom=0.11)
        draw.headline(
            figure,
            "Bandwidth wasted for want of overcommitment, W4 (SIGCOMM’18, Figure 13)",
            network_words(options, options.limit_hosts()),
            0.08,
        )
        panel = panels[0, 0]
        draw.plain(panel, "both")
        ends = []
        top = 10.0
        for n in levels:
            here = [(load, waste[n, load]) for load in loads if waste.get((n, load))]
            if not here:
                continue
            xs, ys = [100 * x for x, _ in here], [s.mean for _, s in here]
            top = max(top, *ys)
            panel.errorbar(
                xs, ys, yerr=[s.half or 0 for _, s in here], color=shades[n], linewidth=1.8,
                elinewidth=0.8, capsize=2,
            )  # fmt: skip
            for x, y, (load, _) in zip(xs, ys, here, strict=True):
                panel.plot(
                    x, y, "o", color=shades[n],
                    markerfacecolor=shades[n] if kept[n, load] else "white",
                    markersize=5.5, zorder=4,
                )  # fmt: skip
            name = f"{n} level{'s' if n > 1 else ''}"
            if here[-1][0] == max(loads):
                ends.append((ys[-1], name, shades[n]))
            else:
                panel.annotate(name, (xs[-1], ys[-1]), xytext=(7, 0), textcoords="offset points",
                               va="center", fontsize=8.8, color=shades[n], fontweight="bold")  # fmt: skip
        panel.set_xlim(min(loads) * 100 - 2, max(loads) * 100 + 2)
        panel.set_ylim(0, top * 1.12)
        for n, value in theirs.items():
            panel.axvline(value, color=draw.PAPER, linewidth=0.9, linestyle=(0, (1, 2)))
            panel.annotate(
                f"paper: {n} level{'s' if int(n) > 1 else ''} sustain{'' if int(n) > 1 else 's'} {value} %",
                (value, top * 1.1), xytext=(-3, 0), textcoords="offset points", ha="right",
                va="top", fontsize=8, rotation=90,
            )  # fmt: skip
        panel.set_xlabel("load, % of the hosts' links")
        panel.set_ylabel("wasted, % of the receivers' time")
        panel.plot([], [], "o", color=draw.GREY, label="carried")
        panel.plot([], [], "o", color=draw.GREY, markerfacecolor="white", label="not carried")
        panel.legend(loc="upper left", frameon=False, fontsize=8.5)
        draw.names(panel, ends, log=False)
        return finish(figure, stem)


FIGURES = [
    Figure("fig12", "highest sustainable load by protocol and workload", fig12, sustain.RULE, True),
    Figure(
        "fig13",
        "wasted bandwidth against load for 1 to 7 scheduled priorities, W4",
        fig13,
        sustain.RULE,
        True,
    ),
]
