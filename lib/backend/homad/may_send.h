/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The state behind homa_send_fd(): which thread was told that there is no room, and what
 * will tell that there is. */
#ifndef HOMA_SVC_MAY_SEND_H
#define HOMA_SVC_MAY_SEND_H

#include "homa_plat.h"

struct homa_svc;
struct homa_svc_att;

/* struct homa_svc_may_send - the descriptor of homa_send_fd(), once the application asked for it.
 * Guarded by: what each member says. */
struct homa_svc_may_send {
	/* An epoll set, which the application has, and the timer in it. Both are made under the
	 * handle's lock for questions (homa_svc.ctl), and are -1 before. @fd is atomic. */
	int fd, timer;
	/* How long the timer was last set to run, in ns; 0 if the last request that does not wait
	 * found room. Atomic. */
	u32 pause;
	/* 1 after a request found no room and homad was asked to tell, until the descriptor is
	 * readable again. Atomic. */
	u32 waits;
	/* Under homa_svc.lock: the thread that found no room, or 0. */
	u64 thread;
	/* Under homa_svc.lock: true if several threads found no room. */
	bool many;
	/* Under homa_svc.lock: the generation of the attachment whose descriptors are in the
	 * set, or 0. */
	u32 watched;
};

/** homa_svc_may_send_set() - make @timer unreadable until it has run for @ns; 0 stops it. */
void homa_svc_may_send_set(int timer, u32 ns);
/** homa_svc_may_send_init() - begin without a descriptor. */
void homa_svc_may_send_init(struct homa_svc_may_send *s);
/** homa_svc_may_send_close() - close the descriptor; @att is the handle's attachment or NULL. */
void homa_svc_may_send_close(struct homa_svc_may_send *s,
			     struct homa_svc_att *att);
int homa_svc_send_fd(void *host);
/** homa_svc_send_tried() - set homa_send_fd() after a request of @length bytes that does not wait
 *  returned @rc. Returns true if the caller shall try once more, because homad was asked to tell
 *  that there is room, or has ended. @again: it has done so. */
bool homa_svc_send_tried(struct homa_svc *c, int rc, u32 length, bool again);
/** homa_svc_send_woken() - make homa_send_fd() readable if a request waits for room. */
void homa_svc_send_woken(struct homa_svc *c);
/** homa_svc_send_heard() - homad's wake pipe was read: was that for homa_send_fd()? Under
 *  homa_svc.lock. */
void homa_svc_send_heard(struct homa_svc *c);
/** homa_svc_send_leave() - take @att out of the set; under homa_svc.lock. */
void homa_svc_send_leave(struct homa_svc *c, struct homa_svc_att *att);

/* segments.c */
/** homa_svc_long_back() - homa_svc_long_put() for memory that does not come back from homad. */
void homa_svc_long_back(struct homa_svc_att *att, u32 segment, u32 offset);
/** homa_svc_long_tell() - set @timer, unless it is -1, when that is called the next time. */
void homa_svc_long_tell(struct homa_svc_att *att, int timer);

#endif
