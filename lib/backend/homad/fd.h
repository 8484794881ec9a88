/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The descriptor of a handle, homa_svc.ep_fd, once the application has asked for it. Whoever
 * changes what homa_fd() shall say calls homa_svc_fd_touch() before it unlocks.
 */
#ifndef HOMA_SVC_FD_H
#define HOMA_SVC_FD_H

#include "client.h"
#include "svc_att.h"

/** homa_svc_fd_watch() - add @fd to the set, for @events; 0 or -errno. */
int homa_svc_fd_watch(struct homa_svc *c, int fd, u32 events);
/** homa_svc_fd_timer() - make the set readable from the time @at on, in ns; 0 stops the timer. */
void homa_svc_fd_timer(struct homa_svc *c, u64 at);
/** homa_svc_fd_edge() - signal a message that homad does not signal; under @lock. */
void homa_svc_fd_edge(struct homa_svc *c);
/** homa_svc_fd_update() - make homa_fd() readable if there are messages; under @lock. */
void homa_svc_fd_update(struct homa_svc *c);
/** homa_svc_fd_detach() - take a homad that has ended out of the set; under @lock. */
void homa_svc_fd_detach(struct homa_svc *c);
/** homa_svc_fd_ask() - ask homad to signal messages at homa_fd(); under @ctl. */
int homa_svc_fd_ask(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_fd_hear() - wait for homad's answer to that; under @ctl. */
int homa_svc_fd_hear(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_fd_await() - make homa_fd() readable when homad answers @att, or at the time
 *  @next_try; under @ctl. */
void homa_svc_fd_await(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_fd_leave() - undo homa_svc_fd_await() for an attachment that failed; under @ctl. */
void homa_svc_fd_leave(struct homa_svc *c, struct homa_svc_att *att);
void homa_svc_fd_close(struct homa_svc *c);

/** homa_svc_fd_touch() - update homa_fd(), if there is one, after a change; under @lock. */
static inline void homa_svc_fd_touch(struct homa_svc *c)
{
	if (unlikely(c->ep_fd >= 0))
		homa_svc_fd_update(c);
}

#endif
