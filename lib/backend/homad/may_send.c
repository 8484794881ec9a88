// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The descriptor of homa_send_fd() becomes readable, or ends; see fd_send.c for how it becomes
 * unreadable. The timer in its set is what makes it readable: it is set to run out at once.
 */
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"

void homa_svc_may_send_set(int timer, u32 ns)
{
	struct itimerspec when = { .it_value.tv_nsec = (long)ns };

	timerfd_settime(timer, 0, &when, NULL);
}

void homa_svc_may_send_init(struct homa_svc_may_send *s)
{
	*s = (struct homa_svc_may_send){ .fd = -1, .timer = -1 };
}

void homa_svc_may_send_close(struct homa_svc_may_send *s, struct homa_svc_att *att)
{
	/* Memory of homa_alloc() may come back when there is no handle any more. */
	if (att)
		homa_svc_long_tell(att, -1);
	if (s->fd >= 0)
		close(s->fd);
	if (s->timer >= 0)
		close(s->timer);
	homa_svc_may_send_init(s);
}

void homa_svc_send_woken(struct homa_svc *c)
{
	struct homa_svc_may_send *s = &c->may_send;

	if (__atomic_load_n(&s->waits, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&s->waits, 0, __ATOMIC_SEQ_CST))
		homa_svc_may_send_set(s->timer, 1);
}

void homa_svc_send_heard(struct homa_svc *c)
{
	if (__atomic_load_n(&c->may_send.waits, __ATOMIC_RELAXED) &&
	    !(__atomic_load_n(&c->att->queues->armed, __ATOMIC_SEQ_CST) &
	      HOMA_SHM_ARM_ROOM))
		homa_svc_send_woken(c);
}

void homa_svc_send_leave(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_svc_may_send *s = &c->may_send;

	if (s->watched) {
		epoll_ctl(s->fd, EPOLL_CTL_DEL, att->wake_fd, NULL);
		epoll_ctl(s->fd, EPOLL_CTL_DEL, att->sock, NULL);
		s->watched = 0;
	}
	homa_svc_long_tell(att, -1);
	homa_svc_send_woken(c);
}
