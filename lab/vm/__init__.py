# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Small virtual machines that load homa.ko: kernels, the module's build, guests.

Everything is x86-64 under software emulation, needs no KVM and, but for the compiler of
kernel 7.2, no root. Kernels and tools are Debian packages kept in a cache (cache.root()).
Errors are VmError (a failure), BuildFailed (one of them, with the compiler's words) and
Missing (not available on this machine: skip, with its text as the reason).

    from lab.vm import Kernel, Options, build, prepare, run, Guest

    kernel = prepare("6.1")             # or "6.12", "7.2", "debug" (KASAN, lockdep, kmemleak),
                                        # or "kcsan" (data races)
                                        # or "6.1-rt", "6.12-rt", "7.2-rt" (PREEMPT_RT)
    module = build(kernel)              # homa.ko from this tree; warnings are errors
    result = run(kernel, SCRIPT, Options(modules=(module,), programs=(path, "tcpdump")))
    result.status, result.output        # of the script (sh), standard error included
    result.log, result.problems         # kernel log; from its first complaint on, or ""
    result.check()                      # the output; VmError if either went wrong

A guest boots in 3 to 10 seconds (debug: 15 to 30), so put many steps into one script. It has
root, two processors, busybox, ip, tc, ss, ethtool, and loopback up; veth, bridge, vxlan, tun,
netem, tbf, prio, htb, fq, u32 are loaded. `programs` are files of this machine, put into
/usr/bin with their libraries; `files` maps guest paths to bytes, text or files; `load` names
more modules of the kernel; `arguments` are homa.ko's parameters, `emulator` words for QEMU. Two
hosts in one guest:

    ip netns add a; ip netns add b
    ip link add va netns a type veth peer name vb netns b

Things the host decides while the guest runs, and two guests on one wire:

    with Guest(kernel, Options(modules=(module,))) as guest:   # leaving it powers it off and
        guest.run("ip link").check()                            # raises what the kernel said
        guest.start("sleep 5"); guest.wait(timeout=20)
    left, right = wire(folder)                                  # two netdevs (unix sockets)
    Guest(kernel, Options(netdevs=(left,))), Guest(kernel, Options(netdevs=(right,)))
    Options(netdevs=("tap,ifname=t0,script=no,downscript=no",), netns="NAME")   # a tap

`icount=True` runs one processor on counted instructions: every run is bit-identical, whatever
else this machine does; `plugins` are TCG plugins ("/path/x.so,arg=1"). `expected` is a pattern
for kernel messages that a test provokes. `append` goes to the kernel's command line. Files
back: `drives` are raw disk images (vda, ...) in which the guest writes (dd, tar).

In the debug kernel all of the above is built in; homa.ko alone is built with KCOV; `leaks` has
kmemleak scan before power-off (slow), what it finds is in `problems`; failslab, fail_page_alloc
are in /sys/kernel/debug. Timeouts are four times as long there and under "kcsan", and longer on a busy machine.
The emulator is killed when the thread that started it ends: start guests in a thread that stays.
"""

from __future__ import annotations

from lab.vm.errors import BuildFailed, Missing, VmError
from lab.vm.guest import Done, Guest, Options, Result, run, wire
from lab.vm.kernels import NAMES, TESTED, Kernel, prepare
from lab.vm.module import build

__all__ = [
    "NAMES",
    "TESTED",
    "BuildFailed",
    "Done",
    "Guest",
    "Kernel",
    "Missing",
    "Options",
    "Result",
    "VmError",
    "build",
    "prepare",
    "run",
    "wire",
]
