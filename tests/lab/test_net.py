# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Namespaces come and go, however their owner ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from conftest import ROOT, needs_root

from lab.net import guardian, hosts as net
from lab.errors import LabError
from lab.test.process import runs

# Makes a network with a busy process in it, says so, and waits to be ended.
OWNER = """
import subprocess, sys, time
from lab.net.hosts import Lab
from lab.net.switch import build_switch
with Lab() as lab:
    switch = build_switch(lab, 2, 10**7)
    child = subprocess.Popen(switch.hosts[0].command(["sleep", "1000"]), start_new_session=True)
    print(lab.prefix, child.pid, flush=True)
    time.sleep(1000)
"""


def start_owner() -> tuple[subprocess.Popen, str, int]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    prefix, child = owner.stdout.readline().split()
    return owner, prefix, int(child)


def wait_until(condition: Callable[[], bool]) -> None:
    """Only a hang fails: the limit is far beyond what is ever needed."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("still not so after 30 s")


@needs_root
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_lab__nothing_is_left_when_the_owner_is_ended(number: signal.Signals) -> None:
    owner, prefix, child = start_owner()
    assert len(guardian.namespaces(prefix)) == 3
    owner.send_signal(number)
    owner.wait()
    wait_until(lambda: not guardian.namespaces(prefix))
    wait_until(lambda: not runs(child))


@needs_root
def test_lab__two_at_once_do_not_touch_each_other() -> None:
    first, first_prefix, _ = start_owner()
    second, second_prefix, child = start_owner()
    first.kill()
    first.wait()
    wait_until(lambda: not guardian.namespaces(first_prefix))
    assert len(guardian.namespaces(second_prefix)) == 3
    assert runs(child)
    second.kill()
    second.wait()
    wait_until(lambda: not guardian.namespaces(second_prefix))


@needs_root
def test_lab__gone_when_the_block_ends_also_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), net.Lab() as lab:
        a, b = lab.pair()
        assert net.mac_address(a) != net.mac_address(b)
        assert len(guardian.namespaces(lab.prefix)) == 2
        raise ZeroDivisionError
    assert guardian.namespaces(lab.prefix) == []
    lab.close()


@needs_root
def test_leftovers__finds_only_the_dead() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    name = f"{guardian.PREFIX}{gone.pid}-0-x"
    with net.Lab() as lab:
        lab.namespace("x")
        net.run(["ip", "netns", "add", name])
        try:
            found = guardian.leftovers()
            assert f"{guardian.PREFIX}{gone.pid}-" in found
            assert not any(lab.prefix.startswith(prefix) for prefix in found)
            assert guardian.remove(f"{guardian.PREFIX}{gone.pid}-") == [name]
            assert name not in guardian.namespaces(guardian.PREFIX)
        finally:
            net.run(["ip", "netns", "delete", name], check=False)


def test_run__says_what_failed() -> None:
    with pytest.raises(LabError, match="cannot set up the test network"):
        net.run(["ip", "link", "show", "no-such-device"])
    with pytest.raises(LabError, match="./homa build"):
        net.run(["no-such-program-here"])
