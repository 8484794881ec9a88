# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The registers of homa_nic as software sees them: addresses from the C header, accesses over
AXI-Lite with pauses on every channel."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

HEADER = Path(__file__).resolve().parents[1] / "homa_nic_regs.h"
OKAY, SLVERR = 0, 2
PATIENCE = 2000

_NUMBER = re.compile(r"#define HOMA_NIC_(\w+) (0x[\da-f]+|\d+)u")
_PLACES = re.compile(r"#define HOMA_NIC_(\w+)\(n\) \((0x[\da-f]+)u \+ (\d)u \* \(n\)\)")


@cache
def names() -> dict[str, int]:
    """What homa_nic_regs.h defines, without HOMA_NIC_."""
    return {name: int(value, 0) for name, value in _NUMBER.findall(HEADER.read_text())}


@cache
def places() -> dict[str, tuple[int, int]]:
    """(begin, bytes of each) of what has a number there."""
    found = _PLACES.findall(HEADER.read_text())
    return {name: (int(begin, 0), int(size)) for name, begin, size in found}


def place(name: str, number: int) -> int:
    begin, size = places()[name]
    return begin + size * number


def counters() -> list[str]:
    """Their names, in order."""
    found = {value: n.removeprefix("COUNT_") for n, value in names().items() if n[:6] == "COUNT_"}
    return [found[number] for number in range(len(found))]


class Axil:
    """`cycle` is awaited for each cycle, so that all else of a test goes on meanwhile."""

    def __init__(self, dut: Any, rng: random.Random, cycle: Callable[[], Awaitable[Any]]) -> None:
        self.dut = dut
        self.rng = rng
        self.cycle = cycle
        self.refused = 0
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            self._set(name, 0)

    def _set(self, name: str, value: int) -> None:
        getattr(self.dut, f"reg_{name}").value = value

    def _get(self, name: str) -> int:
        return int(getattr(self.dut, f"reg_{name}").value)

    async def _offer(self, channels: dict[str, int]) -> None:
        """Offer each channel after so many cycles, until it is taken."""
        left = dict(channels)
        shown: set[str] = set()
        for _ in range(PATIENCE):
            for name in [n for n, wait in left.items() if wait <= 0 and n not in shown]:
                self._set(f"{name}valid", 1)
                shown.add(name)
            await self.cycle()
            for name in [n for n in shown if n in left and self._get(f"{n}ready")]:
                self._set(f"{name}valid", 0)
                del left[name]
            left = {name: wait - 1 for name, wait in left.items()}
            if not left:
                return
        raise AssertionError(f"{', '.join(left)} is not taken")

    async def _answer(self, channel: str) -> tuple[int, int]:
        """(response, value) once they are there; for some cycles more they must stay."""
        for _ in range(PATIENCE):
            if self._get(f"{channel}valid"):
                break
            await self.cycle()
        said = self._said(channel)
        assert said is not None, f"no answer on {channel}"
        for _ in range(self.rng.choice((0, 0, 1, 5))):
            await self.cycle()
            assert self._said(channel) == said, "an answer changed before it was taken"
        self._set(f"{channel}ready", 1)
        await self.cycle()
        self._set(f"{channel}ready", 0)
        await self.cycle()
        assert self._said(channel) is None, f"a second answer on {channel}"
        self.refused += said[0] == SLVERR
        return said

    def _said(self, channel: str) -> tuple[int, int] | None:
        if not self._get(f"{channel}valid"):
            return None
        return self._get(f"{channel}resp"), self._get("rdata") if channel == "r" else 0

    async def write(self, at: int, value: int, strobes: int = 15) -> int:
        """The response."""
        self._set("awaddr", at)
        self._set("wdata", value)
        self._set("wstrb", strobes)
        pauses = self.rng.choice((0, 0, 3)), self.rng.choice((0, 0, 3))
        await self._offer({"aw": pauses[0], "w": pauses[1]})
        return (await self._answer("b"))[0]

    async def read(self, at: int) -> tuple[int, int]:
        """(response, value)."""
        self._set("araddr", at)
        await self._offer({"ar": 0})
        return await self._answer("r")

    async def set(self, name: str, value: int) -> None:
        """Write a register that takes it."""
        assert await self.write(names()[name], value) == OKAY, f"{name} does not take {value}"

    async def get(self, name: str) -> int:
        said, value = await self.read(names()[name])
        assert said == OKAY
        return value

    async def count(self, name: str) -> int:
        """A counter, all 64 bits."""
        at = place("COUNTER", names()[f"COUNT_{name}"])
        low, high = await self.read(at), await self.read(at + 4)
        assert low[0] == high[0] == OKAY
        return high[1] << 32 | low[1]
