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
# A report about a data race ends with this. All that is a module in the kernel with KCSAN is ours.
_RACE = re.compile(r"BUG: KCSAN: (.*)")
_RACE_END = re.compile(r"Reported by Kernel Concurrency Sanitizer")
_RACE_LINES = 150
_OURS = re.compile(r"\w(?:\+0x[0-9a-f]+/0x[0-9a-f]+)? \[\w+\](?:$| /)")


def races_elsewhere(lines: list[str]) -> dict[int, str]:
    """Reports about data races in which no function of a module takes part, neither in an access
    nor as a caller: the number of each first line, and its title."""
    found = {}
    for index, line in enumerate(lines):
        title = _RACE.search(line)
        if not title or _OURS.search(line):
            continue
        for said in lines[index + 1 : index + _RACE_LINES]:
            if _OURS.search(said) or _RACE.search(said):
                break
            if _RACE_END.search(said):
                found[index] = title[1].rstrip()
                break
    return found


def problems(text: str, expected: str = "") -> list[str]:
    """Lines that speak of a mistake, but for those that match `expected` and races elsewhere."""
    found = []
    lines = text.splitlines()
    elsewhere = races_elsewhere(lines)
    for index, line in enumerate(lines):
        if index in elsewhere or not _BAD.search(line) or _HARMLESS.search(line):
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
