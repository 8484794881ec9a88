# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`--inventory hosts.toml`: real hosts, reached over SSH."""
