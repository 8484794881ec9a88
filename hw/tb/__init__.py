# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Test benches of hw/rtl: cocotb runs test_*.py inside Verilator."""
