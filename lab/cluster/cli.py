# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab up | down | status | run`: arguments in, one function called, text out."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.output import JSON_HELP, check_output, write_json

NAME_HELP = "Which lab: small letters and digits."


def add_to(app: typer.Typer) -> None:
    """Make the commands part of `app`."""
    app.command()(up)
    app.command()(down)
    app.command()(status)
    app.command()(run)


def up(
    name: str = typer.Argument("lab", help=NAME_HELP),
    hosts: int = typer.Option(3, help="Hosts around the switch, 2 to 40."),
    link: str = typer.Option("200mbit", help="Rate of every link, before --dilate."),
    dilate: float = typer.Option(
        1.0, help="Time dilation: links are so many times slower (25gbit and 250: 100 Mbit/s)."
    ),
    priorities: int = typer.Option(8, help="Strict priorities of a port, 1 to 8."),
    buffer: str = typer.Option(
        "",
        help="Bytes that a port holds (48kb).  [default: 8 bandwidth-delay products]",
        show_default=False,
    ),  # fmt: skip
    mtu: int = typer.Option(1500, help="Longest packet of every link, in bytes."),
    loss: float = typer.Option(0.0, help="Percent of the packets that each port loses by chance."),
    ecn: str = typer.Option(
        "", help="Mark packets that find so many bytes queued.", show_default=False
    ),
) -> None:
    """Make a network that stays: hosts in namespaces around a switch with strict priorities."""
    from lab.cluster import plan, standing

    wanted = plan.check(name, hosts, link, dilate, priorities, buffer, mtu, loss, ecn)
    standing.need_root()
    _say_healed(standing.heal())
    made = standing.up(wanted)
    out = console()
    out.print(f"lab '{name}': {wanted.words()}", markup=False, soft_wrap=True)
    space, address = made.hosts[0]
    out.print(f"first host {address}: ip netns exec {space} COMMAND", markup=False, soft_wrap=True)
    out.print(f"./homa lab down {name} removes it", markup=False)


def down(
    names: Optional[list[str]] = typer.Argument(
        None, metavar="[NAME]...", help=f"{NAME_HELP}  [default: lab]", show_default=False
    ),
    all_of_them: bool = typer.Option(False, "--all", help="Every lab that is up."),
) -> None:
    """Remove labs with all that runs in them."""
    from lab.cluster import plan, standing

    chosen = [plan.check_name(name) for name in names or ([] if all_of_them else ["lab"])]
    standing.need_root()
    _say_healed(standing.heal(), chosen)
    for name in [*chosen, *(standing.names() if all_of_them else [])]:
        gone = standing.down(name)
        console().print(f"lab '{name}' {'is removed' if gone else 'was not up'}", markup=False)


def status(
    name: Optional[str] = typer.Argument(
        None, help=f"{NAME_HELP}  [default: all that are up]", show_default=False
    ),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
) -> None:
    """Labs that are up; with NAME each port's bytes, drops and greatest queue, by the kernel."""
    from lab import provenance
    from lab.cluster import plan, standing

    check_output(json_file, "--json")
    chosen = [plan.check_name(name)] if name else standing.names()
    out = console()
    if not chosen:
        out.print("no lab is up")
    document: dict[str, object] = {"what": "lab-status", "where": provenance.here()}
    labs: dict[str, object] = {}
    for one in chosen:
        try:
            found = standing.load(one)
        except LabError as error:
            if name:
                raise
            out.print(f"{error}", markup=False, soft_wrap=True)
            continue
        out.print(f"lab '{one}': {found.plan.words()}", markup=False, soft_wrap=True)
        counters = found.counters() if name or json_file else []
        labs[one] = {
            "plan": found.plan.as_json(),
            "made": found.where,
            "hosts": found.hosts,
            "ports": [port.__dict__ for port in counters],
        }
        if name:
            out.print(_ports_table(found.hosts, counters))
    if json_file:
        write_json(json_file, {**document, "labs": labs})


def run(
    name: str = typer.Argument(
        ..., help="fig3 (Homa and TCP, W2 to W5), fig5 (1 to 8 priorities) or fig6 (load)."
    ),
    quick: bool = typer.Option(False, "--quick", help="8 hosts, and W3 and W4 alone for fig3."),
    hosts: Optional[int] = typer.Option(
        None, help="2 to 40.  [default: 40, 8 with --quick]", show_default=False
    ),
    link: str = typer.Option("25gbit", help="Rate that every link stands for."),
    dilate: float = typer.Option(
        0.0, help="How much slower links are; 0: so that processors are not the limit."
    ),
    mtu: int = typer.Option(3000, help="Of all links."),
    buffer: str = typer.Option("325kb", help="Bytes that a port holds."),
    workloads: str = typer.Option("", help="Of the figure's, like w4,w5.", show_default=False),
    transports: str = typer.Option("homa,tcp", help="homa, tcp (a stream per peer), tcp-pool."),
    via: str = typer.Option("program", help="Who runs Homa: the program, or a homad (service)."),
    messages: int = typer.Option(12_000, help="How many a point measures; a tenth needs 1,000."),
    longest: float = typer.Option(300.0, help="Most seconds that a point measures."),
    seed: int = typer.Option(1, help="Of the arrivals, the same for all."),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
    plot: Optional[Path] = typer.Option(
        None, help="Where the figure goes (.png, .pdf or .svg).", show_default=False
    ),
) -> None:
    """A figure of the ATC'21 paper on real packets in a dilated network, beside the simulator."""
    from lab.cluster import run as runs
    from lab.cluster import setup, show, standing
    from lab.cluster.points import FIGURES, TITLES, choose, points_of

    if name not in FIGURES:
        raise UsageError(f"there is no {name}; choose from {', '.join(FIGURES)}")
    figure = FIGURES[name]
    usual = figure.quick if quick else figure.workloads
    chosen = choose(name, workloads, figure.workloads, "--workloads") if workloads else usual
    kinds = choose(name, transports, tuple(TITLES), "--transports")
    wanted = setup.check(
        hosts or (8 if quick else 40),
        link, dilate, mtu, buffer, seed, messages, longest, via,
    )  # fmt: skip
    check_output(json_file, "--json")
    check_output(plot, "--plot")
    setup.check_figure(plot)
    standing.need_root()
    show.begin(name, wanted)
    found = runs.measure(wanted, points_of(name, chosen, kinds), show.point)
    show.end(name, wanted, found, json_file, plot)


def _ports_table(hosts: list[list[str]], counters: list):  # noqa: ANN202 (rich is imported late)
    grid = table(
        "", "namespace", "address", "sent KB", "packets", "dropped\nfull", "dropped\nby chance",
        "marked", "queue\nnow", "queue\nat most", left=2,
    )  # fmt: skip
    for (space, address), port in zip(hosts, counters, strict=True):
        peak = port.peak_backlog
        grid.add_row(
            space,
            address,
            f"{port.sent_bytes / 1e3:,.0f}",
            f"{port.sent_packets:,}",
            f"{port.drops - port.lost:,}",
            f"{port.lost:,}",
            f"{port.marked:,}",
            f"{port.backlog:,}",
            "–" if peak is None else f"{peak:,}",
        )
    return grid


def _say_healed(healed: list[str], known: list[str] | None = None) -> None:
    for name in healed:
        if name not in (known or []):
            console().print(f"removed what was left of lab '{name}'", markup=False)
