# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Instructions of a whole guest for each 64 B echo over TCP: the kernel's, and homad's.

Two namespaces, joined by a veth pair, in which the same homa-flows runs over the kernel's TCP, with a
homad in each namespace, and with a homad at the server alone. One processor on counted instructions
does all of it. It has always something to do in the measured window, or the count of its halts says
how often not, so every instruction that it executes there was needed for the requests that were
answered there.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from lab.net import homad
from lab.paths import BUILD, ROOT, homa_flows
from lab.vm import Kernel, Options, VmError, initramfs, run
from lab.vm.bench import hosts, programs, symbols
from lab.vm.bench.profile import Section, sections
from lab.vm.bench.programs_at import Mapping, Programs
from lab.vm.bench.symbols import Symbols

# Each way with the hosts at which homad runs: c is the client's, s the server's.
WAYS = {"kernel": "", "homad": "c s", "server": "s"}
CONNECTIONS = 16
SIZE = 64
WINDOW_S = 0.2  # of virtual time: 200 million instructions
_WARMUP_S = 0.2
_PORT = 10000
_BOOT_S = 90
_RUN_S = 40  # the longest that one may take on a busy machine, for each WINDOW_S
_LIBRARY = "libhoma-preload.so"
_CONFIG = """
[[tcp_rule]]
listen = [10000, 29999]
connect = [10000, 29999]
"""
_NETWORK = f"""{hosts.namespaces()}ip link add eth0 netns c type veth peer name eth0 netns s
ip -n c addr add {hosts.CLIENT}/24 dev eth0
ip -n s addr add {hosts.SERVER}/24 dev eth0
ip -n c link set eth0 up
ip -n s link set eth0 up
export HOMA_VIA=service
"""
# Each process runs copies of its files, so that its code is known from that of others; busybox's env
# is static, so it does not run them before. homad is ready when its socket is there. What is told of
# a process's memory is its code.
_FUNCTIONS = f"""
own() {{
	rm -rf /run/own-$1
	mkdir /run/own-$1
	cp "$(which $2)" /homa/lib/* /run/own-$1
}}
start() {{
	own homad-$1 homad
	ip netns exec $1 busybox env LD_LIBRARY_PATH=/run/own-homad-$1 \
		/run/own-homad-$1/homad --config /homa/homad.toml --socket /run/$1.sock \\
		--monitor /run/$1.monitor >/run/$1.log 2>&1 &
	echo $! >/run/homad-$1.pid
	for turn in $(seq 100); do [ -S /run/$1.sock ] && break; sleep 0.1; done
	[ -S /run/$1.sock ] || {{ echo "FAILED homad: $(tail -n 1 /run/$1.log)"; exit 1; }}
}}
stop() {{
	kill $(cat /run/homad-$1.pid)
	while [ -e /proc/$(cat /run/homad-$1.pid) ]; do sleep 0.1; done
	rm -f /run/$1.sock /run/homad-$1.pid
}}
at() {{
	host=$1; own=/run/own-$2; shift 2
	run=; [ -e /run/homad-$host.pid ] && run="homa-run --tcp"
	HOMA_SERVICE_SOCKET=/run/$host.sock HOMA_PRELOAD_LIB=$own/libhoma-preload.so \
		exec ip netns exec $host $run busybox env LD_LIBRARY_PATH=$own $own/homa-flows "$@"
}}
code() {{
	awk -v label=$1 -v role=$2 '$2 ~ /x/ {{print "CODE", label, role, $1, $3, $6}}' /proc/$3/maps
}}
echoes() {{
	own client homa-flows
	own server homa-flows
	(at s server server {hosts.SERVER} $2) >/run/server.log 2>&1 & server=$!
	sleep 1
	(at c client client {hosts.SERVER} $2 --connections {CONNECTIONS} --size {SIZE} \\
		--warmup {_WARMUP_S} --duration $3 --json /run/result) >/run/client.log 2>&1 & client=$!
	sleep 0.1
	code $1 client $client >/run/code
	code $1 server $server >>/run/code
	for h in c s; do
		[ ! -e /run/homad-$h.pid ] || code $1 homad-$h $(cat /run/homad-$h.pid) >>/run/code
	done
	if wait $client; then
		cat /run/code
		echo "RESULT $1 $(tr -d '\\n' </run/result)"
	else
		echo "FAILED $1: $(tail -n 1 /run/client.log)"
		exit 1
	fi
	kill $server; wait $server || true
}}
"""


@dataclass
class Echo:
    """One window: its way and round, how many were answered, and what was executed."""

    way: str
    number: int
    requests: int
    section: Section
    mappings: list[Mapping]

    @property
    def each(self) -> float:
        """Instructions for each request."""
        return (self.section.kernel + self.section.user) / self.requests


@dataclass
class Echoes:
    """A boot."""

    found: list[Echo]
    symbols: Symbols
    programs: Programs
    failed: list[str] = field(default_factory=list)

    def of(self, way: str) -> list[Echo]:
        """A way's rounds."""
        return [one for one in self.found if one.way == way]

    def ratios(self, way: str) -> list[float]:
        """Instructions for each request to those over the kernel's TCP, round by round."""
        return [
            mine.each / theirs.each
            for mine, theirs in zip(self.of(way), self.of("kernel"), strict=True)
        ]


def script(rounds: int, window_s: float) -> str:
    """What the guest does. No homad runs while the kernel's TCP is measured."""
    text = _NETWORK + _FUNCTIONS
    port = _PORT
    for number in range(rounds):
        for way, sides in WAYS.items():
            text += "".join(f"start {side}\n" for side in sides.split())
            text += f"sleep 2\nechoes {way}/{number} {port} {window_s}\n"
            text += "".join(f"stop {side}\n" for side in sides.split())
            port += 1
    return text + symbols.SCRIPT


def measure(kernel: Kernel, rounds: int, seconds: float) -> Echoes:
    """All rounds in one boot."""
    own = {"homad": homad.program(), "homa-flows": homa_flows()}
    library = BUILD / "lib" / "preload" / _LIBRARY
    libraries = [Path(path) for path in initramfs.libraries(own["homa-flows"])]
    shared = {path.name: path for path in libraries if path.name == "libc.so.6"}
    shared[_LIBRARY] = library
    files: dict[str, bytes | str | Path] = {"homa/homad.toml": _CONFIG}
    files |= {f"homa/lib/{name}": path for name, path in shared.items()}
    starter = ROOT / "lib" / "preload" / "homa-run"
    with tempfile.TemporaryDirectory(prefix="homa-count-") as folder:
        out = Path(folder) / "counts"
        words = f"{programs.counting_plugin()},out={out},profile=on,programs=on"
        options = Options(
            memory=1024,
            icount=True,
            programs=(*own.values(), starter),
            files=files,
            plugins=(words,),
        )
        patience = _BOOT_S + rounds * len(WAYS) * _RUN_S * max(1.0, seconds)
        result = run(kernel, script(rounds, WINDOW_S * seconds), options, patience)
        found = list(sections(out.read_text().splitlines())) if out.exists() else []
    echoes = _parse(result.output, found, Programs({**own, **shared}))
    if result.problems:
        echoes.failed.append(f"the kernel complained: {result.problems.splitlines()[0]}")
    return echoes


def _parse(output: str, found: list[Section], known: Programs) -> Echoes:
    """Windows by the guest's lines, which have the order of the plugin's."""
    mappings: dict[str, list[Mapping]] = {}
    said: list[tuple[str, int]] = []
    failed = []
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "CODE":
            label, words = rest.split(" ", 1)
            mappings.setdefault(label, []).append(Mapping.parse(words))
        elif kind == "RESULT":
            label, text = rest.split(" ", 1)
            # Also what was asked for before the window opened was answered in it.
            said.append((label, json.loads(text)["bytes"] // SIZE))
        elif kind == "FAILED":
            failed.append(rest)
    if failed or not said or len(said) != len(found):
        raise VmError(
            f"{len(said)} results and {len(found)} counts came out of the guest; it said:\n"
            f"{output[-3000:]}"
        )
    echoes = []
    for (label, requests), section in zip(said, found, strict=True):
        way, number = label.split("/")
        section.rpcs = requests
        echoes.append(Echo(way, int(number), requests, section, mappings[label]))
    return Echoes(echoes, Symbols.from_output(output), known, failed)
