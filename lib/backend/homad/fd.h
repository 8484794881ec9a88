/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The descriptor of a handle, homa_svc.ep_fd, once the application has asked for it. Whoever
 * changes what homa_fd() shall say calls homa_svc_fd_touch() before it unlocks.
 */
#ifndef HOMA_SVC_FD_H
#define HOMA_SVC_FD_H

#include "client.h"

/** homa_svc_fd_watch() - @fd joins the set, for @events; 0 or -errno. */
int homa_svc_fd_watch(struct homa_svc *c, int fd, u32 events);
/** homa_svc_fd_timer() - the set is readable from the time @at, ns, on; 0: it is not by time. */
void homa_svc_fd_timer(struct homa_svc *c, u64 at);
/** homa_svc_fd_edge() - under @lock: a message that homad does not signal. */
void homa_svc_fd_edge(struct homa_svc *c);
/** homa_svc_fd_update() - under @lock: make homa_fd() say how things are. */
void homa_svc_fd_update(struct homa_svc *c);
void homa_svc_fd_detach(struct homa_svc *c);
/** homa_svc_fd_ask(), homa_svc_fd_hear() - under @ctl: have homad signal messages at homa_fd(). */
int homa_svc_fd_ask(struct homa_svc *c, struct homa_svc_att *att);
int homa_svc_fd_hear(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_fd_await() - under @ctl: homa_fd() is readable when @att has an answer, or at
 *  @next_try. */
void homa_svc_fd_await(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_fd_leave() - under @ctl: an attachment has failed before it was the handle's. */
void homa_svc_fd_leave(struct homa_svc *c, struct homa_svc_att *att);
void homa_svc_fd_close(struct homa_svc *c);

/** homa_svc_fd_touch() - under @lock, after a change of what homa_fd() shall say. */
static inline void homa_svc_fd_touch(struct homa_svc *c)
{
	if (unlikely(c->ep_fd >= 0))
		homa_svc_fd_update(c);
}

#endif
