# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Two hosts in a guest, as shell, and what the program there says.

TCP is measured before the module is loaded: what Homa's hooks cost others must not count
against TCP. Settings of TCP are those a careful administrator would choose.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from lab.vm import Kernel, Options, VmError, build, initramfs
from lab.vm.bench import programs

MODULE = "homa/bench/homa.ko"
SERVER = "10.1.0.2"
CLIENT = "10.1.0.1"

# Room for TCP's windows, as a careful administrator would give it.
_TCP = ("net.ipv4.tcp_rmem='4096 131072 16777216'", "net.ipv4.tcp_wmem='4096 131072 16777216'")


def namespaces(*settings: str) -> str:
    """The namespaces c and s, as shell; `settings` are words for sysctl -w in both.

    IPv6 is off so that nothing but the measured speaks. Until its random numbers are ready, a kernel
    mixes them anew for each new slab of memory, 9,000 instructions a time and a twelfth of what a long
    message takes. Reading /dev/random makes them.
    """
    off = [f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default")]
    words = "".join(f"\tip netns exec $h sysctl -q -w {word}\n" for word in (*off, *settings))
    return f"""
set -e
head -c 1 /dev/random >/dev/null
for h in c s; do
	ip netns add $h
{words}	ip -n $h link set lo up
done
"""


# Addresses are of the host side.
_HOSTS = f"""{namespaces(*_TCP)}ip link add vc netns c type veth peer name vs netns s
ip -n c addr add {CLIENT}/24 dev vc
ip -n s addr add {SERVER}/24 dev vs
ip -n c link set vc up
ip -n s link set vs up
ip netns exec c ethtool -K vc %s
ip netns exec s ethtool -K vs %s
echo "OFFLOADS $(ip netns exec c ethtool -k vc | grep -E \
'^(tcp-seg|generic-seg|generic-rec|rx-gro-list|tx-checksum).*:' | tr -s ' \\n' ' ')"
run() {{
	homa-kernel-bench --client-net /run/netns/c --server-net /run/netns/s \
		--address {SERVER} "$@" || echo "FAILED $*"
}}
homa_set() {{
	for h in c s; do
		ip netns exec $h sysctl -q -w net.homa.$1=$2 || echo "FAILED net.homa.$1"
	done
}}
"""

OFFLOADS = {
    "default": "",
    "gro": "gro on tso off",
    "off": "tso off gso off gro off",
    "off-gro": "tso off gso off gro on",
}


@dataclass(frozen=True)
class Case:
    """A measurement: options of homa-kernel-bench; `settings` are of net.homa, for both hosts."""

    key: str
    label: str
    proto: str
    options: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_homa(self) -> bool:
        """It needs the module."""
        return self.proto in ("homa", "exchange")

    def line(self, *more: str) -> str:
        """The shell line that runs it."""
        words = ["run", "--label", self.key, "--proto", self.proto, *self.options, *more]
        setting = "".join(f"homa_set {name} {value}\n" for name, value in self.settings)
        return setting + shlex.join(words) + "\n"


@dataclass
class Said:
    """What the guest printed: results by their order, offloads, what failed."""

    results: list[dict[str, object]] = field(default_factory=list)
    offloads: str = ""
    failed: list[str] = field(default_factory=list)


def begin(offloads: str) -> str:
    """The script's beginning, which makes the hosts."""
    words = OFFLOADS[offloads] or "tx on"
    return _HOSTS % (words, words)


def load(module: Path | None) -> str:
    """Load the module, if there is one."""
    return f"insmod /{MODULE}\n" if module else ""


def or_end(command: str, what: str) -> str:
    """A command without which nothing that follows means anything: if it fails the guest says so
    and ends."""
    return f"{command.strip()} || {{ echo {shlex.quote(f'FAILED {what}')}; exit 1; }}\n"


def options(
    kernel: Kernel, module: Path | None, *, programs_too: tuple[Path, ...] = (), **more: object
) -> Options:
    """A guest's options: the module is a file that the script loads when it is time."""
    files: dict[str, bytes | str | Path] = {}
    needs: tuple[str, ...] = ()
    if module:
        files[MODULE] = module
        needs = tuple(initramfs.depends(module.read_bytes()))
    return Options(
        programs=(programs.bench_program(), *programs_too), files=files, load=needs, **more
    )  # type: ignore[arg-type]


def module_for(kernel: Kernel, path: Path | None) -> Path:
    """homa.ko: the one at `path`, or built from this tree."""
    if path is None:
        return build(kernel)
    if not path.is_file():
        raise VmError(f"there is no module {path}; build one with ./homa kernel build")
    return path


def parse(output: str) -> Said:
    """What the script's lines say."""
    said = Said()
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "RESULT":
            said.results.append(json.loads(rest))
        elif kind == "OFFLOADS":
            said.offloads = rest.strip()
        elif kind == "FAILED" or line.startswith("homa-kernel-bench: "):
            said.failed.append(line)
    return said
