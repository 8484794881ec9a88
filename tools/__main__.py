# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`python3 -m tools`: the command line of the tools, also of the installed ones."""

import sys

from lab.errors import ending
from tools.cli import main

if __name__ == "__main__":
    sys.exit(ending(main))
