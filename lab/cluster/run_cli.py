# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run NAME`: which experiment, which options are its own, one function called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from lab.cluster.arguments import Wanted
from lab.errors import UsageError
from lab.output import JSON_HELP, check_output

if TYPE_CHECKING:
    from lab.cluster.setup import Setup

    Measure = Callable[[Setup, Path | None, Path | None], None]

FIGURES = ("fig3", "fig5", "fig6")
# Options that not all experiments have, and those that have them.
_OWN = {
    "hosts": (*FIGURES, "coexist", "failures", "sustained"),
    "workloads": (*FIGURES, "coexist", "failures", "sustained"),
    "rpc": ("coexist", "failures", "sustained"),
    "streams": ("coexist",),
    "senders": ("incast",),
    "faults": ("failures",),
    "keep": ("coexist", "incast", "failures", "sustained"),
}


def run(
    name: str = typer.Argument(
        ...,
        help="fig3 (Homa and TCP, W2 to W5), fig5 (1 to 8 priorities), fig6 (load), coexist "
        "(RPCs beside streams of TCP), incast (many to one), failures (hosts, links), "
        "sustained (the highest load).",
    ),
    quick: bool = typer.Option(
        False, "--quick", help="Fewer hosts, and of all but fig5 and fig6 only a part."
    ),
    hosts: Optional[int] = typer.Option(
        None,
        help="2 to 40.  [default: 40, 8 with --quick; coexist 12 and 4, failures and sustained 8 and 4]",
        show_default=False,
    ),
    link: str = typer.Option("25gbit", help="Rate that every link stands for."),
    dilate: float = typer.Option(
        0.0, help="How much slower links are; 0: so that processors are not the limit."
    ),
    mtu: int = typer.Option(3000, help="Of all links."),
    buffer: str = typer.Option("325kb", help="Bytes that a port holds."),
    workloads: str = typer.Option("", help="Of the experiment's, like w4,w5.", show_default=False),
    transports: str = typer.Option(
        "",
        help="homa, tcp (a stream per peer), tcp-pool; coexist: homa, homa-flat (1 priority), "
        "homa-shared (homad carries RPCs and streams), tcp; incast: homa, homa-free (no incast "
        "control), tcp; failures, sustained: homa, tcp.",
        show_default=False,
    ),
    rpc: str = typer.Option(
        "",
        help="coexist: loads of RPCs, like 10,30; failures: one; sustained: on the wire.",
        show_default=False,
    ),
    streams: str = typer.Option(
        "", help="coexist: loads of streams, like 10,40.", show_default=False
    ),
    senders: str = typer.Option(
        "", help="incast: how many answer at once, like 1,8,64.", show_default=False
    ),
    faults: str = typer.Option(
        "", help="failures: none, kill, flap, buffer; all unless said.", show_default=False
    ),
    via: str = typer.Option("program", help="Who runs Homa: the program, or a homad (service)."),
    messages: int = typer.Option(12_000, help="How many a run measures; a tenth needs 1,000."),
    longest: float = typer.Option(300.0, help="Most seconds that a run measures."),
    seed: int = typer.Option(1, help="Of the arrivals, the same for all."),
    keep: Optional[Path] = typer.Option(
        None,
        help="Folder in which runs that count are kept; the same command goes on there.  "
        "[default: of the build; none with --quick]",
        show_default=False,
    ),  # fmt: skip
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
    plot: Optional[Path] = typer.Option(
        None, help="Where the figure goes (.png, .pdf or .svg).", show_default=False
    ),
) -> None:
    """An experiment of a paper on real packets in a dilated network of this machine."""
    from lab.cluster import laboratories, setup

    wanted = Wanted(quick, workloads, transports, rpc, streams, senders, faults, keep)
    _refuse(name, {**wanted.__dict__, "hosts": hosts})
    usual, choose = _experiment(name, quick)
    checked = setup.check(
        hosts or usual, link, dilate, mtu, buffer, seed, messages, longest, via
    )  # fmt: skip
    measure = choose(wanted)
    check_output(json_file, "--json")
    check_output(plot, "--plot")
    setup.check_figure(plot)
    laboratories.need_root()
    measure(checked, json_file, plot)


def _refuse(name: str, given: dict[str, object]) -> None:
    """UsageError for options of other experiments."""
    for option, allowed in _OWN.items():
        if given[option] and name not in allowed:
            raise UsageError(f"--{option} is an option of {', '.join(allowed)} alone")


def _experiment(name: str, quick: bool) -> tuple[int, Callable[[Wanted], Measure]]:
    """How many hosts `name` usually has, and what makes it of options."""
    if name == "coexist":
        from lab.coexist import command as coexist

        return coexist.hosts(quick), coexist.choose
    if name == "incast":
        from lab.incast import command as incast

        return 2, incast.choose  # how many there are follows from --senders
    if name == "failures":
        from lab.failures import command as failures

        return failures.hosts(quick), failures.choose
    if name == "sustained":
        from lab.sustained import command as sustained

        return sustained.hosts(quick), sustained.choose
    if name in FIGURES:
        return 8 if quick else 40, lambda wanted: _figure(name, wanted)
    known = ", ".join((*FIGURES, "coexist", "incast", "failures", "sustained"))
    raise UsageError(f"there is no {name}; choose from {known}")


def _figure(name: str, wanted: Wanted) -> Measure:
    """What measures and shows a figure of the ATC'21 paper; a UsageError for a wrong choice."""
    from lab.cluster import run as runs
    from lab.cluster import show
    from lab.cluster.points import FIGURES as known
    from lab.cluster.points import TITLES, choose, points_of

    figure = known[name]
    chosen = figure.quick if wanted.quick else figure.workloads
    if wanted.workloads:
        chosen = choose(name, wanted.workloads, figure.workloads, "--workloads")
    kinds = choose(name, wanted.transports or "homa,tcp", tuple(TITLES), "--transports")

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> None:
        show.begin(name, setup)
        found = runs.measure(setup, points_of(name, chosen, kinds), show.point)
        show.end(name, setup, found, json_file, plot)

    return measure
