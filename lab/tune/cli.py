# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab tune`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from lab.errors import UsageError
from lab.output import JSON_HELP, check_output


def tune(
    name: Optional[str] = typer.Argument(
        None, help="A lab that is up.  [default: lab]", show_default=False
    ),
    interface: str = typer.Option(
        "", help="Measure this interface of the machine instead of a lab.", show_default=False
    ),
    peer: list[str] = typer.Option(
        [],
        help="ADDRESS:PORT behind --interface where homa-bench server runs, for homa and for tcp;"
        " several show the overcommitment.",
        show_default=False,
    ),
    link: str = typer.Option(
        "",
        help="Rate of the link of --interface.  [default: what the device says]",
        show_default=False,
    ),
    via: str = typer.Option(
        "", help="afxdp or udp.  [default: afxdp as root, else udp]", show_default=False
    ),
    seconds: float = typer.Option(
        2.0, help="Length of each measurement; there are 3, with several peers 6."
    ),
    out: Optional[Path] = typer.Option(
        None, help="Write the configuration here.  [default: print it]", show_default=False
    ),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
) -> None:
    """Measure a network and write homad's settings for it, each with its reason."""
    from lab.tune import command

    if interface and name:
        raise UsageError("give the name of a lab or --interface, not both")
    if not interface and (peer or link):
        raise UsageError("--peer and --link belong to --interface")
    check_output(out, "--out")
    check_output(json_file, "--json")
    if interface:
        net = command.on_interface(interface, peer, link, via, seconds)
    else:
        net = command.in_lab(name or "lab", via, seconds)
    command.tune(net, out, json_file)
