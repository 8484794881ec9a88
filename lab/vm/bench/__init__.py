# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the kernel module costs, beside kernel TCP in the same guest: `./homa bench kernel`.

Everything runs in one small virtual machine (lab.vm) with two network namespaces joined by a
veth pair. `icount` counts kernel instructions, repeatable to the instruction; `profile` says
in which functions; `rtt`, `rate`, `bulk` and `w4` take times with two emulated processors, so
only their ratios, taken round by round, mean anything.
"""
