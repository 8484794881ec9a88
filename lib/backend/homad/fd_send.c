// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_send_fd(): for programs that wait with epoll until a request may be sent that found no
 * room. It is an epoll set, so that its number stays when homad is restarted, of
 *
 *	timer		ours: has run out as long as no request has found that there is no room
 *	wake pipe	homad's: it writes there when a ring or send memory has room again, if
 *			we have set HOMA_SHM_ARM_ROOM
 *	the connection	hung up: a further try says so
 *
 * The order in which nothing is lost: stop the timer, read what is in the pipe, set the bit, ring
 * the bell, and then try once more. homad moves a ring's head or publishes that memory is free,
 * and then looks at the bit, with a full barrier between. So either the further try finds the
 * room, or homad finds the bit and writes. Memory that the application itself gives back sets
 * the timer (homa_svc_long_back()).
 *
 * A poller in homa_receive() reads the same pipe. So who reads it looks whether homad has
 * cleared our bit meanwhile, and sets the timer then; and we, after we have read the pipe, wake
 * a poller that sleeps, as what we have read may have been for it.
 *
 * A timer alone is there for a homad that knows nothing of the bit, and for long requests when
 * none of the send memory is in use, so that none comes back. It runs besides when more than one
 * thread has found no room: one of them could take a signal that was for another.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_wait.h"

#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 500000u

static int add(const struct homa_svc_may_send *s, int fd, u32 events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &ev) && errno != EEXIST ?
		       -errno :
		       0;
}

/* Make the set, whose timer has run out. */
static int make(struct homa_svc_may_send *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->timer < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, s->timer, &ev)) {
		rc = -errno;
		if (s->timer >= 0)
			close(s->timer);
		s->timer = -1;
		close(fd);
		return rc;
	}
	homa_svc_may_send_set(s->timer, 1);
	__atomic_store_n(&s->fd, fd, __ATOMIC_RELEASE);
	return fd;
}

int homa_svc_send_fd(void *host)
{
	struct homa_svc *c = host;
	int fd;

	pthread_mutex_lock(&c->ctl);
	fd = c->may_send.fd;
	if (fd < 0)
		fd = make(&c->may_send);
	pthread_mutex_unlock(&c->ctl);
	return fd;
}

/* Can homad tell when a request of @length bytes has room? */
static bool can_tell(const struct homa_svc *c, u32 length)
{
	struct homa_svc_att *att = c->att;

	return homa_svc_state(c) == HOMA_SVC_UP && att->bell &&
	       (att->queues->features & HOMA_SHM_CAN_ROOM) &&
	       (length <= HOMA_SHM_COPY_MAX || homa_svc_long_used(att));
}

static bool watch(struct homa_svc_may_send *s, const struct homa_svc_att *att)
{
	if (s->watched == att->generation)
		return true;
	if (add(s, att->wake_fd, EPOLLIN) || add(s, att->sock, EPOLLRDHUP))
		return false;
	s->watched = att->generation;
	return true;
}

/* How long the timer runs when there is no room once more. */
static u32 next_pause(struct homa_svc_may_send *s)
{
	u32 pause = __atomic_load_n(&s->pause, __ATOMIC_RELAXED);

	pause = pause ? homa_min_u32(2 * pause, PAUSE_MAX_NS) : PAUSE_MIN_NS;
	__atomic_store_n(&s->pause, pause, __ATOMIC_RELAXED);
	return pause;
}

/* Does more than one thread find no room? Remembered, as the others may still wait. */
static bool is_many(struct homa_svc_may_send *s)
{
	u64 me = (u64)(uintptr_t)pthread_self();

	s->many |= s->thread && s->thread != me;
	s->thread = me;
	return s->many;
}

/* Make the descriptor unreadable and ask homad to tell, in the order that the head of this file
 * names. The caller has @lock. */
static void ask(struct homa_svc *c, bool is_long, bool many)
{
	struct homa_svc_may_send *s = &c->may_send;
	struct homa_svc_att *att = c->att;
	char bytes[64];

	homa_svc_may_send_set(s->timer, many ? next_pause(s) : 0);
	if (read(att->wake_fd, bytes, sizeof(bytes)) > 0 && c->blocked)
		homa_svc_nudge(c);
	__atomic_store_n(&s->waits, 1, __ATOMIC_SEQ_CST);
	if (is_long)
		homa_svc_long_tell(att, s->timer);
	__atomic_fetch_or(&att->queues->armed, HOMA_SHM_ARM_ROOM,
			  __ATOMIC_SEQ_CST);
	homa_svc_ring_bell(att->bell);
	c->counters.room_asks++;
	/* Memory whose completion has come already is there for the further try. */
	homa_svc_drain(c, NULL);
}

/* No request of @length bytes has room. Returns true if a further try is worth its price: homad
 * will tell when there is room, or it has ended and the try says so. */
static bool arm(struct homa_svc *c, u32 length)
{
	struct homa_svc_may_send *s = &c->may_send;
	bool many, again;

	homa_gate_lock(&c->lock);
	many = is_many(s);
	if (homa_svc_state(c) == HOMA_SVC_UP)
		homa_svc_check(c);
	again = can_tell(c, length) && watch(s, c->att);
	if (again)
		ask(c, length > HOMA_SHM_COPY_MAX, many);
	homa_svc_fd_touch(c);
	again |= homa_svc_state(c) != HOMA_SVC_UP;
	homa_gate_unlock(&c->lock);
	return again;
}

bool homa_svc_send_tried(struct homa_svc *c, int rc, u32 length, bool again)
{
	struct homa_svc_may_send *s = &c->may_send;

	if (__atomic_load_n(&s->fd, __ATOMIC_ACQUIRE) < 0)
		return false;
	if (rc != -EAGAIN) {
		__atomic_store_n(&s->pause, 0, __ATOMIC_RELAXED);
		homa_svc_send_woken(c);
		return false;
	}
	if (again)
		return false;
	if (arm(c, length))
		return true;
	homa_svc_may_send_set(s->timer, next_pause(s));
	return false;
}
