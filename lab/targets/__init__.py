# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa targets`: goals, what was measured, and numbers that may only sink."""
