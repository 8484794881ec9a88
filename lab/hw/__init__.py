# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The hardware of hw/: its private environment, its simulations, what it costs in a device."""
