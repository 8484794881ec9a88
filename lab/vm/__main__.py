# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`python -m lab.vm` is `./homa kernel`."""

import sys

from lab.errors import ending
from lab.vm.cli import main

sys.exit(ending(main))
