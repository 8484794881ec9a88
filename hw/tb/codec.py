# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The C code as the oracle, through cffi (hw_oracle.h, hw_ends.h, hw_grant.h)."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI

HEADERS = [Path(__file__).with_name(f"hw_{name}.h") for name in ("oracle", "ends", "grant")]
FIELDS = "error type hdr_len sport dport sender_id offset length incoming level".split()


def declarations() -> str:
    """What the headers say between their marker lines."""
    found = ""
    for header in HEADERS:
        match = re.search(r"/\* BEGIN cffi \*/(.*)/\* END cffi \*/", header.read_text(), re.S)
        if not match:
            raise ValueError(f"{header.name} has lost its marker lines")
        found += match[1]
    return found


@cache
def library() -> tuple[FFI, Any]:
    """cffi and the library that $HW_ORACLE names."""
    ffi = FFI()
    ffi.cdef(declarations())
    return ffi, ffi.dlopen(os.environ["HW_ORACLE"])


def decode(packet: bytes) -> dict[str, int]:
    """What homa_packet_decode() says of a Homa packet."""
    ffi, lib = library()
    out = ffi.new("struct hw_decoded *")
    lib.hw_decode(out, packet, len(packet))
    return {name: getattr(out, name) for name in FIELDS}


def segment(header: bytes, skip: int) -> bytes:
    """The engine's header of the segment `skip` bytes after what `header` begins."""
    ffi, lib = library()
    out = ffi.new("char[56]")
    lib.hw_segment(out, header, skip)
    return bytes(ffi.buffer(out))
