# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab check --inventory FILE`: its options, and what it says."""

from __future__ import annotations

from pathlib import Path

import typer

from lab.console import console
from lab.errors import LabError


def check(
    inventory: Path = typer.Option(..., help="The hosts: a TOML file as in docs/lab.md."),
) -> None:
    """Look whether experiments can run on real hosts, over SSH; nothing there is changed."""
    from lab.inventory import hosts, preflight, ssh

    known = hosts.load(inventory)
    found = ssh.ask(known.hosts, {host.name: preflight.script(host) for host in known.hosts})
    said = preflight.problems(known, found)
    out = console()
    for line in said:
        out.print(line, markup=False, soft_wrap=True)
    plural = "priorities" if known.priorities > 1 else "priority"
    out.print(
        f"The switch has {known.priorities} strict {plural}, says the inventory; no host can see it.",
        markup=False,
        soft_wrap=True,
    )
    if said:
        raise LabError(f"{len(said)} things have to be mended before experiments can run there")
    out.print(f"{len(known.hosts)} hosts are ready", markup=False)
