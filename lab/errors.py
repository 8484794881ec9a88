# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The two ways in which an experiment can refuse to go on.

Every message is one line that says what is wrong and how to mend it; the command
line prints it and nothing else, so no stack trace reaches a user.
"""

from __future__ import annotations


class LabError(Exception):
    """Something outside the command line is wrong: exit status 1."""

    exit_code = 1


class UsageError(LabError):
    """The command line or an input file is wrong: exit status 2."""

    exit_code = 2
