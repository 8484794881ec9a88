# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The test bed itself: namespaces go away, however their owner ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from netns import CommandError, Net, eventually

from lab.test.process import runs

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)

OWNER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from netns import Net
with Net() as net:
    a, b = net.pair()
    sleeper = b.start(["sleep", "1000"])
    print(net.prefix, sleeper.pid, flush=True)
    time.sleep(1000)
"""


def names(prefix: str) -> list[str]:
    return [e.name for e in Path("/run/netns").iterdir() if e.name.startswith(prefix)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_net__is_removed_when_its_owner_is_killed(number: int) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(Path(__file__).parent)], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    assert owner.stdout
    prefix, sleeper = owner.stdout.readline().split()
    assert len(names(prefix)) == 2
    owner.send_signal(number)
    owner.wait()
    eventually(lambda: not names(prefix), 20)
    eventually(lambda: not runs(int(sleeper)), 20)


def test_net__two_at_a_time() -> None:
    with Net() as one, Net() as two:
        assert one.prefix != two.prefix
        one.pair()
        a, _ = two.pair()
        a.run(["true"])
        assert len(names(one.prefix)) == len(names(two.prefix)) == 2
    assert names(one.prefix) == names(two.prefix) == []


def test_net__failing_commands_are_reported() -> None:
    with Net() as net:
        space = net.namespace("a")
        with pytest.raises(CommandError, match="nosuch"):
            space.ip("link", "set", "nosuch", "up")
        process = space.start(["sh", "-c", "echo one; echo two; echo three >&2; exit 3"])
        assert process.line() == "one"
        assert process.wait() == (3, "two\n", "three\n")
