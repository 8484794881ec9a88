# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets into capture files, and what tshark says of them with our dissector."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import seeds

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "dissector/homa.lua"
LAYOUT = ROOT / "dissector/homa_wire.lua"  # what generate.py writes
VECTORS = ROOT / "tests/data/wire-vectors"
RAW_IP = 101  # link type of a capture

needs_tshark = pytest.mark.skipif(
    not shutil.which("tshark"), reason="tshark is not installed (Debian package tshark)"
)


@dataclass(frozen=True)
class Vector:
    """A captured frame from its IP header on, and what is stated beside it."""

    name: str
    frame: bytes
    stated: dict

    @property
    def homa(self) -> bytes:
        return seeds.strip_ip(self.frame)


def vectors() -> list[Vector]:
    """All frames of tests/data/wire-vectors/*.hex."""
    found = []
    for path in sorted(VECTORS.glob("*.hex")):
        line = next(x for x in path.read_text().splitlines() if x.startswith("# json: "))
        found.append(Vector(path.stem, seeds.read_hex(path), json.loads(line[8:])))
    return found


def flows() -> dict[str, list[Vector]]:
    """The exchanges of flows.jsonl whose headers are recorded; payload bytes are zero."""
    found: dict[str, list[Vector]] = {}
    for line in (VECTORS / "flows.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "headers_hex" in record:
            frame = bytes.fromhex(record["headers_hex"]) + bytes(record.get("payload_length", 0))
            found.setdefault(record["flow"], []).append(
                Vector(f"{record['flow']}-{record['n']}", frame, record)
            )
    return found


def ip(
    payload: bytes, protocol: int = 146, tos: int = 0, v6: bool = False, back: bool = False
) -> bytes:
    """An IP packet between 10.9.0.1 and .2, or fd09::1 and ::2; `back`: from 2 to 1."""
    hosts = (2, 1) if back else (1, 2)
    if v6:
        head = struct.pack(">IHBB", 6 << 28 | tos << 20, len(payload), protocol, 64)
        return (
            head + b"".join(bytes.fromhex("fd09") + bytes(13) + bytes([h]) for h in hosts) + payload
        )
    head = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(payload), 0, 0x4000, 64, protocol, 0)
    return head + b"".join(bytes([10, 9, 0, h]) for h in hosts) + payload


def udp(payload: bytes, sport: int = 54321, dport: int = 54321, **how: bool | int) -> bytes:
    return ip(struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload, 17, **how)


def common(
    kind: int, sender_id: int, sport: int = 32768, dport: int = 4000, sequence: int = 0
) -> bytes:
    return struct.pack(
        ">HHI3xBBBHHHQ", sport, dport, sequence, kind, 0x50, 6, 0, 0, 0xB97D, sender_id
    )


def data(
    sender_id: int, length: int, offset: int = 0, size: int | None = None, sport: int = 32768,
    dport: int = 4000, incoming: int | None = None, retransmit: int = 0, ext: int = 0, limit: int = 0,
) -> bytes:  # fmt: skip
    """A DATA packet with a payload of zeros."""
    body = struct.pack(
        ">IIQHHBBHI",
        length,
        length if incoming is None else incoming,
        0,
        0,
        0,
        retransmit,
        ext,
        limit,
        offset,
    )
    payload = bytes(length - offset if size is None else size)
    return common(0x10, sender_id, sport, dport, offset) + body + payload


def write(
    path: Path, frames: Sequence[bytes], lengths: Sequence[int] | None = None, step: float = 0.001
) -> Path:
    """A capture, a frame each `step` seconds; `lengths`: of the frames before they were cut off."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, RAW_IP))
        for number, frame in enumerate(frames):
            when = round(number * step * 1e9)
            length = lengths[number] if lengths else len(frame)
            file.write(
                struct.pack("<IIII", when // 10**9, when % 10**9, len(frame), length) + frame
            )
    return path


def tshark(capture: Path, *words: str, script: bool = True) -> str:
    """tshark's output; an AssertionError if it complains. Two passes, so that links go forwards, too."""
    load = ["-X", f"lua_script:{SCRIPT}"] if script else []
    done = subprocess.run(
        ["tshark", *load, "-n", "-2", "-r", str(capture), *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "WIRESHARK_CONFIG_DIR": str(capture.parent / "wireshark"),
            "HOME": str(capture.parent),
        },
    )
    complaints = [line for line in done.stderr.splitlines() if "dangerous" not in line]
    assert done.returncode == 0 and not complaints, f"{done.returncode}: {done.stderr}"
    return done.stdout


def fields(capture: Path, names: Sequence[str], *words: str) -> list[dict[str, list[str]]]:
    """For each frame the values of each field, in order of appearance."""
    wanted = [word for name in names for word in ("-e", name)]
    text = tshark(
        capture,
        "-T",
        "fields",
        "-E",
        "separator=/t",
        "-E",
        "aggregator=;",
        "-E",
        "occurrence=a",
        *wanted,
        *words,
    )
    rows = [line.split("\t") for line in text.splitlines()]
    return [{n: v.split(";") if v else [] for n, v in zip(names, row, strict=True)} for row in rows]


def experts(capture: Path) -> list[set[str]]:
    """The expert infos of each frame, by the last word of their names; "lua" stands for an error of the script."""
    names = ["short", "type", "length", "empty", "offset", "count", "priority", "side", "markers", "trailer",
             "unsegmented", "retransmit", "resend", "rpc_unknown"]  # fmt: skip
    rows = fields(capture, [*(f"homa.expert.{n}" for n in names), "_ws.malformed", "_ws.lua.error"])
    found = []
    for row in rows:
        mine = {n for n in names if row[f"homa.expert.{n}"]}
        if row["_ws.lua.error"]:
            mine.add("lua")
        # Wireshark adds this to the first six of ours, too.
        if row["_ws.malformed"] and not mine & set(names[:6]):
            mine.add("malformed")
        found.append(mine)
    return found
