# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is particular to AF_XDP: who may have a queue, and what is left behind."""

from __future__ import annotations

import os
import signal

import pytest
from netns import Namespace, Net, eventually
from nictool import PROGRAM, Event, Tool, pick, start_tcp_echo, tcp_echo, xdp_on

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]

tool = Tool("afxdp")


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


def refusal(space: Namespace, *words: str) -> Event:
    """nic_ping must refuse with one line; {"error": name, "text": line}."""
    got = tool.run(space, *words)
    end = pick(got, "end")[0]
    assert end["status"] == 3, got
    lines = end["stderr"].strip().splitlines()
    assert len(lines) == 1, lines
    return {"error": pick(got, "refused")[0]["error"], "text": lines[0]}


def works(a: Namespace, b: Namespace) -> bool:
    server = tool.start(b, "--count", "2", "--seconds", "10", "dump")
    tool.run(a, "--count", "2", "--seconds", "0.1", "send", b.v4)
    return len(pick(server.wait(), "packet")) == 2


@pytest.mark.parametrize(
    "mode, words", [("0", "generic copy"), ("1", "generic copy"), ("2", "native copy")]
)
def test_mode__chosen_and_forced(pair, mode: str, words: str) -> None:
    a, b = pair
    server = tool.start(b, "--mode", mode, "echo")
    assert words in server.info["detail"]
    got = tool.run(a, "--mode", mode, "--count", "200", "ping", b.v4)
    assert pick(got, "ping")[0]["received"] == 200
    server.stop()


def test_mode__zero_copy_is_refused_where_there_is_none(pair) -> None:
    a, _ = pair
    refused = refusal(a, "--mode", "3", "info")
    assert refused["error"] == "EOPNOTSUPP" and "zero-copy" in refused["text"]
    assert not xdp_on(a)


@pytest.mark.parametrize("mode", ["1", "2"])
@pytest.mark.parametrize("mtu", [3000, 9000])
def test_mode__large_packets(mode: str, mtu: int) -> None:
    with Net() as net:
        a, b = net.pair(mtu=mtu)
        server = tool.start(b, "--mode", mode, "echo")
        got = tool.run(
            a,
            "--mode",
            mode,
            "--count",
            "200",
            "--window",
            "4",
            "--size",
            str(mtu - 76),
            "ping",
            b.v4,
        )
        assert pick(got, "ping")[0]["received"] > 150
        assert pick(server.stop(), "stats")[0]["rx_malformed"] == 0


def test_open__no_such_interface(pair) -> None:
    a, _ = pair
    a.device = "eth7"
    refused = refusal(a, "info")
    assert refused["error"] == "ENODEV"
    assert '"eth7"' in refused["text"] and "lo, eth0" in refused["text"]


def test_open__interface_down(pair) -> None:
    a, _ = pair
    a.ip("link", "set", "eth0", "down")
    refused = refusal(a, "info")
    assert refused["error"] == "ENETDOWN" and "ip link set eth0 up" in refused["text"]


def test_open__no_address(pair) -> None:
    a, _ = pair
    a.ip("address", "flush", "dev", "eth0")
    refused = refusal(a, "info")
    assert refused["error"] == "EADDRNOTAVAIL" and "ip address add" in refused["text"]


def test_open__somebody_elses_address(pair) -> None:
    a, b = pair
    assert refusal(a, "--address", b.v4, "info")["error"] == "EADDRNOTAVAIL"
    assert refusal(a, "--address", "nonsense", "info")["error"] == "EINVAL"


def test_open__mtu_too_small(pair) -> None:
    a, _ = pair
    a.ip("link", "set", "eth0", "mtu", "100")
    refused = refusal(a, "info")
    assert refused["error"] == "EINVAL" and "MTU" in refused["text"]


def test_open__not_root(pair) -> None:
    a, _ = pair
    done = a.run(["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
                  *tool.command(a, "info")], check=False)  # fmt: skip
    if "Permission denied" in done.stderr and "nic_ping:" not in done.stderr:
        pytest.skip("the build directory is closed to other users")
    assert done.returncode == 3
    assert '"EPERM"' in done.stdout and "root" in done.stderr


def test_open__no_such_queue(pair) -> None:
    a, _ = pair
    refused = refusal(a, "--queue", "5", "info")
    assert refused["error"] == "EINVAL" and "1 queue" in refused["text"]


def test_queue__second_process_is_refused_and_harms_nobody(pair) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    refused = refusal(b, "info")
    assert refused["error"] == "EBUSY" and "queue 0 of eth0 is in use" in refused["text"]
    got = tool.run(a, "--count", "500", "ping", b.v4)
    assert pick(got, "ping")[0]["received"] == 500
    server.stop()


def test_queue__free_again_at_once_after_close(pair) -> None:
    a, _ = pair
    for _ in range(4):
        assert pick(tool.run(a, "info"), "open")


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGKILL])
def test_queue__two_processes_share_the_program(first: int) -> None:
    with Net() as net:
        a, b = net.pair(queues=2)
        one = tool.start(b, "--queue", "0", "--queues", "1", "echo")
        two = tool.start(b, "--queue", "1", "--queues", "1", "echo")
        one.process.stop(first)  # the one that had attached it
        # The program stays for the other, whose queue still works: with one receive queue
        # less served, what comes for the first goes to the kernel.
        assert xdp_on(b)
        three = tool.start(b, "--queue", "0", "--queues", "1", "echo")
        got = tool.run(a, "--count", "200", "ping", b.v4)
        assert pick(got, "ping")[0]["received"] == 200
        two.stop()
        assert xdp_on(b)
        three.stop()
        eventually(lambda: not xdp_on(b))


def test_queue__several_in_one_process() -> None:
    with Net() as net:
        a, b = net.pair(queues=4)
        server = tool.start(b, "echo")  # all queues, unless told otherwise
        assert "queues 0-3 of 4" in server.info["detail"]
        client = tool.run(a, "--queues", "4", "--count", "2000", "--window", "8", "ping", b.v6)
        assert pick(client, "ping")[0]["received"] > 1900
        server.stop()
        assert refusal(a, "--queue", "2", "--queues", "3", "info")["error"] == "EINVAL"


def test_kill__leaves_no_program(pair) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    assert xdp_on(b)
    client = a.start(tool.command(a, "--count", "100000000", "--window", "16", "ping", b.v4))
    client.line()
    server.kill()
    client.stop(signal.SIGKILL)
    for space in (a, b):
        eventually(lambda space=space: not xdp_on(space))
    assert works(a, b)


def test_foreign_program__is_named_and_left_alone(pair) -> None:
    a, _ = pair
    source = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    path = f"{source}/{os.getpid()}-pass.o"
    code = '__attribute__((section("xdp"),used)) int other_prog(void *c) { return 2; } char l[] __attribute__((section("license"),used)) = "GPL";'
    a.run(["sh", "-c", f"echo '{code}' | clang -target bpf -O2 -x c -c -o {path} -"])
    try:
        a.ip("link", "set", "dev", "eth0", "xdpgeneric", "obj", path, "sec", "xdp")
        refused = refusal(a, "info")
        assert refused["error"] == "EBUSY" and "other_prog" in refused["text"]
        assert xdp_on(a)
        a.ip("link", "set", "dev", "eth0", "xdpgeneric", "off")
        assert pick(tool.run(a, "info"), "open")
    finally:
        os.unlink(path)


def test_transit__packets_for_others_are_left_to_the_kernel() -> None:
    with Net() as net:
        a, router, b = net.routed()
        router.device = "left"
        on_router = tool.start(router, "dump")
        server = tool.start(b, "--count", "3", "--seconds", "10", "dump")
        tool.run(a, "--count", "3", "--seconds", "0.2", "send", b.v4)
        assert len(pick(server.wait(), "packet")) == 3
        assert pick(on_router.stop(), "packet") == []


def test_link__down_and_up_again(pair) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    client = tool.start(a, "--count", "100000000", "--seconds", "60", "ping", b.v4)
    a.ip("link", "set", "eth0", "down")
    a.ip("link", "set", "eth0", "up")
    assert tcp_works(a, b)
    client.process.stop()
    got = tool.run(a, "--count", "100", "--seconds", "10", "ping", b.v4)
    assert pick(got, "ping")[0]["received"] >= 100
    server.stop()


def test_link__mtu_raised_later_is_used_as_far_as_buffers_go(pair) -> None:
    a, b = pair
    client = tool.start(a, "--size", "3000", "--seconds", "60", "--window", "2", "send", b.v4)
    assert client.event()["mtu"] == 1500
    assert client.event()["error"] == "EMSGSIZE"
    for space in (a, b):
        space.ip("link", "set", "eth0", "mtu", "9000")
    eventually(lambda: "mtu 9000" in a.ip("link", "show", "eth0"))
    a.run(["sleep", "0.3"])
    rest = client.stop()
    # A frame of 4 KB without the headroom and the Ethernet header.
    assert pick(rest, "route")[-1]["mtu"] == 4096 - 256 - 14


def test_link__sending_goes_on_after_it_was_down(pair) -> None:
    """The same open backend, not a fresh one."""
    a, b = pair
    client = tool.start(a, "--count", "100000000", "--seconds", "60", "ping", b.v4)
    a.ip("link", "set", "eth0", "down")
    a.ip("link", "set", "eth0", "up")
    server = tool.start(b, "--count", "20", "--seconds", "20", "echo")
    assert pick(server.wait(), "stats")[0]["rx_packets"] >= 20
    client.stop()


def tcp_works(a: Namespace, b: Namespace) -> bool:
    start_tcp_echo(b)
    return tcp_echo(a, b.v4, 1000)


def test_neighbour__a_new_address_is_followed(pair) -> None:
    """The peer's network card is replaced while packets flow."""
    a, b = pair
    server = tool.start(b, "echo")
    client = a.start(tool.command(a, "--count", "100000000", "--seconds", "200", "ping", b.v4))
    client.line()
    server.stop()
    b.ip("link", "set", "eth0", "address", "02:00:00:00:00:99")
    a.ip("neigh", "replace", b.v4, "lladdr", "02:00:00:00:00:99", "dev", "eth0")
    server = tool.start(b, "--count", "50", "--seconds", "100", "echo")
    assert pick(server.wait(), "stats")[0]["rx_packets"] >= 50
    client.stop()


def test_neighbour__kept_alive_while_in_use(pair) -> None:
    """Without refresh the entry would stay stale: the kernel never sees this traffic."""
    a, b = pair
    a.run(["sysctl", "-qw", "net.ipv4.neigh.eth0.base_reachable_time_ms=2500",
           "net.ipv4.neigh.eth0.delay_first_probe_time=1"])  # fmt: skip
    server = tool.start(b, "--wait", "block", "echo")
    client = tool.start(
        a, "--count", "100000000", "--seconds", "200", "--wait", "block", "ping", b.v4
    )
    seen: list[str] = []
    looks = 0

    def confirmed_again() -> bool:
        nonlocal looks
        looks += 1
        entry = a.ip("neigh", "show", b.v4).split()
        if entry and entry[-1:] != seen[-1:]:
            seen.append(entry[-1])
        return "STALE" in seen and "REACHABLE" in seen[seen.index("STALE") :]

    try:
        eventually(confirmed_again, 60)
    except AssertionError:
        raise AssertionError(f"seen in {looks} looks: {seen}; {client.stop()}") from None
    client.stop()
    server.stop()
