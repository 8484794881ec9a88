# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs for Homa sockets (tests/preload) under libhoma-preload.so, over any host."""

from __future__ import annotations

from collections.abc import Sequence

from apitool import BUILD
from netns import ROOT

LIBRARY = BUILD / "lib" / "preload" / "libhoma-preload.so"
RUN = ROOT / "lib" / "preload" / "homa-run"
PROGRAMS = BUILD / "tests" / "preload"
PORT = 4000
# What does not depend on how a packet goes.
LOCAL_CHECKS = [
    "information", "ready_ones", "polls", "epoll_level", "dups", "signals", "handlers", "connects",
    "exchange_errors", "exchange_waits", "exchange_flags", "exchange_meanwhile", "exchange_storm",
]  # fmt: skip
PATH_CHECKS = [
    "sizes", "ids", "async", "private_rpc", "aborts", "shuts", "failures", "nonblocking",
    "epoll_edge", "forks", "threads", "storm", "slices", "exhaust", "exhaust_copied",
    "late_region", "many", "unmap", "exchanges",
]  # fmt: skip
CHECKS = LOCAL_CHECKS + PATH_CHECKS
# What needs a server on the client's own machine that is no other host's process.
SHARED_CHECKS = ["roles", "exchange_serves"]
# How a server waits; "fork" needs a port that can change hands.
SERVERS = ["block", "poll", "epoll", "edge", "threads", "nonblock", "exchange"]


def under(*words: str) -> list[str]:
    """A command that runs another one over libhoma."""
    return ["env", f"HOMA_PRELOAD_LIB={LIBRARY}", str(RUN), *words]


def server(family: str, how: str = "block", port: int = PORT) -> list[str]:
    return under(str(PROGRAMS / "sock_server"), family[-1], str(port), how)


def client(family: str, ip: str, check: str, port: int = PORT) -> list[str]:
    return under(str(PROGRAMS / "sock_client"), family[-1], ip, str(port), check)


def errors(family: str, *words: str) -> list[str]:
    return under(str(PROGRAMS / "sock_errors"), family[-1], *words)


def script(code: str, *words: str) -> list[str]:
    """A program that is not ours: Python, which uses sockets, selectors and subprocesses."""
    return under("/usr/bin/python3", "-c", code, *words)


def said_ok(outcome: tuple[int, str, str], what: Sequence[str]) -> None:
    status, out, err = outcome
    assert status == 0 and out == "ok\n", f"{' '.join(what)}: status {status}: {err or out}"
