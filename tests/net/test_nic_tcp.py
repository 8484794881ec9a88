# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP over AF_XDP against the kernel's at the other end: what comes to us, what stays the kernel's, checksums."""

from __future__ import annotations

import os
import signal
import socket
import struct

import pytest
from netns import Namespace, Net, Process, eventually
from nictool import BUILD, Event, Running, pick, xdp_on

PROGRAM = BUILD / "tests" / "net" / "nic_tcp"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]

PORT = 7000
FAMILIES = pytest.mark.parametrize("family", ["v4", "v6"])
MODES = pytest.mark.parametrize("mode", ["1", "2"])

CLIENT = """
import errno, socket, sys
address, port, write, read = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
try:
    s = socket.create_connection((address, port), timeout=20)
    s.sendall(bytes(i % 251 for i in range(write)))
    got = b''
    while len(got) < read and (more := s.recv(65536)):
        got += more
    assert got == bytes(i % 251 for i in range(read)), len(got)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b''
except OSError as e:
    print(errno.errorcode.get(e.errno, str(e)))
    raise SystemExit(1)
"""


def start(space: Namespace, *words: str) -> Running:
    return Running(space.start([str(PROGRAM), "--interface", space.device, *words]))


def client(space: Namespace, address: str, port: int = PORT, write: int = 0, read: int = 0) -> str:
    """Connect with the kernel's TCP, write, read, close: "" if all went well, else the error's name."""
    script = ["/usr/bin/python3", "-c", CLIENT, address, str(port), str(write), str(read)]
    done = space.run(script, check=False, timeout=60)
    assert done.returncode in (0, 1) and not done.stderr, done
    return done.stdout.strip()


def polynomial(data: bytes) -> int:
    value = 0
    for byte in data:
        value = (value * 31 + byte) & 0xFFFFFFFF
    return value


def until(server: Running, name: str) -> Event:
    while True:
        event = server.event()
        if event["event"] == name:
            return event


def listen(space: Namespace, port: int) -> Process:
    """A listener of the kernel that closes each connection when the peer has."""
    script = (
        "import socket\n"
        f"s = socket.create_server(('::', {port}), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    c, _ = s.accept()\n"
        "    while c.recv(65536): pass\n"
        "    c.close()\n"
    )
    process = space.start(["/usr/bin/python3", "-c", script])
    assert process.line() == "ready"
    return process


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


@FAMILIES
def test_port__only_the_claimed_one_is_ours(pair, family: str) -> None:
    a, b = pair
    listen(b, 7001)
    server = start(b, "--port", str(PORT), "serve")
    to = getattr(b, family)
    assert client(a, to) == ""
    assert client(a, to, 7001, write=5000) == ""
    assert client(a, to, 7002) == "ECONNREFUSED"
    assert client(a, to, write=1) == ""
    got = server.stop()
    assert [(e["port"], e["src"], e["dst"]) for e in pick(got, "syn")] == [
        (PORT, getattr(a, family), to)
    ] * 2
    assert pick(got, "stats")[0]["rx_malformed"] == 0


@pytest.mark.parametrize("second", ["10.9.0.20/24", "fd09::20/64"])
def test_address__answers_come_from_the_one_that_was_asked(pair, second: str) -> None:
    a, b = pair
    b.address(second)
    server = start(b, "--port", str(PORT), "serve")
    assert client(a, second.split("/")[0], write=1000) == ""
    server.stop()


@FAMILIES
def test_neighbour__the_first_segment_waits_for_it(pair, family: str) -> None:
    """The kernel at the other end takes the SYN that was kept, so it is whole, its checksum and source included."""
    a, b = pair
    listen(b, 7001)
    process = start(a, "--port", str(PORT), "open", getattr(b, family), "7001")
    got = until(process, "syn")
    assert (got["src"], got["dst"], got["sport"]) == (getattr(b, family), getattr(a, family), 7001)
    assert pick(process.stop(), "stats")[0]["tx_no_neighbour"] >= 1


@FAMILIES
def test_length__what_the_path_does_not_carry_is_told(family: str) -> None:
    with Net() as net:
        a, _router, b = net.routed(far_mtu=1400)
        for size, mtu in ((1439, 1400), (1600, 1500)):
            server = start(
                a, "--port", str(PORT), "--send", str(size), "--size", str(size), "serve"
            )
            script = ["/usr/bin/python3", "-c", CLIENT, getattr(a, family), str(PORT), "0", "1"]
            process = b.start(script)
            got = until(server, "error")
            assert (got["error"], got["mtu"], got["proto"], got["seq"]) == (
                "EMSGSIZE",
                mtu,
                1,
                1001,
            )
            assert (got["src"], got["dst"], got["sport"]) == (
                getattr(a, family),
                getattr(b, family),
                PORT,
            )
            process.stop(signal.SIGKILL)
            server.stop()


@FAMILIES
def test_reset__is_taken_for_true(pair, family: str) -> None:
    a, b = pair
    server = start(b, "--port", str(PORT), "--refuse", "serve")
    assert client(a, getattr(b, family)) == "ECONNREFUSED"
    assert len(pick(server.stop(), "syn")) == 1


@FAMILIES
def test_checksum__a_wrong_one_of_ours_is_noticed(pair, family: str) -> None:
    """Else the other tests would prove nothing about the checksums of what we send."""
    a, b = pair
    server = start(b, "--port", str(PORT), "--bad-sum", "--refuse", "serve")
    process = a.start(["/usr/bin/python3", "-c", CLIENT, getattr(b, family), str(PORT), "0", "0"])

    def wrong() -> int:
        lines = [
            line.split()
            for line in a.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
            if line[:4] == "Tcp:"
        ]
        return int(dict(zip(*lines, strict=True))["InCsumErrors"])

    eventually(wrong)
    assert process.running()  # the reset did not reach it
    process.stop(signal.SIGKILL)
    server.stop()


@MODES
@FAMILIES
@pytest.mark.parametrize("mtu, size", [(1500, 1439), (1500, 1), (9000, 8921), (9000, 4095)])
def test_payload__any_length_any_alignment(family: str, mode: str, mtu: int, size: int) -> None:
    with Net() as net:
        a, b = net.pair(mtu=mtu)
        total = 37 if size == 1 else 20011
        server = start(
            b,
            "--mode",
            mode,
            "--port",
            str(PORT),
            "--send",
            str(total),
            "--size",
            str(size),
            "serve",
        )
        assert client(a, getattr(b, family), read=total) == ""
        server.stop()


def test_units__of_two_segments_before_linux_6_6(pair) -> None:
    """They would fit into a frame of 4 KB, but frames have 2 KB there. The kernel sends them again one by one."""
    a, b = pair
    words = [str(PROGRAM), "--interface", b.device, "--mode", "1", "--port", str(PORT), "serve"]
    server = Running(b.start(["env", f"LD_PRELOAD={PROGRAM.with_name('before_66.so')}", *words]))
    assert client(a, b.v4, write=2900) == ""
    end = until(server, "fin")
    assert (end["bytes"], end["hash"]) == (2900, polynomial(bytes(i % 251 for i in range(2900))))
    assert end["longest"] <= 1460
    server.stop()


@MODES
@FAMILIES
def test_units__what_the_kernel_has_not_cut(pair, family: str, mode: str) -> None:
    a, b = pair
    server = start(b, "--mode", mode, "--port", str(PORT), "serve")
    total = 300_001
    assert client(a, getattr(b, family), write=total) == ""
    end = until(server, "fin")
    assert (end["bytes"], end["hash"]) == (total, polynomial(bytes(i % 251 for i in range(total))))
    stats = pick(server.stop(), "stats")[0]
    if mode == "1":
        assert end["longest"] > 3000 and stats["rx_gro"] > 0, (
            "the peer's kernel cut it: nothing was tested"
        )
    else:
        # veth takes segmentation from the peer of a device with a native program.
        assert end["longest"] <= 1460
    assert stats["rx_malformed"] == stats["rx_checksum"] == stats["rx_dropped"] == 0


def test_units__none_without_segmentation_at_the_peer(pair) -> None:
    """What a user is told to set where units cannot be taken."""
    a, b = pair
    a.run(["ethtool", "-K", "eth0", "tso", "off", "gso", "off"])
    server = start(b, "--mode", "1", "--port", str(PORT), "serve")
    assert client(a, b.v4, write=100_000) == ""
    assert until(server, "fin")["longest"] <= 1460
    server.stop()


@MODES
@FAMILIES
@pytest.mark.parametrize("size, batch", [(1440, 32), (1, 32), (1439, 3), (700, 2)])
def test_units__segments_leave_together(
    pair, family: str, mode: str, size: int, batch: int
) -> None:
    """And nobody but the counter knows: the peer's kernel has every byte."""
    a, b = pair
    total = 63 if size == 1 else 60_013
    words = ["--send", str(total), "--size", str(size), "--batch", str(batch)]
    server = start(b, "--mode", mode, "--port", str(PORT), *words, "serve")
    assert client(a, getattr(b, family), read=total) == ""
    stats = pick(server.stop(), "stats")[0]
    packets = -(-total // size)
    alone = packets % batch == 1
    assert stats["tx_gso"] == packets - alone, "they left one by one"


def test_units__segments_that_cannot_join_cost_no_calls(pair) -> None:
    """They leave by the send ring, 32 with one system call, as on a device that cuts nothing."""
    a, b = pair
    words = ["--send", "60000", "--size", "40", "--batch", "32", "--push"]
    server = start(b, "--port", str(PORT), *words, "serve")
    assert client(a, b.v4, read=60_000) == ""
    stats = pick(server.stop(), "stats")[0]
    assert stats["tx_gso"] == 0 and stats["tx_packets"] >= 1500
    assert stats["syscalls"] < stats["tx_packets"] // 2, stats["syscalls"]


def test_units__device_that_cuts_nothing(pair) -> None:
    a, b = pair
    b.run(["ethtool", "-K", "eth0", "tso", "off"])
    words = ["--send", "60000", "--size", "1440", "--batch", "32"]
    server = start(b, "--port", str(PORT), *words, "serve")
    assert client(a, b.v4, read=60_000) == ""
    assert pick(server.stop(), "stats")[0]["tx_gso"] == 0


@FAMILIES
def test_units__device_that_ceases_to_cut(pair, family: str) -> None:
    """The kernel cuts them then."""
    a, b = pair
    words = ["--send", "60000", "--size", "1440", "--batch", "32"]
    server = start(b, "--port", str(PORT), *words, "serve")
    assert client(a, getattr(b, family), read=60_000) == ""
    b.run(["ethtool", "-K", "eth0", "tso", "off", "tx", "off"])
    assert client(a, getattr(b, family), read=60_000) == ""
    server.stop()


@FAMILIES
def test_units__through_a_router(family: str) -> None:
    with Net() as net:
        a, _router, b = net.routed()
        words = ["--send", "60000", "--size", "1440", "--batch", "32"]
        server = start(a, "--port", str(PORT), *words, "serve")
        assert client(b, getattr(a, family), read=60_000) == ""
        assert pick(server.stop(), "stats")[0]["tx_gso"] > 0


@MODES
def test_units__large_mtu(mode: str) -> None:
    with Net() as net:
        a, b = net.pair(mtu=9000)
        server = start(b, "--mode", mode, "--port", str(PORT), "--size", "8900", "serve")
        assert client(a, b.v4, write=300_001) == ""
        end = until(server, "fin")
        assert end["bytes"] == 300_001 and (mode == "2" or end["longest"] > 10000)
        server.stop()


def test_udp__has_no_tcp(pair) -> None:
    a, _ = pair
    done = a.run([str(PROGRAM), "--backend", "udp", "--port", "7000", "serve"], check=False)
    assert done.returncode == 3 and "EOPNOTSUPP" in done.stdout


@FAMILIES
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_port__ends_with_its_process(pair, family: str, end: int) -> None:
    a, b = pair
    listen(b, PORT)
    server = start(b, "--port", str(PORT), "--refuse", "serve")
    assert client(a, getattr(b, family)) == "ECONNREFUSED"
    server.process.stop(end)
    eventually(lambda: not xdp_on(b))
    assert client(a, getattr(b, family), write=1000) == ""


def test_port__of_a_dead_process_is_not_its_successors() -> None:
    """Another process keeps the program, and with it its maps, alive."""
    with Net() as net:
        a, b = net.pair(queues=2)
        listen(b, PORT)
        other = start(b, "--queue", "1", "--queues", "1", "serve")
        first = start(b, "--queue", "0", "--queues", "1", "--port", str(PORT), "serve")
        first.process.stop(signal.SIGKILL)
        assert xdp_on(b)
        second = start(b, "--queue", "0", "--queues", "1", "--port", "7005", "serve")
        for _ in range(20):
            assert client(a, b.v4) == ""
        assert pick(second.stop(), "syn") == pick(other.stop(), "syn") == []


@pytest.mark.parametrize("queue", [0, 1])
def test_port__of_one_queue_is_not_taken_on_another(queue: int) -> None:
    """Wherever the peer's segments come, somebody answers: who claimed the port, or the kernel."""
    with Net() as net:
        a, b = net.pair(queues=2)
        listen(b, PORT)
        other = start(b, "--queue", str(1 - queue), "--queues", "1", "--port", "7005", "serve")
        mine = start(b, "--queue", str(queue), "--queues", "1", "--port", str(PORT), "serve")
        for _ in range(20):
            assert client(a, b.v4) == ""
        assert pick(other.stop(), "syn") == []
        mine.stop()


def test_program__of_another_version_is_named(pair) -> None:
    """Its name is ours, its maps are not."""
    a, _ = pair
    path = f"/dev/shm/{os.getpid()}-old.o"
    code = '__attribute__((section("xdp"),used)) int homa_xdp(void *c) { return 2; } char l[] __attribute__((section("license"),used)) = "GPL";'
    a.run(["sh", "-c", f"echo '{code}' | clang -target bpf -O2 -x c -c -o {path} -"])
    try:
        a.ip("link", "set", "dev", "eth0", "xdpgeneric", "obj", path, "sec", "xdp")
        done = a.run([str(PROGRAM), "--interface", "eth0", "serve"], check=False)
        assert done.returncode == 3 and "another version" in done.stderr and "EBUSY" in done.stdout
    finally:
        os.unlink(path)


@pytest.mark.parametrize(
    "far, error", [("unreachable", "EHOSTUNREACH"), ("prohibit", "EHOSTUNREACH")]
)
def test_icmp__from_a_router_about_our_segment(far: str, error: str) -> None:
    with Net() as net:
        a, router, _ = net.routed()
        router.ip("route", "add", far, "10.66.0.0/16")
        router.ip("-6", "route", "add", far, "fd66::/16")
        for to, ours in (("10.66.0.1", a.v4), ("fd66::1", a.v6)):
            process = start(a, "--port", "7000", "open", to, "80")
            got = until(process, "error")
            assert got["error"] in (error, "ENETUNREACH")
            assert (got["proto"], got["src"], got["dst"]) == (1, ours, to)
            assert (got["sport"], got["dport"], got["seq"]) == (7000, 80, 1000)
            process.stop()


def test_icmp__about_the_kernels_tcp_is_the_kernels(pair) -> None:
    a, b = pair
    b.run(["sysctl", "-qw", "net.ipv4.icmp_ratelimit=0"])
    b.ip("route", "add", "unreachable", "10.66.0.0/16")
    b.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    a.ip("route", "add", "10.66.0.0/16", "via", b.v4)
    process = start(a, "--port", "7000", "serve")
    assert client(a, "10.66.0.1") == "EHOSTUNREACH"
    got = process.stop()
    assert pick(got, "error") == [] and pick(got, "stats")[0]["icmp_errors"] == 0


def send_raw(space: Namespace, frames: list[bytes]) -> None:
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        "s.bind(('eth0', 0))\n"
        f"for f in {[f.hex() for f in frames]!r}: s.send(bytes.fromhex(f))\n"
    )
    space.run(["/usr/bin/python3", "-c", script])


def ones(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_hostile_segments__are_dropped_counted_or_left_alone(pair) -> None:
    a, b = pair
    server = start(b, "--port", str(PORT), "serve")

    def mac(space: Namespace) -> bytes:
        return bytes.fromhex(
            space.run(["cat", "/sys/class/net/eth0/address"]).stdout.strip().replace(":", "")
        )

    ether = mac(b) + mac(a)

    def frame(
        sum_of: str,
        cut: int = 0,
        fragment: int = 0,
        to: str = "",
        sport: int = 50000,
        body: bytes = b"x" * 5,
    ) -> bytes:
        pair_of = socket.inet_aton(a.v4) + socket.inet_aton(to or b.v4)
        tcp = struct.pack("!HHIIBBHHH", sport, PORT, 1, 0, 0x50, 2, 1000, 0, 0) + body
        tcp = tcp[: len(tcp) - cut]
        pseudo = ones(pair_of + struct.pack("!HH", 6, len(tcp)))
        check = {
            "right": 0xFFFF - ones(struct.pack("!H", pseudo) + tcp),
            "partial": pseudo,
            "zero": 0,
        }[sum_of]
        if len(tcp) >= 18:
            tcp = tcp[:16] + struct.pack("!H", check) + tcp[18:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, fragment, 64, 6, 0) + pair_of
        head = head[:10] + struct.pack("!H", 0xFFFF - ones(head)) + head[12:]
        return ether + b"\x08\x00" + head + tcp

    wrong = [
        frame("zero"),
        frame("right")[:-1] + b"y",
        frame("right", cut=12),
        frame("right", cut=20),
    ]
    passed_on = [
        frame("right", fragment=0x2000),
        frame("right", fragment=1),
        frame("right", to="10.9.0.77"),
        frame("zero", cut=23),
    ]
    send_raw(a, wrong + passed_on)
    send_raw(
        a,
        [
            frame("partial", sport=50001),
            frame("right", sport=50002),
            frame("right", sport=50003, body=b"odd"),
        ],
    )
    got = [until(server, "syn")["sport"] for _ in range(3)]
    assert got == [50001, 50002, 50003]
    stats = pick(server.stop(), "stats")[0]
    assert stats["rx_checksum"] == len(wrong) and stats["rx_malformed"] == 0
