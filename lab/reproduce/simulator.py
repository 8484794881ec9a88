# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The simulator that a folder of results was begun with, kept there.

Full runs take longer than a day's work, and every change of the engine is another simulator, whose
results do not mix with those of the one before. With its simulator a folder can be gone on with at
any later commit. What the results say of it: the commit that it was built from.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabError
from lab.reproduce import results
from lab.sim import program

_FOLDER = "simulator"


def use(folder: Path, build: Callable[[], Path]) -> dict[str, object]:
    """Have the simulator of `folder` run from now on; what it says of itself.

    The first time it is a copy of what `build` gives.
    """
    place = folder / _FOLDER
    kept, about = place / "homa-sim", place / "of.json"
    if not kept.exists() or not about.exists():
        os.environ["HOMA_SIM"] = str(build())
        try:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(program.path(), kept)
            about.write_text(json.dumps(results.simulator(program.build())) + "\n")
        except OSError as error:
            raise LabError(f"cannot keep the simulator in {place}: {error.strerror}") from None
    os.environ["HOMA_SIM"] = str(kept)
    program.catalogue.cache_clear()
    said = results.load(about) or {}
    if said.get("build") != program.build() or "commit" not in said or "clean" not in said:
        raise LabError(
            f"{about} is not about {kept}; remove {place} to begin with another simulator"
        )
    return said
