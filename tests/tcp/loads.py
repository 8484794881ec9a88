# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Short loads of real programs, each with what proves that the right bytes came out: LOADS[name](server, client, folder)."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from netns import Process
from postgres import PROGRAMS, Database, folder_of_nobody
from ways import PATIENCE, Side, port

from lab.nginx import configuration

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MEGA4 = random.Random(31).randbytes(4_000_000)


def await_listener(client: Side, address: str, number: int) -> None:
    client.run([PYTHON, HERE / "peers.py", "await", address, number])


def redis(server: Side, client: Side, folder: Path) -> None:
    """Values come back as they were set; as many requests of redis-benchmark count as were made."""
    number = port()
    process = server.start(["redis-server", "--bind", server.v4, "--port", number, "--save", "",
                            "--protected-mode", "no", "--dir", folder])  # fmt: skip
    await_listener(client, server.v4, number)
    where = f"-h {server.v4} -p {number}"
    keys = range(100)
    values = {k: hashlib.sha256(str(k).encode()).hexdigest() * (1 + k) for k in keys}
    script = folder / "script"
    script.write_text(
        "".join(f"SET key{k} {values[k]}\n" for k in keys) + "".join(f"GET key{k}\n" for k in keys)
    )
    said = client.run(["/bin/sh", "-ec", f"redis-cli {where} < {script}"]).stdout.split()
    assert said == ["OK"] * len(keys) + [values[k] for k in keys]
    for more in ("-n 1000 -c 20", "-n 1600 -c 8 -P 16"):
        client.run(["/bin/sh", "-ec", f"redis-benchmark {where} -t get,incr --csv {more}"])
    count = client.run(["/bin/sh", "-ec", f"redis-cli {where} GET counter:__rand_int__"]).stdout
    assert count.strip() == "2600"
    assert process.running()
    assert process.stop()[0] == 0


def memcached(server: Side, client: Side, folder: Path) -> None:
    """Values of 1 byte to 500 kB over eight connections."""
    del folder
    number = port()
    process = server.start(
        ["memcached", "-u", "root", "-l", server.v4, "-p", number, "-U", 0, "-t", 2]
    )
    await_listener(client, server.v4, number)
    assert client.run([PYTHON, HERE / "peers.py", "memcached", server.v4, number]).stdout == "ok\n"
    assert process.running()
    process.stop()


def curl(server: Side, client: Side, folder: Path) -> None:
    """4 MB from Python's HTTP server, three times at once."""
    number = port()
    (folder / "big").write_bytes(MEGA4)
    process = server.start(
        [PYTHON, "-m", "http.server", "--bind", server.v4, "--directory", folder, number]
    )
    await_listener(client, server.v4, number)
    url = f"http://{server.v4}:{number}/big"
    into = [word for i in range(3) for word in ("-o", f"{folder}/got{i}", url)]
    client.run(["curl", "-sSf", "--no-progress-meter", "--parallel", "--parallel-immediate", *into])
    assert all((folder / f"got{i}").read_bytes() == MEGA4 for i in range(3))
    assert process.running()
    process.stop()


def iperf3(server: Side, client: Side, folder: Path) -> None:
    """8 MB each way at once: what was sent is what was received."""
    del folder
    number = port()
    process = server.start(["iperf3", "-s", "-1", "-B", server.v4, "-p", number, "--forceflush"])
    while "Server listening" not in process.line(PATIENCE):
        pass
    told = json.loads(
        client.run(["iperf3", "-J", "-c", server.v4, "-p", number, "-n", "8M", "--bidir"]).stdout
    )
    assert "error" not in told, told
    assert told["end"]["sum_received"]["bytes"] > 0, told["end"]
    assert told["end"]["sum_received_bidir_reverse"]["bytes"] > 0, told["end"]
    assert process.wait(PATIENCE)[0] == 0


def asyncio(server: Side, client: Side, folder: Path) -> None:
    """Python's event loop: 50 streams at once, a half close each; then a reset and a time-out."""
    del folder
    number = port()
    process = server.start([PYTHON, HERE / "peers.py", "serve", server.v4, number])
    assert process.line(PATIENCE) == "ready"
    assert client.run([PYTHON, HERE / "peers.py", "talk", server.v4, number]).stdout == "ok\n"
    assert process.running(), process.stderr.rest(5)
    process.stop()


NODE_SERVER = """
require('net').createServer({allowHalfOpen: true}, (one) => one.pipe(one))
  .listen(+process.argv[2], process.argv[1], () => console.log('ready'));
"""
NODE_CLIENT = """
const net = require('net'), {createHash, randomBytes} = require('crypto');
let left = 20;
for (let i = 0; i < 20; i++) {
  const sent = randomBytes(200000), got = [];
  const one = net.connect({host: process.argv[1], port: +process.argv[2], allowHalfOpen: true}, () => one.end(sent));
  one.on('data', (bytes) => got.push(bytes));
  one.on('end', () => {
    if (!Buffer.concat(got).equals(sent)) throw new Error('other bytes');
    if (!--left) console.log('ok');
  });
}
"""


def node(server: Side, client: Side, folder: Path) -> None:
    """Node's event loop: 20 streams at once, echoed by pipe()."""
    del folder
    number = port()
    process = server.start(["node", "-e", NODE_SERVER, server.v4, number])
    assert process.line(PATIENCE) == "ready"
    assert client.run(["node", "-e", NODE_CLIENT, server.v4, number]).stdout == "ok\n"
    assert process.running(), process.stderr.rest(5)
    process.stop()


def _nginx(server: Side, client: Side, folder: Path) -> tuple[Process, str]:
    """nginx with two files in `folder`, and its URL."""
    number = port()
    (folder / "big").write_bytes(MEGA4)
    (folder / "small").write_text("hello\n" * 100)
    config = folder / "nginx.conf"
    config.write_text(
        configuration(
            folder,
            f"{server.v4}:{number}",
            folder,
            workers=2,
            http="sendfile on;",
        )
    )
    process = server.start(["nginx", "-c", config])
    await_listener(client, server.v4, number)
    return process, f"http://{server.v4}:{number}"


def nginx(server: Side, client: Side, folder: Path) -> None:
    """4 MB to curl, then small pages to 20 connections at once, kept and not; no answer is wrong."""
    process, url = _nginx(server, client, folder)
    client.run(["curl", "-sSf", "-o", folder / "got", f"{url}/big"])
    assert (folder / "got").read_bytes() == MEGA4
    for keep in ("-k", ""):
        words = ["ab", "-q", "-n", 500, "-c", 20, *([keep] if keep else []), f"{url}/small"]
        told = client.run(words).stdout
        assert "Complete requests:      500" in told, told
        assert "Failed requests:        0" in told, told
    assert process.running()
    assert process.stop()[0] == 0


def wrk(server: Side, client: Side, folder: Path) -> None:
    """Small pages of nginx to wrk's ten connections; no answer is wrong."""
    process, url = _nginx(server, client, folder)
    told = client.run(["wrk", "-t", 1, "-c", 10, "-d", "1s", f"{url}/small"]).stdout
    assert "requests in" in told, told
    assert "Socket errors" not in told and "Non-2xx" not in told, told
    assert process.running()
    assert process.stop()[0] == 0


HAPROXY = """
global
  nbthread 2
  maxconn 500
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend front
  bind {front}
  default_backend back
backend back
  server one {back}
"""


def haproxy(server: Side, client: Side, folder: Path) -> None:
    """A proxy of two threads before Python's web server, on one host: 4 MB, then small pages."""
    ends = {name: f"{server.v4}:{port()}" for name in ("front", "back")}
    (folder / "big").write_bytes(MEGA4)
    (folder / "small").write_text("hello\n" * 100)
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(**ends))
    behind = [PYTHON, "-m", "http.server", "--bind", server.v4]
    web = server.start([*behind, "--directory", folder, ends["back"].split(":")[1]])
    proxy = server.start(["haproxy", "-db", "-f", config])
    for end in ends.values():
        await_listener(client, *end.split(":"))
    url = f"http://{ends['front']}"
    client.run(["curl", "-sSf", "-o", folder / "got", f"{url}/big"])
    assert (folder / "got").read_bytes() == MEGA4
    for keep in ("-k", ""):
        words = ["ab", "-q", "-n", 300, "-c", 20, *([keep] if keep else []), f"{url}/small"]
        told = client.run(words).stdout
        assert "Complete requests:      300" in told, told
        assert "Failed requests:        0" in told, told
    assert proxy.running() and web.running()
    proxy.stop()
    web.stop()


def openssl(server: Side, client: Side, folder: Path) -> None:
    """4 MB from s_server to s_client, encrypted."""
    number = port()
    (folder / "big").write_bytes(MEGA4)
    made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -days 2 -keyout key -out cert"
    server.space.run(["/bin/sh", "-ec", f"cd {folder}; {made}"])
    serve = f"exec openssl s_server -quiet -WWW -accept {server.v4}:{number} -key key -cert cert"
    process = server.start(["/bin/sh", "-ec", f"cd {folder}; {serve}"])
    await_listener(client, server.v4, number)
    ask = "printf 'GET /big HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet"
    into = f"> {folder}/got 2> {folder}/said"
    client.run(["/bin/sh", "-ec", f"{ask} -connect {server.v4}:{number} {into}"])
    assert (folder / "got").read_bytes().partition(b"\r\n\r\n")[2] == MEGA4
    assert process.running()
    process.stop()


def postgresql(server: Side, client: Side, folder: Path) -> None:
    """pgbench with four clients, also with a new connection for each transaction; each counts once."""
    del folder
    with folder_of_nobody() as place:
        database = Database(server, client, place)
        database.bench("-q -i -s 1")
        assert "actually processed: 200/200" in database.bench("-n -c 4 -j 2 -t 50")
        assert "actually processed: 20/20" in database.bench("-n -C -c 2 -j 2 -t 10")
        database.right(220)
        assert database.process.running()
        database.process.stop()


Load = Callable[[Side, Side, Path], None]
LOADS: dict[str, Load] = {
    f.__name__: f
    for f in (
        redis,
        memcached,
        nginx,
        wrk,
        haproxy,
        postgresql,
        curl,
        iperf3,
        openssl,
        asyncio,
        node,
    )
}
_PROGRAMS = {
    "redis": ("redis-server", "redis-cli", "redis-benchmark"),
    "memcached": ("memcached",),
    "nginx": ("nginx", "ab", "curl"),
    "wrk": ("nginx", "wrk"),
    "haproxy": ("haproxy", "ab", "curl"),
    "postgresql": (),
    "openssl": ("openssl",),
    "curl": ("curl",),
    "iperf3": ("iperf3",),
    "asyncio": (),
    "node": ("node",),
}


def missing(name: str) -> str:
    """Programs of this load that are not installed; "": none."""
    if name == "postgresql" and not PROGRAMS:
        return name
    return ", ".join(p for p in _PROGRAMS[name] if not shutil.which(p, path=PATH))
