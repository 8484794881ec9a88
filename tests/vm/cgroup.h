/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Memory cgroups of a guest, where sockets that a check makes are charged. */
#ifndef TESTS_VM_CGROUP_H
#define TESTS_VM_CGROUP_H

#include "guest.h"

#define CGROUP "/run/cg" /* the root of cgroup2 */
#define OURS CGROUP "/ours"

/**
 * cgroup_join() - make the cgroup OURS and enter it; sockets that are made from now on are its own.
 * A kernel without memory cgroups skips the check.
 */
void cgroup_join(void);
/** cgroup_enter() - enter @cgroup, which there is. */
void cgroup_enter(const char *cgroup);
/** cgroup_leave() - enter the root again, and remove OURS if nothing is left in it. */
void cgroup_leave(void);
/** cgroup_charged() - bytes that OURS is charged with for @what, a line of memory.stat. */
long long cgroup_charged(const char *what);
/** cgroup_becomes_charged() - wait for the kernel to have summed up @low to @high bytes. */
void cgroup_becomes_charged(const char *what, long long low, long long high);

#endif
