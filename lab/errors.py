# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The two ways in which an experiment can refuse to go on.

Every message is one line that says what is wrong and how to mend it; the command
line prints it and nothing else, so no stack trace reaches a user.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable


class LabError(Exception):
    """Something outside the command line is wrong: exit status 1."""

    exit_code = 1


class UsageError(LabError):
    """The command line or an input file is wrong: exit status 2."""

    exit_code = 2


def ending(main: Callable[[list[str]], int]) -> int:
    """The status of the command `main`: a reader of its output that ends early, as head does, is no
    fault of ours; a full disk and a folder that is not ours are said in a line."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
        return status
    except OSError as error:
        if error.filename is not None and error.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC):
            print(
                f"homa: {error.filename}: {error.strerror}; HOMA_BUILD=DIR names another place"
                " for what is made",
                file=sys.stderr,
            )
            return 1
        if error.filename is not None or error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # What is still to be written would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.ENOSPC:
            print(f"homa: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1
