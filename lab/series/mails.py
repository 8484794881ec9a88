# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The series as mails that `git am` takes. The same tree makes the same bytes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.series import layout
from lab.series.table import ROOT, Table

PREFIX = "PATCH net-next"
FILES = "FILES"
_NOBODY = "Homa <homa@localhost>"
_ENDED = "homa series"


def author_of(root: Path = ROOT) -> str:
    """`Name <address>` of who made the tree's last commit."""
    return _asked(root, "%an <%ae>") or _NOBODY


def _date_of(root: Path) -> str:
    return _asked(root, "%ct") or "0"


def _asked(root: Path, what: str) -> str:
    words = ["git", "-C", str(root), "log", "-1", f"--format={what}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LabError("git is not installed") from None
    return done.stdout.strip()


def write(
    table: Table,
    states: Sequence[Mapping[str, str]],
    base: Mapping[str, str],
    out: Path,
    author: str,
    *,
    signed: bool = False,
    root: Path = ROOT,
) -> list[Path]:
    """The mails in the folder `out`, the cover letter first, and FILES beside them."""
    for old in [*out.glob("*.patch"), out / FILES]:
        if old.exists() and _ENDED not in old.read_text(errors="replace"):
            raise LabError(f"{old} is not of a series that this command made; remove it first")
        old.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="homa-series-") as scratch:
        git = _Git(Path(scratch), author, _date_of(root))
        git.run("init", "-q", "-b", "series")
        git.commit({}, base, "base")
        git.run("tag", "base")
        before = base
        for patch, state in zip(table.patches, states, strict=True):
            signature = f"\n\nSigned-off-by: {author}" if signed else ""
            git.commit(before, state, f"{patch.subject}\n\n{patch.body.strip()}{signature}")
            before = state
        git.run(
            *("format-patch", "-q", "--zero-commit", "--no-base", "--cover-letter", "--no-renames"),
            *(f"--signature={_ENDED}", "--subject-prefix", PREFIX, "--stat=76", "--no-attach"),
            *("-o", str(out.resolve()), "base..series"),
        )
    mails = sorted(out.glob("*.patch"))
    _write_cover(mails[0], table, author, base)
    (out / FILES).write_text(listing(table))
    return mails


class _Git:
    """A repository whose commits depend on nothing but what is put in."""

    def __init__(self, folder: Path, author: str, date: str) -> None:
        self.folder = folder
        name, _, address = author.rstrip(">").rpartition(" <")
        if not name or "@" not in address:
            raise LabError(f'"{author}" is not like "Name <address>"')
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
            "TZ": "UTC",
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.env |= {
                f"GIT_{role}_NAME": name,
                f"GIT_{role}_EMAIL": address,
                f"GIT_{role}_DATE": f"{date} +0000",
            }

    def run(self, *words: str, text: str | None = None) -> None:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=self.env,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LabError(f"git {words[0]}: {done.stderr.strip()}")

    def commit(self, before: Mapping[str, str], after: Mapping[str, str], message: str) -> None:
        for name, text in after.items():
            if before.get(name) != text:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                if path.suffix == ".sh":
                    path.chmod(0o755)
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-F", "-", text=message)


def listing(table: Table) -> str:
    """Which file is in which patch, and which are in none."""
    lines = [f"# {_ENDED}: which file is in which patch"]
    for number, patch in enumerate(table.patches, 1):
        lines += ["", f"{number:02} {patch.subject}"]
        lines += [f"   {name} -> {layout.place(name)}" for name in patch.all_files()]
    lines += ["", "left out"]
    lines += [f"   {pattern}: {why}" for pattern, why in table.left_out.items()]
    return "\n".join(lines) + "\n"


def _write_cover(mail: Path, table: Table, author: str, base: Mapping[str, str]) -> None:
    linked = next(i for i, patch in enumerate(table.patches, 1) if patch.module)
    states = (
        f"Each patch compiles without a warning (W=1). Patches 1 to {linked - 1} only compile their\n"
        f"files; from patch {linked} on they are linked, and every state is a module."
    )
    if not base:
        states += (
            "\n\nThis series was cut without a kernel's tree: net/Makefile needs the line\n"
            '"obj-$(CONFIG_HOMA) += homa/" and net/Kconfig the line\n'
            'source "net/homa/Kconfig".'
        )
    apart = "\n".join(f"* {pattern}: {why}" for pattern, why in table.left_out.items())
    blurb = f"{table.body}\n\n{states}\n\nNot in this series:\n{apart}"
    text = mail.read_text()
    text = text.replace("*** SUBJECT HERE ***", table.subject)
    mail.write_text(text.replace("*** BLURB HERE ***", blurb))
