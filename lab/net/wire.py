# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Two hosts with a bridge between them that loses packets of TCP at random, in both directions."""

from __future__ import annotations

from lab.errors import LabError
from lab.net import bpf
from lab.net.hosts import Host, Lab, introduce, run, set_offloads

RATES = (1, 2, 5, 10, 20, 50)  # per mille; a section of loss_port.bpf.c each


class Wire:
    """10.SUBNET.0.1 and .2, and what is between them. Packets have the MTU: nothing is merged or
    cut by a device, because a lost unit would be forty lost packets."""

    def __init__(self, lab: Lab, name: str, subnet: int, mtu: int = 1500) -> None:
        self._space = lab.namespace(f"{name}w")
        run(["ip", "-n", self._space, "link", "add", "bridge", "type", "bridge"])
        hosts = []
        for number in (1, 2):
            port = f"port{number}"
            address = f"10.{subnet}.0.{number}/24"
            hosts.append(lab.host(f"{name}{number}", address, self._space, port, mtu))
            run(["ip", "-n", self._space, "link", "set", port, "master", "bridge"])
            set_offloads(self._space, port, on=False)
            run(["tc", "-n", self._space, "qdisc", "add", "dev", port, "clsact"])
        run(["ip", "-n", self._space, "link", "set", "bridge", "up"])
        introduce(hosts)
        self.pair: tuple[Host, Host] = (hosts[0], hosts[1])

    def lose(self, per_mille: int) -> None:
        """From now on lose so many of a thousand packets, in either direction; 0 for none."""
        program = bpf.compiled("loss_port.bpf.c") if per_mille else None
        if per_mille and (per_mille not in RATES or not program):
            raise LabError(
                f"no program that loses {per_mille} of 1000 packets; is clang installed?"
            )
        for port in ("port1", "port2"):
            words = ["tc", "-n", self._space, "filter"]
            run([*words, "del", "dev", port, "ingress"], check=False)
            if program:
                section = f"tc/{per_mille}"
                run(
                    [
                        *words,
                        "add",
                        "dev",
                        port,
                        "ingress",
                        "bpf",
                        "da",
                        "obj",
                        str(program),
                        "sec",
                        section,
                    ]
                )
