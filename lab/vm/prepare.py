# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`python -m lab.vm.prepare NAME [--build]`: a kernel and homa.ko for it, ready in the cache.

The test runner starts one per kernel, so that two downloads or builds go on at once. The last
line says what came of it; the exit status is 0, MISSING (nobody's mistake) or 1. Without
`--build` a debug kernel that is not in the cache is not built.
"""

from __future__ import annotations

import sys

from lab.vm import cache, kernels, module, tools
from lab.vm.errors import Missing, VmError

MISSING = 77


def main(arguments: list[str]) -> int:
    """The command line; its exit status."""
    name, build = arguments[0], "--build" in arguments
    try:
        tools.qemu()
        tools.busybox()
        kernel = kernels.prepare(name, build=build)
        built = module.build(kernel, sparse=name == kernels.SPARSE and module.has_sparse())
        cache.sweep("modules", built.parents[2])
    except Missing as error:
        print(error)
        return MISSING
    except VmError as error:
        print(error)
        return 1
    print(f"{kernel.release} is ready")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
