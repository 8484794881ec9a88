# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What in a kernel's log is a failure, whatever the test itself says."""

from __future__ import annotations

import re

_BAD = re.compile(
    r"\bBUG\b|\bWARNING\b|\bOops\b|KASAN|KFENCE|UBSAN|refcount_t|general protection|"
    r"Kernel panic|kernel panic|unable to handle|Call Trace:|"
    r"possible recursive locking|possible circular locking|inconsistent lock state|"
    r"suspicious RCU usage|possible irq lock inversion|lock held when returning|"
    r"bad unlock balance|held lock freed|INFO: task \S+ blocked|soft lockup|hard LOCKUP|"
    r"rcu_\w+ (?:self-)?detected (?:expedited )?stall|sleeping function|scheduling while atomic|"
    r"unreferenced object|ODEBUG|list_(?:add|del) corruption|usercopy: Kernel memory|"
    r"leaked reference|unregister_netdevice: waiting for|Bad page state|double free|"
    r"page allocation failure|Out of memory|segfault at|not tainted by"
)
# What a healthy kernel says at its start, here or under this emulator.
_HARMLESS = re.compile(
    r"module verification failed|loading out-of-tree module|"
    r"Speculative|Spectre|RETBleed|MDS|Unprivileged eBPF|"
    r"kmemleak: Kernel memory leak detector initialized|kmemleak: Automatic|"
    r"BUG: KASAN.*is enabled|kasan: KernelAddressSanitizer initialized|"
    r"Command line:|Kernel command line|KASAN is enabled|"
    r"sched_clock: Marking unstable|kunit_.*expected|FAULT_INJECTION: forcing"
)
_STAMP = re.compile(r"^(?:<\d+>)?\[[\s\d.]+\](?:\[[^]]*\])?\s?")
_CONTEXT = 60


def problems(text: str, expected: str = "") -> list[str]:
    """Lines that speak of a mistake, except those that match `expected`."""
    found = []
    for line in text.splitlines():
        if not _BAD.search(line) or _HARMLESS.search(line):
            continue
        if expected and re.search(expected, line):
            continue
        found.append(_STAMP.sub("", line).rstrip())
    return found


def report(text: str, expected: str = "") -> str:
    """The log from its first problem on, "" if it has none."""
    bad = set(problems(text, expected))
    lines = [_STAMP.sub("", line).rstrip() for line in text.splitlines()]
    for index, line in enumerate(lines):
        if line in bad:
            return "\n".join(lines[max(0, index - 3) : index + _CONTEXT])
    return ""
