/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What an administrator (of the machine, or of a container) does at random beside
 * programs with sockets: changes settings to all kinds of values, reads counters,
 * asks by netlink and does not listen to the end, makes namespaces.
 */
#ifndef TESTS_VM_FUZZ_ADMIN_H
#define TESTS_VM_FUZZ_ADMIN_H

#include "steer.h"

/** admin_begin() - remember the settings as they are. */
void admin_begin(void);
/** admin_restore() - as they were then. */
void admin_restore(void);
/** admin_do() - one of these things. */
void admin_do(struct draws *d);

#endif
