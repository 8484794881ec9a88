# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The kernel's module in place of a homad: the same questions and, where it can, answers.

Counters are from /proc/net/homa_metrics, everything that is open from netlink. Applications are
processes: whose socket an inode is says /proc/PID/fd, of our own processes or, to root, of all.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from lab.errors import LabError
from tools import netlink
from tools.connection import Json

METRICS = Path("/proc/net/homa_metrics")
# enum homa_look_phase, in the words of homad's monitoring socket.
PHASES = ("new", "outgoing", "incoming", "no-buffer", "ready", "in-service", "failed")
_GAUGES = ("time_ns", "rpcs", "peers", "socks", "devs")
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def loaded() -> bool:
    """Is the module there?"""
    return METRICS.exists()


def metrics(text: str) -> dict[str, int]:
    """The lines "name value # meaning"."""
    found = {}
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) >= 2 and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found


def owners(proc: Path = Path("/proc")) -> dict[int, tuple[int, str]]:
    """Process and its name by the inode of a socket; the first process that has it."""
    found: dict[int, tuple[int, str]] = {}
    for process in sorted(
        (p for p in proc.iterdir() if p.name.isdigit()), key=lambda p: int(p.name)
    ):
        try:
            name = (process / "comm").read_text().strip()
            for fd in (process / "fd").iterdir():
                match = _SOCKET.match(os.readlink(fd))
                if match:
                    found.setdefault(int(match.group(1)), (int(process.name), name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


class KernelSource:
    """Stands where tools.connection.Connection does; a context."""

    def __init__(
        self,
        dump: netlink.Dump | None = None,
        read: Callable[[], str] | None = None,
        whose: Callable[[], dict[int, tuple[int, str]]] = owners,
    ) -> None:
        self._stack = ExitStack()
        if not (read or loaded()):
            raise LabError("the kernel has no Homa: load its module (./homa kernel load)")
        self._dump = dump or self._stack.enter_context(netlink.Netlink()).dump
        self._read = read or METRICS.read_text
        self._whose = whose

    def __enter__(self) -> KernelSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, op: str) -> Json:
        """A request with one answer: "snapshot"."""
        assert op == "snapshot"
        return self._snapshot()

    def each(self, op: str, **_: object) -> Iterator[Json]:
        """A request with an answer for each thing: "rpcs", "peers"; TCP is not the module's."""
        if op == "flows":
            return iter(())
        if op == "peers":
            return (_peer(peer, self._devices()) for peer in self._all(netlink.PEERS))
        return self._rpcs()

    def _all(self, command: int) -> list[Json]:
        return [netlink.parse(body) for body in self._dump(command)]

    def _devices(self) -> dict[int, str]:
        return {d["ifindex"]: d.get("ifname", "-") for d in self._all(netlink.DEVS)}

    def _snapshot(self) -> Json:
        counters = metrics(self._read())
        if "time_ns" not in counters:
            raise LabError(
                f"{METRICS} is not of our module; ./homa kernel status says which is loaded"
            )
        gauges = {name: counters.pop(name, 0) for name in _GAUGES}
        rpcs = self._all(netlink.RPCS)
        return {
            "time_ns": gauges["time_ns"],
            "homad": {
                "kernel": platform.release(), "rpcs": gauges["rpcs"], "peers": gauges["peers"],
                "sockets": gauges["socks"],
            },
            "threads": [],
            "ports": [_port(dev) for dev in self._all(netlink.DEVS)],
            "engine": counters,
            "latency": {"values": [], "counts": []},
            "apps": self._sockets(rpcs),
        }  # fmt: skip

    def _sockets(self, rpcs: Iterable[Json]) -> list[Json]:
        count: dict[int, int] = {}
        for rpc in rpcs:
            count[rpc.get("inode", 0)] = count.get(rpc.get("inode", 0), 0) + 1
        found = []
        whose = self._whose()
        for sock in self._all(netlink.SOCKS):
            inode = sock.get("inode", 0)
            pid, name = whose.get(inode, (0, "-"))
            found.append(
                sock | {
                    "app": inode, "pid": pid, "name": name, "rpcs": count.get(inode, 0),
                    "phase": "shut" if sock.get("shutdown") else "open", "counters": {},
                }
            )  # fmt: skip
        return found

    def _rpcs(self) -> Iterator[Json]:
        whose, devices = self._whose(), self._devices()
        for rpc in self._all(netlink.RPCS):
            inode = rpc.get("inode", 0)
            phase = rpc.get("phase", 0)
            yield dict.fromkeys(_RPC, 0) | rpc | {
                "rpc": rpc.get("id", 0), "app": inode, "name": whose.get(inode, (0, "-"))[1],
                "client": bool(rpc.get("client")), "via": devices.get(rpc.get("ifindex", 0), "-"),
                "phase": PHASES[phase] if phase < len(PHASES) else str(phase),
            }  # fmt: skip


_RPC = (
    "port", "peer_port", "age_ns", "silent_ns", "probes", "error", "tx_length", "tx_sent",
    "tx_granted", "rx_length", "rx_received", "rx_granted",
)  # fmt: skip


def _peer(peer: Json, devices: dict[int, str]) -> Json:
    address, encap = peer.get("peer", "-"), peer.get("encap", 0)
    if encap:
        host = f"[{address}]" if ":" in address else address
        address = f"{host}:{'tcp' if encap == 6 else encap}"
    return peer | {
        "peer": address, "via": devices.get(peer.get("ifindex", 0), "-"),
        "rpcs": peer.get("num_rpcs", 0), "packet_bytes": peer.get("seg_size", 0),
    }  # fmt: skip


_LINK = (
    "rtt_bytes", "max_incoming", "resend_us", "timeout_us", "rtt_us", "sending", "granting",
    "waiting", "withheld", "backlog_ns",
)  # fmt: skip


def _port(dev: Json) -> Json:
    return {
        "name": dev.get("ifname", f"#{dev.get('ifindex', 0)}"), "ifindex": dev.get("ifindex", 0),
        "backend": "kernel", "thread": "-", "mtu": dev.get("mtu", "-"),
        "link": {name: dev.get(name, 0) for name in _LINK},
    }  # fmt: skip
