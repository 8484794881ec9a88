# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad's copies of short messages are on their user's account."""

from __future__ import annotations

import os
import signal

import pytest
from homad import PROGRAMS, Homad, Host, needs_homad, needs_root, protocol, two_hosts
from netns import Process, eventually
from ops_tools import snapshot
from test_hostile import STEADY, echo_server, ended_well, going

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

SHARER = PROGRAMS / "sharer"
PATIENT = protocol("timeout_us=40000000,tombstone_ms=45000")
GREEDY, OTHER = (
    ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] for uid in (1001, 1002)
)
# A copy of 4,000 bytes has 4,096; a user has a quarter of his limit for copies.
LIMIT = 16 << 20
FIT, MORE = LIMIT // 4 // 4096, 300


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


def test_requests_that_are_never_answered__take_a_users_share_and_no_more() -> None:
    config = {**PATIENT, "quota": {"user_memory": "16 MiB"}}
    with two_hosts(config=config) as (here, there):
        os.chmod(here.homad.socket, 0o777)
        server = holding(there)
        address = here.address(there, 4000)
        greedy = here.start(
            [*GREEDY, SHARER, "ask", address, str(FIT + MORE), str(FIT + MORE), "4000"]
        )
        eventually(lambda: refused(here.homad) == MORE)
        assert copied(here.homad) == FIT * 4096
        # He gets no more with another handle, and another user has his own.
        another = here.start([*GREEDY, SHARER, "ask", address, "10", "10", "4000"])
        assert another.wait()[1].splitlines()[-1] == '{"failed": 10}'
        echo_server(there, 4001)
        ended_well(going(here.start([*OTHER, STEADY, here.address(there, 4001), "0", "8", "2000"])))
        # What was accepted is answered in the end, and all is given back.
        server.send_signal(signal.SIGUSR1)
        status, out, err = greedy.wait(60)
        assert status == 0 and out.splitlines()[-1] == f'{{"A": {FIT}, "failed": {MORE}}}', err
        assert "No buffer space available" in err
        eventually(lambda: copied(here.homad) == 0)
        third = here.start([*GREEDY, SHARER, "ask", address, "10", "10", "4000"])
        assert third.wait()[1].splitlines()[-1] == '{"A": 10, "failed": 0}'


def test_a_program_that_is_killed__leaves_nothing_on_the_account() -> None:
    config = {**PATIENT, "quota": {"user_memory": "16 MiB"}}
    with two_hosts(config=config) as (here, there):
        os.chmod(here.homad.socket, 0o777)
        holding(there)
        words = [
            *GREEDY,
            SHARER,
            "ask",
            here.address(there, 4000),
            str(FIT + 1),
            str(FIT + 1),
            "4000",
        ]
        for times in (1, 2):
            greedy = here.start(words)
            eventually(lambda times=times: refused(here.homad) == times)
            greedy.stop(signal.SIGKILL)
            eventually(lambda: copied(here.homad) == 0)


def test_all_users_together__leave_some_to_others_and_to_root() -> None:
    """Of 64 MiB copies may have 16, of which one is kept for root; the first user gets half of the rest."""
    config = {**PATIENT, "quota": {"total_memory": "64 MiB", "user_memory": "64 MiB"}}
    with two_hosts(config=config) as (here, there):
        os.chmod(here.homad.socket, 0o777)
        holding(there)
        words = [SHARER, "ask", here.address(there, 4000), "2500", "2500", "4000"]
        here.start([*GREEDY, *words])
        first = 15 * 256 // 2
        eventually(lambda: refused(here.homad) == 2500 - first)
        assert copied(here.homad) == first * 4096
        here.start([*OTHER, *words])
        second = (15 * 256 - first) // 2
        eventually(lambda: refused(here.homad) == 5000 - first - second)
        assert copied(here.homad) == (first + second) * 4096
