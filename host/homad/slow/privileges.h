/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Privileges and limits: used while starting, given up before work begins. */
#ifndef HOMAD_PRIVILEGES_H
#define HOMAD_PRIVILEGES_H

#include "homad.h"

/** homad_privileged() - may homad take devices (CAP_NET_ADMIN)? */
bool homad_privileged(void);
/**
 * homad_limits_raise() - raise the limits of descriptors and locked memory, as far as
 * allowed.
 */
void homad_limits_raise(struct homad *d);
/**
 * homad_privileges_drop() - keep what running needs, become config.user It is called when
 * devices are open and before there is a thread, because capabilities belong to threads.
 */
int homad_privileges_drop(struct homad *d, char *err, size_t errlen);

#endif
