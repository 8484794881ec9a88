# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs under homa-run, with homad at both ends: how connections end, programs that run others, signal
handlers, numbers that cannot be, calls that give up."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_calls
import test_echo
from ops_tools import snapshot
from ways import BUILD, CONFIG, PROGRAMS, Side, opened, port, two_sides

FLOWS = BUILD / "bench" / "flows" / "homa-flows"
SHARED_PORTS = ["reuseport", "reuseport_closed", "reuseport_workers"]
SUBJECTS = (
    "again",
    "ends",
    "epoll",
    "exec",
    "fork",
    "handlers",
    "numbers",
    "room",
    "sets",
    "spawns",
    "splice",
    "wakes",
)
CASES = [
    case
    for subject in SUBJECTS
    for case in re.findall(
        r"TCP_CASE\((\w+)\)", (test_calls.HERE / "programs" / f"{subject}.c").read_text()
    )
] + [
    "accept_timeout",
    "called_by_number",
    "connect_again_waits",
    "interrupted",
    "looks_with_signals",
    "no_address",
    "path_mtu",
    "peek_offset",
    "receive_signalled",
    "waits_in_vain",
    "exec_cat",
    "exec_inherits",
    "send_connection",
    "send_flags",
    "send_listener",
    "spawn",
    "splice",
    "timeouts",
    *SHARED_PORTS,
]

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "tcp_calls").exists(), reason="tcp_calls is not built"
)


@pytest.fixture(scope="module")
def accelerated() -> Iterator[tuple[Side, Side]]:
    with two_sides("homad") as sides:
        yield sides


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, accelerated: tuple[Side, Side], tmp_path: Path) -> None:
    test_calls.test_calls(case, "v4", accelerated, tmp_path)


# How connections end is not the kernel's affair there, and no packet's.
ENDS = [
    case
    for subject in ("ends", "reset", "close")
    for case in re.findall(
        r"TCP_CASE\((\w+)\)", (test_calls.HERE / "programs" / f"{subject}.c").read_text()
    )
]
WITHIN = [
    case for case in CASES if case.startswith(("fork_", "reuseport", "room_", "send_", "splice"))
] + [
    "tcp_info",
    *ENDS,
]


def test_reset_while_taken__buffers_that_do_not_grow(tmp_path: Path) -> None:
    """Whoever waits for room for a while is sure to wait when the peer ends the connection."""
    small = CONFIG + "[tcp]\nreceive_buffer = 4096\nsend_buffer = 4096\n"
    with two_sides("homad", small) as sides:
        test_calls.test_calls("reset_while_taken", "v4", sides, tmp_path)


@pytest.mark.parametrize("case", WITHIN)
def test_case__within_a_host(case: str, accelerated: tuple[Side, Side], tmp_path: Path) -> None:
    server = accelerated[0]
    test_calls.test_calls(case, "v4", (server, server), tmp_path)


def test_bulk__segments_leave_together(accelerated: tuple[Side, Side]) -> None:
    """The device cuts them; the counter says that this fast way was taken."""
    server, client = accelerated
    names = ("nic_tx_gso", "nic_tx_packets")

    def sent() -> list[int]:
        (one,) = (p for p in snapshot(server.homad)["ports"] if p["name"] == "eth0")
        return [one["nic"][name] for name in names]

    before = sent()
    words = ["--mode", "receive", "--size", "65536", "--duration", "0.2"]
    ends = [server.v4, str(port()), *words]
    serving = server.start([FLOWS, "server", *ends])
    client.run([FLOWS, "client", *ends])
    serving.stop()
    joined, packets = (now - then for now, then in zip(sent(), before, strict=True))
    assert joined > packets // 2 > 100, (joined, packets)


def test_echo__in_a_set_within_a_set(accelerated: tuple[Side, Side]) -> None:
    test_echo.test_server__waits_in_all_ways("nested", "v4", accelerated)


def test_io_uring__is_denied(accelerated: tuple[Side, Side]) -> None:
    """Else the kernel would serve sockets that are homad's. An instruction in the program is not reached."""
    server = accelerated[0]
    assert server.run([PROGRAMS / "tcp_uring"]).stdout == "ENOSYS\n"
    by_kernel = server.space.run([str(PROGRAMS / "tcp_uring")]).stdout
    assert server.run([PROGRAMS / "tcp_uring", "raw"]).stdout == by_kernel


def test_io_uring__is_the_kernels_without_homad(accelerated: tuple[Side, Side]) -> None:
    """All TCP is the kernel's then, too."""
    server = accelerated[0]
    by_kernel = server.space.run([str(PROGRAMS / "tcp_uring")]).stdout
    words = server.words([PROGRAMS / "tcp_uring"])
    lost = [w if not w.startswith("HOMA_SERVICE_SOCKET=") else f"{w}.gone" for w in words]
    assert lost != words
    assert server.space.run(lost).stdout == by_kernel


def test_allocator__that_initialises_itself_before_our_constructor(
    accelerated: tuple[Side, Side],
) -> None:
    """What is not found in the C library must not be looked for meanwhile: redis did not start."""
    assert accelerated[0].run([PROGRAMS / "tcp_allocator"]).stdout == "ok\n"


NODE = """
const net = require('net'), fs = require('fs'), dns = require('dns');
const [host, port] = process.argv.slice(1);
const server = net.createServer(one => one.pipe(one)).listen(+port, host, () => {
  const client = net.connect(+port, host, () => client.end('x'.repeat(100000)));
  let got = 0;
  client.on('data', piece => got += piece.length);
  client.on('end', () => {
    server.close();
    fs.promises.readFile('/proc/self/stat').then(() => console.log('echoed', got));
  });
});
"""


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_node__that_would_use_io_uring(accelerated: tuple[Side, Side]) -> None:
    server = accelerated[0]
    done = server.run(["env", "UV_USE_IO_URING=1", "node", "-e", NODE, server.v4, port()])
    assert done.stdout == "echoed 100000\n"


DESTROY = """
const net = require('net');
const [host, port] = process.argv.slice(1);
const server = net.createServer(one => one.destroy()).listen(+port, host, () => {
  const client = net.connect(+port, host);
  client.on('close', () => { console.log('closed'); server.close(); }).on('error', () => {}).resume();
});
"""


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_node__that_destroys_a_connection(accelerated: tuple[Side, Side]) -> None:
    """It closes descriptors by the number of the call."""
    server = accelerated[0]
    done = server.run(["timeout", "30", "node", "-e", DESTROY, server.v4, port()])
    assert done.stdout == "closed\n"


# Options that homad does not know: level, number and value, as Linux has them.
KERNELS = {
    "mark": "1, 36, 1",
    "device": "1, 25, b'eth0'",
    "least_ttl": "0, 21, 1",
    "least_hops": "41, 73, 1",
    "filter": "1, 26, struct.pack('HP', 1, ctypes.addressof(take_all))",
}
ONE = """
import ctypes, socket, struct, sys
what, option, host, port = sys.argv[1:]
take_all = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 1 << 18))
def set_it(s):
    try:
        s.setsockopt(*eval(option))
    except OSError as e:
        return e.errno
s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if what.endswith('before'):
    assert set_it(s) is None
if what.startswith('serve'):
    s.bind((host, int(port)))
    s.listen()
    print('ready', flush=True)
    one, _ = s.accept()
else:
    s.connect((host, int(port)))
    one = s
one.sendall(b'x')
assert one.recv(1) == b'x'
if not what.endswith('before'):
    print(set_it(s))
"""


@pytest.mark.parametrize("option", KERNELS)
@pytest.mark.parametrize("role", ["serve", "connect"])
def test_option__that_only_the_kernel_knows(
    option: str, role: str, accelerated: tuple[Side, Side]
) -> None:
    """The socket stays the kernel's, which does what the option says; of homad's sockets it is refused."""
    server, client = accelerated
    address = server.v6 if option == "least_hops" else server.v4
    for when in ("before", "after"):
        before = [opened(server)[1], opened(client)[0]]
        place = [KERNELS[option], address, port()]
        whats = {name: f"{name} {when if name == role else ''}" for name in ("serve", "connect")}
        serving = server.start(["python3", "-c", ONE, whats["serve"], *place])
        assert serving.line(60) == "ready", serving.wait(10)
        told = [client.run(["python3", "-c", ONE, whats["connect"], *place]).stdout]
        status, said, _ = serving.wait(60)
        assert status == 0
        told.insert(0, said)
        by_kernel = [opened(server)[1] - before[0], opened(client)[0] - before[1]]
        mine = 0 if role == "serve" else 1
        assert by_kernel[mine] == (when == "before"), by_kernel
        assert not by_kernel[1 - mine], by_kernel
        if when == "after":
            assert told[mine].split()[-1] == str(errno.EOPNOTSUPP)
