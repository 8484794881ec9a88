/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions of clients for the way to a destination, and the thread that asks the kernel
 * for that. See routes.c.
 */
#ifndef HOMAD_ROUTES_H
#define HOMAD_ROUTES_H

#include "slowpath.h"

/**
 * homad_routes_listen() - serve HOMA_CTL_ROUTE; called before there are fast-path threads.
 */
int homad_routes_listen(struct homad *d, char *err, size_t errlen);
/** homad_routes_start() - begin the thread; from then on nobody else asks the kernel. */
int homad_routes_start(struct homad *d, char *err, size_t errlen);
/** homad_routes_stop() - end the thread; called before fast-path threads end. */
void homad_routes_stop(struct homad *d);
/** homad_routes_forget() - free all questions, when no other thread knows one. */
void homad_routes_forget(struct homad *d);

#endif
