# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa kernel`: build homa.ko, load it here, or try it in a virtual machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from lab.series import cli as series
from lab.vm import interactive, kernels, local, module
from lab.errors import LabError
from lab.vm.errors import VmError
from lab.vm.guest import Options
from lab.vm.kernels import Kernel

RUNNING = "running"


def main(arguments: list[str]) -> int:
    """The command line; its exit status."""
    args = _parser().parse_args(arguments)
    try:
        return args.work(args)
    except (LabError, VmError) as error:
        print(f"homa kernel: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./homa kernel",
        description="Homa as a module of the Linux kernel (6.1 to 7.2): IPPROTO_HOMA sockets.",
        epilog="Start with ./homa kernel vm, which needs no root and does not touch this system.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    build = commands.add_parser("build", help="build homa.ko for a kernel")
    build.set_defaults(work=_build)
    build.add_argument(
        "--kernel",
        default=RUNNING,
        choices=(RUNNING, *kernels.NAMES),
        help="the running one (default) or one of those that are tested, which are downloaded",
    )
    build.add_argument("--output", type=Path, metavar="DIR", help="default: build/kernel/RELEASE")
    build.add_argument("--strict", action="store_true", help="warnings are errors")

    load = commands.add_parser("load", help="load it into the running kernel (root)")
    load.set_defaults(work=_load)
    load.add_argument("parameter", nargs="*", help="NAME=VALUE of the module; see modinfo homa.ko")

    unload = commands.add_parser("unload", help="remove it (root)")
    unload.set_defaults(work=lambda _: local.unload())
    status = commands.add_parser("status", help="is it loaded, which one, can it be")
    status.set_defaults(work=lambda _: local.status())

    # The launcher runs the program that does it, homa-streams; here it is for --help.
    commands.add_parser("streams", help="give chosen programs streams over Homa for TCP (root)")

    series.options(
        commands.add_parser("series", help="cut the module into patches for the kernel, as mails")
    )

    vm = commands.add_parser("vm", help="a small virtual machine with the module loaded")
    vm.set_defaults(work=_vm)
    vm.add_argument(
        "--kernel",
        choices=kernels.NAMES,
        help="default: the newest that is downloaded already, else 6.1",
    )
    vm.add_argument("--run", metavar="COMMANDS", help="run a shell script instead of a shell")
    vm.add_argument(
        "--program",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="put this program, too, into the machine's /usr/bin",
    )
    vm.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="HERE[:THERE]",
        help="put this file or folder into the machine, as THERE (default /root/NAME)",
    )
    vm.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="ARGS",
        help="give the machine a device, as QEMU's -device; --netdev is for network cards",
    )
    vm.add_argument("--netdev", action="append", default=[], metavar="ARGS", help="as QEMU's")
    vm.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="MODULE",
        help="load this module of the kernel, too, a device's driver for example",
    )
    vm.add_argument(
        "--memory",
        type=int,
        default=0,
        metavar="MIB",
        help="the machine's memory (default: 768, debug kernels 1024)",
    )
    vm.add_argument("--smp", type=int, default=2, metavar="N", help="processors (default 2)")
    vm.add_argument(
        "--timeout",
        type=float,
        default=600,
        metavar="S",
        help="seconds that --run may take (default 600)",
    )
    vm.add_argument("--no-module", action="store_true", help="the machine without homa.ko")
    return parser


def _kernel(name: str) -> Kernel:
    return local.running() if name == RUNNING else kernels.prepare(name)


def output_folder(kernel: Kernel, given: Path | None = None) -> Path:
    """Where homa.ko for `kernel` goes."""
    if given:
        return given
    build = Path(os.environ.get("HOMA_BUILD") or module.ROOT / "build")
    return build.resolve() / "kernel" / kernel.release


def _build(args: argparse.Namespace) -> int:
    kernel = _kernel(args.kernel)
    done = module.build(kernel, output_folder(kernel, args.output), strict=args.strict)
    print(done)
    return 0


def _load(args: argparse.Namespace) -> int:
    local.check_loadable()
    kernel = local.running()
    return local.load(module.build(kernel, output_folder(kernel), strict=False), args.parameter)


def _vm(args: argparse.Namespace) -> int:
    kernel = kernels.prepare(args.kernel or kernels.newest_cached())
    own = () if args.no_module else (module.build(kernel, strict=False),)
    for program in args.program:
        if not program.is_file():
            raise VmError(f"there is no program {program}")
    here = (*interactive.programs(), *(p.resolve() for p in args.program))
    emulator = [word for netdev in args.netdev for word in ("-netdev", netdev)]
    emulator += [word for device in args.device for word in ("-device", device)]
    options = Options(
        smp=args.smp,
        memory=args.memory,
        modules=own,
        programs=(*here, *interactive.tools_of_here()),
        files=interactive.files(args.file),
        load=tuple(args.load),
        emulator=tuple(emulator),
    )
    if args.run is None:
        return interactive.shell(kernel, options)
    return interactive.script(kernel, options, args.run, args.timeout)
