#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Write the captured frames' Homa packets, one file each, as a seed corpus for fuzz_wire.

usage: seeds.py VECTOR_DIR OUTPUT_DIR
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def strip_ip(frame: bytes) -> bytes:
    """Return what follows the IP header."""
    return frame[20:] if frame[0] >> 4 == 4 else frame[40:]


def read_hex(path: Path) -> bytes:
    """Return the frame of one .hex file."""
    lines = path.read_text().splitlines()
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


def read_flows(path: Path) -> dict[str, bytes]:
    """Return the headers recorded in flows.jsonl, padded to their payload's length."""
    packets = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if "headers_hex" in record:
            frame = bytes.fromhex(record["headers_hex"]) + bytes(record.get("payload_length", 0))
            packets[f"{record['flow']}-{record['n']}"] = frame
    return packets


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    vectors, output = Path(sys.argv[1]), Path(sys.argv[2])
    frames = {path.stem: read_hex(path) for path in vectors.glob("*.hex")}
    frames |= read_flows(vectors / "flows.jsonl")
    if not frames:
        print(f"{vectors}: no captured frames there", file=sys.stderr)
        return 1
    output.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        (output / name).write_bytes(strip_ip(frame))
    return 0


if __name__ == "__main__":
    sys.exit(main())
