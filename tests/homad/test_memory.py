# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Memory of attachments: little at first, more by use, less when idle, on the user's account."""

from __future__ import annotations

import errno
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from attachtool import ATTACH, SEGMENT, Client, request
from homad import BUILD, ROOT, SANITIZED, Homad, Host, needs_homad, needs_root, one_host, protocol
from netns import eventually
from ops_tools import snapshot
from test_attach import attach_as
from test_hostile import STEADY, echo_server, ended_well, going

from lab.targets.goals import load_targets

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

MIB = 1 << 20
PATIENT = {**protocol("timeout_us=20000000,tombstone_ms=25000"), "log": {"level": "info"}}
FIRST_SEND = 8 * 65536 + 65536  # of which most is not there
FIRST = 8 * 65536 + 2 * 65536  # pool and data of an attachment at first
RING = 65536 + 256 * 64
SQS_AT = 68  # struct homa_shm_header.sqs


def memory(homad: Homad) -> int:
    """What homad has charged for all attachments together."""
    return sum(app["memory_bytes"] for app in snapshot(homad)["apps"])


def backed(fds: Sequence[int]) -> int:
    """What the kernel says is behind shared memory."""
    return sum(os.fstat(fd).st_blocks * 512 for fd in fds)


def refused(homad: Homad) -> int:
    """How often homad had no more memory for an attachment on its user's account."""
    return int(snapshot(homad)["homad"]["memory_refused"])


def use_all_rings(client: Client) -> None:
    """As a program with eight threads does; then have homad look."""
    with mmap.mmap(client.fds[0], 4096) as header:
        header[SQS_AT : SQS_AT + 4] = struct.pack("<I", 8)
    os.write(client.fds[4], struct.pack("<Q", 1))


def test_idle__64_applications_hold_64_mb_in_all() -> None:
    with one_host(arguments=["--udp-only"]) as host, ExitStack() as stack:
        private, shared = host.homad.rss(), host.homad.status("RssShmem")
        clients = [stack.enter_context(Client(host.homad.socket)) for _ in range(64)]
        for client in clients:
            client.attach()
        by_kernel = sum(backed(client.fds[:3]) for client in clients)
        assert 64 * FIRST <= by_kernel <= 64 * MIB
        assert memory(host.homad) == by_kernel
        if not SANITIZED:
            grown = host.homad.rss() - private + host.homad.status("RssShmem") - shared
            assert grown << 10 <= 64 * MIB, grown


@pytest.mark.skipif(SANITIZED, reason="a sanitizer has memory of its own")
def test_idle__row_of_the_scoreboard(tmp_path: Path) -> None:
    """What ./homa targets runs for attach-*, with few attachments; its time is not looked at."""
    rows = [row for row in load_targets() if row.name.startswith("attach-")]
    assert {row.path for row in rows} == {"attach_ms", "idle_mb"}
    (command,) = {row.command for row in rows}
    out = tmp_path / "figures.json"
    places = {"{json}": str(out), "{python}": sys.executable, "{build}": str(BUILD)}
    for word, meant in places.items():
        command = command.replace(word, meant)
    subprocess.run([*command.split(), "--cycles", "20", "--rounds", "1"], cwd=ROOT, check=True)
    figures = json.loads(out.read_text())
    (memory,) = (row.goal for row in rows if row.path == "idle_mb")
    assert 0 < figures["idle_mb"] <= memory
    assert len(figures["attach_ms"]) == 1 and figures["attach_ms"][0] > 0


def test_much_traffic__has_more_and_gives_it_back() -> None:
    """Responses of a megabyte, 32 at once; the pools grow, and shrink when the programs are quiet."""
    with one_host(config=PATIENT) as host:
        server = echo_server(host, 4000)
        little = memory(host.homad)
        steady = going(host.start([STEADY, host.address(host, 4000), "0", "16", "1000000"]))
        eventually(lambda: memory(host.homad) > 2 * little + 4 * MIB)
        # An RPC that began after the first 16 has ended, too.
        steady.send_signal(signal.SIGUSR1)
        assert steady.line(60) == "works"
        assert ended_well(steady)[0] > 16
        # The server stays, and is quiet: its pool is as small as before.
        eventually(lambda: memory(host.homad) <= little + segments_of(host) + 7 * RING, 60)
        # And used again it grows again.
        assert (
            ended_well(going(host.start([STEADY, host.address(host, 4000), "0", "16", "1000000"])))[
                0
            ]
            > 0
        )
        assert server.running()


def segments_of(host: Host) -> int:
    """Memory to send from of the one attachment that is left; libhoma keeps it."""
    (app,) = snapshot(host.homad)["apps"]
    return int(app["send_bytes"]) - FIRST_SEND


def test_rings_of_threads__are_there_when_they_are_used() -> None:
    with one_host(arguments=["--udp-only"]) as host, Client(host.homad.socket) as client:
        client.attach()
        before = memory(host.homad)
        use_all_rings(client)
        eventually(lambda: memory(host.homad) - before >= 7 * (65536 + 256 * 64))
        assert memory(host.homad) - before == 7 * (65536 + 256 * 64)
        # Neighbouring rings share a page of the entries. What is charged becomes memory later.
        eventually(lambda: 0 <= memory(host.homad) - backed(client.fds[:3]) <= 4096)
        assert 0 <= memory(host.homad) - backed(client.fds[:3]) <= 4096


def test_user_at_its_limit__is_told_and_others_go_on() -> None:
    quota = {"user_memory": "24 MiB"}
    with one_host(config={"quota": quota, "log": {"level": "info"}}) as host, ExitStack() as stack:
        os.chmod(host.homad.socket, 0o777)
        mine: list[Client] = []
        while client := attach_as(str(host.homad.socket), 1001):
            mine.append(stack.enter_context(client))
        assert 16 <= len(mine) < 64
        assert "user_memory" in host.homad.await_log("attach refused.*uid=1001")
        used = memory(host.homad)
        for client in mine:
            use_all_rings(client)
        eventually(lambda: refused(host.homad) > 0)
        assert used <= memory(host.homad) <= 24 * MIB
        mine[0].send(request(SEGMENT, size=4 * MIB))
        answer = mine[0].answer()
        assert answer and answer.error == -errno.EDQUOT and "quota.user_memory" in answer.text
        # Another user's programs do what they always do.
        echo_server(host, 4000)
        ended_well(going(host.start([STEADY, host.address(host, 4000), "0", "8", "10000"])))
        # What one gives back another of the same user gets.
        had = [backed(client.fds[:3]) for client in mine]
        short = had.index(min(had))
        for client in mine[:short] + mine[short + 1 :]:
            client.close()
        eventually(lambda: backed(mine[short].fds[:3]) > had[short])
        host.homad.check()


def test_users_together__leave_some_to_others_and_to_root() -> None:
    """A user gets as much as is left; of 64 MiB four are kept for root, and four for copies."""
    quota = {"total_memory": "64 MiB", "user_memory": "64 MiB"}
    with one_host(config={"quota": quota}, arguments=["--udp-only"]) as host, ExitStack() as stack:
        os.chmod(host.homad.socket, 0o777)
        held = []
        for uid in (1001, 1002, 1003):
            before = memory(host.homad)
            while client := attach_as(str(host.homad.socket), uid):
                stack.enter_context(client)
            held.append(memory(host.homad) - before)
        # Half of 56 MiB, half of the rest, and again; a handle has less than one.
        left = 56 * MIB
        for got in held:
            assert left // 2 - MIB < got <= left // 2, held
            left -= got
        os.seteuid(1001)
        try:
            refused_one = stack.enter_context(Client(host.homad.socket))
        finally:
            os.seteuid(0)
        assert "quota.total_memory" in refused_one.ask(ATTACH, size=131072).text
        # Root has what was kept, and what nobody took: its programs attach, serve and send.
        echo_server(host, 4000)
        steady = going(host.start([STEADY, host.address(host, 4000), "0", "8", "10000"]))
        assert ended_well(steady)[0] > 0
        host.homad.check()


def test_holes_and_faults__cost_nobody_else_anything() -> None:
    """All that is not there is touched, all that is there is taken away; homad's account stays."""
    with one_host(config=PATIENT) as host, Client(host.homad.socket) as client:
        sizes = client.attach().sizes
        echo_server(host, 4000)
        steady = going(host.start([STEADY, host.address(host, 4000)]))
        before = next(
            app["memory_bytes"] for app in snapshot(host.homad)["apps"] if app["name"] == "test"
        )
        for _ in range(3):
            for fd, size in zip(client.fds, sizes, strict=False):
                with mmap.mmap(fd, size) as all_of_it:
                    for at in range(0, size, 4096):
                        all_of_it[at] = 0 if fd == client.fds[0] and at == 0 else 7
                    all_of_it.madvise(mmap.MADV_REMOVE)
            use_all_rings(client)
        charged = [
            app["memory_bytes"] for app in snapshot(host.homad)["apps"] if app["name"] == "test"
        ]
        assert all(c <= before + 7 * (65536 + 256 * 64) for c in charged)
        ended_well(steady)
        host.homad.check()


def test_killed_while_it_grows__leaves_nothing() -> None:
    """The end comes while memory is being made for an attachment, or more of it."""
    with one_host(arguments=["--udp-only"]) as host:
        before = host.homad.resources()
        for n in range(100):
            pid = os.fork()
            if pid == 0:
                try:
                    client = Client(host.homad.socket)
                    client.send(request(1))
                    if n % 4:
                        client.answer()
                        use_all_rings(client)
                    if n % 4 > 1:
                        client.send(request(SEGMENT, size=4 * MIB))
                    os.kill(os.getpid(), signal.SIGKILL)
                finally:
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        host.homad.await_resources(before)
        eventually(lambda: memory(host.homad) == 0)
        host.homad.check()
