# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa trace --perfetto`: the life of RPCs for the Perfetto UI and chrome://tracing.

Each application is a process; RPCs under way at the same time stand in lanes below each other,
those it started ("asks") apart from those it serves ("serves"). A bar is an RPC; inside it are the
parts of its life and, as marks, its packets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.connection import Json
from tools.files import TraceFile
from tools.records import DELIVER, END, LOCAL, LOST, PACKETS, RX, SUBMIT, Record, packet

TAIL = b"\n]}\n"
_LANES = 1_000_000  # what an application serves stands below what it asks
_FIRST_TID = 1_000_000  # no number of a process
_OPEN = 100_000  # RPCs followed at a time; more are not shown


@dataclass
class Rpc:
    """An RPC that has not ended; times in ns."""

    app: int
    client: bool
    lane: int
    begin: int
    peer: str = ""
    peer_port: int = 0
    packets: int = 0
    request: int = 0
    response: int = 0
    delivered: int = 0
    replied: int = 0
    error: int = 0
    last: int = 0


@dataclass
class Lanes:
    """Which lanes of a side of an application are taken."""

    busy: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)

    def take(self) -> int:
        """The first free lane."""
        lane = next(i for i in range(len(self.busy) + 1) if i not in self.busy)
        self.busy.add(lane)
        return lane


class Timelines:
    """Makes the file out of records. `apps`: the attachments known at the start."""

    def __init__(self, out: TraceFile, apps: Iterable[Json]) -> None:
        self._out = out
        self._names: dict[int, str] = {}
        self._by_port: dict[int, int] = {}
        self._open: dict[int, Rpc] = {}
        self._done: dict[int, None] = {}
        self._lanes: dict[tuple[int, bool], Lanes] = {}
        self._named: set[int] = set()
        self._tids: dict[tuple[int, bool, int], int] = {}
        self._start = 0
        self._last = 0
        self._first = True
        self.count = 0
        self.lost = 0
        self.beyond = 0
        self.learn(apps)
        out.add(b'{"displayTimeUnit":"ns","traceEvents":[')

    def learn(self, apps: Iterable[Json]) -> None:
        """Names and ports of attachments."""
        for app in apps:
            self._names[int(app["app"])] = f"{app['name']} ({app['pid']})"
            if app["port"]:
                self._by_port[int(app["port"])] = int(app["app"])

    # -- what happens

    def record(self, record: Record) -> None:
        """One record, in order of time."""
        if not self._start:
            self._start = record.at_ns
        self._last = max(self._last, record.at_ns)
        if record.kind == LOST:
            self.lost += record.rpc
            self._event("i", 0, 0, record.at_ns, s="g", name=f"{record.rpc} records lost")
        elif record.tcp:
            pass  # of no RPC
        elif record.kind == LOCAL:
            # One memory: the packet is out of one application and into another at once.
            self._packet(record, record.rpc, "")
            self._packet(record, record.rpc ^ 1, " received")
        elif record.kind in PACKETS:
            self._packet(record, record.rpc, " received" if record.kind == RX else "")
        else:
            self._step(record)

    def _packet(self, record: Record, rpc_id: int, suffix: str) -> None:
        what = packet(record)
        if not rpc_id or not what.kind:
            return
        rpc = self._open.get(rpc_id)
        if not rpc:
            if what.name != "DATA" or rpc_id in self._done:
                return
            own = record.peer_port if record.kind == LOCAL and suffix else record.own_port
            rpc = self._begin(record, rpc_id, self._by_port.get(own, 0), rpc_id % 2 == 0)
            if not rpc:
                return
        rpc.packets += 1
        rpc.last = record.at_ns
        args = what.args
        if "of" in args and rpc.client != bool(suffix):
            rpc.request = rpc.request or args["of"]
        elif "of" in args:
            rpc.response = rpc.response or args["of"]
        members = {"s": "t", "cat": "packet", "name": what.name + (suffix or " sent"), "args": args}
        self._event("i", rpc.app, self._tid(rpc), record.at_ns, **members)

    def _step(self, record: Record) -> None:
        rpc = self._open.get(record.rpc)
        if not rpc:
            # Without an address it is the end of one that began before us, or is not wanted.
            if record.kind == END or not record.peer_port or record.rpc in self._done:
                return
            rpc = self._begin(record, record.rpc, record.app, record.client)
            if not rpc:
                return
        if rpc.app != record.app:
            self._move(rpc, record.app)
        rpc.last = record.at_ns
        if record.peer_port:
            rpc.peer, rpc.peer_port = record.peer, record.peer_port
        if record.kind == SUBMIT and rpc.client:
            rpc.request = record.length
        elif record.kind == SUBMIT:
            rpc.replied, rpc.response = record.at_ns, record.length
        elif record.kind == DELIVER and rpc.client:
            rpc.response, rpc.error = record.length, record.error
            self._end(record.rpc, rpc, record.at_ns)
        elif record.kind == DELIVER:
            rpc.delivered, rpc.request = record.at_ns, record.length
        elif record.kind == END:
            self._end(record.rpc, rpc, record.at_ns)

    def _begin(self, record: Record, rpc_id: int, app: int, client: bool) -> Rpc | None:
        if len(self._open) >= _OPEN:
            self.beyond += 1
            return None
        lane = self._lanes.setdefault((app, client), Lanes()).take()
        rpc = Rpc(app, client, lane, record.at_ns, record.peer, record.peer_port)
        if record.kind == LOCAL:
            rpc.peer = "this host"
        self._open[rpc_id] = rpc
        return rpc

    def _move(self, rpc: Rpc, app: int) -> None:
        """It turns out whose it is."""
        self._lanes[rpc.app, rpc.client].busy.discard(rpc.lane)
        rpc.app = app
        rpc.lane = self._lanes.setdefault((app, rpc.client), Lanes()).take()

    def _end(self, rpc_id: int, rpc: Rpc, at: int, whole: bool = True) -> None:
        del self._open[rpc_id]
        self._done[rpc_id] = None
        if len(self._done) > _OPEN:
            del self._done[next(iter(self._done))]
        self._lanes[rpc.app, rpc.client].busy.discard(rpc.lane)
        self.count += 1
        tid = self._tid(rpc)
        args: dict[str, object] = {
            "rpc": str(rpc_id), "peer": f"{rpc.peer} port {rpc.peer_port}", "packets": rpc.packets,
            "request_bytes": rpc.request, "response_bytes": rpc.response,
        }  # fmt: skip
        if rpc.error:
            args["errno"] = rpc.error
        if not whole:
            args["open_at_the_end"] = True
        who = f"{rpc.peer}:{rpc.peer_port}"
        name = f"{rpc.request} B to {who}" if rpc.client else f"{rpc.request} B from {who}"
        self._bar(rpc, tid, "failed: " + name if rpc.error else name, rpc.begin, at, args)
        if rpc.client:
            return
        ends = [t for t in (rpc.delivered, rpc.replied) if t]
        if ends:
            self._bar(rpc, tid, "arriving", rpc.begin, ends[0], {})
        if rpc.delivered:
            self._bar(rpc, tid, "in service", rpc.delivered, rpc.replied or at, {})
        if rpc.replied:
            self._bar(rpc, tid, f"reply, {rpc.response} B", rpc.replied, at, {})

    # -- the file

    def _tid(self, rpc: Rpc) -> int:
        # The viewer wants thread numbers that are unique in the whole file.
        key = rpc.app, rpc.client, rpc.lane
        tid = self._tids.setdefault(key, _FIRST_TID + len(self._tids))
        lanes = self._lanes[rpc.app, rpc.client]
        if rpc.app not in self._named:
            self._named.add(rpc.app)
            name = self._names.get(rpc.app, f"application {rpc.app}" if rpc.app else "not known")
            self._event("M", rpc.app, 0, 0, name="process_name", args={"name": name})
        if rpc.lane not in lanes.named:
            lanes.named.add(rpc.lane)
            text = f"{'asks' if rpc.client else 'serves'} {rpc.lane}"
            self._event("M", rpc.app, tid, 0, name="thread_name", args={"name": text})
            order = rpc.lane + (0 if rpc.client else _LANES)
            self._event("M", rpc.app, tid, 0, name="thread_sort_index", args={"sort_index": order})
        return tid

    def _bar(self, rpc: Rpc, tid: int, name: str, begin: int, end: int, args: Json) -> None:
        self._event(
            "X", rpc.app, tid, begin, dur=_us(max(0, end - begin)), cat="rpc", name=name, args=args
        )

    def _event(self, phase: str, pid: int, tid: int, at: int, **members: object) -> None:
        ts = _us(max(0, at - self._start)) if at else 0.0
        event = {"ph": phase, "pid": pid + 1, "tid": tid, "ts": ts} | members
        text = json.dumps(event, separators=(",", ":"))
        self._out.add((("\n" if self._first else ",\n") + text).encode())
        self._first = False

    def finish(self) -> None:
        """What is still open ends with the trace."""
        for rpc_id, rpc in list(self._open.items()):
            self._end(rpc_id, rpc, max(rpc.last, self._last), whole=False)

    def summary(self) -> str:
        """One line about it."""
        text = f"{self.count} RPCs"
        if self.lost:
            text += f", {self.lost} records were lost"
        if self.beyond:
            text += f", {self.beyond} RPCs are not shown: too many at once"
        return text


def _us(ns: int) -> float:
    return ns / 1000
