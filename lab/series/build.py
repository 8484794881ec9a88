# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Does each state of the series build, and what does the kernel's checkpatch say of the mails?"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.series import layout
from lab.series.table import ROOT, Patch
from lab.vm import cache, module
from lab.vm.kernels import Kernel

_SAID = re.compile(r": (ERROR|WARNING|CHECK):([A-Z_]+): ")


def state(
    kernel: Kernel, patches: Sequence[Patch], tree: Mapping[str, str], root: Path = ROOT
) -> Path | None:
    """Compile the state that these patches make, every warning (W=1) an error: the module, None
    if there is none yet; BuildFailed with the compiler's words."""
    tag = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    work = cache.root() / "modules" / f"{kernel.release}-series-{tag}"
    with cache.locked(f"module-{work.name}"):
        _lay_out(tree, work)
        cache.confirm(work)
        names = layout.options(patches)
        defined = (f"{n}_MODULE" if value == "m" else n for n, value in names.items())
        flags = ["-I{work}/uapi", *(f"-D{name}=1" for name in defined)]
        return module.compile_in(
            kernel,
            work,
            flags=flags,
            arguments=[f"{name}={value}" for name, value in names.items()],
            linked=any(patch.module for patch in patches),
        )


def _lay_out(tree: Mapping[str, str], work: Path) -> None:
    """The module's folder of the tree at the top of `work`, since the kernel's build wants it
    there, and what programs include below uapi/."""
    wanted = {}
    for name, text in tree.items():
        if name.startswith(f"{layout.MODULE}/"):
            wanted[work / name[len(layout.MODULE) + 1 :]] = text
        elif name.startswith(layout.UAPI):
            wanted[work / "uapi/linux" / Path(name).name] = text
    for path in work.rglob("*"):
        made = path.name.endswith(".mod.c") or not path.is_file()
        if path.suffix in (".c", ".h", ".def", ".ko") and not made and path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def checkpatch(tree: Path, mails: Sequence[Path]) -> tuple[Counter[str], list[str]]:
    """`checkpatch.pl --strict` of the kernel's source `tree` over the mails: how often it says
    what, and every line."""
    script = tree / "scripts/checkpatch.pl"
    if not script.is_file():
        raise LabError(f"{tree} has no scripts/checkpatch.pl")
    counts: Counter[str] = Counter()
    lines = []
    words = ["perl", str(script.resolve()), "--no-tree", "--strict", "--show-types", "--terse"]
    # It keeps what it has found out in the folder where it runs.
    with tempfile.TemporaryDirectory(prefix="homa-checkpatch-") as scratch:
        for mail in mails:
            done = subprocess.run(
                [*words, "--no-summary", str(mail.resolve())],
                cwd=scratch,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            if done.returncode not in (0, 1):
                raise LabError(f"checkpatch: {done.stderr.strip()[:300]}")
            for line in done.stdout.splitlines():
                match = _SAID.search(line)
                if match:
                    counts[f"{match[1]} {match[2]}"] += 1
                    lines.append(line.rpartition(f"{mail.parent}/")[2])
    return counts, lines
