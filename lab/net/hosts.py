# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hosts in network namespaces, and the guarantee that they go away again.

A `Lab` owns namespaces named "hml<pid>-<n>-<name>", unique to this process and object, so
any number of laboratories run side by side. Leaving its `with` block closes the pipe to its
guardian (see `guardian`) and waits until that has removed everything. Namespaces that shall
outlive the command are made by `Namespaces` itself (lab/cluster).
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from lab.net import guardian
from lab.errors import LabError

_serial = itertools.count()

# Units longer than a packet must not pass the "switch", and checksums must be real.
_OFFLOADS = ("tso", "gso", "gro", "tx", "rx", "tx-udp-segmentation", "rx-gro-list")


@dataclass(frozen=True)
class Host:
    """A namespace with one interface, `device`, that has `address` (IPv4); "" is where we are."""

    namespace: str
    address: str
    device: str = "eth0"

    def command(self, argv: list[str]) -> list[str]:
        """`argv` as it runs inside this host."""
        return ["ip", "netns", "exec", self.namespace, *argv] if self.namespace else argv


def run(argv: list[str], stdin: str | None = None, check: bool = True) -> str:
    """Run a configuration command and give its output; a LabError if it fails."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LabError(
            f"'{argv[0]}' is not installed; run ./homa build once, or apt install it"
        ) from None
    if check and done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[0]
        raise LabError(f"cannot set up the test network: '{' '.join(argv[:6])}' says: {reason}")
    return done.stdout


class Namespaces:
    """Network namespaces whose names start with `prefix`; who made them removes them."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def namespace(self, name: str) -> str:
        """A new namespace with its loopback device up; its full name."""
        full = f"{self.prefix}{name}"
        run(["ip", "netns", "add", full])
        run(["ip", "-n", full, "link", "set", "lo", "up"])
        return full

    def host(self, name: str, address: str, peer: str, port: str, mtu: int = 1500) -> Host:
        """A new host joined by a veth pair to device `port` in namespace `peer`.

        `address` has a prefix length ("10.9.0.1/24").
        """
        space = self.namespace(name)
        add_veth(space, "eth0", peer, port, mtu)
        run(["ip", "-n", space, "-batch", "-"], f"addr add {address} dev eth0\nlink set eth0 up\n")
        run(["ip", "-n", peer, "link", "set", port, "up"])
        return Host(space, address.split("/")[0])

    def pair(
        self,
        name: str = "",
        subnet: int = 9,
        mtu: int = 1500,
        offloads: bool = False,
        queues: int = 0,
    ) -> tuple[Host, Host]:
        """Two hosts, 10.SUBNET.0.1 and .2, joined by one veth pair without a switch. `queues`: as for
        add_veth()."""
        a, b = self.namespace(f"{name}a"), self.namespace(f"{name}b")
        add_veth(a, "eth0", b, "eth0", mtu, offloads, queues)
        hosts = []
        for space, address in ((a, f"10.{subnet}.0.1"), (b, f"10.{subnet}.0.2")):
            run(
                ["ip", "-n", space, "-batch", "-"],
                f"addr add {address}/24 dev eth0\nlink set eth0 up\n",
            )
            hosts.append(Host(space, address))
        introduce(hosts)
        return hosts[0], hosts[1]


class Lab(Namespaces):
    """Namespaces that live as long as the `with` block."""

    def __init__(self) -> None:
        super().__init__(f"{guardian.PREFIX}{os.getpid()}-{next(_serial)}-")
        self._guardian: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Lab:
        env = dict(os.environ, PYTHONPATH=str(Path(__file__).resolve().parents[2]))
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", "lab.net.guardian", self.prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=env,
            cwd="/",
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the namespaces and all that runs in them; safe to call twice."""
        if self._guardian is None:
            return
        assert self._guardian.stdin
        self._guardian.stdin.close()
        while True:
            try:
                self._guardian.wait(timeout=30)
                break
            except KeyboardInterrupt:  # an impatient second Ctrl-C must not leave things behind
                continue
            except subprocess.TimeoutExpired:
                break
        self._guardian = None


def add_veth(
    a: str, a_dev: str, b: str, b_dev: str, mtu: int, offloads: bool = False, queues: int = 0
) -> None:
    """Join namespaces `a` and `b` by a veth pair, whose ends have so many receive queues (0: as many as
    the kernel gives them)."""
    # Generic XDP says of a packet that left by transmit queue n > 0 that it came by receive
    # queue n - 1, so the last of these needs one transmit queue more.
    count = ["numrxqueues", str(queues), "numtxqueues", str(queues + 1)] if queues else []
    run(
        [
            "ip",
            "-n",
            a,
            "link",
            "add",
            a_dev,
            "mtu",
            str(mtu),
            *count,
            "type",
            "veth",
            "peer",
            "name",
            b_dev,
            "mtu",
            str(mtu),
            *count,
            "netns",
            b,
        ]
    )
    if not offloads:
        for space, device in ((a, a_dev), (b, b_dev)):
            set_offloads(space, device, on=False)


def set_offloads(namespace: str, device: str, on: bool) -> None:
    """Switch segmentation, merging and checksum offloads of a veth on or off."""
    state = "on" if on else "off"
    for name in _OFFLOADS:  # one by one: which of them a kernel lets one change differs
        run(["ip", "netns", "exec", namespace, "ethtool", "-K", device, name, state], check=False)


def mac_address(host: Host) -> str:
    """The Ethernet address of the host's interface."""
    path = f"/sys/class/net/{host.device}/address"
    return run(["ip", "netns", "exec", host.namespace, "cat", path]).strip()


def introduce(hosts: list[Host]) -> None:
    """Permanent neighbour entries everywhere: no ARP exchange disturbs a measurement."""
    macs = {host: mac_address(host) for host in hosts}
    for host in hosts:
        lines = [
            f"neigh replace {other.address} lladdr {macs[other]} dev {host.device} nud permanent"
            for other in hosts
            if other is not host
        ]
        run(["ip", "-n", host.namespace, "-batch", "-"], "\n".join(lines) + "\n")
