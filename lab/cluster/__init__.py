# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab up|down|status`: networks of namespaces that stand until they are taken down."""
