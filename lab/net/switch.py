# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A switch with shaped ports and eight strict priorities, made of a bridge and HTB.

Each port is an HTB tree: a parent at line rate and eight children that may borrow all of it
in strict order of priority, chosen by the top three bits of TOS or traffic class. Rates count
what a packet takes on a real cable (preamble, gap and FCS included: 24 bytes, 84 at least).

The buffer of a port is limited in bytes and, like a real switch's, shared by its classes: a
small BPF classifier (`switch_port.bpf.c`) drops a packet when the whole port is full. Where
BPF cannot be loaded (without root), u32 filters do the matching, and each class may take
the whole amount; TCP, which uses a single class, never has less than Homa either way. Fewer
priorities, loss by chance and ECN marks are the classifier's, too, so they need root.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from lab.net import bpf, uplink
from lab.errors import LabError
from lab.net.hosts import Host, Namespaces, introduce, run, set_offloads
from lab.net.uplink import FRAME_OVERHEAD, MIN_FRAME

LEVELS = 8
MTU = 1500
FULL_FRAME = MTU + 14 + FRAME_OVERHEAD

# Host software of both ends, added to the time on the wire: what two user-space or kernel
# stacks that share a machine's cores need when nothing else runs.
HOST_DELAY_S = 100e-6
BUFFER_BDPS = 8
MIN_BUFFER = 48 * 1024


def nominal_rtt(rate_bps: int) -> float:
    """Seconds from a full packet to its answer on an idle switch, host software included."""
    return (FULL_FRAME + MIN_FRAME) * 8 / rate_bps + HOST_DELAY_S


def buffer_bytes(rate_bps: int) -> int:
    """Bytes that one switch port can hold: eight bandwidth-delay products, and at least 48 KB.

    Switches of the Homa papers' class hold 5-10 of their RTTbytes per port if all ports are
    busy. Linux would queue 1000 packets instead, 60 ms at 200 Mbit/s, which would make TCP look
    bad for a reason that no switch has. The floor keeps 32 full packets at low rates.
    """
    bdp = rate_bps / 8 * nominal_rtt(rate_bps)
    return max(MIN_BUFFER, int(BUFFER_BDPS * bdp) // 1024 * 1024)


# An HTB port may send this much at once after its timer came late. Two packets, the usual choice,
# lost a quarter of the line rate while other programs kept the processors busy; this loses 1-3 %.
BURST_S = 250e-6


class PortMemory(IntEnum):
    """Places in the classifier's memory (struct switch_port)."""

    PEAK = 0
    MARKED = 1
    LOST = 2
    ECN_BYTES = 3
    LOSS_PPM = 4
    LEVELS = 5


@dataclass(frozen=True)
class Traits:
    """What ports do beyond rate and buffer: `levels` priorities, of a million packets `loss_ppm`
    lost by chance, ECN marks with more than `ecn_bytes` queued (0: none); the network's MTU."""

    levels: int = LEVELS
    loss_ppm: int = 0
    ecn_bytes: int = 0
    mtu: int = MTU

    def numbers(self) -> dict[int, int]:
        """What the classifier is told; nothing if it does the usual."""
        if (self.levels, self.loss_ppm, self.ecn_bytes) == (LEVELS, 0, 0):
            return {}
        return {
            PortMemory.LEVELS: self.levels,
            PortMemory.LOSS_PPM: self.loss_ppm,
            PortMemory.ECN_BYTES: self.ecn_bytes,
        }


USUAL = Traits()


@dataclass
class PortCounters:
    """What a port has sent, dropped (of that by chance: `lost`), marked, holds now, and held at
    most (bytes; None: unknown)."""

    sent_bytes: int = 0
    sent_packets: int = 0
    drops: int = 0
    backlog: int = 0
    peak_backlog: int | None = None
    marked: int = 0
    lost: int = 0


@dataclass
class Switch:
    """A bridge in `namespace` whose `ports` are shaped; hosts are attached in order. `uplinks` are the
    devices that hold hosts to the rate of their links, if they do, and `queues` the number of queues
    that the packets of a host's kernel wait in for its link."""

    namespace: str
    rate_bps: int
    buffer: int
    shared: bool
    ports: list[str]
    hosts: list[Host]
    traits: Traits = USUAL
    uplinks: list[str] = field(default_factory=list)
    queues: int = 1

    def set_buffer(self, size: int) -> None:
        """Give every port a buffer of `size` bytes, and it and its host's link their rate; clears
        queues and counters."""
        self.buffer = size
        for device, host in zip(self.uplinks, self.hosts, strict=False):
            self.queues = uplink.shape(self.namespace, device, host, self.rate_bps, self.traits.mtu)
        for port in self.ports:
            self.shared = shape_port(
                self.namespace, port, self.rate_bps, size, self.traits,
                uplink.burst_of(self.rate_bps) if self.uplinks else 0,
            )  # fmt: skip

    def host_queues(self, kernel: bool) -> dict[str, float]:
        """The fact `host_queues`, how many queues the packets of a host's kernel are spread over, if
        its TCP takes part (`kernel`)."""
        return {"host_queues": float(self.queues)} if kernel else {}

    def uplink_drops(self) -> int:
        """Packets that hosts' own links have dropped since set_buffer()."""
        pairs = zip(self.uplinks, self.hosts, strict=False)
        return sum(uplink.drops(self.namespace, device, host) for device, host in pairs)

    def counters(self) -> list[PortCounters]:
        """Counters of every port since set_buffer()."""
        return [read_port(self.namespace, port, self.shared) for port in self.ports]


def build_switch(
    lab: Namespaces,
    hosts: int,
    rate_bps: int,
    buffer: int | None = None,
    traits: Traits = USUAL,
    uplinks: bool = False,
) -> Switch:
    """A switch in `lab` with `hosts` new hosts, 10.9.0.1 and up, all acquainted. With `uplinks` a
    host sends no faster than its link, whatever it sends with; else only what paces itself does
    not."""
    space = lab.namespace("switch")
    run(
        ["ip", "-n", space, "-batch", "-"],
        "link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0\nlink set br0 up\n",
    )
    size = buffer or buffer_bytes(rate_bps)
    switch = Switch(space, rate_bps, size, False, [], [], traits)
    for n in range(1, hosts + 1):
        port = f"port{n}"
        host = lab.host(f"host{n}", f"10.9.0.{n}/24", space, port, traits.mtu)
        run(["ip", "-n", space, "link", "set", port, "master", "br0"])
        set_offloads(space, port, on=False)
        if uplinks:
            uplink.add(space, port, f"up{n}")
            switch.uplinks.append(f"up{n}")
        switch.ports.append(port)
        switch.hosts.append(host)
    switch.set_buffer(size)
    introduce(switch.hosts)
    return switch


def loopback(hosts: int, rate_bps: int) -> Switch:
    """Addresses on the loopback device instead of hosts: no switch, no shaping, no namespaces."""
    return Switch(
        "",
        rate_bps,
        buffer_bytes(rate_bps),
        False,
        [],
        [Host("", f"127.0.0.{n}", "lo") for n in range(1, hosts + 1)],
    )


def port_commands(port: str, rate_bps: int, buffer: int, mtu: int = MTU, burst: int = 0) -> str:
    """The tc batch that builds the HTB tree of `port`, without its filters. `burst`: bytes that it may
    send at once; 0: the usual."""
    usual = max(2 * (mtu + 14 + FRAME_OVERHEAD), int(rate_bps / 8 * BURST_S))
    rate, shape = f"{rate_bps}bit", uplink.shape_of(mtu, burst or usual)
    lines = [
        f"qdisc add dev {port} root handle 1: htb default 17",
        f"class add dev {port} parent 1: classid 1:1 htb rate {rate} ceil {rate} {shape}",
    ]
    for level in range(LEVELS):
        lines += [
            f"class add dev {port} parent 1:1 classid 1:1{level} htb rate 1kbit ceil {rate} "
            f"prio {LEVELS - 1 - level} {shape}",
            f"qdisc add dev {port} parent 1:1{level} handle 1{level}: bfifo limit {buffer}",
        ]
    return "\n".join(lines) + "\n"


def u32_commands(port: str) -> str:
    """Filters by TOS and traffic class without BPF."""
    lines = []
    for level in range(LEVELS):
        match = f"{level * 32:#04x} 0xe0"
        lines += [
            f"filter add dev {port} parent 1: protocol {protocol} prio {number} "
            f"u32 match {field} {match} flowid 1:1{level}"
            for number, protocol, field in ((1, "ip", "ip tos"), (2, "ipv6", "ip6 priority"))
        ]
    return "\n".join(lines) + "\n"


def shape_port(
    namespace: str, port: str, rate_bps: int, buffer: int, traits: Traits = USUAL,
    burst: int = 0,
) -> bool:  # fmt: skip
    """Make `port` a switch port with `buffer` bytes; whether its classes share them."""
    run(["tc", "-n", namespace, "qdisc", "del", "dev", port, "root"], check=False)
    run(["ip", "-n", namespace, "link", "set", port, "txqueuelen", str(buffer)])
    commands = port_commands(port, rate_bps, buffer, traits.mtu, burst)
    run(["tc", "-n", namespace, "-batch", "-"], commands)
    program = port_program()
    if program:
        attach = [
            "tc",
            "-n",
            namespace,
            "filter",
            "add",
            "dev",
            port,
            "parent",
            "1:",
            "prio",
            "1",
            "bpf",
            "object-file",
            str(program),
            "section",
            "tc",
            "classid",
            "1:1",
            "direct-action",
        ]
        if subprocess.run(attach, capture_output=True, check=False).returncode == 0:
            tell_port(namespace, port, traits.numbers())
            return True
    if traits.numbers():
        raise LabError(
            "loss, ECN marks and other than eight priorities need a BPF classifier, and none could "
            "be loaded here: run as root, with clang installed"
        )
    run(["tc", "-n", namespace, "-batch", "-"], u32_commands(port))
    return False


def program_of(namespace: str, port: str) -> int | None:
    """The number of the classifier at `port`; None if it has none."""
    rows = json.loads(
        run(["tc", "-n", namespace, "-j", "filter", "show", "dev", port, "parent", "1:"]) or "[]"
    )
    numbers = [row["options"]["prog"]["id"] for row in rows if "prog" in row.get("options", {})]
    return numbers[0] if numbers else None


def tell_port(namespace: str, port: str, numbers: dict[int, int]) -> None:
    """Write `numbers` (by PortMemory) for the classifier of `port`."""
    if not numbers:
        return
    program = program_of(namespace, port)
    if program is None or not bpf.write_memory(program, numbers):
        raise LabError(
            f"the settings of switch port {port} cannot be written; is libbpf.so.1 there?"
        )


def read_port(namespace: str, port: str, shared: bool) -> PortCounters:
    """The counters of `port`; those of its classifier if there is one (`shared`)."""
    rows = json.loads(run(["tc", "-n", namespace, "-s", "-j", "qdisc", "show", "dev", port]))
    root = next(row for row in rows if row.get("root"))
    counters = PortCounters(root["bytes"], root["packets"], root["drops"], root["backlog"])
    program = program_of(namespace, port) if shared else None
    memory = bpf.read_memory(program, len(PortMemory)) if program is not None else None
    if memory:
        counters.peak_backlog = memory[PortMemory.PEAK]
        counters.marked = memory[PortMemory.MARKED]
        counters.lost = memory[PortMemory.LOST]
    return counters


def port_program() -> Path | None:
    """The classifier, compiled now if that has not been done; None without a compiler."""
    return bpf.compiled("switch_port.bpf.c")
