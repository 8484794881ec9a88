# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The series of patches (`./homa kernel series`): each state of the tree builds, and the first one
with a module is a working one. Also a module of ours that was built without its optional parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import with_module

from lab.series import build as series_build
from lab.series import layout, table
from lab.vm import Kernel, Options, build, run

ROWS = table.read()
STATES = layout.states(ROWS.patches, {}, "Nobody <nobody@localhost>")
LINKED = next(i for i, patch in enumerate(ROWS.patches, 1) if patch.module)
PARTS = "GRO GSO DIAG QDISC DISGUISE EARLY_PATH STREAM"

RPCS = """
for n in a b; do ip netns add $n; done
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.1.0.1/24 dev va; ip -n b addr add 10.1.0.2/24 dev vb
# What a packet takes in a slow kernel is no loss yet. The first module has no settings.
[ -d /sys/kernel/debug/failslab ] &&
	for n in a b; do ip netns exec $n sh -c 'cd /proc/sys/net/homa && echo 300 >resend_ticks; echo 60000 >timeout_ticks'; done
for x in "a va" "b vb"; do ip -n ${x% *} link set ${x#* } up; ip -n ${x% *} link set lo up; done
ip netns exec b vm_rpc serve 4 80 >/dev/null & echo $! >/run/pid
ip netns exec a vm_rpc wait 4 10.1.0.2 80 30 && ip netns exec a vm_rpc load 4 10.1.0.2 80 1 50 4 500000 2
echo "status $?"
kill -9 $(cat /run/pid)
"""


def state(kernel: Kernel, number: int) -> Path | None:
    return series_build.state(kernel, ROWS.patches[:number], STATES[number - 1])


@pytest.mark.once
def test_state__first_module(kernel: Kernel, tmp_path: Path) -> None:
    """The first one carries RPCs of all sizes, without GRO, GSO and the rest."""
    first = state(kernel, LINKED)
    assert first is not None
    own = tmp_path / first.name
    own.write_bytes(first.read_bytes())
    result = run(kernel, RPCS, with_module(own, Options(), ("rpc",)), timeout=120)
    assert "status 0" in result.check()


@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize("number", range(1, len(STATES) + 1))
def test_state__builds(kernel: Kernel, number: int) -> None:
    assert (state(kernel, number) is not None) == (number >= LINKED)


@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize("without", [*PARTS.split(), PARTS])
def test_parts__can_be_left_out(kernel: Kernel, without: str) -> None:
    made = build(kernel, arguments=(f"HOMA_WITHOUT={without}",))
    result = run(kernel, RPCS, with_module(made, Options(), ("rpc",)), timeout=120)
    assert "status 0" in result.check()
