# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP through homad with stacks of others on the other end of the wire.

A usual run moves 1 MB each way. HOMA_INTEROP names the stacks (lwip, linux), HOMA_INTEROP_BYTES how much is moved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from homad import HOMAD
from stacks import End, finish, missing, wires
from ways import opened, port

STACKS = (os.environ.get("HOMA_INTEROP") or "lwip").split(",")
BYTES = int(os.environ.get("HOMA_INTEROP_BYTES") or 1_000_000)
PATIENCE = max(90.0, BYTES / 100_000)  # s, for a machine that is busy

pytestmark = pytest.mark.skipif(not HOMAD.exists(), reason=f"{HOMAD} is not built")


@pytest.fixture(scope="module", params=STACKS)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[End, End]]:
    """Ours, and the other."""
    if why := missing(request.param):
        pytest.skip(why)
    with wires(request.param) as both:
        yield both


@pytest.fixture(params=["called", "calling"])
def roles(request: pytest.FixtureRequest) -> tuple[str, str]:
    """What ours does, and what the other does: either may open the connection."""
    return ("serve", "connect") if request.param == "called" else ("connect", "serve")


def talk(
    ends: tuple[End, End], roles: tuple[str, str], ours: str, others: str, family: str = "v4"
) -> None:
    """Both ends do what they are told; the kernel of ours has no part in it."""
    before = opened(ends[0].side)
    number = port()
    acts = [
        (end, how, other, actions)
        for end, how, other, actions in zip(ends, roles, reversed(ends), (ours, others), strict=True)
    ]  # fmt: skip
    acts.sort(key=lambda act: act[1], reverse=True)  # who serves first
    finish(
        *(end.talk(how, other, number, actions, family) for end, how, other, actions in acts),
        patience=PATIENCE,
    )
    assert opened(ends[0].side) == before, "the kernel took it"


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_streams_and_half_close(ends: tuple[End, End], roles: tuple[str, str], family: str) -> None:
    """All bytes both ways at the same time; ours says first that it will send no more."""
    last = f"both {BYTES} half read 100000 end"
    first = f"both {BYTES} end send 100000 half"
    talk(ends, roles, last, first, family)


def test_the_other_closes_first(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """Bytes go on in the other direction."""
    talk(ends, roles, "both 1000 end send 100000 half", "both 1000 half read 100000 end")


def test_reset(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """Of a connection where nothing is under way."""
    talk(ends, roles, "both 1000 read 1 reset", "both 1000 send 1 broken")


def test_the_other_resets(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """The same from there."""
    talk(ends, roles, "both 1000 send 1 broken", "both 1000 read 1 reset")


def test_reset_in_a_stream(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """Who sends without end hears of it."""
    talk(ends, roles, "read 300000 reset", "flood")


def test_the_other_resets_a_stream(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """The same from there."""
    talk(ends, roles, "flood", "read 300000 reset")


def test_zero_window(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """Ours does not read for seconds, then all comes."""
    talk(ends, roles, "pause 3000 read 500000 end", "send 500000 half end")


def test_the_others_zero_window(ends: tuple[End, End], roles: tuple[str, str]) -> None:
    """The same there."""
    talk(ends, roles, "send 500000 half end", "pause 3000 read 500000 end")


@pytest.mark.parametrize("stack", STACKS)
def test_loss(stack: str, roles: tuple[str, str]) -> None:
    """1 % of the packets are lost, 2 % late, both ways."""
    if why := missing(stack):
        pytest.skip(why)
    with wires(stack, lossy=True) as ends:
        amount = min(BYTES, 10_000_000)
        talk(ends, roles, f"both {amount} half end", f"both {amount} end half")
