# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad over the Verilated card: RPCs of programs that attach to it go through the RTL, with the
card's offloads and without, by several threads, and over a card that dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from homad import PATIENT, Homad, Host, finishing
from ops_tools import snapshot

from tests.hw.cards import Card, echo, program, serve, text
from tests.hw.test_card import SIZES, Pair, built, hosts  # noqa: F401

NETWORK = {"message": ["homa0"], "interfaces": [], "udp": False}
# A thread on each core; the number of those that spin does not follow the load.
THREADS = {"threads": {"mode": "dedicated", "cores": [0, 1], "scale": False}}
CLIENTS = 12


def daemon(card: Card, **tables: dict[str, object]) -> Host:
    """A host whose homad has the card; it does not run yet."""
    config = {**PATIENT, **tables, "network": {**NETWORK, **tables.get("network", {})}}
    return Host(card.space, Homad(card.space, config))


@contextmanager
def running(*daemons: Host) -> Iterator[None]:
    with finishing(*(host.homad for host in daemons)):
        for host in daemons:
            host.homad.start()
        yield


@contextmanager
def served(a: Card, b: Card, **tables: dict[str, object]) -> Iterator[tuple[Host, Host]]:
    """A homad on each card."""
    both = daemon(a, **tables), daemon(b, **tables)
    with running(*both):
        yield both


def exchange(a: Card, b: Card, **tables: dict[str, object]) -> tuple[dict[str, int], ...]:
    """An echo of each size from a to b, by homad; the counters of both cards."""
    with served(a, b, **tables) as (client, server):
        process = serve(b.space, server.words([]))
        for size in SIZES:
            assert not echo(a.space, client.words([]), b.v4, size), size
        process.stop()
    counters = a.counters(), b.counters()
    for c in counters:
        assert c["sent"] and c["got"] and c["rss_homa"] and c["drivers"] == 1
        assert not c["invalid"] and not c["broken"] and not c["lso_refused"] and not c["lso_cut"]
    return counters


def test_homad__all_offloads(hosts: Pair) -> None:  # noqa: F811
    for c in exchange(Card(hosts[0], 1), Card(hosts[1], 2)):
        # The send scheduler's units are super-frames, and what comes of them are units.
        assert c["super"] and c["lso_sent"] == c["super"]
        assert c["units"] and c["pieces"] > c["units"]
        # Far fewer frames cross the shared memory than the 60,000 bytes have packets.
        assert c["sent"] < c["tx_frames"]


def test_homad__without_segmentation(hosts: Pair) -> None:  # noqa: F811
    a, b = exchange(Card(hosts[0], 1, "--no-lso"), Card(hosts[1], 2))
    assert not a["super"] and not a["lso_sent"] and b["super"]
    assert a["sent"] > 60_000 // 1500


def test_homad__without_large_receive_and_spreading(hosts: Pair) -> None:  # noqa: F811
    a, b = exchange(Card(hosts[0], 1, "--no-lro", "--no-rss"), Card(hosts[1], 2))
    assert not a["units"] and not a["lro_merged"] and b["units"]


def ports(host: Host) -> list[dict]:
    return [port for port in snapshot(host.homad)["ports"] if port["name"] == "homa0"]


def at_once(client: Host, server: Card) -> None:
    """Echoes of several programs at the same time."""
    sent = text(20_000)
    argv = [program("examples/echo-client"), f"{server.v4}:4000", sent]
    for process in [client.start(argv) for _ in range(CLIENTS)]:
        status, out, err = process.wait(120)
        assert (status, out) == (0, f"{sent}\n"), err


def shared_out(host: Host) -> bool:
    """Has each of its threads received and sent?"""
    both = ports(host)
    assert [port["thread"] for port in both] == [0, 1]
    assert not any(port["nic"]["nic_rx_malformed"] for port in both)
    return all(port["nic"]["nic_rx_packets"] and port["nic"]["nic_tx_packets"] for port in both)


def test_threads__each_has_queues_of_its_own(hosts: Pair) -> None:  # noqa: F811
    a, b = Card(hosts[0], 1, "--queues", "3"), Card(hosts[1], 2, "--queues", "2")
    with served(a, b, **THREADS) as (client, server):
        process = serve(b.space, server.words([]))
        for _ in range(5):
            at_once(client, b)
            # The card spreads RPCs by a hash, with which all of a few may be one thread's.
            if shared_out(client) and shared_out(server):
                break
        assert shared_out(client) and shared_out(server)
        process.stop()


def test_threads__a_card_that_does_not_spread_is_one_threads(hosts: Pair) -> None:  # noqa: F811
    a, b = Card(hosts[0], 1, "--queues", "2", "--no-rss"), Card(hosts[1], 2)
    with served(a, b, **THREADS) as (client, server):
        process = serve(b.space, server.words([]))
        at_once(client, b)
        assert len(ports(client)) == len(ports(server)) == 1
        process.stop()
