# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""BPF programs of this folder: compiled when needed; global variables of loaded ones."""

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


class _Memory:
    """The first map (.bss) of a loaded program, as u32s; a context. `map` is -1 if there is none."""

    _ROOM = 64  # u32s: room for whatever .bss may hold

    def __init__(self, program_id: int) -> None:
        self._program_id = program_id
        self._descriptors: list[int] = []
        self.map = -1

    def __enter__(self) -> _Memory:
        try:
            self._library = ctypes.CDLL("libbpf.so.1", use_errno=True)
        except OSError:
            return self
        program = self._keep(self._library.bpf_prog_get_fd_by_id(self._program_id))
        maps = (ctypes.c_uint32 * 1)()
        info = _ProgramInfo(nr_map_ids=1, map_ids=ctypes.addressof(maps))
        length = ctypes.c_uint32(ctypes.sizeof(info))
        known = program >= 0 and not self._library.bpf_obj_get_info_by_fd(
            program, ctypes.byref(info), ctypes.byref(length)
        )
        if known and info.nr_map_ids:
            self.map = self._keep(self._library.bpf_map_get_fd_by_id(maps[0]))
        return self

    def _keep(self, descriptor: int) -> int:
        if descriptor >= 0:
            self._descriptors.append(descriptor)
        return descriptor

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def read(self) -> ctypes.Array[ctypes.c_uint32] | None:
        """What it holds; None where it cannot be read."""
        value, key = (ctypes.c_uint32 * self._ROOM)(), ctypes.c_uint32(0)
        if self.map < 0 or self._library.bpf_map_lookup_elem(
            self.map, ctypes.byref(key), ctypes.byref(value)
        ):
            return None
        return value

    def write(self, value: ctypes.Array[ctypes.c_uint32]) -> bool:
        """Replace it; whether that was possible."""
        key = ctypes.c_uint32(0)
        return not self._library.bpf_map_update_elem(
            self.map, ctypes.byref(key), ctypes.byref(value), ctypes.c_uint64(0)
        )


def read_memory(program_id: int, count: int) -> list[int] | None:
    """The first `count` u32s of the program's .bss; None where they cannot be read."""
    with _Memory(program_id) as memory:
        value = memory.read()
        return None if value is None else list(value[:count])


def write_memory(program_id: int, numbers: dict[int, int]) -> bool:
    """Set u32s of the program's .bss by their index, before it has traffic; whether it worked."""
    with _Memory(program_id) as memory:
        value = memory.read()
        if value is None:
            return False
        for index, number in numbers.items():
            value[index] = number
        return memory.write(value)
