# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What ./homa bench kernel tcp-instructions makes of what a guest and its emulator say; none is started."""

from __future__ import annotations

import base64
import ctypes
import gzip
import json
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.vm import VmError
from lab.vm.bench import cli, profile, report_tcp, tcp_echo
from lab.vm.bench.programs_at import Mapping, Place, Programs

COUNTS = """\
user 5000 10 4
user 9010 5 2
block ffffffff81000000 7 10
halt 3
count 70 50
"""
SYMBOLS = base64.b64encode(gzip.compress(b"ffffffff81000000 T tcp_sendmsg\n")).decode()
CODE = "CODE kernel/0 client 5000-6000 1000 /run/own-client/homa-flows"


def _said(sent: int) -> str:
    result = json.dumps({"bytes": sent})
    return f"{CODE}\nRESULT kernel/0 {result}\n@@symbols {SYMBOLS}\n"


def test_programs__a_function_of_a_process_by_its_address() -> None:
    maps = [row.split() for row in Path("/proc/self/maps").read_text().splitlines()]
    code = [row for row in maps if row[1] == "r-xp" and row[-1].endswith("libc.so.6")]
    mappings = [Mapping.parse(f"me {row[0]} {row[2]} {row[-1]}") for row in code]
    address = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value
    assert address
    programs = Programs({"libc.so.6": Path(code[0][-1])})
    found = programs.by_place([(address, 3, 2), (address + 1, 1, 1), (16, 5, 1)], mappings)
    assert found == {Place("me", "libc.so.6", "getppid"): 7, Place("others", "?", "?"): 5}
    unknown = Programs({}).by_place([(address, 1, 1)], mappings)
    assert unknown == {Place("me", "libc.so.6", "?"): 1}


def test_programs__memory_without_a_file() -> None:
    assert Mapping.parse("homad-c 10-20 0 [vdso]") == Mapping("homad-c", 16, 32, 0, "[vdso]")
    assert Mapping.parse("homad-c 10-20 0").path == "?"


def test_tcp_echo__windows_are_divided_by_what_was_answered() -> None:
    sections = list(profile.sections(COUNTS.splitlines()))
    found = tcp_echo._parse(_said(640), sections, Programs({}))
    (one,) = found.of("kernel")
    assert (one.requests, one.each, one.section.halts) == (10, 12, 3)
    assert found.ratios("kernel") == [1.0]
    sums = report_tcp.parts(one, found)
    assert sums["kernel: TCP"] == 7
    assert sums["the client: homa-flows"] == 4
    assert sum(sums.values()) == one.each
    assert [row[0] for row in report_tcp.top_functions(one, found)] == [7, 4, 1]


@pytest.mark.parametrize("text", ["", "RESULT", "FAILED kernel/0: refused\n" + _said(640)])
def test_tcp_echo__a_guest_that_fails_is_no_result(text: str) -> None:
    text = text.replace("RESULT", _said(640) + _said(640), 1) if text == "RESULT" else text
    with pytest.raises(VmError, match="counts came out"):
        tcp_echo._parse(text, list(profile.sections(COUNTS.splitlines())), Programs({}))


def test_tcp_echo__no_homad_runs_beside_the_kernels_tcp() -> None:
    running: set[str] = set()
    seen = []
    for line in tcp_echo.script(2, 0.2).splitlines():
        word, _, rest = line.partition(" ")
        if word == "start":
            running.add(rest)
        elif word == "stop":
            running.remove(rest)
        elif word == "echoes":
            seen.append((rest.split("/")[0], "".join(sorted(running))))
    assert seen == [("kernel", ""), ("homad", "cs"), ("server", "s")] * 2
    assert running == set()


def test_wish__what_the_part_does_not_have() -> None:
    cli.check(cli.Wish("tcp-instructions"))
    for wish in (
        cli.Wish("tcp-instructions", offloads="off"),
        cli.Wish("tcp-instructions", module=Path("homa.ko")),
    ):
        with pytest.raises(UsageError, match="tcp-instructions"):
            cli.check(wish)
    assert cli.rounds_of("tcp-instructions") == 3
