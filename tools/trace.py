# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa trace`: from homad's fast path into a file, until the time is over or Ctrl-C."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from lab.errors import UsageError
from tools.capture import Capture
from tools.connection import CHUNK, Connection, Gone, Json
from tools.files import TraceFile
from tools.filters import Filter, host_of
from tools.lines import Lines
from tools.perfetto import TAIL, Timelines
from tools.records import Reader, Record
from tools.signals import interruptible

_LAST = 10.0  # seconds that homad may take to send what is still in its rings
_MEMORY = 256 << 20  # bytes of records kept in memory, more in a file
_HEADERS = 80  # bytes of a packet that timelines need


@dataclass(frozen=True)
class Settings:
    """Of one trace. `seconds` 0: until interrupted; `snap`: bytes of a packet, 0: the usual."""

    monitor: str
    pcap: str = ""
    perfetto: str = ""
    seconds: float = 0.0
    snap: int = 0
    wanted: Filter = Filter()


class Sink(Protocol):
    """Where a trace goes."""

    def finish(self) -> None: ...

    def summary(self) -> str: ...


def check(settings: Settings) -> None:
    """UsageError if the command line makes no sense."""
    if settings.pcap and settings.perfetto:
        raise UsageError("--pcap and --perfetto: homad makes one trace at a time; give one of them")
    if settings.seconds < 0 or settings.seconds != settings.seconds:
        raise UsageError("--duration is a number of seconds above 0")
    if settings.snap and not 28 <= settings.snap <= 16384:
        raise UsageError("--snap is a number of bytes, 28 (the Homa header) to 16384")


def request(settings: Settings) -> Json:
    """What homad is asked for."""
    wanted = settings.wanted
    result: Json = {"op": "trace", "format": "pcapng" if settings.pcap else "records"}
    if settings.snap or settings.perfetto:
        result["snap"] = settings.snap or _HEADERS
    if wanted.app:
        result["app"] = int(wanted.app) if wanted.app.isdigit() else wanted.app
    if wanted.peer:
        result["peer"] = host_of(wanted.peer)
    if wanted.port:
        result["port"] = wanted.port
    return result


def run(settings: Settings) -> str:
    """Make the trace; one line about what is in it. LabError if it ended early."""
    check(settings)
    with Connection(settings.monitor) as connection:
        apps = [] if settings.pcap else connection.ask("snapshot")["apps"]
        _known(settings, connection)
        connection.send(request(settings))
        head = connection.line()
        if settings.pcap:
            with TraceFile(settings.pcap) as out:
                capture = Capture(out)
                return _pump(settings, connection, capture, capture.feed, out.flush)
        if settings.perfetto:
            with TraceFile(settings.perfetto, TAIL) as out, Spool() as spool:
                timelines = Timelines(out, apps)
                converted = Converted(spool, timelines, _records(head, timelines.record))
                return _pump(settings, connection, converted, spool.add, lambda: None)
        lines = Lines(sys.stdout, list(head["ports"]))
        return _pump(settings, connection, lines, _records(head, lines.record), sys.stdout.flush)


class Spool:
    """Records as they come; making sense of them takes longer than homad waits. A context."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY)  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, chunk: bytes) -> None:
        """Keep some bytes."""
        try:
            self._file.write(chunk)
        except OSError as error:
            place = tempfile.gettempdir()
            raise Gone(f"no room to record more in {place}: {error.strerror}") from None

    def chunks(self) -> Iterator[bytes]:
        """All of them again."""
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            yield chunk


class Converted:
    """A sink that is filled from the spool at the end."""

    def __init__(self, spool: Spool, sink: Sink, feed: Callable[[bytes], None]) -> None:
        self._spool, self._sink, self._feed = spool, sink, feed

    def finish(self) -> None:
        """Make the file."""
        for chunk in self._spool.chunks():
            self._feed(chunk)
        self._sink.finish()

    def summary(self) -> str:
        """One line about it."""
        return self._sink.summary()


def _known(settings: Settings, connection: Connection) -> None:
    """A note if nobody of that name is attached: it may come later, or be a typing error."""
    app = settings.wanted.app
    if not app:
        return
    apps = connection.ask("snapshot")["apps"]
    if not any(settings.wanted.wants_app(a) for a in apps):
        names = sorted({str(a["name"]) for a in apps})
        print(
            f"homa: note: no {app} is attached yet; attached: {', '.join(names) or 'nobody'}",
            file=sys.stderr,
        )


def _records(head: Json, record: Callable[[Record], None]) -> Callable[[bytes], None]:
    reader = Reader(int(head["record_bytes"]))

    def feed(chunk: bytes) -> None:
        for one in reader.feed(chunk):
            record(one)

    return feed


def _pump(
    settings: Settings,
    connection: Connection,
    sink: Sink,
    feed: Callable[[bytes], None],
    flush: Callable[[], None],
) -> str:
    """Until homad has sent everything after "stop". What came is kept in any case."""
    try:
        _read_all(settings, connection, feed, flush)
    except Gone as gone:
        sink.finish()
        raise Gone(f"{gone}; kept until then: {sink.summary()}") from None
    sink.finish()
    return sink.summary()


def _read_all(
    settings: Settings,
    connection: Connection,
    feed: Callable[[bytes], None],
    flush: Callable[[], None],
) -> None:
    deadline = time.monotonic() + settings.seconds if settings.seconds else float("inf")
    stopped = False
    with interruptible() as interrupted:
        while True:
            now = time.monotonic()
            if not stopped and (interrupted() or now >= deadline):
                stopped, deadline = True, now + _LAST
                connection.send({"op": "stop"})
            elif stopped and now >= deadline:
                raise Gone("homad does not end the trace")
            chunk = connection.chunk(min(0.2, max(0.0, deadline - now)))
            if chunk is None:
                flush()
                continue
            if not chunk:
                break
            feed(chunk)
    if not stopped:
        raise Gone("homad went away")
