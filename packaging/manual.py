#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Write docs/man/homad.toml.5 from what `homad --config-help` says.

usage: manual.py HOMAD            write the page
       manual.py --check HOMAD    say whether it is up to date (status 1: it is not)
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/man/homad.toml.5"
# Defaults that this machine's size decides.
OF_THE_MACHINE = {
    "user_memory": "a quarter of the memory, at most 4 GiB",
    "total_memory": "half of the memory",
}

HEAD = """\
.\\" SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
.\\" Written by packaging/manual.py from homad --config-help.
.Dd November 21, 2026
.Dt HOMAD.TOML 5
.Os
.Sh NAME
.Nm homad.toml
.Nd configuration of homad
.Sh DESCRIPTION
.Xr homad 8
reads
.Pa /etc/homa/homad.toml
or the file that
.Fl -config
names: TOML, version 1.0.
Everything is checked;
.Ic homad --check-config
says each mistake with its line.
What is not there has the default given below.
.Pp
Settings with a star can be changed by a reload (SIGHUP) while homad serves; it logs which others
need a restart, and keeps all old ones if the new file has a mistake.
"""

TAIL = """\
.Sh EXAMPLES
Members of the group homa may attach and serve ports 1024 to 32767, root any, nobody else may:
.Bd -literal -offset indent
[[rule]]
user = "root"
ports = [1, 32767]

[[rule]]
group = "homa"
ports = [1024, 32767]

[[rule]]
allow = false
.Ed
.Sh SEE ALSO
.Xr homad 8
"""


@dataclass
class Setting:
    name: str
    default: str
    live: bool
    text: str


@dataclass
class Table:
    head: str
    note: str
    settings: list[Setting] = field(default_factory=list)


def parse(text: str) -> list[Table]:
    """The tables of homad's own list."""
    tables: list[Table] = []
    for line in text.splitlines()[1:]:
        head = re.fullmatch(r"(\[\[?\w+\]\]?)\s*(.*)", line)
        setting = re.fullmatch(r"([* ]) (\w+)(?: = (.*))?", line)
        if head:
            tables.append(Table(head[1], head[2]))
        elif setting:
            default = OF_THE_MACHINE.get(setting[2], setting[3] or "")
            tables[-1].settings.append(Setting(setting[2], default, setting[1] == "*", ""))
        elif line.strip():
            tables[-1].settings[-1].text = line.strip()
    return tables


def escape(text: str) -> str:
    """As text of a manual page: no line may begin with a dot or a quote."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e"))


def sentence(text: str) -> str:
    """A line for each sentence or clause, as the manual's language wants it."""
    text = text[0].upper() + text[1:]
    return escape(text if text.endswith(".") else text + ".")


def render(tables: list[Table]) -> str:
    out = [HEAD.rstrip()]
    for table in tables:
        out.append(f".Sh {table.head.upper()}")
        if table.note:
            out.append(sentence(table.note))
        out.append(".Bl -tag -width Ds")
        for s in table.settings:
            star = " *" if s.live else ""
            default = f" = {s.default}" if s.default else ""
            out.append(f".It Va {s.name}{escape(default)}{star}".replace('"', "\\(dq"))
            out.append(sentence(s.text))
        out.append(".El")
    return "\n".join([*out, TAIL])


def main(arguments: list[str]) -> int:
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    done = subprocess.run(
        [arguments[-1], "--config-help"], capture_output=True, text=True, check=True
    )
    page = render(parse(done.stdout))
    old = PAGE.read_text() if PAGE.exists() else ""
    if check:
        if page != old:
            print(
                "docs/man/homad.toml.5 is out of date: run packaging/manual.py HOMAD",
                file=sys.stderr,
            )
        return int(page != old)
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
