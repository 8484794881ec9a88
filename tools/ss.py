# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa ss`: who has a socket, what is under way, with whom, over which interfaces."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.console import table
from tools import flows
from tools.connection import Json, Refused, Source
from tools.filters import Filter
from tools.text import duration, size

SECTIONS = ("sockets", "tcp", "rpcs", "peers", "ports")
_INET6 = 10


def look(connection: Source, sections: Sequence[str], wanted: Filter) -> Json:
    """What there is, by section."""
    found: Json = {}
    if "sockets" in sections or "ports" in sections:
        snapshot = connection.ask("snapshot")
        if "sockets" in sections:
            found["sockets"] = [app for app in snapshot["apps"] if wanted.wants_app(app)]
        if "ports" in sections:
            found["ports"] = snapshot["ports"]
    if "tcp" in sections:
        try:
            each = connection.each("flows", time_wait=wanted.phase == "time-wait")
            found["tcp"] = [flow for flow in each if wanted.wants_flow(flow)]
        except Refused:
            # A homad that began before an update may have no TCP; the rest is shown.
            if len(sections) == 1:
                raise
    if "rpcs" in sections:
        found["rpcs"] = [rpc for rpc in connection.each("rpcs") if wanted.wants_rpc(rpc)]
    if "peers" in sections:
        found["peers"] = [peer for peer in connection.each("peers") if wanted.wants_peer(peer)]
    return found


def show(found: Json, out: Console, details: bool = False) -> None:
    """Tables of what look() found; `details` of TCP connections."""
    tables = {"sockets": sockets, "rpcs": rpcs, "peers": peers, "ports": ports}
    for section, rows in found.items():
        if section != "tcp":
            out.print(tables[section](rows))
        elif rows or len(found) == 1:
            listeners = sum(row["state"] == "listen" for row in rows)
            out.print(f"[bold]{len(rows) - listeners} TCP connections, {listeners} listeners[/]")
            for line in flows.lines(rows, out.width, details):
                out.print(line, markup=False, highlight=False, soft_wrap=True)


def show_json(found: Json) -> str:
    """The same for programs; names are those of the monitoring socket."""
    return json.dumps(found, indent=1)


def sockets(apps: Sequence[Json]) -> Table:
    """Attachments; each is one socket. Of the kernel: sockets."""
    if apps and "inode" in apps[0]:
        return kernel_sockets(apps)
    result = table(
        f"{len(apps)} sockets", "app", "name", "pid", "uid", "port", "state", "RPCs", "to take",
        "requests", "replies", "in", "out", "memory", "age", left=2, tight=True,
    )  # fmt: skip
    for app in apps:
        count = app["counters"]
        result.add_row(
            str(app["app"]), app["name"], str(app["pid"]), str(app["uid"]), str(app["port"]),
            _state(app), str(app["rpcs"]), str(app.get("completed", 0)), str(count["requests"]),
            str(count["replies"]), size(count["rx_bytes"]), size(count["tx_bytes"]),
            size(app["memory_bytes"]), duration(app["age_ns"]),
        )  # fmt: skip
    return result


def kernel_sockets(socks: Sequence[Json]) -> Table:
    """Sockets of the kernel's module; "to send": bytes that have not been
    acknowledged; "unread": short messages that nobody has taken."""
    result = table(
        f"{len(socks)} sockets", "socket", "name", "pid", "uid", "IPv", "port", "state", "RPCs",
        "to send", "buffers", "free", "to copy", "unread", "over", left=2, tight=True,
    )  # fmt: skip
    for sock in sorted(socks, key=lambda s: int(s.get("port", 0))):
        state = _state(sock) + (", no buffers" if sock.get("starved") else "")
        encap = sock.get("encap", 0)
        result.add_row(
            str(sock["app"]), sock["name"], str(sock["pid"] or "-"), str(sock.get("uid", "-")),
            "6" if sock.get("family") == _INET6 else "4", str(sock.get("port", "-")), state,
            str(sock["rpcs"]), size(sock.get("tx_bytes", 0)), size(sock.get("region_bytes", 0)),
            size(sock.get("avail_bytes", 0)), size(sock.get("partial_bytes", 0)),
            str(sock.get("messages", 0)),
            "IP" if not encap else "TCP" if encap == 6 else f"UDP {encap}",
        )  # fmt: skip
    return result


def _state(app: Json) -> str:
    if app["phase"] != "open":
        return str(app["phase"])
    if app.get("shared"):
        return "server, shared"
    return "server" if app.get("server") else "client"


def rpcs(rows: Sequence[Json]) -> Table:
    """Open RPCs: bytes done of all, and how far they are granted."""
    result = table(
        f"{len(rows)} RPCs", "app", "name", "RPC", "state", "port", "peer", "to send", "to receive",
        "silent", "age", left=2, tight=True,
    )  # fmt: skip
    for rpc in sorted(rows, key=lambda r: -int(r["age_ns"])):
        result.add_row(
            str(rpc["app"] or "-"), rpc["name"], ("c" if rpc["client"] else "s") + str(rpc["rpc"]),
            rpc["phase"], str(rpc["port"]), f"{rpc['peer']} {rpc['peer_port']}",
            _progress(rpc["tx_sent"], rpc["tx_length"], rpc["tx_granted"]),
            _progress(rpc["rx_received"], rpc["rx_length"], rpc["rx_granted"]),
            duration(rpc["silent_ns"]), duration(rpc["age_ns"]),
        )  # fmt: skip
    return result


def _progress(done: int, length: int, granted: int) -> str:
    if not length:
        return "-"
    if done == length:
        return f"all {length}"
    return f"{done}/{length}" + (f" ≤{granted}" if granted < length else "")


def peers(rows: Sequence[Json]) -> Table:
    """Hosts that homad remembers."""
    result = table(
        f"{len(rows)} peers", "peer", "via", "RPCs", "of its own", "acks owed", "unanswered",
        "packet", "cutoffs", "idle", left=2, tight=True,
    )  # fmt: skip
    for peer in sorted(rows, key=lambda p: (-int(p["rpcs"]), str(p["peer"]))):
        result.add_row(
            peer["peer"], peer["via"], str(peer["rpcs"]), str(peer["server_rpcs"]),
            str(peer["acks_owed"]), str(peer["probes"]), str(peer["packet_bytes"]),
            f"v{peer['cutoff_version']}", duration(peer["idle_ms"] * 1e6),
        )  # fmt: skip
    return result


def ports(rows: Sequence[Json]) -> Table:
    """Ways out of this host."""
    result = table(
        f"{len(rows)} interfaces", "name", "by", "address", "thread", "MTU", "Mbit/s", "in", "out",
        "lost", "errors", "RTT", "RTTbytes", "detail", left=3, tight=True,
    )  # fmt: skip
    for port in rows:
        nic, link = port.get("nic", {}), port["link"]
        result.add_row(
            port["name"], port["backend"], port.get("address", "-"), str(port["thread"]),
            str(port.get("mtu", "-")), str(port.get("link_mbps") or "-"),
            str(nic.get("nic_rx_packets", "-")), str(nic.get("nic_tx_packets", "-")),
            str(nic.get("nic_rx_dropped", "-")), str(nic.get("nic_tx_errors", "-")),
            duration(link["rtt_us"] * 1e3 or None), str(link["rtt_bytes"]), port.get("detail", "-"),
        )  # fmt: skip
    return result
