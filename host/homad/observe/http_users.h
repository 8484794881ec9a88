/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which user has which of the connections to /metrics, and what that user may still ask for. Any
 * user of the host may connect to a loopback port, so each has a share of the connections, and asks
 * so often.
 *
 * Guarded by: the admin thread, which alone calls this.
 */
#ifndef HOMAD_HTTP_USERS_H
#define HOMAD_HTTP_USERS_H

#include <stdbool.h>
#include <sys/types.h>
#include "homa_plat.h"

/* The most connections at once, and the most of one user other than root and homad's own. */
#define HOMAD_HTTP_CONNECTIONS 16u
#define HOMAD_HTTP_SHARE 4u

/** homad_http_user() - returns the user at the other end of the connection @fd. If that is not
 *  known, as when the other end has gone, it is (uid_t)-1, which stands for all such users. */
uid_t homad_http_user(int fd);
/**
 * homad_http_enter() - give the connection @fd of @user a place
 * @victim: receives -1, or a connection in whose place this one may come. If there is no place,
 *	that is the oldest of the user who has most of them, if those are at least two more than
 *	@user has, or @user is root or homad's own. If there is one, but @user is not known, and all
 *	such users have their share, it is the oldest of those. When the caller has ended it, it may
 *	try again.
 * Returns false if there is no place.
 */
bool homad_http_enter(int fd, uid_t user, int *victim);
/** homad_http_leave() - the connection @fd has ended; its place is free. */
void homad_http_leave(int fd);
/** homad_http_may_ask() - may the user of the connection @fd ask for metrics at the time @now, in
 *  ns? If so, this counts as a question, else as a refusal. */
bool homad_http_may_ask(int fd, u64 now);
/** homad_http_refuse() - count a connection that was refused. homad_http_refused() - returns how
 *  many connections and questions were. */
void homad_http_refuse(void);
u64 homad_http_refused(void);

#endif
