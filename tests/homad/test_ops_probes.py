# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad's probes as bpftrace reads them; the recipes are those of docs/operating.md."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from homad import HOMAD, SANITIZED, needs_homad, needs_root, two_hosts
from netns import ROOT
from ops_tools import ask, serving

needs_bpftrace = pytest.mark.skipif(
    not shutil.which("bpftrace"), reason="bpftrace is not installed"
)
pytestmark = [needs_homad, needs_root, needs_bpftrace]
NAMES = {"request", "reply", "deliver", "rx", "tx"}


def listed() -> set[str]:
    done = subprocess.run(
        ["bpftrace", "-l", f"usdt:{HOMAD}:*"], capture_output=True, text=True, timeout=60
    )
    return set(re.findall(r":homad:(\w+)$", done.stdout, re.M))


def has_probes() -> None:
    if not listed():
        pytest.skip("homad was built without sys/sdt.h (systemtap-sdt-dev)")


class Watching:
    """bpftrace with a script on a homad; `out` when it has ended. A context."""

    def __init__(self, pid: int, script: str) -> None:
        self._popen = subprocess.Popen(
            ["bpftrace", "-p", str(pid), "-e", 'BEGIN { printf("begun\\n"); } ' + script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._popen.stdout
        # "Attaching N probes..." comes before, the probes are there when BEGIN has run.
        lines = [self._popen.stdout.readline() for _ in range(2)]
        if "begun\n" not in lines:
            self._popen.kill()
            pytest.skip(f"bpftrace cannot attach here: {self._popen.communicate()[1][-300:]}")
        self.out = ""

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.terminate()
        self.out = self._popen.communicate(timeout=60)[0]


def test_probes__are_listed_and_documented() -> None:
    has_probes()
    assert listed() == NAMES
    for page in ("docs/operating.md", "host/homad/fast/probes.h"):
        text = (ROOT / page).read_text()
        assert all(re.search(rf"\b{name}\b", text) for name in NAMES), page


@pytest.mark.skipif(
    SANITIZED, reason="bpftrace reads the arguments where an ordinary build has them"
)
def test_probes__count_rpcs_and_bytes() -> None:
    has_probes()
    script = (
        f"usdt:{HOMAD}:homad:request {{ @requests = count(); @bytes = sum(arg2); @port = max(arg3); }}"
        f"usdt:{HOMAD}:homad:reply {{ @replies = count(); }}"
        f"usdt:{HOMAD}:homad:deliver {{ @delivered = count(); }}"
        f"usdt:{HOMAD}:homad:tx {{ @types[*(uint8 *)uptr(arg1 + 11)] = count(); }}"
    )
    with two_hosts() as (a, b), serving(b):
        with Watching(a.homad.pid, script) as client:
            ask(a, b, 25, 300)
        for line in ("@requests: 25", "@bytes: 7500", "@port: 4000", "@delivered: 25"):
            assert line in client.out, client.out
        # DATA, perhaps one again.
        sent = re.search(r"@types\[16\]: (\d+)", client.out)
        assert sent and int(sent.group(1)) >= 25, client.out
        with Watching(b.homad.pid, script) as server:
            ask(a, b, 25, 300)
        assert "@replies: 25" in server.out and "@requests: 0" in server.out, server.out
