# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs of others, as the distribution has them: their results must be right.

Each is skipped with a reason where it is not installed (packaging/dependencies, [optional]).
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path

import pytest
from netns import eventually
from ways import PATIENCE, Side, opened, port

from lab import nginx

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
MEGA10 = random.Random(13).randbytes(10_000_000)

Hosts = tuple[Side, Side]


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [p for p in programs if not shutil.which(p, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def await_listener(client: Side, address: str, number: int) -> None:
    """Wait until somebody accepts connections there."""
    client.run([PYTHON, HERE / "peers.py", "await", address, number])


def sh(command: str) -> list[str]:
    return ["/bin/sh", "-ec", command]


@pytest.fixture
def big(tmp_path: Path) -> Path:
    path = tmp_path / "big"
    path.write_bytes(MEGA10)
    return path


@needs("redis-server", "redis-cli", "redis-benchmark")
def test_redis(hosts: Hosts, tmp_path: Path) -> None:
    """Thousands of requests by redis-benchmark, also pipelined; values come back as they were set."""
    server, client = hosts
    number = port()
    process = server.start(["redis-server", "--bind", server.v4, "--port", number, "--save", "",
                            "--protected-mode", "no", "--dir", tmp_path])  # fmt: skip
    await_listener(client, server.v4, number)
    where = f"-h {server.v4} -p {number}"
    keys = range(300)
    values = {k: hashlib.sha256(str(k).encode()).hexdigest() * (1 + k % 100) for k in keys}
    script = tmp_path / "script"
    script.write_text(
        "".join(f"SET key{k} {values[k]}\n" for k in keys) + "".join(f"GET key{k}\n" for k in keys)
    )
    said = client.run(sh(f"redis-cli {where} < {script}")).stdout.split()
    assert said == ["OK"] * len(keys) + [values[k] for k in keys]
    for more in ("-n 2000 -c 50", "-n 4800 -c 20 -P 16 -d 1000"):
        told = client.run(
            sh(f"redis-benchmark {where} -t set,get,incr,lpush,lrange_100 --csv {more}")
        )
        assert len([line for line in told.stdout.splitlines() if line.count('","') >= 7]) >= 5, (
            told.stdout
        )
    assert client.run(sh(f"redis-cli {where} GET counter:__rand_int__")).stdout.strip() == "6800"
    assert process.running()
    assert process.stop()[0] == 0


@needs("memcached")
def test_memcached(hosts: Hosts) -> None:
    server, client = hosts
    number = port()
    process = server.start(
        ["memcached", "-u", "root", "-l", server.v4, "-p", number, "-U", 0, "-t", 2]
    )
    await_listener(client, server.v4, number)
    assert client.run([PYTHON, HERE / "peers.py", "memcached", server.v4, number]).stdout == "ok\n"
    assert process.running()
    process.stop()


@needs("nginx", "curl", "ab")
@pytest.mark.parametrize(("sendfile", "listen"), [("on", ""), ("off", "reuseport")])
def test_nginx(hosts: Hosts, tmp_path: Path, big: Path, sendfile: str, listen: str) -> None:
    """Two workers; 10 MB to curl, 2,000 requests of 20 connections by ab, a reload meanwhile."""
    server, client = hosts
    number = port()
    (tmp_path / "small").write_text("hello\n" * 100)
    config = tmp_path / "nginx.conf"
    config.write_text(
        nginx.configuration(
            tmp_path,
            f"{server.v4}:{number} {listen}",
            tmp_path,
            workers=2,
            http=f"sendfile {sendfile};",
        )
    )
    process = server.start(["nginx", "-c", config])
    await_listener(client, server.v4, number)
    url = f"http://{server.v4}:{number}"

    def fetch() -> None:
        client.run(["curl", "-sSf", "-o", tmp_path / "got", f"{url}/big"])
        assert (tmp_path / "got").read_bytes() == MEGA10

    fetch()
    for keep in ("-k", ""):
        told = client.run(sh(f"ab -q -n 1000 -c 20 {keep} {url}/small")).stdout
        assert "Complete requests:      1000" in told, told
        assert "Failed requests:        0" in told, told
    server.run(["nginx", "-c", config, "-s", "reload"])
    fetch()
    assert process.running()
    status, _, said = process.stop()
    assert status == 0, said


def kill(side: Side, signal: str, pid: int) -> None:
    side.space.run(["kill", f"-{signal}", str(pid)])


def other_than(pid: Path, old: int) -> int:
    """The process that the file names, if it is there and names another one; else 0."""
    try:
        text = pid.read_text().strip()
    except FileNotFoundError:  # nginx gives it another name while it changes its binary
        text = ""
    return int(text) if text and int(text) != old else 0


def runs(pid: int) -> bool:
    """Nobody need wait for it: then it has ended, but is still there."""
    words = Path(f"/proc/{pid}/cmdline")
    return words.exists() and words.read_bytes() != b""


@needs("nginx", "ab")
def test_nginx__upgrades_its_binary(hosts: Hosts, tmp_path: Path) -> None:
    """SIGUSR2 and SIGQUIT while 20 connections at a time ask: no request fails, and the new master serves."""
    server, client = hosts
    number, pid = port(), tmp_path / "nginx.pid"
    (tmp_path / "small").write_text("hello\n" * 100)
    config = tmp_path / "nginx.conf"
    # nginx clears the environment of what it runs but for what it is told to keep.
    text = nginx.configuration(
        tmp_path, f"{server.v4}:{number} backlog=1024", tmp_path, workers=2, http="sendfile on;"
    )
    config.write_text("env LD_PRELOAD;" + text.replace("daemon off", "daemon on"))
    # By its whole path: it does not look for its new binary in PATH.
    server.run([shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-c", config])
    await_listener(client, server.v4, number)
    accepted = opened(server)[1]
    old = int(pid.read_text())
    run = f"ab -q -n 500 -c 20 http://{server.v4}:{number}/small"
    load = client.start(sh(f"{run}; touch {tmp_path}/began; "
                           f"while [ ! -e {tmp_path}/enough ]; do {run}; done; {run}"))  # fmt: skip
    try:
        eventually((tmp_path / "began").exists, 30)
        kill(server, "USR2", old)
        eventually(lambda: other_than(pid, old), 30)
        kill(server, "QUIT", old)
        eventually(lambda: not runs(old), 30)
    finally:
        (tmp_path / "enough").touch()
        told = load.wait(PATIENCE)
        for master in {old, other_than(pid, old)}:
            if master and runs(master):
                kill(server, "TERM", master)
    assert told[0] == 0, told
    done = told[1].count("Complete requests:      500\n")
    assert done >= 3, told[1]
    assert told[1].count("Failed requests:        0\n") == done, told[1]
    assert "Non-2xx" not in told[1], told[1]
    assert "emerg" not in (tmp_path / "error.log").read_text()
    if server.homad:
        assert opened(server)[1] == accepted, "the kernel has accepted some"


@needs("iperf3")
@pytest.mark.parametrize("direction", ["", "--reverse", "--bidir"])
def test_iperf3(hosts: Hosts, direction: str) -> None:
    """A second each way; what was sent was received."""
    server, client = hosts
    number = port()
    process = server.start(["iperf3", "-s", "-1", "-B", server.v4, "-p", number, "--forceflush"])
    while "Server listening" not in process.line(PATIENCE):
        pass
    words = [
        "iperf3",
        "-J",
        "-c",
        server.v4,
        "-p",
        number,
        "-t",
        1,
        *([direction] if direction else []),
    ]
    told = json.loads(client.run(words).stdout)
    assert "error" not in told, told
    for name, end in told["end"].items():
        if name.startswith("sum_received"):
            assert end["bytes"] > 0, told["end"]
    assert process.wait(PATIENCE)[0] == 0


def test_asyncio(hosts: Hosts) -> None:
    """Python's event loop: 50 streams at once, then a reset, a half close, a time-out."""
    server, client = hosts
    number = port()
    process = server.start([PYTHON, HERE / "peers.py", "serve", server.v4, number])
    assert process.line(PATIENCE) == "ready"
    assert client.run([PYTHON, HERE / "peers.py", "talk", server.v4, number]).stdout == "ok\n"
    assert process.running(), process.stderr.rest(5)
    process.stop()


@needs("openssl")
def test_openssl(hosts: Hosts, tmp_path: Path, big: Path) -> None:
    """10 MB from s_server to s_client, encrypted."""
    server, client = hosts
    number = port()
    made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -days 2 -keyout key -out certificate"
    server.run(sh(f"cd {tmp_path}; {made}"))
    where = f"{server.v4}:{number}"
    process = server.start(sh(f"cd {tmp_path}; exec openssl s_server -quiet -WWW -accept {where} -key key -cert certificate"))  # fmt: skip
    await_listener(client, server.v4, number)
    ask = (
        f"printf 'GET /{big.name} HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -connect {where}"
    )
    client.run(sh(f"{ask} > {tmp_path}/got 2> {tmp_path}/said"))
    head, _, body = (tmp_path / "got").read_bytes().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200")
    assert body == MEGA10
    assert process.running()
    process.stop()
