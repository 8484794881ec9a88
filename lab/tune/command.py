# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A command line of `./homa lab tune` becomes a network to measure, and that a configuration."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path

from lab import provenance
from lab.cluster import laboratories, plan
from lab.console import Bar, console
from lab.errors import UsageError
from lab.net.hosts import Host
from lab.output import write_json
from lab.tune import choose, measure, write
from lab.tune.measure import PORT, Network
from lab.units import parse_rate

_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,15}")


def in_lab(name: str, via: str, seconds: float) -> Network:
    """Lab `name`, measured from its first host."""
    plan.check_name(name)
    _check(via, seconds)
    laboratories.need_root()
    found = laboratories.load(name)
    here, *others = [Host(space, address) for space, address in found.hosts]
    peers = [f"{other.address}:{PORT}" for other in others]
    made = found.plan
    return Network(
        here,
        peers,
        others,
        made.traits.mtu,
        made.link_bps,
        f"lab '{name}'",
        via or "afxdp",
        seconds,
    )


def on_interface(
    device: str, peers: list[str], link: str, via: str, seconds: float, sys: Path = Path("/sys")
) -> Network:
    """Interface `device` of this machine; at `peers` servers of Homa and TCP are running."""
    _check(via, seconds)
    folder = sys / "class" / "net" / device
    if not _DEVICE.fullmatch(device) or device in (".", "..") or not folder.exists():
        raise UsageError(f"there is no interface '{device}' here; ip link shows them")
    if not peers:
        raise UsageError("--interface needs --peer ADDRESS:PORT, where homa-bench server runs")
    for peer in peers:
        if not re.fullmatch(r"[^\s]+:\d{1,5}", peer):
            raise UsageError(f"--peer {peer} is not ADDRESS:PORT, like 10.0.0.2:4000")
    mbps = max(_number(folder / "speed"), 0)
    rate, source = (parse_rate(link), "--link") if link else (mbps * 10**6, device)
    way = via or ("afxdp" if os.geteuid() == 0 else "udp")
    mtu = max(_number(folder / "mtu"), 576)
    return Network(Host("", "", device), peers, [], mtu, rate, source, way, seconds)


def _number(file: Path) -> int:
    """The number in a file of the kernel; 0 if it does not say one, as with virtual devices."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _check(via: str, seconds: float) -> None:
    if via not in ("", "afxdp", "udp"):
        raise UsageError(f"unknown --via '{via}'; choose from afxdp, udp")
    if not 0.5 <= seconds <= 600:
        raise UsageError(f"--seconds {seconds:g} is out of range; use 0.5 to 600")


def tune(net: Network, out: Path | None, json_file: Path | None) -> None:
    """Measure `net` and write what follows, to standard output if there is no `out`."""
    write.program()  # homad checks the result: better missed before the measurement than after
    found = measure.measure(net, Bar(1).say)
    settings = choose.choose(found)
    where = provenance.here()
    head = (
        f"Settings of homad by ./homa lab tune, measured over {net.via} for {net.seconds:g} s each"
        f" on {where.get('cpu', 'this machine')}, kernel {where.get('kernel')}, commit"
        f" {where['commit'] or 'unknown'}. Programs that ran beside it disturb: measure on quiet"
        " hosts."
    )
    configuration = write.text(settings, head)
    write.check(configuration, net.here)
    if json_file:
        document = {"what": "lab-tune", "where": where, "measured": asdict(found)}
        write_json(json_file, {**document, "settings": [asdict(one) for one in settings]})
    if out:
        write.save(configuration, out)
        console().print(f"{out}: homad takes it; each setting has its reason", markup=False)
    else:
        print(configuration, end="")
