# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko as a series of patches for the kernel: `./homa kernel series`.

`series.toml` says which file is in which patch, table.py reads it. layout.py says where a file of
ours is in the kernel's tree and what Makefile and Kconfig each state of the series has, mails.py
makes the mails, build.py compiles every state and runs the kernel's checkpatch over the mails.
"""
