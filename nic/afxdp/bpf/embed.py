#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Turn a compiled BPF object into a C array, so that no file is needed at run time."""

import sys
from pathlib import Path


def main(source: str, target: str, name: str) -> None:
    data = Path(source).read_bytes()
    lines = [
        "/* Generated from the compiled BPF object; see nic/afxdp/bpf. */",
        f'#include "{name}.h"',
        f"_Alignas(8) const unsigned char {name}[] = {{",
    ]
    for at in range(0, len(data), 16):
        lines.append("\t" + " ".join(f"0x{byte:02x}," for byte in data[at : at + 16]))
    lines += ["};", f"const unsigned long {name}_len = {len(data)};", ""]
    Path(target).write_text("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
