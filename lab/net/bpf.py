# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""BPF programs of this folder: compiled when needed; a global variable read from a loaded one."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from lab.errors import LabError
from lab.net.hosts import run
from lab.paths import BUILD


class _ProgramInfo(ctypes.Structure):
    """The head of struct bpf_prog_info of <linux/bpf.h>, up to the program's maps."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("tag", ctypes.c_uint8 * 8),
        ("jited_prog_len", ctypes.c_uint32),
        ("xlated_prog_len", ctypes.c_uint32),
        ("jited_prog_insns", ctypes.c_uint64),
        ("xlated_prog_insns", ctypes.c_uint64),
        ("load_time", ctypes.c_uint64),
        ("created_by_uid", ctypes.c_uint32),
        ("nr_map_ids", ctypes.c_uint32),
        ("map_ids", ctypes.c_uint64),
    ]


def compiled(name: str) -> Path | None:
    """The object file of the program `name`, compiled if it is out of date; None without a compiler."""
    source = Path(__file__).resolve().parent / name
    target = BUILD / "lab" / Path(name).with_suffix(".o")
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        arch = run(["uname", "-m"]).strip()
        fresh = target.with_suffix(f".{os.getpid()}.tmp")
        words = ["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{arch}-linux-gnu"]
        run([*words, "-c", str(source), "-o", str(fresh)])
        fresh.replace(target)
        return target
    except (LabError, OSError):
        return None


def first_counter(program_id: int) -> int | None:
    """The u32 at the start of the first map (.bss) of the program; None where it cannot be read."""
    try:
        libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        return None
    descriptors = []
    try:
        program = libbpf.bpf_prog_get_fd_by_id(program_id)
        if program < 0:
            return None
        descriptors.append(program)
        maps = (ctypes.c_uint32 * 1)()
        info = _ProgramInfo(nr_map_ids=1, map_ids=ctypes.addressof(maps))
        length = ctypes.c_uint32(ctypes.sizeof(info))
        if (
            libbpf.bpf_obj_get_info_by_fd(program, ctypes.byref(info), ctypes.byref(length))
            or not info.nr_map_ids
        ):
            return None
        data = libbpf.bpf_map_get_fd_by_id(maps[0])
        if data < 0:
            return None
        descriptors.append(data)
        value = (ctypes.c_uint32 * 64)()  # room for whatever else .bss may hold
        key = ctypes.c_uint32(0)
        if libbpf.bpf_map_lookup_elem(data, ctypes.byref(key), ctypes.byref(value)):
            return None
        return value[0]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
