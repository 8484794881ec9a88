# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One TCP connection, on which each end does what its arguments say, for tests of interoperation.

    talker.py serve|connect ADDRESS PORT ACTION...

    send N, read N      so many bytes; each has the value of its position modulo 251, and is checked
    both N              sends and reads N bytes at the same time
    half                says that nothing more will be sent
    end                 the peer must say that, and send nothing before
    pause MS            neither reads nor writes
    reset               ends the connection by a reset
    broken              the peer must end it by a reset; bytes before that are read
    flood               sends without end, and the peer must end that by a reset
    stay                the last action: the program does not end, as its stack may end with it

After the actions the connection is closed. "ready" is said once there is a listener, "open" once there is a
connection, at the end "done", or "failed: " and why. lwip.c is the same over lwIP.
"""

from __future__ import annotations

import select
import signal
import socket
import struct
import sys
import time

PERIOD = 251
CHUNK = PERIOD * 261
PATTERN = bytes(i % PERIOD for i in range(CHUNK + PERIOD))
PATIENCE = 300  # s without progress: only ends what hangs
NUMBERED = ("send", "read", "both", "pause")


class Failure(Exception):
    """What is not as it must be."""


class Talk:
    def __init__(self, one: socket.socket) -> None:
        self.one = one
        self.wrote = self.taken = 0
        one.setblocking(False)

    def act(self, name: str, number: int) -> None:
        if name in ("send", "read", "both"):
            self.move(number if name != "read" else 0, number if name != "send" else 0)
        elif name == "half":
            self.one.shutdown(socket.SHUT_WR)
        elif name == "end":
            if self.receive(1):
                raise Failure(f"more bytes than {self.taken}")
        elif name == "pause":
            time.sleep(number / 1000)
        elif name == "reset":
            self.one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.one.close()
        elif name == "broken":
            self.broken()
        elif name == "flood":
            self.flood()
        elif name != "stay":
            raise Failure(f"no action: {name}")

    def wait(self, reads: bool, writes: bool) -> tuple[bool, bool]:
        ready = select.select(
            [self.one] if reads else [], [self.one] if writes else [], [], PATIENCE
        )
        if not any(ready):
            raise Failure(f"nothing moves after {self.wrote} bytes out and {self.taken} in")
        return bool(ready[0]), bool(ready[1])

    def receive(self, most: int) -> bytes:
        while True:
            self.wait(True, False)
            try:
                return self.one.recv(most)
            except BlockingIOError:
                continue

    def move(self, out: int, into: int) -> None:
        while out or into:
            readable, writable = self.wait(into > 0, out > 0)
            try:
                if writable:
                    at = self.wrote % PERIOD
                    sent = self.one.send(PATTERN[at : at + min(out, CHUNK)])
                    self.wrote += sent
                    out -= sent
                if readable:
                    data = self.one.recv(min(into, CHUNK))
                    at = self.taken % PERIOD
                    if not data:
                        raise Failure(f"the end after {self.taken} bytes")
                    if data != PATTERN[at : at + len(data)]:
                        raise Failure(f"wrong bytes from {self.taken} on")
                    self.taken += len(data)
                    into -= len(data)
            except BlockingIOError:
                continue

    def broken(self) -> None:
        try:
            while self.receive(CHUNK):
                pass
        except ConnectionResetError:
            return
        raise Failure("an end instead of a reset")

    def flood(self) -> None:
        try:
            while True:
                self.move(CHUNK, 0)
        except (ConnectionResetError, BrokenPipeError):
            return


def parse(words: list[str]) -> list[tuple[str, int]]:
    found = []
    rest = iter(words)
    for word in rest:
        found.append((word, int(next(rest)) if word in NUMBERED else 0))
    return found


def say(what: str) -> None:
    print(what, flush=True)


def connection(how: str, address: str, port: int) -> socket.socket:
    if how == "connect":
        return socket.create_connection((address, port), PATIENCE)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listener:
        listener.settimeout(PATIENCE)
        say("ready")
        return listener.accept()[0]


def main() -> int:
    how, address, port, *words = sys.argv[1:]
    try:
        talk = Talk(connection(how, address, int(port)))
        say("open")
        for name, number in parse(words):
            talk.act(name, number)
        talk.one.close()
    except (OSError, Failure) as error:
        say(f"failed: {type(error).__name__}: {error}")
        return 1
    say("done")
    if words[-1:] == ["stay"]:
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
