# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad's copies of short messages are on their user's account."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import pytest
from homad import PROGRAMS, Homad, Host, needs_homad, needs_root, protocol, two_hosts
from netns import Process, eventually
from ops_tools import snapshot
from test_attach import attach_as
from test_hostile import STEADY, echo_server, ended_well, going

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

SHARER = PROGRAMS / "sharer"
PATIENT = protocol("timeout_us=40000000,tombstone_ms=45000")
GREEDY, OTHER = (
    ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] for uid in (1001, 1002)
)
COPY = 4096  # what a copy of 4,000 bytes has
MIB = 1 << 20
LIMIT = 16 * MIB
MORE = 300


def copied(homad: Homad) -> int:
    """Bytes of all copies that there are."""
    return sum(thread["out_bytes"] for thread in snapshot(homad)["threads"])


def refused(homad: Homad) -> int:
    return sum(thread["counters"]["copies_refused"] for thread in snapshot(homad)["threads"])


def holding(host: Host) -> Process:
    """A server that answers nothing until it is told to."""
    server = host.start([SHARER, "hold", "4000", "A"])
    assert server.line() == "serving"
    return server


def shared(homad: Homad, uid: int) -> int:
    """Bytes of the shared memory of a user's handles."""
    return sum(app["memory_bytes"] for app in snapshot(homad)["apps"] if app["uid"] == uid)


def fill(homad: Homad, uid: int, stack: ExitStack, but: int = 0) -> int:
    """The user attaches until he is refused, and closes some handles again; how many he had."""
    held = []
    while client := attach_as(str(homad.socket), uid):
        held.append(stack.enter_context(client))
    handles = len(snapshot(homad)["apps"])
    for client in held[:but]:
        client.close()
    eventually(lambda: len(snapshot(homad)["apps"]) == handles - but)
    return len(held)


def asking(here: Host, there: Host, user: list[str], requests: int) -> Process:
    """A program that asks a server at port 4000 so many things of 4,000 bytes at once."""
    ask = [SHARER, "ask", here.address(there, 4000), str(requests), str(requests), "4000"]
    return here.start([*user, *ask])


def test_requests_that_are_never_answered__take_what_a_user_has_left() -> None:
    """Copies and shared memory have one limit, a sixteenth of which is for copies only."""
    config = {**PATIENT, "quota": {"user_memory": "16 MiB"}}
    with two_hosts(config=config) as (here, there), ExitStack() as stack:
        os.chmod(here.homad.socket, 0o777)
        server = holding(there)
        fill(here.homad, 1001, stack, but=1)
        assert LIMIT * 15 // 16 - 2 * MIB < shared(here.homad, 1001) <= LIMIT * 15 // 16
        asked = 2 * MIB // COPY + MORE
        greedy = asking(here, there, GREEDY, asked)
        # Of each request there is a copy in the end, or none.
        eventually(lambda: copied(here.homad) + refused(here.homad) * COPY == asked * COPY)
        assert refused(here.homad) >= MORE
        fit = asked - refused(here.homad)
        assert copied(here.homad) == fit * COPY >= LIMIT // 16
        assert LIMIT - COPY < copied(here.homad) + shared(here.homad, 1001) <= LIMIT
        # He gets no more with another handle, nor another handle; another user has his own.
        assert not fill(here.homad, 1001, stack)
        echo_server(there, 4001)
        ended_well(going(here.start([*OTHER, STEADY, here.address(there, 4001), "0", "8", "2000"])))
        # What was accepted is answered in the end, and all is given back.
        server.send_signal(signal.SIGUSR1)
        status, out, err = greedy.wait(60)
        assert status == 0, err
        assert out.splitlines()[-1] == f'{{"A": {fit}, "failed": {asked - fit}}}'
        assert "No buffer space available" in err
        eventually(lambda: copied(here.homad) == 0)
        assert (
            asking(here, there, GREEDY, 10).wait()[1].splitlines()[-1] == '{"A": 10, "failed": 0}'
        )


def test_copies_on_their_way__leave_less_for_handles() -> None:
    config = {**PATIENT, "quota": {"user_memory": "16 MiB"}}
    with two_hosts(config=config) as (here, there), ExitStack() as stack:
        os.chmod(here.homad.socket, 0o777)
        holding(there)
        asking(here, there, GREEDY, 2000)
        eventually(lambda: copied(here.homad) == 2000 * COPY)
        fill(here.homad, 1001, stack)
        left = LIMIT - 2000 * COPY
        assert left - MIB < shared(here.homad, 1001) <= left
        assert "copied messages" in here.homad.await_log("attach refused.*uid=1001")


def test_a_program_that_is_killed__leaves_nothing_on_the_account() -> None:
    config = {**PATIENT, "quota": {"user_memory": "16 MiB"}}
    with two_hosts(config=config) as (here, there), ExitStack() as stack:
        os.chmod(here.homad.socket, 0o777)
        holding(there)
        fill(here.homad, 1001, stack, but=1)
        for _ in range(2):
            before = refused(here.homad)
            greedy = asking(here, there, GREEDY, 2 * MIB // COPY)
            eventually(lambda before=before: refused(here.homad) > before)
            greedy.stop(signal.SIGKILL)
            eventually(lambda: copied(here.homad) == 0)


def test_all_users_together__leave_some_to_others_and_to_root() -> None:
    """Of 64 MiB four are kept for root. A user whose copies and handles have half of the rest has
    as much as is left; he still gets half of what is for copies only."""
    config = {**PATIENT, "quota": {"total_memory": "64 MiB", "user_memory": "64 MiB"}}
    with two_hosts(config=config) as (here, there), ExitStack() as stack:
        os.chmod(here.homad.socket, 0o777)
        holding(there)
        fill(here.homad, 1001, stack, but=2)
        asking(here, there, GREEDY, 2000)
        eventually(lambda: refused(here.homad) > 0)
        most = 60 * MIB // 2
        first = copied(here.homad)
        assert first >= 60 * MIB // 16 // 2
        assert most - COPY <= first + shared(here.homad, 1001) <= most + MIB
        asking(here, there, OTHER, 4000)
        before = refused(here.homad)
        eventually(lambda: refused(here.homad) > before)
        eventually(lambda: copied(here.homad) > first)
        # Root gets what is kept.
        asking(here, there, [], 900)
        eventually(lambda: copied(here.homad) >= first + 900 * COPY)
