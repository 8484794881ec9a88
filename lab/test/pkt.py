# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --pkt`: packet scripts over the TCP engine, a library made of tests/pkt/bed.c."""

from __future__ import annotations

import os
from pathlib import Path

from lab.errors import LabError
from lab.pkt import cli
from lab.pkt.config import Config
from lab.pkt.stack import Bed
from lab.test import builds
from lab.test.context import ROOT, Context, Tally

LIBRARY = "pkt_bed"


def library(context: Context) -> Path:
    """The engine's test bed, built; HOMA_PKT_BED names another (one with sanitizers, say)."""
    named = os.environ.get("HOMA_PKT_BED")
    if named:
        return Path(named)
    directory = builds.ensure(context, "plain")
    for target in builds.introspect(directory, "targets"):
        if target["name"] == LIBRARY and target["type"].startswith("shared"):
            return Path(target["filename"][0])
    raise LabError(f"this tree has no engine to run scripts on (no library {LIBRARY})")


def _maker(context: Context) -> cli.Make:
    bed = library(context)

    def make(config: Config) -> Bed:
        try:
            return Bed(bed, config.mtu, config.local)
        except (OSError, AttributeError) as error:
            raise LabError(f"{bed}: {error}") from error

    return make


def run(context: Context, files: list[str], strict: bool) -> int:
    return cli.main(files, _maker(context), strict, context.verbose)


def scripts(context: Context, folder: Path = ROOT / "tests" / "pkt" / "scripts") -> Tally:
    """All of our own scripts, for a stage. One that is not supported has failed, too."""
    tally = Tally()
    make = _maker(context)
    for path in sorted(folder.glob("*.pkt")):
        result = cli.run(path, make, strict=True)
        if result.status == cli.PASSED:
            tally.passed += 1
        else:
            tally.fail(f"pkt {path.stem}", "\n".join(result.messages))
    return tally
