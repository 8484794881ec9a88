# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run NAME`: which experiment, which options are its own, one function called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from lab.cluster import arguments, experiments
from lab.cluster.arguments import Wanted
from lab.cluster.experiments import FIGURES
from lab.errors import UsageError
from lab.output import JSON_HELP, check_output

if TYPE_CHECKING:
    from lab.cluster.setup import Setup

# Options that not all experiments have, and those that have them.
_OWN = {
    "hosts": (*FIGURES, "coexist", "failures", "sustained"),
    "workloads": (*FIGURES, "coexist", "failures", "sustained"),
    "rpc": ("coexist", "failures", "sustained"),
    "streams": ("coexist",),
    "senders": ("incast",),
    "faults": ("failures",),
    "inventory": FIGURES,
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
    link: str = typer.Option(arguments.LINK, help="Rate that every link stands for."),
    dilate: float = typer.Option(
        0.0, help="Factor by which links are slower; 0: so that processors are not the limit."
    ),
    mtu: int = typer.Option(
        arguments.MTU, help="MTU of all links, in bytes; an inventory says its own."
    ),
    buffer: str = typer.Option(arguments.BUFFER, help="Bytes of a port's buffer."),
    workloads: str = typer.Option("", help="Only these workloads, like w4,w5.", show_default=False),
    transports: str = typer.Option(
        "",
        help="homa, tcp (32 streams per peer), tcp-pool, and in a lab tcp-bbr, tcp-homad (TCP by homads); coexist: homa, homa-flat (1 priority), "
        "homa-shared (homad carries RPCs and streams), tcp; incast: homa, homa-free (no incast "
        "control), tcp; failures, sustained: homa, tcp.",
        show_default=False,
    ),
    rpc: str = typer.Option(
        "",
        help="Load of RPCs in percent; coexist: a list, like 10,30; sustained: with headers.",
        show_default=False,
    ),
    streams: str = typer.Option(
        "", help="coexist: loads of streams in percent, like 10,40.", show_default=False
    ),
    senders: str = typer.Option(
        "", help="incast: numbers of hosts that answer at once, like 1,8,64.", show_default=False
    ),
    faults: str = typer.Option(
        "", help="failures: none, kill, flap, buffer; all unless said.", show_default=False
    ),
    via: str = typer.Option(
        arguments.VIA, help="Who runs Homa: the program, or a homad (service)."
    ),
    messages: int = typer.Option(
        arguments.MESSAGES, help="RPCs that a run measures; each tenth needs 1,000."
    ),
    longest: float = typer.Option(arguments.LONGEST_S, help="Most seconds that a run measures."),
    seed: int = typer.Option(1, help="Seed of the arrivals, the same for all transports."),
    keep: Optional[Path] = typer.Option(
        None,
        help="Folder in which runs that count are kept; the same command goes on there.  "
        "[default: one in the build folder; none with --quick]",
        show_default=False,
    ),  # fmt: skip
    inventory: Optional[Path] = typer.Option(
        None,
        help="fig3, fig5, fig6 on real hosts over SSH: a TOML file as for ./homa lab check; --link is "
        "their links' rate.",
        show_default=False,
    ),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
    plot: Optional[Path] = typer.Option(
        None, help="Where the figure goes (.png, .pdf or .svg).", show_default=False
    ),
) -> None:
    """An experiment of a paper on real packets in a dilated network of this machine."""
    from lab.cluster import laboratories, setup

    wanted = Wanted(quick, workloads, transports, rpc, streams, senders, faults, keep, inventory)
    _refuse(name, {**wanted.__dict__, "hosts": hosts})
    usual, choose = experiments.find(name, quick)
    if inventory:
        checked = _real(inventory, hosts, link, dilate, buffer, seed, messages, longest, via)
    else:
        checked = setup.check(
            hosts or usual, link, dilate, mtu, buffer, seed, messages, longest, via
        )  # fmt: skip
    measure = choose(wanted)
    check_output(json_file, "--json")
    check_output(plot, "--plot")
    setup.check_figure(plot)
    if not inventory:
        laboratories.need_root()
    measure(checked, json_file, plot)


def _real(
    inventory: Path, hosts: int | None, link: str, dilate: float, buffer: str, seed: int,
    messages: int, longest: float, via: str,
) -> Setup:  # fmt: skip
    """The setup of an inventory's hosts, whose links are as fast as they are."""
    from lab.cluster import setup
    from lab.inventory import hosts as inventories

    if hosts or dilate:
        raise UsageError("--inventory says which hosts there are; leave out --hosts and --dilate")
    known = inventories.load(inventory)
    count, mtu = len(known.hosts), known.mtu
    checked = setup.check(count, link, 1, mtu, buffer, seed, messages, longest, via)
    return replace(checked, real=" ".join(host.address for host in known.hosts))


def _refuse(name: str, given: dict[str, object]) -> None:
    """UsageError for options of other experiments."""
    for option, allowed in _OWN.items():
        if given[option] and name not in allowed:
            raise UsageError(f"--{option} is an option of {', '.join(allowed)} alone")
