# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The kernel that runs here: whether it takes modules, and homa.ko in it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from lab.vm import initramfs
from lab.vm.errors import Missing, VmError
from lab.vm.kernels import Kernel

MODULE = "homa"
_SYS = Path("/sys/module")


def running() -> Kernel:
    """The running kernel as something to build for; Missing if its headers are not here."""
    release = platform.release()
    for headers in (
        Path(f"/lib/modules/{release}/build"),
        Path(f"/usr/src/linux-headers-{release}"),
    ):
        if (headers / "Makefile").exists() and (headers / ".config").exists():
            return Kernel("running", release, Path("/nonexistent"), headers.resolve())
    raise Missing(
        f"the headers of the running kernel are not installed (no /lib/modules/{release}/build): "
        f"install linux-headers-{release}, or build for another with --kernel, "
        "or try the module in a virtual machine with ./homa kernel vm"
    )


def can_load() -> str:
    """ "" if the running kernel takes modules, else why not."""
    if not Path("/proc/modules").exists():
        return "the running kernel was built without loadable modules"
    disabled = Path("/proc/sys/kernel/modules_disabled")
    if disabled.exists() and disabled.read_text().strip() == "1":
        return "loading modules is switched off until the next boot (kernel.modules_disabled)"
    return ""


def check_loadable() -> None:
    """VmError with what to do instead if a module cannot be loaded here."""
    reason = can_load()
    if reason:
        raise VmError(f"{reason}; ./homa kernel vm tries it in a virtual machine")
    if os.geteuid() != 0:
        raise VmError("loading a module needs root")
    if is_loaded():
        raise VmError("a module homa is loaded already; ./homa kernel unload removes it")


def is_loaded() -> bool:
    """A module of that name is in the running kernel, ours or another."""
    return (_SYS / MODULE).exists()


def load(module: Path, parameters: list[str]) -> int:
    """Insert `module` and what it needs; the exit status."""
    for name in initramfs.depends(module.read_bytes()):
        if not (_SYS / name).exists() and shutil.which("modprobe"):
            subprocess.run(["modprobe", name], check=False)
    done = _do("insmod", str(module), *parameters)
    if done.returncode != 0:
        said = done.stderr.strip().replace("insmod: ERROR: ", "")
        hint = "dmesg | tail has the kernel's own words"
        if "Key was rejected" in said:
            hint = "this kernel takes signed modules only (Secure Boot): sign it or switch that off"
        elif "Invalid module format" in said:
            hint = "it was built for another kernel: ./homa kernel build"
        raise VmError(f"{said}; {hint}")
    print(f"loaded {module}")
    return 0


def unload() -> int:
    """Remove the module; the exit status."""
    if not is_loaded():
        print("homa is not loaded")
        return 0
    if os.geteuid() != 0:
        raise VmError("removing a module needs root")
    done = _do("rmmod", MODULE)
    if done.returncode != 0:
        said = done.stderr.strip().replace("rmmod: ERROR: ", "")
        raise VmError(f"{said}; programs that have Homa sockets open: ss --homa or lsof, end them")
    print("removed")
    return 0


def _do(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Missing(f"{command} is not installed (package kmod)") from None


def status() -> int:
    """Say what there is; status 0 if it is loaded, 3 if not (as systemctl says it)."""
    release = platform.release()
    folder = _SYS / MODULE
    if folder.exists():
        version = _text(folder / "version") or "without a version"
        users = _text(folder / "refcnt") or "?"
        print(f"homa is loaded: {version}, {users} users, in Linux {release}")
        return 0
    print(f"homa is not loaded in Linux {release}")
    reason = can_load()
    try:
        headers = f"headers to build it: {running().headers}"
    except Missing:
        headers = f"headers to build it: none (package linux-headers-{release})"
    print(f"it cannot be: {reason}" if reason else "it can be: ./homa kernel load, as root")
    print(headers)
    return 3


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
