# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab up | down | status`: arguments in, one function called, text out."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from lab.cluster.run_cli import run
from lab.console import console, table
from lab.errors import LabError
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
        help="Buffer of a port, such as 48kb.  [default: 8 bandwidth-delay products]",
        show_default=False,
    ),  # fmt: skip
    mtu: int = typer.Option(1500, help="Longest packet of every link, in bytes."),
    loss: float = typer.Option(0.0, help="Percent of the packets that each port drops at random."),
    ecn: str = typer.Option(
        "", help="Mark packets that find this many bytes queued.", show_default=False
    ),
) -> None:
    """Make a network that stays: hosts in namespaces around a switch with strict priorities."""
    from lab.cluster import laboratories, plan

    wanted = plan.check(name, hosts, link, dilate, priorities, buffer, mtu, loss, ecn)
    laboratories.need_root()
    _say_healed(laboratories.heal())
    made = laboratories.up(wanted)
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
    from lab.cluster import laboratories, plan

    chosen = [plan.check_name(name) for name in names or ([] if all_of_them else ["lab"])]
    laboratories.need_root()
    _say_healed(laboratories.heal(), chosen)
    for name in [*chosen, *(laboratories.names() if all_of_them else [])]:
        gone = laboratories.down(name)
        console().print(f"lab '{name}' {'is removed' if gone else 'was not up'}", markup=False)


def status(
    name: Optional[str] = typer.Argument(
        None, help=f"{NAME_HELP}  [default: all that are up]", show_default=False
    ),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
) -> None:
    """Labs that are up; with NAME each port's bytes, drops and greatest queue, by the kernel."""
    from lab import provenance
    from lab.cluster import laboratories, plan

    check_output(json_file, "--json")
    chosen = [plan.check_name(name)] if name else laboratories.names()
    out = console()
    if not chosen:
        out.print("no lab is up")
    document: dict[str, object] = {"what": "lab-status", "where": provenance.here()}
    labs: dict[str, object] = {}
    for one in chosen:
        try:
            found = laboratories.load(one)
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
