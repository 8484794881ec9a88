# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The kernel's tree after each patch: where our files are, and what the kernel's build is told.

A state is a dict from names of files to their text. The module's folder has the same files and
folders as host/kernel/ and engine/ here, so a file of a patch is found again; only what programs
include lies where the kernel has such headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.series import style
from lab.series.table import ROOT, Patch

MODULE = "net/homa"
UAPI = "include/uapi/linux"
TESTS = "tools/testing/selftests/net/homa"
_SPDX = "# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later\n"
_PLACES = (
    ("abi/", f"{UAPI}/"),
    ("engine/", f"{MODULE}/engine/"),
    ("host/kernel/", f"{MODULE}/"),
    ("tests/vm/kselftest/", f"{TESTS}/"),
)
# Files of the kernel that the series changes: the first patch all but the list of self-tests.
_SELFTESTS = "tools/testing/selftests/Makefile"
HOOKED = ("net/Kconfig", "net/Makefile", "MAINTAINERS", _SELFTESTS)
_INCLUDED = re.compile(r'^#include "(\w+\.h)"', re.M)


def place(name: str) -> str:
    """Where a file of our tree is in the kernel's."""
    for ours, theirs in _PLACES:
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise LabError(f"{name} has no place in the kernel's tree")


def _text(name: str, root: Path, interface: set[str]) -> str:
    """A file's text in the kernel's style; headers of the interface are included as there."""

    def include(match: re.Match[str]) -> str:
        header = match[1]
        return f"#include <linux/{header}>" if header in interface else match[0]

    return style.comments(_INCLUDED.sub(include, (root / name).read_text()))


def states(
    patches: Sequence[Patch], base: Mapping[str, str], author: str, root: Path = ROOT
) -> list[dict[str, str]]:
    """The tree after each patch; `base` has the files of HOOKED that there are."""
    interface = {Path(n).name for p in patches for n in p.all_files() if n.startswith("abi/")}
    now = dict(base)
    found = []
    for number, patch in enumerate(patches, 1):
        if number == 1:
            now |= _hooks(base, author)
        for name in patch.all_files():
            now[place(name)] = _text(name, root, interface)
        if _SELFTESTS in base and f"{TESTS}/Makefile" in now:
            now[_SELFTESTS] = _before(
                base[_SELFTESTS], r"TARGETS \+= net/mptcp", "TARGETS += net/homa\n"
            )
        there = patches[:number]
        now[f"{MODULE}/Makefile"] = makefile(there)
        now[f"{MODULE}/Kconfig"] = kconfig(there)
        found.append(dict(now))
    return found


def _inside(files: Sequence[str], suffix: str) -> list[str]:
    """Those of the files with that ending in the module's folder, without the ending."""
    start = f"{MODULE}/"
    names = [place(n)[len(start) :] for n in files if place(n).startswith(start)]
    return [n[: -len(suffix)] for n in names if n.endswith(suffix)]


def makefile(patches: Sequence[Patch]) -> str:
    """The module's Makefile when these patches are applied."""
    folders = []
    for patch in patches:
        for name in _inside(patch.all_files(), ".h"):
            folder = str(Path(name).parent)
            if folder not in folders:
                folders.append(folder)
    lines = [_SPDX, "# Homa transport protocol\n\n"]
    for folder in folders:
        lines.append(f"ccflags-y += -I$(src){'' if folder == '.' else '/' + folder}\n")
    lines.append("ccflags-y += -DHOMA_MT -Wvla\n\n")
    linked = any(patch.module for patch in patches)
    if linked:
        lines.append("obj-$(CONFIG_HOMA) += homa.o\n\n")
    else:
        lines.append("# Compiled, and linked when there is a module.\n")
    for patch in patches:
        target = "homa-y" if linked else "always-$(CONFIG_HOMA)"
        lines += [f"{target} += {name}.o\n" for name in _inside(patch.files, ".c")]
        for option in patch.options:
            target = f"homa-$(CONFIG_{option.name})"
            if option.module:
                lines.append(f"\nobj-$(CONFIG_{option.name}) += {option.module}.o\n")
                target = f"{option.module}-y"
            lines += [f"{target} += {name}.o\n" for name in _inside(option.files, ".c")]
    return "".join(lines)


def kconfig(patches: Sequence[Patch]) -> str:
    """The module's Kconfig when these patches are applied."""
    text = f"""{_SPDX}config HOMA
	tristate "Homa transport protocol"
	depends on m
	depends on INET && IPV6
	help
	  Homa carries remote procedure calls in datacenters. Receivers
	  schedule senders with grants, shortest message first, and packets
	  carry priorities that switches obey, so that short messages do not
	  wait behind long ones.

	  The module will be called homa. If unsure, say N.
"""
    for option in (option for patch in patches for option in patch.options):
        needs = f" && {option.needs}" if option.needs else ""
        kind = "tristate" if option.module else "bool"
        default = "\tdefault y\n" if option.default else ""
        lines = option.help.strip().splitlines()
        words = "\n".join(f"\t  {line}" if line else "" for line in lines)
        text += (
            f'\nconfig {option.name}\n\t{kind} "{option.title}"\n\tdepends on HOMA{needs}\n'
            f"{default}\thelp\n{words}\n"
        )
    return text


def options(patches: Sequence[Patch]) -> dict[str, str]:
    """The options that there are, all of which a build turns on, and their values."""
    own = [option for patch in patches for option in patch.options]
    return {"CONFIG_HOMA": "m"} | {f"CONFIG_{o.name}": "m" if o.module else "y" for o in own}


def _hooks(base: Mapping[str, str], author: str) -> dict[str, str]:
    """The kernel's own files with the lines that lead to the module."""
    found = {}
    if "net/Makefile" in base:
        found["net/Makefile"] = base["net/Makefile"] + "obj-$(CONFIG_HOMA)\t\t+= homa/\n"
    if "net/Kconfig" in base:
        found["net/Kconfig"] = _before(
            base["net/Kconfig"], r'source "net/rds/Kconfig"', 'source "net/homa/Kconfig"\n'
        )
    if "MAINTAINERS" in base:
        entry = (
            f"HOMA TRANSPORT PROTOCOL\nM:\t{author}\nL:\tnetdev@vger.kernel.org\nS:\tMaintained\n"
            f"F:\t{UAPI}/homa*.h\nF:\t{MODULE}/\nF:\t{TESTS}/\n\n"
        )
        later = r"HO(?:MA T|[N-Z]).*\n[A-Z]:\t"
        found["MAINTAINERS"] = _before(base["MAINTAINERS"], later, entry)
    return found


def _before(text: str, pattern: str, added: str) -> str:
    match = re.search(f"^(?:{pattern})", text, re.M)
    if not match:
        raise LabError(f"the kernel's tree has no line like {pattern}")
    return text[: match.start()] + added + text[match.start() :]
