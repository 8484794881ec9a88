# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Reads TAP as cmocka and our own checks print it: several plans in one output, notes
after the case that they belong to, a skipped case as "ok" or "not ok"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PLAN = re.compile(r"^1\.\.(\d+)\s*(#.*)?$")
_GROUP = re.compile(r"^# (not )?ok - ")
_CASE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?([^#]*)(?:#\s*(\w+)\s*(.*))?$")


@dataclass
class Case:
    """One test case: outcome is "passed", "failed" or "skipped"."""

    name: str
    outcome: str
    notes: list[str] = field(default_factory=list)


@dataclass
class Output:
    """All cases of one program and how many its plans promised."""

    cases: list[Case] = field(default_factory=list)
    planned: int = 0


def parse(text: str) -> Output:
    output = Output()
    for line in text.splitlines():
        plan = _PLAN.match(line)
        if plan:
            output.planned += int(plan.group(1))
            continue
        if line.startswith("#"):
            if output.cases and not _GROUP.match(line):
                output.cases[-1].notes.append(line.lstrip("# "))
            continue
        case = _CASE.match(line)
        if case:
            output.cases.append(_case(case))
    return output


def _case(match: re.Match[str]) -> Case:
    refused, number, name, directive, reason = match.groups()
    name = name.strip()
    if directive and directive.upper() in ("SKIP", "TODO"):
        if not name:
            # cmocka puts the name where the reason belongs, and has none.
            return Case(reason or f"case {number}", "skipped")
        return Case(name, "skipped", [reason] if reason else [])
    return Case(name or f"case {number}", "failed" if refused else "passed")
