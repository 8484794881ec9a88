# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa demo`: Homa and kernel TCP under the same load through the same switch."""
