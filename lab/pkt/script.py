# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a script is made of once it has been read. Numbers are the script's own, times are in
nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

SECOND = 1_000_000_000


@dataclass(frozen=True)
class When:
    """A time: at `begin` from the start of the script, or after the statement before
    (`relative`), at any time (`any`), or between `begin` and `end`."""

    begin: int = 0
    end: int | None = None
    relative: bool = False
    any: bool = False


@dataclass(frozen=True)
class Option:
    """An option of a TCP header. `name` is the language's; `values` are its numbers: one for mss
    and wscale, two for TS, the edges of all blocks for sack; `data` is a cookie or a digest."""

    name: str
    values: tuple[int, ...] = ()
    data: bytes = b""


@dataclass(frozen=True)
class IpInfo:
    """What a script says of the IP header: `ecn` is 0 to 3, or -1 for ECT(0) or ECT(1)."""

    ecn: int | None = None
    tos: int | None = None
    ttl: int | None = None


@dataclass(frozen=True)
class TcpPacket:
    """`flags` is a set of the letters F S R P . U E W A. `window`, `options`: None if the script
    does not say (for a packet that is sent: is not checked)."""

    inbound: bool
    flags: frozenset[str]
    seq: int
    length: int
    ack: int = 0
    window: int | None = None
    urgent: int = 0
    options: tuple[Option, ...] | None = ()
    ip: IpInfo = IpInfo()
    ports: tuple[int, int] | None = None  # source, destination
    ace: int | None = None


@dataclass(frozen=True)
class IcmpPacket:
    """An ICMP error that arrives: about the segment `seq` with `length` bytes."""

    inbound: bool
    type: str
    code: str | None
    mtu: int | None
    seq: int
    length: int
    ip: IpInfo = IpInfo()


@dataclass(frozen=True)
class Word:
    """A symbol such as SOL_SOCKET."""

    name: str


@dataclass(frozen=True)
class Either:
    """Symbols and numbers joined by "|"."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Record:
    """Something in braces with names, such as {fd=4, events=POLLIN}; values by name."""

    fields: dict[str, Expression] = field(hash=False)


@dataclass(frozen=True)
class Ellipsis:
    """ "...": whatever it is."""


Expression = Union[int, str, Word, Either, Record, Ellipsis, list]


@dataclass(frozen=True)
class Call:
    """A system call; `end` is when it returns if it blocks (relative as its start is)."""

    name: str
    arguments: tuple[Expression, ...]
    result: Expression
    error: str | None = None
    end: int | None = None


@dataclass(frozen=True)
class Command:
    text: str


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Beyond:
    """A statement that is understood to be of the language and not supported."""

    why: str
    bad: bool = False  # not of the language


Action = Union[TcpPacket, IcmpPacket, Call, Command, Code, Beyond]


@dataclass(frozen=True)
class Statement:
    line: int
    text: str
    when: When
    action: Action


@dataclass
class Script:
    """`options`: the --flags at its head with the lines they stand on."""

    path: str
    options: list[tuple[str, str | None, int]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
