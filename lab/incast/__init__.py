# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run incast`: many hosts answer one at the same moment, on real packets."""
