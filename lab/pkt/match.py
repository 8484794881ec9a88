# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Compares what was sent with what the script expects. Both are in the script's numbers."""

from __future__ import annotations

from lab.pkt import notation
from lab.pkt.config import Config
from lab.pkt.flow import U32, pattern
from lab.pkt.script import Option, TcpPacket
from lab.pkt.wire import Segment

_ECN = ("noecn", "ect1", "ect0", "ce")


def joins(first: Segment, next_: Segment) -> bool:
    """May the two be one packet of the script, as segmentation offload would send them?"""
    loose = {"F", "P", "W"}
    return (
        bool(next_.payload)
        and next_.seq == (first.seq + first.length) & U32
        and next_.flags - loose == first.flags - loose
        and next_.ack == first.ack
        and not first.flags & {"F", "S", "R"}
        and [o.name for o in next_.options] == [o.name for o in first.options]
    )


def joined(first: Segment, next_: Segment) -> Segment:
    return first.with_(
        payload=first.payload + next_.payload,
        flags=first.flags | (next_.flags & {"F", "P"}),
        window=next_.window,
    )


def differences(want: TcpPacket, got: Segment, config: Config, strict: bool) -> list[str]:
    """One line for each field that differs."""
    found = []
    pairs = [
        ("seq", want.seq, got.seq),
        ("the length", want.length, got.length),
        ("ack", want.ack, got.ack),
        ("the urgent pointer", want.urgent, got.urgent),
    ]
    if want.window is not None:
        pairs.append(("win", want.window, got.window))
    if want.ace is not None:
        pairs.append(("the ACE counter", want.ace, got.ace))
    if want.ip.tos is not None:
        pairs.append(("the type of service", want.ip.tos, got.tos))
    if want.ip.ttl is not None:
        pairs.append(("the time to live", want.ip.ttl, got.ttl))
    ignored = set("EWA") if want.ace is not None else set()
    if want.flags - ignored != got.flags - ignored:
        said = (notation.flags(want.flags - ignored), notation.flags(got.flags - ignored))
        found.append(f"the flags are {said[1]}, not {said[0]}")
    found += [f"{what} is {is_}, not {wanted}" for what, wanted, is_ in pairs if wanted != is_]
    found += _ecn(want, got)
    if want.options is not None:
        found += _options(want.options, got.options, config, strict)
    found += _payload(got)
    return found


def _ecn(want: TcpPacket, got: Segment) -> list[str]:
    is_ = got.tos & 3
    if want.ip.ecn is None or is_ == want.ip.ecn or (want.ip.ecn == -1 and is_ in (1, 2)):
        return []
    said = _ECN[want.ip.ecn] if want.ip.ecn >= 0 else "ect0 or ect1"
    return [f"the IP header says {_ECN[is_]}, not {said}"]


def _options(
    want: tuple[Option, ...], got: tuple[Option, ...], config: Config, strict: bool
) -> list[str]:
    # Zeroes that only fill the header up are no options.
    shown = got
    while shown and shown[-1].name == "eol" and len(shown) > len(want):
        shown = shown[:-1]
    if [o.name for o in want] != [o.name for o in shown]:
        said = (notation.options(got) or "none", notation.options(want) or "none")
        return [f"the options are {said[0]}, not {said[1]}"]
    found = []
    for wanted, is_ in zip(want, shown):
        if wanted.name == "TS":
            found += _stamps(wanted, is_, config, strict)
        elif wanted != is_:
            found.append(f"the option is {notation.option(is_)}, not {notation.option(wanted)}")
    return found


def _stamps(want: Option, got: Option, config: Config, strict: bool) -> list[str]:
    """packetdrill looks at the value only if it is told how long a tick is, at the echo never."""
    found = []
    apart = (got.values[0] - want.values[0]) & U32
    apart = min(apart, (1 << 32) - apart)
    if config.ts_tick_usecs and apart * config.ts_tick_usecs > config.tolerance_usecs:
        found.append(f"TS val is {got.values[0]}, not {want.values[0]}")
    if strict and got.values[1] != want.values[1]:
        found.append(f"TS ecr is {got.values[1]}, not {want.values[1]}")
    return found


def _payload(got: Segment) -> list[str]:
    position = 0 if "S" in got.flags else (got.seq - 1) & U32
    right = pattern(position, got.length)
    if got.payload == right:
        return []
    at = next(i for i in range(got.length) if got.payload[i] != right[i])
    return [
        f"byte {at} of the payload is {got.payload[at]}, not {right[at]}, "
        f"which is its position in the stream modulo 251"
    ]
