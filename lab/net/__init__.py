# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hosts and switches in network namespaces, and what runs in them."""
