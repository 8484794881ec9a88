# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa mutants`: faults that are put into the engine on purpose, and which tests notice them."""
