# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What homad shows of a stream in its slot, for TCP_INFO (abi/shm_stream.h)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from attachtool import METRIC, METRICS
from homad import Host, needs_homad, needs_root, two_hosts
from netns import eventually
from streamtool import OPENED, Streams
from test_ops_tcp import flows
from test_tcp import RULES
from test_tcp_hostile import inside

pytestmark = [needs_homad, needs_root]

PORT = 5000
# Bytes before these fields of struct homa_stream_slot.
TX_FREE = 24
RETRANSMITS = 48


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with two_hosts(RULES) as both:
        yield both


def test_metrics__of_tcp_for_programs(hosts: tuple[Host, Host]) -> None:
    """homa_metrics(3): the counters of the engine, and homad's own."""
    client = Streams(hosts[0].homad.socket).client
    with closing(client):
        records = client.records(client.ask(METRICS).total, METRIC.size)
        names = {METRIC.unpack(one)[1].rstrip(b"\0").decode() for one in records}
        assert {"tcp_slow_segments", "tcp_retransmits", "tcp_resets_sent", "tcp_no_place"} <= names


def test_retransmits__are_the_engines_count(hosts: tuple[Host, Host]) -> None:
    """The peer's kernel has no way back for a while, so its acknowledgements do not come."""
    a, b = hosts
    with inside(b):
        listener = socket.create_server((b.v4, PORT))
    client = Streams(a.homad.socket)
    with closing(listener), closing(client.client):
        client.connect(b.v4, PORT, 1)
        ((kind, _, stream, _),) = client.wait(20)
        assert kind == OPENED and stream is not None
        peer, _ = listener.accept()
        with closing(peer):
            assert stream.word(RETRANSMITS) == 0
            b.space.run(["ip", "route", "add", "blackhole", f"{a.v4}/32"])
            stream.write(b"x")
            eventually(lambda: flows(a)[0]["retransmits"] > 0, 30)
            b.space.run(["ip", "route", "del", "blackhole", f"{a.v4}/32"])
            # The acknowledgement is an event, and shows what is known by then.
            eventually(lambda: stream.word(TX_FREE) == 1, 30)
            eventually(lambda: stream.word(RETRANSMITS) > 0)
            assert stream.word(RETRANSMITS) == flows(a)[0]["retransmits"]
