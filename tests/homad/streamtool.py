# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP streams of homad, by hand (abi/shm_stream.h): a program for tests that speak it themselves.

streamtool.py SOCKET serve ADDRESS PORT COUNT      echo until COUNT connections have ended
streamtool.py SOCKET send ADDRESS PORT BYTES       send so many, and compare what comes back
streamtool.py SOCKET try ADDRESS PORT [SOURCE]     what connecting ends with: opened, or an error
streamtool.py SOCKET steady ADDRESS PORT SEED      send random bytes, a connection after the other, and compare what
                                                   comes back, until SIGTERM
"""

from __future__ import annotations

import errno
import ipaddress
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from attachtool import Client, request

STREAMS, STREAM_LISTEN, STREAM_SHARE, STREAM_JOIN = range(12, 16)
STREAM_TAKE = 19
(
    CONNECT, RING, SHUT, CLOSE, ABORT, OPTIONS, UNLISTEN, ACCEPT, RETURN, PATIENCE, URGENT, BACKLOG
) = range(1, 13)  # fmt: skip
(
    OPENED, FAILED, ACCEPTED, CHANGED, UNLISTENED, WAITING, NOTHING, JOINED, LISTENING, UNJOINED, BEGUN
) = range(1, 12)  # fmt: skip
IS_OPEN, HAS_END, HAS_ERROR = 1, 2, 4
SPAN, FIRST_SHIFT = 1 << 20, 12
KICK_SUBMIT = 1
CAN_UNJOINED = 512  # HOMA_SHM_CAN_UNJOINED
EVICTED = 2  # enum homa_shm_state
NEED_KICK = 128  # offset in struct homa_shm_header
ARMED, COMMAND_TAIL, COMMAND_HEAD, EVENT_TAIL, EVENT_HEAD = (
    64,
    128,
    192,
    256,
    320,
)  # in struct homa_stream_area
OPT_BEGUN = 16  # HOMA_STREAM_OPT_BEGUN
_END = struct.Struct("<16sHH")
_COMMAND = struct.Struct("<HHIIIQ20s20s")
_EVENT = struct.Struct("<HHIIIQQ")


def mapped(address: str) -> bytes:
    ip = ipaddress.ip_address(address)
    return ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed


# What both sides share is read and written a word at once. struct.pack_into() writes zeros first, which
# homad may see, and struct.unpack_from() reads byte after byte, between which homad may write.


def load(memory: mmap.mmap, offset: int) -> int:
    """A word of 32 bits."""
    with memoryview(memory) as view, view.cast("I") as words:
        return int(words[offset // 4])


def store(memory: mmap.mmap, offset: int, value: int) -> None:
    """A word of 32 bits."""
    with memoryview(memory) as view, view.cast("I") as words:
        words[offset // 4] = value & 0xFFFFFFFF


def load_map(memory: mmap.mmap, offset: int) -> tuple[int, int]:
    """A map, which is a word of 64 bits: log2 of the buffer's bytes, and its origin."""
    with memoryview(memory) as view, view.cast("Q") as words:
        word = int(words[offset // 8])
    return word >> 32, word & 0xFFFFFFFF


def store_map(memory: mmap.mmap, offset: int, shift: int, origin: int) -> None:
    """The same, written."""
    with memoryview(memory) as view, view.cast("Q") as words:
        words[offset // 8] = shift << 32 | origin & 0xFFFFFFFF


class Stream:
    """A slot. `end` counts what was written, `read` what was taken."""

    def __init__(self, owner: Streams, slot: int, generation: int) -> None:
        self.owner, self.slot, self.generation = owner, slot, generation
        self.at = owner.slots + 256 * slot
        self.end = self.read = 0

    def word(self, offset: int) -> int:
        return load(self.owner.memory, self.at + offset)

    def map(self, offset: int) -> tuple[int, int]:
        return load_map(self.owner.memory, self.at + offset)

    def put(self, offset: int, value: int) -> None:
        store(self.owner.memory, self.at + offset, value)

    @property
    def state(self) -> int:
        return self.word(4)

    @property
    def error(self) -> int:
        return self.word(8)

    def command(self, op: int, value: int = 0) -> None:
        self.owner.command(op, self.slot, self.generation, value)

    def buffer(self, way: int, shift: int) -> int:
        """Where its buffer of 2^shift bytes begins; way 1: that for bytes to send."""
        if shift == FIRST_SHIFT:
            return self.owner.firsts + (2 * self.slot + way << FIRST_SHIFT)
        return self.owner.spans + (2 * self.slot + way) * SPAN

    def ring(self) -> None:
        if not self.word(128 + 16):
            self.put(128 + 16, 1)
            self.command(RING)

    def take(self) -> bytes:
        """All that has arrived."""
        n = (self.word(12) - self.read) & 0xFFFFFFFF
        shift, origin = self.map(16)
        size = 1 << shift
        at = (self.read - origin) & (size - 1)
        first = min(n, size - at)
        base = self.buffer(0, shift)
        data = self.owner.memory[base + at : base + at + first]
        data += self.owner.memory[base : base + n - first]
        self.read = (self.read + n) & 0xFFFFFFFF
        self.put(128, self.read)
        if n:
            self.ring()
        return data

    def grow(self) -> None:
        """Use the memory that homad has put behind the buffer for bytes to send (lib/stream/write.c)."""
        larger = self.word(28)
        shift, origin = self.map(128 + 8)
        if larger <= shift:
            return
        used = (self.end - self.word(24)) & 0xFFFFFFFF
        size = 1 << shift
        at = (self.end - origin) & (size - 1)
        if shift == FIRST_SHIFT:
            base, start = self.buffer(1, shift), (self.end - used - origin) & (size - 1)
            data = self.owner.memory[base : base + size]
            span = self.buffer(1, larger)
            self.owner.memory[span : span + used] = (data[start:] + data[:start])[:used]
            filled = used
        else:
            filled = size if not at and used else at
            if used > filled:
                return
        store_map(self.owner.memory, self.at + 128 + 8, larger, self.end - filled)

    def write(self, data: bytes) -> int:
        """As much of it as there is room for."""
        self.grow()
        shift, origin = self.map(128 + 8)
        size = 1 << shift
        room = size - ((self.end - self.word(24)) & 0xFFFFFFFF)
        n = min(room, len(data))
        at = (self.end - origin) & (size - 1)
        first = min(n, size - at)
        base = self.buffer(1, shift)
        self.owner.memory[base + at : base + at + first] = data[:first]
        self.owner.memory[base : base + n - first] = data[first:n]
        self.end = (self.end + n) & 0xFFFFFFFF
        self.put(128 + 4, self.end)
        if n:
            self.ring()
        return n


class Streams:
    """An attachment with streams."""

    def __init__(self, path: Path, features: int = CAN_UNJOINED) -> None:
        self.client = Client(path)
        self.client.attach(128 << 10, features)
        queues = self.client.fds[0]
        self.header = mmap.mmap(queues, 4096)
        self.kick_fd = self.client.fds[4]
        answer = self.client.ask(STREAMS)
        assert answer.error == 0, answer
        self.memory = mmap.mmap(self.client.fds[5], answer.sizes[0])
        self.event_fd = self.client.fds[6]
        (
            magic,
            self.num_slots,
            size,
            self.commands,
            self.events,
            self.slots,
            self.entries,
            self.spans,
        ) = struct.unpack_from("<IIQIIIIQ", self.memory, 0)
        self.firsts = struct.unpack_from("<Q", self.memory, 48)[0]
        assert magic == 0x70635448 and size == len(self.memory)
        self.command_tail = self.event_head = 0
        self.unread: list[tuple[int, int, Stream | None, int]] = []  # a test's own
        self.listening = 0  # the number of the last listener that it joined
        self.streams: dict[int, Stream] = {}

    def evicted(self) -> bool:
        return load(self.header, NEED_KICK + 4) == EVICTED

    def command(
        self, op: int, slot: int = 0, generation: int = 0, value: int = 0, token: int = 0,
        remote: bytes = bytes(20), local: bytes = bytes(20),
    ) -> None:  # fmt: skip
        at = self.commands + 64 * (self.command_tail % self.entries)
        _COMMAND.pack_into(self.memory, at, op, 0, slot, generation, value, token, remote, local)
        self.command_tail += 1
        store(self.memory, COMMAND_TAIL, self.command_tail)
        if load(self.header, NEED_KICK) & KICK_SUBMIT:
            os.write(self.kick_fd, struct.pack("<Q", 1))

    def connect(self, address: str, port: int, token: int, source: str = "") -> None:
        local = _END.pack(mapped(source), 0, 0) if source else bytes(20)
        self.command(CONNECT, token=token, remote=_END.pack(mapped(address), port, 0), local=local)

    def listen(self, address: str, port: int, backlog: int = 16) -> int:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((address, port))
            socket.send_fds(self.client.socket, [request(STREAM_LISTEN, backlog)], [bound.fileno()])
        answer = self.client.answer()
        assert answer is not None
        assert answer.error == 0, answer
        return answer.total

    def poll(self) -> list[tuple[int, int, Stream | None, int]]:
        """Events: kind, error, stream, token. A JOINED stream's words are elsewhere."""
        found = []
        tail = load(self.memory, EVENT_TAIL)
        while self.event_head != tail:
            at = self.events + 32 * (self.event_head % self.entries)
            kind, _, error, slot, generation, token, _ = _EVENT.unpack_from(self.memory, at)
            self.event_head = (self.event_head + 1) & 0xFFFFFFFF
            if kind in (OPENED, ACCEPTED, JOINED):
                self.streams[slot] = Stream(self, slot, generation)
            if kind == LISTENING:
                self.listening = slot
            stream = self.streams.get(slot) if kind != FAILED else None
            if stream and stream.generation != generation:
                stream = None
            if stream:
                stream.put(32, 0)
            found.append((kind, error, stream, token))
        store(self.memory, EVENT_HEAD, self.event_head)
        return found

    def wait(self, seconds: float = 10) -> list[tuple[int, int, Stream | None, int]]:
        """Events, as poll(); none only after so long, or if homad has closed its end."""
        until = time.monotonic() + seconds
        while True:
            found = self.poll()
            if found:
                return found
            store(self.memory, ARMED, 1)
            found = self.poll()
            if found:
                return found
            ready, _, _ = select.select([self.event_fd], [], [], max(0.0, until - time.monotonic()))
            # A signal may be that of an event which was found after it had been asked for.
            if not ready or not os.read(self.event_fd, 64):
                return self.poll()

    def close_stream(self, stream: Stream, op: int = CLOSE) -> None:
        stream.command(op)
        self.streams.pop(stream.slot, None)


def serve(streams: Streams, address: str, port: int, count: int) -> None:
    streams.listen(address, port)
    print("ready", flush=True)
    left: dict[int, bytes] = {}
    ended = 0
    while ended < count:
        for _, _, stream, _ in streams.wait(60):
            if stream is None or stream.slot not in streams.streams:
                continue
            state = stream.state  # before the bytes: what comes with the end is not left
            data = left.pop(stream.slot, b"") + stream.take()
            data = data[stream.write(data) :]
            if data and not state & HAS_ERROR:
                left[stream.slot] = data
            elif state & (HAS_END | HAS_ERROR):
                streams.close_stream(stream)
                ended += 1
    print("served", ended)


def send(streams: Streams, address: str, port: int, size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(min(size, 1 << 16)))
    echo(streams, address, port, (data * (size // max(len(data), 1) + 1))[:size])
    print("echoed", size)


def steady(streams: Streams, address: str, port: int, seed: int) -> None:
    rng = random.Random(seed)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    count = sent = 0
    while not ended:
        data = rng.randbytes(rng.choice([1, 100, 5000, 70000, 300000]))
        echo(streams, address, port, data)
        count += 1
        sent += len(data)
        if count == 1:
            print("going", flush=True)
    print("steady", count, sent)


def echo(streams: Streams, address: str, port: int, data: bytes) -> None:
    """Send it by a connection of its own and see that the same comes back, and nothing else."""
    streams.connect(address, port, 77)
    stream = None
    while stream is None:
        events = streams.wait(60)
        assert events, "no answer for a minute"
        # There may be late ones of the connection before.
        for kind, error, opened, token in events:
            if kind in (OPENED, FAILED):
                assert (kind, token) == (OPENED, 77), (kind, error, token)
                stream = opened
    size = len(data)
    sent, back, shut = 0, b"", False
    while (
        not (stream.state & (HAS_END | HAS_ERROR) and shut)
        or len(back) < size
        and not stream.state & HAS_ERROR
    ):
        if sent < size:
            sent += stream.write(data[sent : sent + 65536])
        elif not shut:
            stream.command(SHUT)
            shut = True
        back += stream.take()
        if len(back) < size or not stream.state & HAS_END:
            words = [stream.word(4 * i) for i in (*range(9), *range(32, 37))]
            assert streams.wait(60), f"{sent} sent, {len(back)} back, still for a minute: {words}"
    back += stream.take()
    streams.close_stream(stream)
    assert not stream.error, os.strerror(stream.error)
    assert back == data, f"{len(back)} of {size} bytes came back"


def main() -> None:
    path, verb, address, port, *rest = sys.argv[1:]
    streams = Streams(Path(path))
    if verb == "serve":
        serve(streams, address, int(port), int(rest[0]))
    elif verb == "send":
        send(streams, address, int(port), int(rest[0]))
    elif verb == "steady":
        steady(streams, address, int(port), int(rest[0]))
    else:
        streams.connect(address, int(port), 5, *rest)
        kind, error, _, token = streams.wait()[0]
        assert kind in (OPENED, FAILED) and token == 5, (kind, token)
        print("opened" if kind == OPENED else errno.errorcode[error])


if __name__ == "__main__":
    main()
