# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""/metrics: the exposition format, what promtool would say about it, and whether it is true."""

from __future__ import annotations

import re
import resource
import socket
import time
from pathlib import Path

import pytest
from homad import Homad, Host, finishing, needs_homad, needs_root, one_host, two_hosts
from netns import Net, eventually
from ops_tools import ask, scrape, serving, snapshot

pytestmark = [needs_homad, needs_root]

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
Key = tuple[str, tuple[tuple[str, str], ...]]


def parse(text: str) -> dict[Key, float]:
    """Every sample; an AssertionError for whatever the format forbids or promtool complains about."""
    assert text.endswith("\n")
    samples: dict[Key, float] = {}
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    done: set[str] = set()
    present = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, help_text = line[7:].split(" ", 1)
            assert name not in helped and help_text, line
            helped.add(name)
            done.add(present)
            present = name
            assert present not in done, f"{name} is not in one piece"
            continue
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert (
                name == present and name not in kinds and kind in ("counter", "gauge", "histogram")
            ), line
            kinds[name] = kind
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        family = (
            re.sub(r"_(bucket|sum|count)$", "", name) if kinds.get(present) == "histogram" else name
        )
        assert family == present, line
        found = _LABEL.findall(labels or "")
        assert ",".join(f'{k}="{v}"' for k, v in found) == (labels or ""), line
        assert len({k for k, _ in found}) == len(found), line
        key = (name, tuple(found))
        assert key not in samples, line
        samples[key] = float(value)
    for name, kind in kinds.items():
        assert name.startswith("homa_") and name == name.lower(), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert not re.search(r"_(ns|us|ms|kb|kib|mbps|milliseconds)(_|$)", name), (
            f"{name} is not in base units"
        )
    return samples


def check_histogram(samples: dict[Key, float], name: str) -> None:
    buckets = [
        (dict(labels)["le"], value)
        for (n, labels), value in samples.items()
        if n == f"{name}_bucket"
    ]
    bounds = [float(le) for le, _ in buckets]
    assert bounds == sorted(bounds) and buckets[-1][0] == "+Inf" and len(bounds) > 10
    values = [value for _, value in buckets]
    assert values == sorted(values) and values[-1] == samples[f"{name}_count", ()]


def one(samples: dict[Key, float], metric: str, /, **labels: str) -> float:
    """The sum of the samples with these labels."""
    found = [
        v for (n, ls), v in samples.items() if n == metric and labels.items() <= dict(ls).items()
    ]
    assert found, f"no {metric} {labels}"
    return sum(found)


def metrics_at(host: Host) -> Path:
    return host.homad.folder / "metrics.sock"


@pytest.fixture
def host():
    """A host whose homad serves metrics on a UNIX socket."""
    with Net() as net:
        space = net.pair()[0]
        homad = Homad(space)
        homad.arguments = ["--metrics", f"unix:{homad.folder / 'metrics.sock'}"]
        with finishing(homad):
            homad.start()
            yield Host(space, homad)


@pytest.mark.sanitized
def test_format__idle_and_busy(host: Host) -> None:
    status, text, headers = scrape(metrics_at(host))
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    check_histogram(parse(text), "homa_rpc_latency_seconds")
    with serving(host):
        ask(host, host, 200)
        samples = parse(scrape(metrics_at(host))[1])
    check_histogram(samples, "homa_rpc_latency_seconds")
    # Within one host most of them take the short way past the protocol.
    direct = one(samples, "homa_thread_direct_total", thread="0")
    assert one(samples, "homa_requests_sent_total", thread="0") + direct == 200
    assert one(samples, "homa_replies_sent_total") + direct == 200
    assert one(samples, "homa_rpc_latency_seconds_count") == 200
    assert 200 * 1e-6 < one(samples, "homa_rpc_latency_seconds_sum") < 60
    assert one(samples, "homa_app_replies_total", app="1", name="raw") == 200
    assert one(samples, "homa_app_rx_bytes_total", app="1") == 20000
    assert one(samples, "homa_thread_commands_total") >= 400
    assert one(samples, "homa_thread_cpu_seconds_total") > 0
    assert one(samples, "homa_attached_total") == 2


def test_counters__of_the_engine_are_all_there(host: Host) -> None:
    samples = parse(scrape(metrics_at(host))[1])
    for name in snapshot(host.homad)["engine"]:
        assert one(samples, f"homa_{name}_total", thread="0") >= 0


def test_ports__have_counters_by_name(host: Host) -> None:
    samples = parse(scrape(metrics_at(host))[1])
    assert one(samples, "homa_port_rx_packets_total", port="udp", backend="udp") == 0
    assert one(samples, "homa_port_max_incoming_bytes", port="local") > 0


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/metrics/x", 404),
        ("POST", "/metrics", 405),
        ("HEAD", "/metrics", 200),
    ],
)
def test_http__other_requests(host: Host, method: str, url: str, status: int) -> None:
    got, text, _ = scrape(metrics_at(host), url, method)
    assert got == status and (method != "HEAD" or text == "")


@pytest.mark.sanitized
def test_http__nonsense_is_harmless(host: Host) -> None:
    for nonsense in (
        b"\0" * 100,
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"",
    ):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(str(metrics_at(host)))
            try:
                s.sendall(nonsense)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except OSError:
                pass
    assert scrape(metrics_at(host))[0] == 200


def test_http__connections_that_say_nothing_are_given_up(host: Host) -> None:
    """They would otherwise keep Prometheus out."""
    silent = []
    for _ in range(16):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(metrics_at(host)))
        silent.append(s)
    eventually(lambda: _answers(host), 40)
    for s in silent:
        s.close()
    eventually(lambda: _quiet(host), 20)


def _answers(host: Host) -> bool:
    try:
        return scrape(metrics_at(host))[0] == 200
    except OSError:
        return False


def _quiet(host: Host) -> bool:
    before = host.homad.switches()
    time.sleep(1)
    return host.homad.switches() == before


PORT = 9464
# Holds as many connections as it gets, each with a request that never ends.
HOLDS = f"""
import select, socket, time
held = [socket.create_connection(("127.0.0.1", {PORT}), timeout=30) for _ in range(40)]
for turn in range(10**6):
    for one in list(held):
        try:
            one.sendall(b"GET /metrics HTTP/1.1\\r\\nX: " if not turn else b"x")
        except OSError:
            held.remove(one)
    gone, _, _ = select.select(held, [], [], 1)
    held = [one for one in held if one not in gone]
    if turn == 3:
        print(len(held), flush=True)
"""
# Asks many times at once, and says with what each question was answered.
ASKS = f"""
import socket
one = socket.create_connection(("127.0.0.1", {PORT}), timeout=60)
question = b"GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n"
one.sendall((question + b"\\r\\n") * 59 + question + b"Connection: close\\r\\n\\r\\n")
text = b""
while more := one.recv(1 << 20):
    text += more
print(text.count(b"HTTP/1.1 200 "), text.count(b"HTTP/1.1 429 "), flush=True)
"""
# Sends a byte of a request now and then, oftener than homad tries again to accept connections.
TRICKLES = f"""
import socket, time
one = socket.create_connection(("127.0.0.1", {PORT}), timeout=30)
one.sendall(b"GET /metrics HTTP/1.1\\r\\nX: ")
print("ready", flush=True)
while True:
    one.sendall(b"x")
    time.sleep(0.02)
"""
LOOKS = f"""
import urllib.request as u
print(u.urlopen("http://127.0.0.1:{PORT}/metrics", timeout=60).read().decode(), end="")
"""


def by_user(uid: int, script: str) -> list[str]:
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return [*user, "/usr/bin/python3", "-c", script]


@pytest.mark.sanitized
def test_http__a_user_who_holds_connections_keeps_nobody_out() -> None:
    with one_host(arguments=["--metrics", f"127.0.0.1:{PORT}"]) as host:
        greedy = host.start(by_user(1001, HOLDS))
        assert int(greedy.line()) <= 4
        for uid in (0, 1002, 0):
            samples = parse(host.run(by_user(uid, LOOKS)).stdout)
        assert one(samples, "homa_http_refused_total") >= 36
        greedy.stop(9)


@pytest.mark.sanitized
def test_http__users_who_hold_all_connections_make_room_for_another() -> None:
    with one_host(arguments=["--metrics", f"127.0.0.1:{PORT}"]) as host:
        greedy = [host.start(by_user(uid, HOLDS)) for uid in range(1001, 1006)]
        assert sum(int(one.line()) for one in greedy) <= 16
        for uid in (1010, 0):
            parse(host.run(by_user(uid, LOOKS)).stdout)
        for one_of_them in greedy:
            one_of_them.stop(9)


def test_http__a_user_who_asks_without_end_is_told_to_wait() -> None:
    with one_host(arguments=["--metrics", f"127.0.0.1:{PORT}"]) as host:
        answered, refused = map(int, host.run(by_user(1001, ASKS)).stdout.split())
        assert answered >= 10 and refused > 0 and answered + refused == 60
        assert host.run(by_user(0, ASKS)).stdout.split() == ["60", "0"]


def test_http__is_open_again_after_a_lack_of_descriptors() -> None:
    """Whoever sends a byte now and then does not keep it closed."""
    with one_host(arguments=["--metrics", f"127.0.0.1:{PORT}"]) as host:
        slow = host.start(by_user(1001, TRICKLES))
        assert slow.line() == "ready"
        parse(host.run(by_user(0, LOOKS)).stdout)
        pid = host.homad.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, hard))
        looks = host.start(by_user(0, LOOKS))
        time.sleep(1)  # until it has asked; if it has not, nothing is tested
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        status, text, error = looks.wait(90)
        assert status == 0, error
        parse(text)
        slow.stop(9)


def test_loopback_port() -> None:
    with one_host(arguments=["--metrics", "127.0.0.1:9464"]) as host:
        script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode(), end='')"
        samples = parse(host.run(["/usr/bin/python3", "-c", script]).stdout)
        assert one(samples, "homa_build_info", mode="shared") == 1


@pytest.mark.parametrize(
    "place", ["0.0.0.0:9464", "10.9.0.1:9464", "127.0.0.1", "127.0.0.1:0", "unix:", "9464"]
)
def test_other_places__are_refused_with_the_remedy(place: str) -> None:
    with one_host(start=False, arguments=["--metrics", place]) as host:
        host.homad.start(wait=False)
        assert host.homad.wait() != 0
        remedy = f"'{place}' is neither unix:PATH nor a loopback address with a port, such as 127.0.0.1:9464"
        if place == "unix:":
            remedy = "unix: needs a path of at most"
        assert f"metrics: {remedy}" in host.homad.log()


def test_labels__an_applications_name_cannot_break_the_format(host: Host) -> None:
    """Names are the application's: quotes, backslashes, line ends."""
    name = b'a"\\b\nc{}=\x01\xff'
    script = (
        "import socket, struct, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "s.connect(sys.argv[1]);"
        f"s.send(struct.pack('=IHHQHHI16s32s', 0x616d6f48, 1, 1, 0, 0, 0, 0, b'', {name!r}));"
        "print(len(s.recv(4096)), flush=True); time.sleep(600)"
    )
    attached = host.start(["/usr/bin/python3", "-c", script, str(host.homad.socket)])
    attached.line()
    samples = parse(scrape(metrics_at(host))[1])
    assert one(samples, "homa_attachments") == 1
    assert one(samples, "homa_app_rpcs", uid="0") == 0
    attached.stop(9)


def test_sums__both_ends_agree() -> None:
    with two_hosts() as (a, b), serving(b):
        ask(a, b, 100, 500)
        client, server = (snapshot(h.homad)["engine"] for h in (a, b))
        assert (
            client["requests_sent"] == server["requests_received"] == server["replies_sent"] == 100
        )
        assert client["responses_taken"] == 100
