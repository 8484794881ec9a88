# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What can go wrong: Missing is nobody's mistake and skips a test, VmError is a failure."""

from __future__ import annotations


class VmError(Exception):
    """One line that says what is wrong and how to mend it."""


class Missing(VmError):
    """Something that this machine does not have (a kernel, a tool, the network)."""


class BuildFailed(VmError):
    """The compiler refused; the text is what it said."""
