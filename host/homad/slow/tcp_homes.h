/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which instance of TCP an attachment belongs to, and which thread runs the instance. */
#ifndef HOMAD_TCP_HOMES_H
#define HOMAD_TCP_HOMES_H

#include "homa_plat.h"

struct homad;
struct homad_app;
struct homad_streams;
struct homad_tcp;
struct homad_thread;

/** homad_tcp_choose() - the instance with the fewest attachments. */
struct homad_tcp *homad_tcp_choose(const struct homad *d);
/** homad_tcps_spread() - let the first @active threads run the instances, as far as they can. */
void homad_tcps_spread(struct homad *d, u32 active);
/** homad_bring_home() - make the thread that runs @tcp the home of @app, which has no streams yet;
 *  0 or a negative errno. */
int homad_bring_home(struct homad *d, struct homad_app *app,
		     const struct homad_tcp *tcp);
/** homad_streams_call() - homad_call() the thread that runs the instance of @s, also after @s's
 *  attachment has ended and has no home any more. What touches the instance is asked for so. */
int homad_streams_call(const struct homad_streams *s,
		       int (*fn)(struct homad_thread *, void *), void *arg);
/** homad_tcp_join() - let @app, which has streams, belong to @tcp, because it will share a stream
 *  or listener with an attachment there. Returns 0, -EBUSY if @app uses some in another instance,
 *  or -ESHUTDOWN. */
int homad_tcp_join(struct homad_app *app, struct homad_tcp *tcp);

#endif
