# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The guest's root file system: an archive in memory, put together without root rights.

Busybox gives the shell and the small commands; ip, tc, ss, ethtool and whatever the test
wants are the machine's own programs with the libraries that they load. Kernel modules are
found with all they depend on, from what each says about itself.
"""

from __future__ import annotations

import functools
import io
import lzma
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from lab.vm import tools
from lab.vm.errors import Missing
from lab.vm.kernels import Kernel

PROGRAMS = ("ip", "tc", "ss", "ethtool")
# Busybox has these, too, but its own start its own ip instead of the real one.
STARTERS = ("timeout", "env", "nice", "nohup", "setsid", "taskset", "xargs", "chrt", "unshare")
# Wanted if the kernel has them as modules; a kernel that has them built in has no file.
MODULES = (
    *("virtio_pci", "virtio_net", "virtio_blk", "veth", "dummy", "tun", "bridge", "8021q"),
    *("sch_netem", "sch_tbf", "sch_prio", "sch_htb", "sch_fq", "sch_fq_codel", "sch_ingress"),
    *("cls_u32", "cls_matchall", "act_mirred", "act_gact", "act_skbedit", "act_pedit"),
    *("udp_tunnel", "ip6_udp_tunnel", "vxlan", "sch_multiq", "inet_diag", "tcp_diag", "udp_diag"),
)
INIT = Path(__file__).with_name("init.sh")


class Archive:
    """A cpio archive in the kernel's "newc" format."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._number = 0
        self._have: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name.strip("/") in self._have

    def folder(self, name: str) -> None:
        """A folder, and those above it."""
        parts = name.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path and path not in self._have:
                self._add(path, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """A file; its folders are made."""
        if name in self:
            return
        self.folder(os.path.dirname(name))
        self._add(name.strip("/"), stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        if name in self:
            return
        self.folder(os.path.dirname(name))
        self._add(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        """A character device."""
        self.folder(os.path.dirname(name))
        self._add(name.strip("/"), stat.S_IFCHR | 0o600, b"", (major, minor))

    def _add(self, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        self._have.add(name)
        self._number += 1
        encoded = name.encode() + b"\0"
        fields = (self._number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        self._out.write(b"070701" + b"".join(b"%08X" % f for f in fields) + encoded)
        self._out.write(b"\0" * (-self._out.tell() % 4))
        self._out.write(content)
        self._out.write(b"\0" * (-self._out.tell() % 4))

    def bytes(self) -> bytes:
        """All of it with its end."""
        end = Archive()
        end._add("TRAILER!!!", 0, b"")
        body = self._out.getvalue() + end._out.getvalue()
        return body + b"\0" * (-len(body) % 512)


def base(kernel: Kernel, programs: tuple[str, ...] = ()) -> bytes:
    """What every guest of `kernel` has, and `programs` of this machine by name."""
    return _base(kernel, (*PROGRAMS, *programs))


@functools.lru_cache(maxsize=8)
def _base(kernel: Kernel, programs: tuple[str, ...]) -> bytes:
    archive = Archive()
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "etc", "sbin", "usr/bin", "homa"):
        archive.folder(name)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3)
    archive.file("bin/busybox", tools.busybox().read_bytes(), 0o755)
    # Busybox's own shell would take its ip for the real one.
    add_program(archive, Path("/bin/sh").resolve(), "bin/sh")
    archive.file("init", INIT.read_bytes(), 0o755)
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    archive.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    archive.file("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")
    for name in (*programs, *STARTERS):
        found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if not found and name in STARTERS:
            continue
        if not found:
            raise Missing(f"{name} is not installed, and guests need it")
        add_program(archive, Path(found), f"usr/bin/{name}")
    order = add_modules(archive, kernel, MODULES, optional=True)
    archive.file("homa/modules", "".join(f"{m}\n" for m in order).encode())
    return archive.bytes()


def add_program(archive: Archive, path: Path, name: str = "") -> None:
    """A program of this machine with its libraries, as usr/bin/NAME."""
    archive.file(name or f"usr/bin/{path.name}", path.read_bytes(), 0o755)
    for library in libraries(path.resolve()):
        archive.file(library, Path(library).read_bytes(), 0o755)


@functools.lru_cache(maxsize=256)
def libraries(program: Path) -> tuple[str, ...]:
    """The shared libraries, and the loader, that a program needs; none for a script."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    lost = re.findall(r"^\s*(\S+) => not found", done.stdout, re.M)
    if lost:
        raise Missing(f"{program} needs {', '.join(lost)}, not found here")
    return tuple(re.findall(r"(?:=>\s+|^\s+)(/\S+) \(0x", done.stdout, re.M))


def add_modules(
    archive: Archive, kernel: Kernel, names: tuple[str, ...], *, optional: bool = False
) -> list[str]:
    """The kernel's modules with all they depend on; their paths in the order of loading."""
    have = _available(kernel)
    order: list[str] = []

    def visit(name: str, needed_by: str) -> None:
        path = have.get(name.replace("-", "_"))
        target = f"homa/ko/{name.replace('-', '_')}.ko"
        if path is None:
            if needed_by or not optional:
                _check_builtin(kernel, name, needed_by)
            return
        if f"/{target}" in order:
            return
        content = read_module(path)
        for other in depends(content):
            visit(other, name)
        archive.file(target, content)
        order.append(f"/{target}")

    for name in names:
        visit(name, "")
    return order


def _check_builtin(kernel: Kernel, name: str, needed_by: str) -> None:
    """A module without a file is in the kernel itself, or the caller asks for what is not."""
    # The list of a kernel without modules lies where it was built.
    listed = (kernel.modules or kernel.headers) / "modules.builtin"
    if listed.exists():
        built_in = {Path(x).stem.replace("-", "_") for x in listed.read_text().split()}
        if name.replace("-", "_") not in built_in:
            by = f", which {needed_by} needs" if needed_by else ""
            raise Missing(f"kernel {kernel.release} has no module {name}{by}")


@functools.lru_cache(maxsize=8)
def _available(kernel: Kernel) -> dict[str, Path]:
    if kernel.modules is None:
        return {}
    return {
        path.name.split(".ko")[0].replace("-", "_"): path
        for path in kernel.modules.rglob("*.ko*")
        if path.name.endswith((".ko", ".ko.xz"))
    }


def read_module(path: Path) -> bytes:
    """A module as the kernel takes it, unpacked if it is compressed."""
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content


def depends(module: bytes) -> list[str]:
    """Names of the modules that a module asks for."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    return [n for n in match.group(1).decode().split(",") if n] if match else []
