# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The addresses that homad remembers are on the account of the user who sent there first."""

from __future__ import annotations

import os
import re
import signal

import pytest
from homad import PROGRAMS, Homad, Host, finishing, needs_homad, needs_root, protocol
from netns import Net, Process, eventually
from ops_tools import scrape

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

RPCS = PROGRAMS / "rpcs"
PATIENT = protocol("timeout_us=40000000,tombstone_ms=45000,peer_idle_ms=600000")
GREEDY, OTHER = 1001, 1002
MOST, MANY, FEW = 64, 500, 32


def of_user(homad: Homad, what: str, uid: int) -> int:
    """A figure of a user; 0 if he has no account."""
    text = scrape(homad.folder / "metrics.sock")[1]
    found = re.search(rf'^homa_user_{what}{{uid="{uid}"}} (\d+)', text, re.M)
    return int(found.group(1)) if found else 0


def spread(host: Host, uid: int, first: str, count: int) -> tuple[Process, str]:
    """One open request to each of so many addresses, at which nobody answers."""
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    program = host.start([*user, str(RPCS), "spread", first, "4000", str(count)])
    return program, program.line()


def test_who_sends_to_very_many_addresses__leaves_room_to_others() -> None:
    with Net() as net:
        space, _ = net.pair()
        homad = Homad(space, {**PATIENT, "quota": {"user_peers": MOST}})
        homad.arguments = ["--metrics", f"unix:{homad.folder / 'metrics.sock'}"]
        host = Host(space, homad)
        with finishing(homad):
            homad.start()
            os.chmod(homad.socket, 0o777)
            space.run(["ip", "route", "add", "10.99.0.0/16", "via", "10.9.0.2"])
            greedy, said = spread(host, GREEDY, "10.99.0.1", MANY)
            assert said == f"refused {MANY - MOST} failed 0"
            assert of_user(homad, "peers", GREEDY) == MOST
            assert of_user(homad, "peers_refused_total", GREEDY) == MANY - MOST
            other, said = spread(host, OTHER, "10.99.100.1", FEW)
            assert said == "refused 0 failed 0"
            assert of_user(homad, "peers", OTHER) == FEW
            assert of_user(homad, "peers", GREEDY) == MOST
            # What has ended is idle, and its place is for his next.
            greedy.send_signal(signal.SIGKILL)
            eventually(lambda: of_user(homad, "rpcs", GREEDY) == 0)
            again, said = spread(host, GREEDY, "10.99.200.1", MOST)
            assert said == "refused 0 failed 0"
            assert of_user(homad, "peers", GREEDY) <= MOST
            for program in (again, other):
                program.send_signal(signal.SIGKILL)
            # Accounts go when nothing is on them.
            eventually(lambda: of_user(homad, "rpcs", OTHER) == 0)
