# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run failures`: what RPCs see when a host, a link or a buffer fails, on real packets."""
