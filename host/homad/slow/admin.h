/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The admin thread, and how it looks at what the control thread has.
 */
#ifndef HOMAD_ADMIN_H
#define HOMAD_ADMIN_H

#include "slowpath.h"

/** homad_control() - run @fn(@d, @arg) on the control thread between two of its sources, and
 *  wait for that. @fn is short: applications wait for it. A caller other than the admin
 *  thread is, or stands for, the control thread: then it runs at once. */
void homad_control(struct homad *d, void (*fn)(struct homad *d, void *arg),
		   void *arg);
/** homad_admin_start() - begin the thread, with the privileges that homad has now. */
int homad_admin_start(struct homad *d, char *err, size_t errlen);
/**
 * homad_admin_stop() - interrupt what the thread does; nothing of it runs when this
 * returns.
 */
void homad_admin_stop(struct homad *d);

#endif
