# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which function a kernel address is in, from the guest's own /proc/kallsyms."""

from __future__ import annotations

import base64
import binascii
import bisect
import zlib
from dataclasses import dataclass

from lab.vm import VmError

_HEAD = "@@symbols "
# What a guest runs to tell its symbols; modules must be loaded where they were measured.
_TELL = f"""
printf '{_HEAD}'
grep -i ' [%s] ' /proc/kallsyms | gzip -1 | base64 -w0
echo
"""
SCRIPT = _TELL % "tw"
# The same with variables, which are "functions" here, too.
SCRIPT_ALL = _TELL % "twdb"


@dataclass(frozen=True)
class Function:
    """A function; `module` is "" for the kernel itself."""

    address: int
    name: str
    module: str


class Symbols:
    """Functions by address."""

    def __init__(self, text: str) -> None:
        found: dict[int, Function] = {}
        for line in text.splitlines():
            words = line.split()
            if len(words) < 3 or words[2].startswith(("__pfx_", "__cfi_", ".L")):
                continue
            address = int(words[0], 16)
            module = words[3].strip("[]") if len(words) > 3 else ""
            # Of several names the first global one counts.
            if address not in found or (words[1] == "T" and found[address].name[0] == "_"):
                found[address] = Function(address, words[2], module)
        self._functions = [found[address] for address in sorted(found)]
        self._addresses = [function.address for function in self._functions]

    @classmethod
    def from_output(cls, output: str) -> Symbols:
        """From what SCRIPT printed among other things."""
        lines = [x for x in output.splitlines() if x.startswith(_HEAD)]
        try:
            packed = base64.b64decode(lines[0][len(_HEAD) :], validate=True)
            text = zlib.decompress(packed, wbits=31).decode(errors="replace")
        except (IndexError, binascii.Error, zlib.error) as error:
            raise VmError(f"the guest did not tell its symbols ({error})") from None
        return cls(text)

    def find(self, address: int) -> Function:
        """The function that `address` is in."""
        at = bisect.bisect_right(self._addresses, address) - 1
        return self._functions[at] if at >= 0 else Function(0, "?", "")
