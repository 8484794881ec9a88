# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What fails, when, and how long a run is.

All hosts send each other RPCs. Something happens to the last host, the *victim*, or to all ports.
Times follow from how long Homa waits before it gives an RPC up, which is as many times longer as
links are slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.cluster import simulated
from lab.cluster.points import TITLES, Point, dilation_for
from lab.cluster.setup import Setup, cores, warmup_s
from lab.coexist.grid import parse_loads
from lab.errors import UsageError

NAME = "failures"
WORKLOADS = ("w1", "w2", "w3", "w4", "w5")
WORKLOAD = "w4"
HOSTS, QUICK_HOSTS, LEAST_HOSTS = 8, 4, 3
RPC = 10  # percent of each link
TRANSPORTS = ("homa", "tcp")
FAULTS = {
    "none": "nothing",
    "kill": "host gone",
    "flap": "link down",
    "buffer": "small buffers",
}
SMALL_PACKETS = (
    8  # times the MTU holds a port whose buffer is too small: seven packets with headers
)
WAITS = 3  # times that Homa waits before it gives up: the least window
BEFORE = 0.25  # of the window, until something fails
DOWN = 0.5  # of the time after which Homa gives up, that a link is down
# Links are so many times slower than the processors need. Contents of messages are checked, which
# keeps a generator from its next request: without this the P99 of how late they left was 117 to 164 µs
# in three of four runs, more than the 100 that may be.
SLOWER = 2
AFTER = 2.5  # of that time, that RPCs have to end after the window


@dataclass(frozen=True)
class Cell:
    """RPCs of `workload` that ask for `rpc` percent of each link, by `transport`, when FAULTS[`fault`]
    happens."""

    transport: str
    workload: str
    rpc: int
    fault: str

    @property
    def point(self) -> Point:
        """For what runs it."""
        title = TITLES[self.transport]
        return Point(self.transport, self.workload, self.rpc / 100, label=title)

    def words(self) -> str:
        """For a line of progress."""
        title = TITLES[self.transport]
        return f"{self.workload.upper()} {self.rpc} %, {title}: {FAULTS[self.fault]}"


@dataclass(frozen=True)
class Times:
    """Seconds: the measured window and what goes before it; when in the window something fails and
    when that is over (never, where it does not end); after which Homa gives an RPC up; and how long
    RPCs have to end after the window."""

    warmup: float
    window: float
    fails: float
    back: float
    gives_up: float
    drain: float


def rate(setup: Setup, cells: Sequence[Cell]) -> tuple[int, float]:
    """Bits per second of all links, and the dilation."""
    points = [cell.point for cell in cells]
    needed = dilation_for(points, setup.hosts, setup.link_bps, setup.mtu, cores())
    return setup.diluted(setup.dilate or SLOWER * needed)


def times(setup: Setup, cell: Cell, link_bps: int) -> Times:
    """Of a run."""
    dilation = setup.link_bps / link_bps
    gives_up = simulated.timeout_s(dilation)
    window = max(setup.window_s(cell.point, link_bps), WAITS * gives_up)
    fails = round(BEFORE * window, 3)
    back = fails + DOWN * gives_up if cell.fault == "flap" else float("inf")
    drain = max(simulated.drain_s(dilation), AFTER * gives_up)
    return Times(warmup_s(link_bps), window, fails, back, gives_up, drain)


def buffer_of(setup: Setup, cell: Cell) -> int:
    """Bytes that a port holds."""
    return SMALL_PACKETS * setup.mtu if cell.fault == "buffer" else setup.buffer


def parse_load(text: str) -> int:
    """The load in `text`, percent; or a UsageError."""
    found = parse_loads(text, "--rpc")
    if len(found) != 1:
        raise UsageError(f"--rpc {text}: failures has one load, like {RPC}")
    return found[0]
