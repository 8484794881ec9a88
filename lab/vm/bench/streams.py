# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""redis, nginx and a server in Go, unmodified, on TCP and on streams over Homa, in one guest.

The network and the load beside them are those of the part w4: three hosts, a switch with eight
priorities, shaped links, virtual time. Over TCP the load is a pool of TCP connections, over Homa
it is Homa's: one transport has the whole network. The client is gohttp, a static program in Go.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from lab import nginx
from lab.net.switch import buffer_bytes
from lab.paths import homa_bench
from lab.vm import Kernel, Missing, VmError, run
from lab.vm.bench import hosts, loads, programs
from lab.vm.bench.loads import Plan

_ADDRESS = "10.9.0.2"
_BOOT_S = 90
_SLOWER = 12  # a virtual second may take so many
MANY = 16
_MARK = "STREAM"
_NGINX = f"""\
mkdir -p /run/ng /run/www
head -c 100 /dev/zero >/run/www/index.html
cat >/run/ng/conf <<'END'
{nginx.configuration("/run/ng", f"{_ADDRESS}:8080", "/run/www", http="keepalive_requests 100000000;")}END
"""


@dataclass(frozen=True)
class Server:
    """A program: `words` start it at `port`, `comm` is its name to the kernel."""

    name: str
    comm: str
    port: int
    words: str
    kind: str = "http"


SERVERS = (
    Server(
        "redis", "redis-server", 6379,
        f"redis-server --port 6379 --bind {_ADDRESS} --save '' --protected-mode no", "redis",
    ),
    Server("nginx", "nginx", 8080, "nginx -c /run/ng/conf"),
    Server("Go", "gohttp", 8081, f"gohttp serve {_ADDRESS}:8081 100"),
)  # fmt: skip
TRANSPORTS = {"tcp": "tcp-pool", "homa": "homa"}


@dataclass
class Streams:
    """(server, transport, "alone" or "beside") → count, p50_us and p99_us of each round; what failed."""

    found: dict[tuple[str, str, str], list[dict[str, float]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def median(self, server: str, transport: str, how: str, value: str) -> float | None:
        """Of a value over the rounds that were measured."""
        rounds = self.found.get((server, transport, how), [])
        return statistics.median(one[value] for one in rounds) if rounds else None


def _load(server: Server, transport: str, how: str, connections: int, seconds: int) -> str:
    said = f"/run/said-{server.comm}"
    return (
        f"if ip netns exec h1 gohttp load {server.kind} {_ADDRESS}:{server.port} {connections} "
        f'{seconds} >{said} 2>&1; then echo "{_MARK} {server.name} {transport} {how} $(cat {said})"\n'
        f'else echo "FAILED {server.name} over {transport}, {how}: $(tail -n 1 {said})"; fi\n'
    )


def _one(plan: Plan, server: Server, transport: str, number: int, seed: int) -> str:
    """The server alone with many connections, then with one beside the load."""
    text = (
        f"(ip netns exec h2 {server.words} >/run/server.log 2>&1 & echo $! >/run/server)\nsleep 1\n"
    )
    text += _load(server, transport, "alone", MANY, 1)
    text += loads.nodes(plan, TRANSPORTS[transport], number, seed)
    # They begin 3 s after their start, and are measured 1 s later.
    text += "sleep 4\n" + _load(server, transport, "beside", 1, int(plan.seconds))
    return text + "wait\nkill $(cat /run/server)\nsleep 1\n"


def script(plan: Plan, module: Path, rounds: int) -> str:
    """What the guest does: all rounds of TCP before the module is there. Without the module or a
    rule it ends, for what followed would be TCP under Homa's name."""
    text = loads.network(plan, buffer_bytes(plan.link_bps)) + _NGINX + "set +e\n"
    number = 0
    for transport in TRANSPORTS:
        if transport == "homa":
            text += hosts.or_end(hosts.load(module), "insmod") + loads.settings(plan)
            for server in SERVERS:
                rule = f"homa-streams on --program {server.comm}"
                text += hosts.or_end(rule, rule)
        for turn in range(rounds):
            for server in SERVERS:
                text += _one(plan, server, transport, number, plan.seed + turn)
                number += 1
    return text


def measure(kernel: Kernel, module: Path, plan: Plan, *, rounds: int) -> Streams:
    """All rounds in one boot."""
    here = [shutil.which(name) or f"/usr/sbin/{name}" for name in ("redis-server", "nginx")]
    for path in here:
        if not Path(path).exists():
            raise Missing(f"{Path(path).name} is not installed")
    streams = homa_bench().parents[1] / "tools/streams/homa-streams"
    with tempfile.TemporaryDirectory() as folder:
        more = (homa_bench(), streams, programs.go_program(Path(folder)), *map(Path, here))
        made = hosts.options(kernel, module, icount=True, memory=1024, programs_too=more)
        runs = rounds * len(SERVERS) * len(TRANSPORTS)
        patience = _BOOT_S + runs * (plan.seconds + 16) * _SLOWER
        result = run(kernel, script(plan, module, rounds), made, patience)
    return _parse(result.output, result.problems)


def _parse(output: str, problems: str) -> Streams:
    """What the guest's lines say."""
    streams = Streams(failed=hosts.parse(output).failed)
    for line in output.splitlines():
        words = line.split(" ", 4)
        if words[0] == _MARK and len(words) == 5:
            key = words[1], words[2], words[3]
            streams.found.setdefault(key, []).append(json.loads(words[4]))
    if problems:
        streams.failed.append(f"the kernel complained: {problems.splitlines()[0]}")
    if not streams.found:
        raise VmError(f"nothing was measured; the guest said:\n{output[-3000:]}")
    return streams
