# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Homa and TCP on one link of a known rate: what each gets of it, by counters of bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from homad import PROGRAMS, Homad, Host, Process, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import serving, snapshot
from streamtool import OPENED, Stream, Streams

pytestmark = [needs_homad, needs_root]

CONFIG = """
[network]
link_mbps = 100
udp = false
[tcp]
share = {share}
[protocol]
timeout_us = 20000000
[[tcp_rule]]
connect = [1, 65535]
"""
STREAMS = 4
# Takes all that comes, with the kernel's sockets.
SINK = """
import socketserver
class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while self.request.recv(262144):
                pass
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 100
with Server(("0.0.0.0", 5000), Sink) as server:
    print("ready", flush=True)
    server.serve_forever()
"""


class Load:
    """Streams that always have more to send; `acked` counts what the peer has of it."""

    def __init__(self, client: Streams, to: Host) -> None:
        self.client = client
        self.streams: list[Stream] = []
        self._acked: dict[int, int] = {}
        self._before: dict[int, int] = {}
        for token in range(STREAMS):
            client.connect(to.v4, 5000, token)
        while len(self.streams) < STREAMS:
            for kind, error, stream, _ in client.wait(20):
                if kind == OPENED:
                    assert stream is not None, error
                    self.streams.append(stream)

    def pump(self) -> int:
        """Fill the buffers once, wait for something, and say how many bytes were acknowledged so far."""
        zeros = bytes(65536)
        for stream in self.streams:
            stream.write(zeros)
            at = stream.word(24)
            self._acked[stream.slot] = self._acked.get(stream.slot, 0) + (
                (at - self._before.get(stream.slot, 0)) & 0xFFFFFFFF
            )
            self._before[stream.slot] = at
            assert not stream.error
        self.client.wait(0.05)
        return sum(self._acked.values())


@contextmanager
def loaded(share: int) -> Iterator[tuple[Host, Host, Load]]:
    with two_hosts(CONFIG.format(share=share)) as (a, b):
        sink = b.start([sys.executable, "-c", SINK])
        assert sink.line() == "ready"
        client = Streams(a.homad.socket)
        yield a, b, Load(client, b)
        client.client.close()
        sink.stop(9)


def homa_load(a: Host, b: Host) -> list[Process]:
    """Long requests without end; half of their bytes go from a to b."""
    return [
        a.start([PROGRAMS / "rpcs", "ask", b.v4, "4000", "0", "400000", "16"]) for _ in range(2)
    ]


def homa_bytes(homad: Homad) -> int:
    return int(snapshot(homad)["engine"]["tx_bytes"])


def sent(a: Host, load: Load, within: int) -> tuple[int, int]:
    """Bytes of Homa and of TCP at one time: during the question about Homa TCP sent at most `within`."""
    for _ in range(200):
        before = load.pump()
        homa = homa_bytes(a.homad)
        after = load.pump()
        if after - before <= within:
            return homa, (before + after) // 2
    pytest.fail(f"homad never answered while TCP sent at most {within} bytes")


@pytest.mark.parametrize("share", [25, 50, 75])
def test_share__is_kept_when_both_have_much_to_send(share: int) -> None:
    with loaded(share) as (a, b, load), serving(b):
        fields = homa_load(a, b)
        for field in fields:
            assert field.line(60) == "asking"
        # Until the windows of both are what they will be.
        start = load.pump()
        eventually(lambda: load.pump() > start + 2_000_000, 60)
        homa, tcp = sent(a, load, 10_000 * share)
        eventually(lambda: load.pump() > tcp + 300_000 * share, 60)
        homa_after, tcp_after = sent(a, load, 10_000 * share)
        homa, tcp = homa_after - homa, tcp_after - tcp
        assert abs(100 * tcp / (homa + tcp) - share) <= 5, (homa, tcp)
        for field in fields:
            field.stop(9)


def test_share__tcp_alone_has_all() -> None:
    """What is Homa's share is not kept free for it: the pacer has sent as much as it lets through."""
    with loaded(10) as (_, _, load):
        eventually(lambda: load.pump() > 20_000_000, 60)
