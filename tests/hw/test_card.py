# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Real RPCs through the RTL: programs over libhoma whose packets a Verilated card sends and
receives, with and without its offloads, and with a card that dies."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from lab.hw import card, environment
from tests.hw.cards import Card, cabled, echo, program, serve, text
from tests.net.netns import Namespace, Net, eventually

SIZES = (1, 1400, 1500, 4321, 60_000)
Pair = tuple[Namespace, Namespace]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if os.geteuid() != 0:
        pytest.skip("makes network namespaces, so it needs root")
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("there is no /dev/net/tun for a TAP interface")
    try:
        card.build()
    except environment.MissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def hosts() -> Iterator[Pair]:
    with Net() as net:
        yield cabled(net)


def exchange(a: Card, b: Card) -> tuple[dict[str, int], dict[str, int]]:
    """An echo of each size from a to b; the counters of both cards."""
    server = serve(b.space, b.env())
    for size in SIZES:
        assert not echo(a.space, a.env(), b.v4, size), size
    counters = a.counters(), b.counters()
    server.stop()
    for c in counters:
        assert c["sent"] and c["got"] and c["rss_homa"]
        assert not c["invalid"] and not c["broken"] and not c["lso_refused"] and not c["lso_cut"]
    return counters


def test_cards__all_offloads(hosts: Pair) -> None:
    for counters in exchange(Card(hosts[0], 1), Card(hosts[1], 2, "--queues", "3")):
        assert counters["super"] and counters["lso_sent"] == counters["super"]
        assert counters["units"] and counters["pieces"] > counters["units"]
        # What the card calls merged are the packets behind the first of each unit.
        assert counters["lro_merged"] >= counters["pieces"] - counters["units"]


def test_cards__without_segmentation(hosts: Pair) -> None:
    a, b = exchange(Card(hosts[0], 1, "--no-lso"), Card(hosts[1], 2))
    assert not a["super"] and not a["lso_sent"] and b["super"]
    assert a["sent"] > 60_000 // 1500


def test_cards__without_large_receive(hosts: Pair) -> None:
    a, b = exchange(Card(hosts[0], 1, "--no-lro", "--no-rss"), Card(hosts[1], 2))
    assert not a["units"] and not a["lro_merged"] and b["units"]


def test_few_slots__wait_and_recover(hosts: Pair) -> None:
    """A driver with two slots for each direction: what does not fit waits, or is sent again."""
    exchange(Card(hosts[0], 1, "--slots", "2"), Card(hosts[1], 2))


def test_afxdp__is_a_peer_like_any(hosts: Pair) -> None:
    b = Card(hosts[1], 2)
    other = ["env", "HOMA_VIA=afxdp", "HOMA_INTERFACE=eth0", *b.env()[3:]]
    server = serve(b.space, b.env())
    for size in SIZES:
        assert not echo(hosts[0], other, b.v4, size), size
    counters = b.counters()
    assert counters["super"] and counters["units"]
    server.stop()


def test_killed__the_rpc_fails_and_the_next_ones_work(hosts: Pair) -> None:
    """Nothing hangs without the device, and with another one the same server is there."""
    a, b = Card(hosts[0], 1), Card(hosts[1], 2)
    server = serve(b.space, b.env())
    assert not echo(a.space, a.env(), b.v4, 1000)
    b.kill()
    wrong = echo(a.space, a.env(HOMA_CONFIG="timeout_us=1000000"), b.v4, 1000)
    assert wrong and "status" not in wrong
    b.again()
    eventually(lambda: b.counters()["drivers"])
    assert not echo(a.space, a.env(), b.v4, 20_000)
    assert server.running()


def test_killed__amid_an_rpc_that_recovers(hosts: Pair) -> None:
    """The device of a client dies while it waits for the answer, which another device brings."""
    a, b = Card(hosts[0], 1), Card(hosts[1], 2)
    server = serve(b.space, b.env())
    assert not echo(a.space, a.env(), b.v4, 10)
    server.send_signal(signal.SIGSTOP)
    sent = text(20_000)
    client = a.space.start([*a.env(), program("examples/echo-client"), f"{b.v4}:4000", sent])
    # Only the long request is sent in super-frames.
    eventually(lambda: a.counters()["super"], 30)
    a.kill()
    a.again()
    eventually(lambda: a.counters()["drivers"])
    server.send_signal(signal.SIGCONT)
    status, out, err = client.wait(60)
    assert (status, out) == (0, f"{sent}\n"), err


MUTE = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0homa-message-nic/" + sys.argv[1])
listener.listen()
print("ready", flush=True)
held = [listener.accept()]
print("called", flush=True)
listener.settimeout(5)
try:
    held.append(listener.accept())
except TimeoutError:
    pass
print(len(held), flush=True)
"""


def test_mute_device__is_called_once_and_waited_for_by_nobody(hosts: Pair) -> None:
    """A thread that waited for its greeting would hang up after a time and call again."""
    a, b = Card(hosts[0], 1), Card(hosts[1], 2)
    server = serve(b.space, b.env())
    assert not echo(a.space, a.env(), b.v4, 1000)
    b.kill()
    mute = b.space.start([sys.executable, "-c", MUTE, b.tap])
    assert [mute.line(60), mute.line(60), mute.line(60)] == ["ready", "called", "1"]
    mute.wait()
    b.again()
    eventually(lambda: b.counters()["drivers"])
    assert not echo(a.space, a.env(), b.v4, 20_000)
    assert server.running()


def test_second_driver__is_told_that_the_device_is_taken(hosts: Pair) -> None:
    b = Card(hosts[1], 2)
    serve(b.space, b.env())
    assert "another process" in echo(b.space, b.env(), b.v4, 1)
