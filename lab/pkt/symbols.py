# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Symbols of Linux's headers by name, and values of the expressions in which they stand."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import select
import socket

from lab.pkt.errors import BadScript, Unsupported
from lab.pkt.script import Either, Ellipsis, Expression, Record, Word
from lab.pkt.wire import Address

# What the modules of Python's library do not have, or not in every version.
_MORE = {
    "SIOCINQ": 0x541B,
    "FIONREAD": 0x541B,
    "SIOCOUTQ": 0x5411,
    "SIOCOUTQNSD": 0x894B,
    "SIOCATMARK": 0x8905,
    "SOL_TCP": 6,
    "TCP_CORK": 3,
    "TCP_SYNCNT": 7,
    "TCP_LINGER2": 8,
    "TCP_DEFER_ACCEPT": 9,
    "TCP_WINDOW_CLAMP": 10,
    "TCP_INFO": 11,
    "TCP_QUICKACK": 12,
    "TCP_CONGESTION": 13,
    "TCP_MD5SIG": 14,
    "TCP_USER_TIMEOUT": 18,
    "TCP_REPAIR": 19,
    "TCP_FASTOPEN": 23,
    "TCP_TIMESTAMP": 24,
    "TCP_NOTSENT_LOWAT": 25,
    "TCP_CC_INFO": 26,
    "TCP_SAVE_SYN": 27,
    "TCP_SAVED_SYN": 28,
    "TCP_FASTOPEN_CONNECT": 30,
    "TCP_ULP": 31,
    "TCP_FASTOPEN_NO_COOKIE": 34,
    "TCP_ZEROCOPY_RECEIVE": 35,
    "TCP_INQ": 36,
    "TCP_TX_DELAY": 37,
    "SO_SNDBUFFORCE": 32,
    "SO_RCVBUFFORCE": 33,
    "SO_MAX_PACING_RATE": 47,
    "SO_ZEROCOPY": 60,
    "MSG_FASTOPEN": 0x20000000,
    "MSG_ZEROCOPY": 0x4000000,
    "MSG_MORE": 0x8000,
    "SHUT_RD": 0,
    "SHUT_WR": 1,
    "SHUT_RDWR": 2,
}


def symbol(name: str) -> int:
    if name in _MORE:
        return _MORE[name]
    for module in (socket, errno, select, fcntl, os):
        value = getattr(module, name, None)
        if isinstance(value, int) and name.isupper():
            return int(value)
    raise Unsupported(f"the symbol {name} is not known")


def number(value: Expression | None, what: str) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, Word):
        return symbol(value.name)
    if isinstance(value, Either):
        total = 0
        for part in value.parts:
            total |= number(part, what)
        return total
    raise BadScript(f"{what} is no number")


def errno_of(name: str) -> int:
    value = getattr(errno, name, None)
    if not isinstance(value, int):
        raise BadScript(f"{name} is no error of Linux")
    return value


def errno_name(value: int) -> str:
    return f"{errno.errorcode.get(value, str(value))} ({os.strerror(value)})"


def address(value: Expression) -> tuple[Address, int] | None:
    """{sa_family = AF_INET, sin_port = htons(80), sin_addr = inet_addr("1.2.3.4")}; None: "..."."""
    if isinstance(value, Ellipsis):
        return None
    if not isinstance(value, Record):
        raise BadScript("the address is neither ... nor {sa_family = ...}")
    family = value.fields.get("sa_family")
    if not isinstance(family, Word) or family.name not in ("AF_INET", "AF_INET6"):
        raise Unsupported("addresses other than those of AF_INET and AF_INET6")
    port = _called(value.fields.get("sin_port"), "htons")
    text = _called(value.fields.get("sin_addr"), "inet_addr", "inet_ntoa", "inet6_addr")
    if not isinstance(text, str):
        raise BadScript('the address has no sin_addr = inet_addr("...")')
    try:
        return ipaddress.ip_address(text), number(port, "the port")
    except ValueError as error:
        raise BadScript(str(error)) from error


def _called(value: Expression | None, *functions: str) -> Expression:
    if isinstance(value, Record) and "function" in value.fields:
        name, given = value.fields["function"], value.fields["of"]
        if isinstance(name, Word) and name.name in functions and isinstance(given, list) and given:
            return given[0]
    if value is None or isinstance(value, Record):
        raise BadScript(f"the address lacks a call of {functions[0]}()")
    return value
