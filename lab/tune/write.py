# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Settings as a configuration of homad, checked by homad itself before anybody gets it."""

from __future__ import annotations

import json
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path

from lab.errors import LabError
from lab.net.homad import program
from lab.net.hosts import Host
from lab.tune.choose import Setting

_WIDTH = 98


def text(settings: Iterable[Setting], head: str) -> str:
    """The configuration: `head` and each setting's reason and command are comments."""
    sections: dict[str, list[str]] = {}
    for setting in settings:
        section, name = setting.name.split(".")
        lines = sections.setdefault(section, [])
        lines += comment(f"{setting.reason}" if setting.value is not None else
                         f"{name}: {setting.reason}")  # fmt: skip
        if setting.command:
            lines.append(f"#   {' '.join(setting.command.split())}")
        if setting.value is not None:
            lines.append(f"{name} = {json.dumps(setting.value)}")
        lines.append("")
    parts = [*comment(head), ""]
    for section, lines in sections.items():
        parts += [f"[{section}]", *lines]
    return "\n".join(parts)


def comment(sentence: str) -> list[str]:
    """`sentence` as lines of comment."""
    words = " ".join(sentence.split())
    return [f"# {line}" for line in textwrap.wrap(words, _WIDTH, break_on_hyphens=False)]


def check(configuration: str, host: Host) -> None:
    """LabError with homad's own words if it refuses the configuration."""
    with tempfile.TemporaryDirectory(prefix="homa-tune-") as folder:
        file = Path(folder) / "homad.toml"
        file.write_text(configuration)
        words = [str(program()), "--check-config", "--config", str(file)]
        done = subprocess.run(host.command(words), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise LabError(f"homad refuses the settings, so they are not written: {said}")


def save(configuration: str, path: Path) -> None:
    """Write the file; LabError if that is impossible."""
    try:
        path.write_text(configuration)
    except OSError as error:
        raise LabError(
            f"cannot write {path}: {error.strerror}; name another file with --out"
        ) from None
