# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad over the Verilated card: RPCs of programs that attach to it go through the RTL, with the
card's offloads and without, by several threads, and over a card that dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from homad import PATIENT, PROGRAMS, Homad, Host, finishing, protocol
from ops_tools import snapshot

from tests.hw.cards import Card, echo, serve
from tests.hw.test_card import SIZES, Pair, built, hosts  # noqa: F401
from tests.net.netns import Process, eventually

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


def one_echo(client: Host, server: Card) -> Process:
    """A program that has 20,000 bytes echoed once and checks each. Where four threads spin beside
    two cards it takes longer than the example waits."""
    return client.start([PROGRAMS / "steady", f"{server.v4}:4000", "0.001", "1", "20000"])


def echoed(process: Process) -> None:
    status, out, err = process.wait(120)
    assert (status, out) == (0, "going\n1 0 0 0\n"), f"{out}{err}"


def at_once(client: Host, server: Card) -> None:
    """Echoes of several programs at the same time."""
    for process in [one_echo(client, server) for _ in range(CLIENTS)]:
        echoed(process)


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


def has_driver(card: Card) -> None:
    """Wait until homad has found the card."""
    eventually(lambda: card.counters()["drivers"], 60)


def amid_an_rpc(a: Card, b: Card, **tables: dict[str, object]) -> None:
    """The card of a client dies while it waits for the answer, which another card brings; the
    answers of many after that, too."""
    with served(a, b, **tables) as (client, server):
        process = serve(b.space, server.words([]))
        echoed(one_echo(client, b))
        before = a.counters()["super"]
        process.send_signal(signal.SIGSTOP)
        waiting = one_echo(client, b)
        eventually(lambda: a.counters()["super"] > before, 30)
        a.kill()
        a.again()
        has_driver(a)
        process.send_signal(signal.SIGCONT)
        echoed(waiting)
        at_once(client, b)
        process.stop()


def test_killed__amid_an_rpc_that_recovers(hosts: Pair) -> None:  # noqa: F811
    amid_an_rpc(Card(hosts[0], 1), Card(hosts[1], 2))


def test_killed__all_threads_leave_it_and_have_the_next_one(hosts: Pair) -> None:  # noqa: F811
    many = ("--queues", "2")
    amid_an_rpc(Card(hosts[0], 1, *many), Card(hosts[1], 2, *many), **THREADS)


def test_killed__rpcs_fail_and_the_next_ones_work(hosts: Pair) -> None:  # noqa: F811
    """Without a card an RPC ends as any that is not answered, and homad goes on."""
    a, b = Card(hosts[0], 1), Card(hosts[1], 2)
    with served(a, b, **protocol("timeout_us=1000000")) as (client, server):
        process = serve(b.space, server.words([]))
        assert not echo(a.space, client.words([]), b.v4, 1000)
        b.kill()
        wrong = echo(a.space, client.words([]), b.v4, 20_000)
        assert "did not answer in time" in wrong, wrong
        server.homad.check()
        b.again()
        has_driver(b)
        # In a second the busy machine may not have simulated all that a long message needs.
        eventually(lambda: not echo(a.space, client.words([]), b.v4, 20_000), 60)
        assert process.running()
        process.stop()


def test_killed__what_comes_in_its_place_has_fewer_offloads(hosts: Pair) -> None:  # noqa: F811
    """A card may come again without what the dead one could; then packets are frames."""
    a, b = Card(hosts[0], 1), Card(hosts[1], 2)
    with served(a, b) as (client, server):
        process = serve(b.space, server.words([]))
        assert not echo(a.space, client.words([]), b.v4, 20_000)
        assert a.counters()["super"]
        a.kill()
        a.argv += ["--no-lso", "--no-lro"]
        a.again()
        has_driver(a)
        assert not echo(a.space, client.words([]), b.v4, 20_000)
        counters = a.counters()
        assert counters["sent"] and not counters["super"] and not counters["units"]
        assert not counters["invalid"] and not counters["broken"]
        process.stop()


def test_no_card__homad_says_so_and_does_not_start(hosts: Pair) -> None:  # noqa: F811
    a = Card(hosts[0], 1)
    a.kill()
    # The TAP outlives its card.
    host = daemon(a)
    host.homad.start(wait=False)
    assert host.homad.wait() == 1
    assert "no message NIC can be used for homa0" in host.homad.log()
