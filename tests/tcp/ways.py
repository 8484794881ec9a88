# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Two hosts, and the ways in which programs there speak TCP to each other.

    with two_sides("homad") as (server, client):
        process = server.start(["some-server", server.v4, "7000"])
        client.run(["some-client", server.v4, "7000"])

A way says which side is accelerated: programs run there under homa-run, beside a homad.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from homad import BUILD, Homad, Host, finishing
from netns import ROOT, Namespace, Net, Process

# The ways that are tested; HOMA_TCP_WAYS=homad,server names others for a run. "homad", "server" and
# "client" join them when homad serves TCP.
WAYS = (os.environ.get("HOMA_TCP_WAYS") or "kernel").split(",")
# Who is accelerated, by way: (server, client).
ACCELERATED = {
    "kernel": (False, False),
    "homad": (True, True),
    "server": (True, False),
    "client": (False, True),
    "supervisor": (True, True),  # though the library would reach the programs
}
# homad's configuration on an accelerated side: TCP is the kernel's unless it says otherwise.
CONFIG = """
[protocol]
timeout_us = 20000000

[[tcp_rule]]
listen = [10000, 29999]
connect = [10000, 29999]
"""
# HOMA_PRELOAD_LIB names another one for a run, as one with sanitizers.
LIBRARY = Path(
    os.environ.get("HOMA_PRELOAD_LIB") or BUILD / "lib" / "preload" / "libhoma-preload.so"
)
SUPERVISOR = BUILD / "lib" / "supervisor" / "homa-supervisor"
RUN = ROOT / "lib" / "preload" / "homa-run"
PROGRAMS = BUILD / "tests" / "tcp"
PATIENCE = 90  # s, for a machine that is busy
FIRST_PORT = 10000  # of those that tests listen on, so that a rule can name them all
_ports = itertools.count(FIRST_PORT)


class Side:
    """A host; `homad` is None where the kernel's TCP is used. `by`: how homa-run reaches programs."""

    def __init__(self, space: Namespace, homad: Homad | None = None, by: str = "auto") -> None:
        self.space, self.homad, self.by = space, homad, by
        self.v4, self.v6 = space.v4, space.v6

    def words(self, argv: Sequence[object]) -> list[str]:
        """The command that runs a program on this side, unmodified."""
        plain = [str(word) for word in argv]
        if not self.homad:
            return plain
        host = Host(self.space, self.homad)
        return host.words(
            [str(RUN), "--tcp", "--by", self.by, *plain],
            HOMA_PRELOAD_LIB=str(LIBRARY), HOMA_SUPERVISOR=str(SUPERVISOR),
        )  # fmt: skip

    def start(self, argv: Sequence[object]) -> Process:
        return self.space.start(self.words(argv))

    def run(
        self, argv: Sequence[object], timeout: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; an AssertionError with what it said unless its status is 0."""
        done = self.space.run(self.words(argv), check=False, timeout=timeout)
        assert done.returncode == 0, (
            f"{argv}: {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}{self.log()}"
        )
        return done

    def established(self, number: int) -> int:
        """How many open connections of this port, its own or the peer's, the kernel here has."""
        told = self.space.run(
            ["ss", "-tnH", "state", "established", f"( sport = {number} or dport = {number} )"]
        )
        return len(told.stdout.splitlines())

    def address(self, family: str) -> str:
        return self.v4 if family == "v4" else self.v6

    def log(self) -> str:
        """The end of what homad said."""
        return f"\nhomad: {self.homad.log()[-3000:]}" if self.homad else ""


def opened(side: Side) -> tuple[int, int]:
    """Connections that the kernel of this side has opened so far, and accepted."""
    heads, values = (line.split() for line in side.space.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
                     if line.startswith("Tcp:"))  # fmt: skip
    told = dict(zip(heads, values, strict=True))
    return int(told["ActiveOpens"]), int(told["PassiveOpens"])


def port() -> int:
    """A port that no test of this run had: an earlier one may wait for late packets (TIME_WAIT)."""
    return next(_ports)


@contextmanager
def two_sides(
    way: str, config: str = CONFIG, mtu: int = 1500, by: str = "auto"
) -> Iterator[tuple[Side, Side]]:
    """Server and client side, 10.9.0.1 and .2, fd09::1 and ::2, joined by a veth pair."""
    by = "supervisor" if way == "supervisor" else by
    with ExitStack() as stack:
        net = stack.enter_context(Net())
        sides = []
        for space, fast in zip(net.pair(mtu=mtu), ACCELERATED[way], strict=True):
            homad = Homad(space, config) if fast else None
            if homad:
                stack.enter_context(finishing(homad))
                homad.start()
            sides.append(Side(space, homad, by))
        yield sides[0], sides[1]
