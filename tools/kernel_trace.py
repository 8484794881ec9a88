# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa trace` of the kernel's module: its tracepoints, read through an instance of tracefs.

Their lines become the records that homad sends, so that what is made of them is the same. What a
tracepoint does not tell, such as the contents of a GRANT, is left out; packets themselves are seen
by tcpdump.
"""

from __future__ import annotations

import ipaddress
import os
import re
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lab.errors import LabError, UsageError
from tools.connection import CHUNK
from tools.files import TraceFile
from tools.filters import Filter, host_of
from tools.lines import Lines
from tools.perfetto import TAIL, Timelines
from tools.records import DATA, DELIVER, END, LOST, RX, SUBMIT, TX, TYPES, Record
from tools.signals import interruptible

TRACEFS = Path("/sys/kernel/tracing")
_NUMBERS = {name: number for number, name in TYPES.items()}
_LINE = re.compile(
    r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<at>\d+\.\d+): "
    r"homa_(?P<event>\w+): (?P<rest>.*)"
)
_LOST = re.compile(r"CPU:\d+ \[LOST (\d+) EVENTS\]")
_NOWHERE = ipaddress.IPv6Address("::").packed
_KNOWN = 100_000  # RPCs remembered


class Event(NamedTuple):
    """One line of a trace. `what`: a word without a name (DATA, response); `fields`: the others."""

    at_ns: int
    comm: str
    pid: int
    name: str
    what: str
    fields: dict[str, str]

    def number(self, name: str) -> int:
        """A field; 0 if there is none."""
        text = self.fields.get(name, "0")
        return int(text) if text.lstrip("-").isdigit() else 0


def parse(line: str) -> Event | None:
    """None: something else than an event of ours."""
    match = _LINE.match(line)
    if not match:
        return None
    seconds, _, rest = match["at"].partition(".")
    words = match["rest"].split()
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    what = next((word for word in words if "=" not in word), "")
    at = int(seconds) * 10**9 + int(rest.ljust(9, "0"))
    return Event(at, match["comm"], int(match["pid"]), match["event"], what, fields)


class Converter:
    """Makes records of lines. `clock_ns`: the wall clock less the tracer's; `netns`: 0: all."""

    def __init__(
        self, record: Callable[[Record], None], wanted: Filter, clock_ns: int = 0, netns: int = 0
    ) -> None:
        self._record = record
        self._wanted = wanted
        self._clock = clock_ns
        self._netns = netns
        self._devices: dict[int, int] = {}
        self._apps: dict[int, int] = {}
        self._peers: dict[int, tuple[bytes, int, int]] = {}
        self._given: dict[int, Event | None] = {}  # clients' RPCs whose end may come early
        self.names: dict[int, str] = {}
        self.ports: list[str] = []

    def line(self, line: str) -> None:
        """One line."""
        lost = _LOST.search(line)
        if lost:
            self._record(_record(0, LOST, rpc=int(lost[1])))
            return
        event = parse(line)
        if not event or (self._netns and event.number("netns") not in (0, self._netns)):
            return
        if event.name in ("rpc_begin", "rpc_reply", "rpc_take"):
            self._step(event)
        elif event.name in ("tx", "rx"):
            self._packet(event)
        elif event.name == "rpc_end":
            self._end(event)

    def _keep(self, table: dict[int, object], rpc: int, value: object) -> None:
        table[rpc] = value
        if len(table) > _KNOWN:
            del table[next(iter(table))]

    def _remember(self, rpc: int, app: int, peer: tuple[bytes, int, int] | None) -> None:
        if app:
            self._keep(self._apps, rpc, app)
        if peer:
            self._keep(self._peers, rpc, peer)

    def _step(self, event: Event) -> None:
        rpc = event.number("id")
        peer = None
        if event.name == "rpc_begin":
            peer = _address(event.fields["peer"]), event.number("port"), event.number("peer_port")
        self._remember(rpc, event.pid, peer)
        self.names[event.pid] = event.comm
        kind = DELIVER if event.name == "rpc_take" else SUBMIT
        self._put(event, kind, rpc, length=event.number("length"), error=abs(event.number("error")))
        if kind == DELIVER and self._given.pop(rpc, None):
            self._end(event)

    def _end(self, event: Event) -> None:
        """For the reader of a trace an RPC ends when its response is taken; the module may be
        done with a short one before."""
        rpc = event.number("id")
        if rpc in self._given:
            self._given[rpc] = event
            return
        self._put(event, END, rpc)
        self._apps.pop(rpc, None)
        self._peers.pop(rpc, None)

    def _packet(self, event: Event) -> None:
        rpc = event.number("id")
        address = _address(event.fields["peer"])
        if event.name == "rx":
            self._remember(rpc, 0, (address, event.number("port"), event.number("peer_port")))
        elif rpc not in self._peers:
            self._remember(rpc, 0, (address, 0, 0))
        if event.fields.get("verdict") == "message" and rpc % 2 == 0:
            self._keep(self._given, rpc, None)
        kind = _NUMBERS.get(event.what, 0)
        header = bytearray(56 if kind == DATA else 28)
        header[11] = kind
        length = event.number("len") if event.name == "rx" else event.number("length") + len(header)
        if kind == DATA:
            header[52:56] = event.number("offset").to_bytes(4, "big")
            header[48] = event.number("retransmit") & 1
        direction = RX if event.name == "rx" else TX
        self._put(
            event, direction, rpc, length=length, prio=event.number("prio"), data=bytes(header)
        )

    def _port(self, event: Event) -> int:
        index = event.number("ifindex")
        if index not in self._devices:
            self._devices[index] = len(self.ports)
            name = "-"
            if index:
                name = f"#{index}"
                with suppress(OSError):
                    name = socket.if_indextoname(index)
            self.ports.append(name)
        return self._devices[index]

    def _put(
        self, event: Event, kind: int, rpc: int, length: int = 0, error: int = 0, prio: int = 0,
        data: bytes = b"",
    ) -> None:  # fmt: skip
        app = self._apps.get(rpc, 0)
        peer, own_port, peer_port = self._peers.get(rpc, (_NOWHERE, 0, 0))
        if not self._wants(app, peer, own_port, peer_port):
            return
        self._record(
            _record(
                event.at_ns + self._clock, kind, rpc, app, self._port(event), prio,
                int(rpc % 2 == 0), length, error, own_port, peer_port, peer, data,
            )
        )  # fmt: skip

    def _wants(self, app: int, peer: bytes, own_port: int, peer_port: int) -> bool:
        w = self._wanted
        if w.app and w.app not in (str(app), self.names.get(app, "")):
            return False
        if w.peer and _address(host_of(w.peer)) != peer:
            return False
        return not w.port or w.port in (own_port, peer_port)


def _address(text: str) -> bytes:
    ip = ipaddress.ip_address(text)
    return ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed


def _record(
    at_ns: int, kind: int, rpc: int = 0, app: int = 0, port: int = 0, prio: int = 0, flags: int = 0,
    length: int = 0, error: int = 0, own_port: int = 0, peer_port: int = 0, peer: bytes = _NOWHERE,
    data: bytes = b"",
) -> Record:  # fmt: skip
    return Record(
        at_ns, app, rpc, kind, port, prio, flags, len(data), 0, length, error, own_port, peer_port,
        0, 0,        peer, peer, data,
    )  # fmt: skip


class Tracer:
    """An instance of tracefs with our events on; a context. LabError if that cannot be."""

    def __init__(self, root: Path = TRACEFS) -> None:
        self._folder = root / "instances" / f"homa-{os.getpid()}"
        self._rest = b""
        try:
            self._folder.mkdir()
        except OSError as error:
            raise LabError(
                f"cannot trace in {root}: {error.strerror}; tracing the kernel needs root"
            ) from None
        try:
            (self._folder / "trace_clock").write_text("mono")
            (self._folder / "events/homa/enable").write_text("1")
            self._pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._remove()
            what = (
                "the module is built without them"
                if isinstance(error, FileNotFoundError)
                else error.strerror
            )
            raise LabError(f"the kernel's Homa has no tracepoints here: {what}") from None

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self._folder.rmdir()

    def off(self) -> None:
        """No more events; those there are can still be read."""
        (self._folder / "events/homa/enable").write_text("0")

    def lines(self, timeout: float) -> Iterator[str] | None:
        """What is there now; None if nothing came in time."""
        if not select.select([self._pipe], [], [], timeout)[0]:
            return None
        try:
            self._rest += os.read(self._pipe, CHUNK)
        except BlockingIOError:
            return None
        *whole, self._rest = self._rest.split(b"\n")
        return (line.decode(errors="replace") for line in whole)


def clock_ns() -> int:
    """The wall clock less the monotonic one."""
    return time.time_ns() - time.monotonic_ns()


def own_netns() -> int:
    """The number of our network namespace."""
    return os.stat("/proc/self/ns/net").st_ino


def run(seconds: float, pcap: str, perfetto: str, wanted: Filter, root: Path = TRACEFS) -> str:
    """Make the trace; one line about what is in it."""
    if pcap:
        raise UsageError(
            "--pcap: the kernel's packets pass its interfaces; "
            f"tcpdump -i any -w {pcap} 'ip proto 146 or ip6 proto 146'"
        )
    if seconds < 0 or seconds != seconds:
        raise UsageError("--duration is a number of seconds above 0")
    netns = own_netns()
    with Tracer(root) as tracer:
        if perfetto:
            with TraceFile(perfetto, TAIL) as out:
                return _timelines(tracer, seconds, Timelines(out, []), wanted, netns)
        lines = Lines(sys.stdout, [])
        converter = Converter(lines.record, wanted, clock_ns(), netns)
        lines.ports = converter.ports
        _pump(tracer, seconds, converter.line, sys.stdout.flush)
        lines.finish()
        return lines.summary()


def _timelines(
    tracer: Tracer, seconds: float, timelines: Timelines, wanted: Filter, netns: int
) -> str:
    def record(one: Record) -> None:
        if one.app and one.app not in known:
            known.add(one.app)
            timelines.learn(
                [{"app": one.app, "name": converter.names[one.app], "pid": one.app, "port": 0}]
            )
        timelines.record(one)

    known: set[int] = set()
    converter = Converter(record, wanted, clock_ns(), netns)
    _pump(tracer, seconds, converter.line, lambda: None)
    timelines.finish()
    return timelines.summary()


def _pump(
    tracer: Tracer, seconds: float, line: Callable[[str], None], flush: Callable[[], None]
) -> None:
    deadline = time.monotonic() + seconds if seconds else float("inf")
    stopped = False
    with interruptible() as interrupted:
        while True:
            now = time.monotonic()
            if not stopped and (interrupted() or now >= deadline):
                stopped = True
                tracer.off()
            got = tracer.lines(0.0 if stopped else min(0.2, deadline - now))
            if got is None:
                flush()
                if stopped:
                    return
                continue
            for one in got:
                line(one)
