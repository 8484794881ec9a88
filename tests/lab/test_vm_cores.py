# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What lab/vm/bench makes of core_count's numbers; no guest is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.vm.bench import cores
from lab.vm.bench.symbols import Function, Symbols

KALLSYMS = """\
ffffffff81000000 T _raw_spin_lock
ffffffff81000100 T native_queued_spin_lock_slowpath
ffffffff81000200 t schedule
ffffffff81000300 t __sysvec_apic_timer_interrupt
ffffffff82000000 D jiffies
ffffffffc0000000 t homa_rx\t[homa]
ffffffffc0001000 b homa_table\t[homa]
"""
# Two CPUs and 2 RPCs: six locks of which one is waited for, and four lines that change hands.
PLUGIN = """\
cpu 0 60 5
cpu 1 40 3
block ffffffff81000000 10 6
block ffffffff81000100 5 1
block ffffffff81000108 5 9
block ffffffff81000300 4 2
block ffffffffc0000000 8 2
call 0 ffffffffc0000010 ffffffff81000000 4
call 0 ffffffff81000200 ffffffff81000000 2
call ffffffffc0000010 ffffffff81000000 ffffffff81000100 1
transfer ffffffffc0000004 ffffffffc0000008 0 2
transfer ffffffff81000004 ffffffff81000008 ffffffffc0000010 3
transfer ffffffff81000204 ffffffff81000208 ffffffffc0000010 1
line 1000 ffffffffc0001044 4 2 ffffffffc0000004 ffffffffc0000008
line 2000 ffff888000002010 2 2 ffffffff81000204 ffffffffc0000008
writes 5
late 7
"""


@pytest.fixture(scope="module")
def counted() -> cores.Cores:
    """The plugin's words, summed."""
    return cores.summed(2, 2, cores.traced(PLUGIN.splitlines()), Symbols(KALLSYMS))


def test_cores__instructions_by_cpu(counted: cores.Cores) -> None:
    assert (counted.kernel, counted.user, counted.by_cpu) == (50, 4, [30, 20])
    assert (counted.own, counted.ticks, counted.late) == (8, 1, 7)


def test_cores__locks_and_who_waits(counted: cores.Cores) -> None:
    assert counted.taken == {"_raw_spin_lock": 3}
    # A loop inside of the waiting function is one wait.
    assert counted.contended == {"native_queued_spin_lock_slowpath": 0.5}
    assert counted.contended_share == pytest.approx(1 / 6)
    assert counted.sites == {"homa_rx [homa]": (2, 0.5), "schedule": (1, 0)}


def test_cores__transfers_and_lines(counted: cores.Cores) -> None:
    assert (counted.transfers, counted.writes, counted.shared) == (3, 2.5, 2)
    assert counted.pairs == {
        ("homa_rx [homa]", "homa_rx [homa]"): 1,
        ("_raw_spin_lock", "_raw_spin_lock of homa_rx [homa]"): 1.5,
        ("schedule", "schedule"): 0.5,
    }
    # homa.ko's are its own and the lock's that it takes, not what others do that it calls.
    assert counted.to_own == 2.5
    assert counted.lines == [
        ("homa_table [homa]+0x44", 2, 2, "homa_rx [homa]", "homa_rx [homa]"),
        ("memory at 0xffff888000002000", 1, 2, "schedule", "homa_rx [homa]"),
    ]


def test_cores__result_file(counted: cores.Cores) -> None:
    document = counted.as_json(1)
    assert document["locks"]["contended_share"] == counted.contended_share
    assert document["locks"]["sites"] == [
        {"function": "homa_rx [homa]", "taken": 2, "contended": 0.5}
    ]
    assert len(document["transfers"]["pairs"]) == len(document["transfers"]["top_lines"]) == 1


@pytest.mark.parametrize(
    ("name", "module", "lock"),
    [
        ("_raw_spin_lock_irqsave", "", True),
        ("_raw_read_lock_bh", "", True),
        ("mutex_lock", "", True),
        ("down_write_killable", "", True),
        ("_raw_spin_unlock", "", False),
        ("mutex_unlock", "", False),
        ("down_the_road", "", False),
        ("mutex_lock", "other", False),
    ],
)
def test_cores__what_takes_a_lock(name: str, module: str, lock: bool) -> None:
    assert cores.takes(Function(0, name, module)) == lock
    assert not cores.waits(Function(0, name, module))


def test_cores__programs_and_symbols_are_in_the_script() -> None:
    text = cores.script(4, Path("homa.ko"), 10, 5)
    assert "--cores 4 " in text and "--mark" in text and "kallsyms" in text
