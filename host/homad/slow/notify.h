/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Telling systemd how we are (sd_notify's protocol; nothing without $NOTIFY_SOCKET). */
#ifndef HOMAD_NOTIFY_H
#define HOMAD_NOTIFY_H

#include "homa_plat.h"

/**
 * homad_notify() - send text such as "READY=1", "STATUS=...", several separated by
 * newlines.
 */
void homad_notify(const char *text);
/** homad_watchdog_ns() - return how often systemd wants to hear of us, ns; 0: never. */
u64 homad_watchdog_ns(void);

#endif
