# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run sustained`: the highest load that Homa carries for long, on real packets."""
