# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench`: Homa beside every way to run TCP, in alternation."""
