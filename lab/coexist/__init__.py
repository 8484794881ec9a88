# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run coexist`: RPCs beside streams of kernel TCP on real packets, after SNIA'24."""
