# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""AXI-stream at a block's ports: frames in with pauses, beats out with back-pressure.

A test waits for the rising edge and calls edge() of each of its ends, which see the values before
the edge and set those after it. Reading and writing signals is most of what a simulation costs, so
nothing is read twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@dataclass(frozen=True)
class Beat:
    """A beat of a frame: bytes in order, of which `count` are there."""

    data: int
    count: int
    last: bool


def beats(frame: bytes, width: int) -> Iterator[Beat]:
    """The frame in beats of `width` bits."""
    size = width // 8
    for at in range(0, len(frame), size):
        piece = frame[at : at + size]
        yield Beat(int.from_bytes(piece, "little"), len(piece), at + size >= len(frame))


class Pauses:
    """Says of each cycle whether one end of a stream is ready: sometimes always, sometimes rarely,
    in periods of random length."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.left = 0
        self.share = 1.0

    def ready(self) -> bool:
        if not self.left:
            self.left = self.rng.randint(20, 400)
            self.share = self.rng.choice((1.0, 1.0, 1.0, 0.9, 0.5, 0.1))
        self.left -= 1
        return self.share == 1.0 or self.rng.random() < self.share


class Source:
    """Drives PREFIX_valid, _data, _keep and _last of a block. `begun` is called at the edge at
    which a frame's first beat is taken."""

    def __init__(self, dut: Any, prefix: str, width: int, rng: random.Random) -> None:
        self.valid, self.ready = getattr(dut, f"{prefix}_valid"), getattr(dut, f"{prefix}_ready")
        self.data, self.keep = getattr(dut, f"{prefix}_data"), getattr(dut, f"{prefix}_keep")
        self.last = getattr(dut, f"{prefix}_last")
        self.width = width
        self.rng = rng
        self.pauses = Pauses(rng)
        self.queue: Iterator[Beat] = iter(())
        self.waiting = False
        self.driven = False
        self.done = True
        self.stalled = 0
        self.amid = self.ends = False
        self.begun: Callable[[], None] = lambda: None
        self.valid.value = 0

    def send(self, frames: Iterable[bytes]) -> None:
        """These frames from now on."""
        self.queue = (beat for frame in frames for beat in beats(frame, self.width))
        self.done = False

    def edge(self) -> None:
        """At a rising edge: what it takes is replaced."""
        if self.driven:
            if self.ready.value:
                self.waiting = False
                if not self.amid:
                    self.begun()
                self.amid = not self.ends
            else:
                self.stalled += 1
        if not self.waiting:
            beat = next(self.queue, None)
            if beat is None:
                self.done = True
                self._show(False)
                return
            self._place(beat)
            self.waiting = True
            self._show(self.pauses.ready())
        elif not self.driven:
            self._show(self.pauses.ready())

    def _place(self, beat: Beat) -> None:
        data = beat.data
        self.ends = beat.last
        if beat.count < self.width // 8:
            # What is not there may be anything.
            data |= self.rng.getrandbits(self.width) >> (8 * beat.count) << (8 * beat.count)
        self.data.value = data
        self.keep.value = (1 << beat.count) - 1
        self.last.value = int(beat.last)

    def _show(self, on: bool) -> None:
        if on != self.driven:
            self.valid.value = int(on)
            self.driven = on


class Sink:
    """Takes beats at PREFIX_valid, _data, _keep and _last, puts frames together, and checks that
    what is offered stays as it is until it is taken. `side` names signals of the same prefix whose
    values are wanted: a frame's are those of its beats."""

    def __init__(
        self, dut: Any, prefix: str, width: int, rng: random.Random, side: Sequence[str] = ()
    ) -> None:
        self.valid, self.ready = getattr(dut, f"{prefix}_valid"), getattr(dut, f"{prefix}_ready")
        self.data, self.keep = getattr(dut, f"{prefix}_data"), getattr(dut, f"{prefix}_keep")
        self.last = getattr(dut, f"{prefix}_last")
        self.side = {name: getattr(dut, f"{prefix}_{name}") for name in side}
        self.size = width // 8
        self.pauses = Pauses(rng)
        self.driven = False
        self.offered: int | None = None
        self.parts: list[bytes] = []
        self.said: list[dict[str, int]] = []
        self.stalled = 0
        self.bytes = 0  # that were taken
        self.ready.value = 0

    def edge(self) -> tuple[bytes, list[dict[str, int]]] | None:
        """At a rising edge: a frame that it completes, and what was said beside each beat."""
        frame = None
        if self.valid.value:
            data = int(self.data.value)
            assert self.offered in (None, data), "a beat changed before it was taken"
            self.offered = data
            if self.driven:
                frame = self._take(data)
                self.offered = None
            else:
                self.stalled += 1
        else:
            assert self.offered is None, "a beat was withdrawn before it was taken"
        on = self.pauses.ready()
        if on != self.driven:
            self.ready.value = int(on)
            self.driven = on
        return frame

    def _take(self, data: int) -> tuple[bytes, list[dict[str, int]]] | None:
        last = bool(self.last.value)
        count = self.size
        if last:
            keep = int(self.keep.value)
            count = keep.bit_length()
            assert keep == (1 << count) - 1 and keep, f"keep has gaps: {keep:x}"
        self.bytes += count
        self.parts.append(data.to_bytes(self.size, "little")[:count])
        self.said.append({name: int(signal.value) for name, signal in self.side.items()})
        if not last:
            return None
        whole = b"".join(self.parts), self.said
        self.parts, self.said = [], []
        return whole


async def reset(dut: Any) -> None:
    """Start the clock; four cycles of reset."""
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value = 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
