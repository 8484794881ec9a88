# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Headers that others compile against need no other header before them: a program that
includes one of abi/ or include/ first of all must compile."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source import Tree

FOLDERS = ("abi", "include")
FLAGS = "-std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror".split()


def check_headers(tree: Tree) -> list[str]:
    headers = [
        path
        for path in tree.c_files()
        if path.suffix == ".h" and tree.name(path).partition("/")[0] in FOLDERS
    ]
    includes = [f"-I{tree.root / folder}" for folder in FOLDERS]

    def one(header: Path) -> str:
        command = ["gcc", *FLAGS, *includes, "-x", "c", "-"]
        text = f'#include "{header}"\n'
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "")
        return f"{tree.name(header)} does not compile alone: {first}"

    with ThreadPoolExecutor(2) as pool:
        return [complaint for complaint in pool.map(one, headers) if complaint]
