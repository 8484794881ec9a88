# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hosts with TCP stacks of others, and the end of a conversation on each: stacks/talker.py says what is spoken.

    with wires("lwip") as (ours, other):
        server = other.talk("serve", ours, 10000, "both 1000 half end")
        client = ours.talk("connect", other, 10000, "both 1000 end")
        finish(server, client)

Ours is a host with homad, where talker.py runs under homa-run. A host whose stack is a program has a namespace in
which the kernel has no address: the program takes the device's frames itself.
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sandbox
from homad import BUILD, Homad, finishing
from netns import Namespace, Net, Process
from ways import CONFIG, PATIENCE, Side

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
TALKER = HERE / "stacks" / "talker.py"
# Programs that are a host by themselves, and what makes them.
PROGRAMS = {
    "lwip": (BUILD / "tests" / "tcp" / "peer_lwip", "apt install liblwip-dev"),
    "smoltcp": (
        BUILD / "tests" / "tcp" / "smoltcp" / "peer_smoltcp",
        "./homa test --interop smoltcp builds it, with cargo",
    ),
}


def missing(stack: str) -> str:
    """Why there is no such host here, or nothing."""
    if stack in PROGRAMS:
        program, how = PROGRAMS[stack]
        return "" if program.exists() else f"not built: {how}"
    if stack == "gvisor":
        return sandbox.missing()
    return "" if stack == "linux" else f"no such stack: {stack}"


class End:
    """A host on one end of the wire. It has 10.9.0.N and fd09::N."""

    def __init__(self, stack: str, space: Namespace, number: int) -> None:
        self.stack, self.space = stack, space
        self.v4, self.v6 = f"10.9.0.{number}", f"fd09::{number}"
        self.side = Side(space, Homad(space, CONFIG) if stack == "homad" else None)

    def prepare(self) -> None:
        """Addresses for the kernel, or none. Segments leave whole and with their checksums: who takes
        frames from the device itself expects them so."""
        space = self.space
        space.run(["ethtool", "-K", space.device, "tx", "off", "tso", "off", "gso", "off"])
        if self.kernels:
            space.address(f"{self.v4}/24", f"{self.v6}/64")
        elif self.stack != "gvisor":
            space.run(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])

    @property
    def kernels(self) -> bool:
        """The kernel of this namespace has addresses."""
        return self.stack in ("homad", "linux")

    def talk(self, how: str, other: End, port: int, actions: str, family: str = "v4") -> Process:
        """Start a talker; a server has its port when this returns."""
        mine, theirs = (getattr(end, family) for end in (self, other))
        words = [how, theirs if how == "connect" else mine, port, *actions.split()]
        if self.kernels:
            process = self.side.start([PYTHON, TALKER, *words])
        elif self.stack == "gvisor":
            process = sandbox.start(
                self.space, (self.v4, self.v6), [PYTHON, TALKER, *words, "stay"]
            )
        else:
            words[1] = theirs
            program = PROGRAMS[self.stack][0]
            process = self.space.start([str(w) for w in (program, self.space.device, mine, *words)])
        if how == "serve":
            assert process.line(PATIENCE) == "ready"
        return process


def finish(*talkers: Process, patience: float = PATIENCE) -> None:
    """Both ends have done what they should. Then they are no more: else a program's stack would go on answering
    at its address."""
    try:
        for what in ("open", "done"):
            told = [said(process, patience) for process in talkers]
            assert told == [what] * len(talkers), told
    finally:
        for process in talkers:
            process.stop(signal.SIGKILL)


def said(process: Process, patience: float) -> str:
    """The next line of it, or that none comes."""
    try:
        return process.line(patience)
    except queue.Empty:
        return f"nothing for {patience} s"


@contextmanager
def wires(stack: str, lossy: bool = False) -> Iterator[tuple[End, End]]:
    """Our host and one with this stack on a wire, or on one that loses and reorders (lossy.py)."""
    with Net() as net:
        spaces = [net.namespace(name) for name in "ab"]
        wire = net.namespace("wire") if lossy else None
        if wire:
            for space, device in zip(spaces, ("left", "right"), strict=True):
                net.veth(space, wire, b_device=device)
        else:
            net.veth(*spaces)
        ends = [End(name, space, i) for i, (name, space) in enumerate(zip(("homad", stack), spaces, strict=True), 1)]  # fmt: skip
        for end in ends:
            end.prepare()
        if wire:
            forwarder = wire.start([PYTHON, str(HERE / "lossy.py"), "left", "right"])
            assert forwarder.line(PATIENCE) == "ready"
        homads = [end.side.homad for end in ends if end.side.homad]
        with finishing(*homads):
            for homad in homads:
                homad.start()
            yield ends[0], ends[1]
            if wire:
                _, said, _ = forwarder.stop()
                forwarded, lost, late = map(int, said.split())
                assert forwarded > 100 and lost and late, said
