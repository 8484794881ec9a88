# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP_USER_TIMEOUT and the times of keepalive, for unmodified programs whose peer falls silent."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from homad import Host, Process, needs_homad, needs_root, two_hosts
from netns import eventually
from streamtool import CONNECT, OPENED, PATIENCE, Streams, mapped
from test_tcp import HOMA_RUN, LIBRARY, RULES
from test_tcp_hostile import inside

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

PORT = 5000
WAIT = 60  # s
# What a program sets: probes after 1 s of silence, and the end when one has no answer for 1 s.
KEEP = "SO_KEEPALIVE=1,TCP_KEEPIDLE=1,TCP_KEEPINTVL=1,TCP_KEEPCNT=1"
# Connect or accept with options that are set before (and, if accepted, on the listener alone) or after;
# then say how the connection ends. "exec" lets another program accept.
PROGRAM = r"""
import errno, os, socket, sys
verb, address, port, when, options, write = sys.argv[1:]
def options_of(one, check=True):
    for pair in options.split(","):
        name, value = pair.split("=")
        level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
        if not check:
            one.setsockopt(level, getattr(socket, name), int(value))
        assert one.getsockopt(level, getattr(socket, name)) == int(value), name
if verb == "connect":
    one = socket.socket()
    if when == "before":
        options_of(one, False)
    try:
        one.connect((address, int(port)))
    except OSError as error:
        print(errno.errorcode[error.errno])
        sys.exit()
elif verb == "accept":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(port)))
    if when != "after":
        options_of(listener, False)
    listener.listen()
    if when == "exec":
        listener.set_inheritable(True)
        os.execv(sys.executable, [*sys.orig_argv[:3], "go-on", str(listener.fileno()), *sys.argv[3:]])
    print("ready", flush=True)
    one, _ = listener.accept()
else:
    listener = socket.socket(fileno=int(address))
    print("ready", flush=True)
    one, _ = listener.accept()
if when == "after":
    options_of(one, False)
options_of(one)
print("open", flush=True)
if write != "-":
    while not os.path.exists(write):
        pass
    one.sendall(b"x")
try:
    one.recv(1)
    print("an end")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        yield both


def start(host: Host, *rest: object) -> Process:
    return host.start(
        ["env", f"HOMA_PRELOAD_LIB={LIBRARY}", str(HOMA_RUN), "--tcp", "--debug", sys.executable, "-c", PROGRAM,
         *map(str, rest)]
    )  # fmt: skip


def silence(a: Host, b: Host) -> None:
    """From now on nothing comes back from b's kernel to a."""
    b.space.run(["ip", "route", "add", "blackhole", f"{a.v4}/32"])


@contextmanager
def peer(a: Host, b: Host, verb: str, *rest: object) -> Iterator[Process]:
    """A program on a whose connection is open, to the kernel of b."""
    with ExitStack() as stack:
        if verb == "connect":
            with inside(b):
                listener = stack.enter_context(closing(socket.create_server((b.v4, PORT))))
            program = start(a, verb, b.v4, PORT, *rest)
            other, _ = listener.accept()
        else:
            program = start(a, verb, a.v4, PORT, *rest)
            assert program.line(WAIT) == "ready"
            with inside(b):
                other = socket.create_connection((a.v4, PORT))
        stack.enter_context(closing(other))
        assert program.line(WAIT) == "open"
        yield program


@pytest.mark.parametrize(
    ("verb", "when"),
    [("connect", "before"), ("connect", "after"), ("accept", "before"), ("accept", "after"),
     ("accept", "exec")],
)  # fmt: skip
def test_keepalive__finds_a_silent_peer(hosts: tuple[Host, Host], verb: str, when: str) -> None:
    a, b = hosts
    with peer(a, b, verb, when, KEEP, "-") as program:
        silence(a, b)
        assert program.wait(WAIT)[:2] == (0, "ETIMEDOUT\n")


@pytest.mark.parametrize(
    ("verb", "when"), [("connect", "before"), ("accept", "before"), ("connect", "after")]
)
def test_user_timeout__ends_what_waits_for_an_answer(
    hosts: tuple[Host, Host], verb: str, when: str, tmp_path: Path
) -> None:
    a, b = hosts
    go = tmp_path / "go"
    with peer(a, b, verb, when, "TCP_USER_TIMEOUT=1500", go) as program:
        silence(a, b)
        go.touch()
        assert program.wait(WAIT)[:2] == (0, "ETIMEDOUT\n")


def test_user_timeout__bounds_connect(hosts: tuple[Host, Host]) -> None:
    """The engine alone would send six more SYNs, for two minutes."""
    a, b = hosts
    # With an open connection homad knows the way to b.
    with peer(a, b, "connect", "before", "TCP_NODELAY=1", "-"):
        silence(a, b)
        program = start(a, "connect", b.v4, PORT, "before", "TCP_USER_TIMEOUT=2500", "-")
        assert program.wait(WAIT)[:2] == (0, "ETIMEDOUT\n")


@pytest.mark.parametrize(
    ("which", "value"), [(0, 1 << 31), (1, 0), (1, 32768), (2, 0), (3, 128), (4, 1), (1 << 32, 1)]
)
def test_patience__that_cannot_be_ends_the_attachment(
    hosts: tuple[Host, Host], which: int, value: int
) -> None:
    a, b = hosts
    with inside(b):
        listener = socket.create_server((b.v4, PORT))
    streams = Streams(a.homad.socket)
    with closing(listener), closing(streams.client):
        streams.connect(b.v4, PORT, 1)
        ((kind, _, stream, _),) = streams.wait(20)
        assert kind == OPENED and stream is not None
        streams.command(PATIENCE, stream.slot, stream.generation, value=value, token=which)
        eventually(streams.evicted, WAIT)


def test_user_timeout__of_connect_that_cannot_be_ends_the_attachment(
    hosts: tuple[Host, Host],
) -> None:
    a, b = hosts
    streams = Streams(a.homad.socket)
    with closing(streams.client):
        remote = struct.pack("<16sHH", mapped(b.v4), PORT, 0)
        streams.command(CONNECT, slot=1 << 31, token=1, remote=remote)
        eventually(streams.evicted, WAIT)
