// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * When homad ends. Our open requests fail with -ECONNRESET, requests that came
 * in are forgotten, messages already received stay. Then the handle attaches
 * again by itself, with its old port: a thread that waits tries with growing
 * pauses, any other call tries once if the pause is over. Nothing here is for
 * ever except that homad has thrown us out.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"
#include "homa_clock.h"

#define BACKOFF_MIN 1000000u   /* ns */
#define BACKOFF_MAX 250000000u /* ns */

int homa_svc_error(const struct homa_svc *c)
{
	if (__atomic_load_n(&c->closing, __ATOMIC_SEQ_CST))
		return -ESHUTDOWN;
	switch (homa_svc_state(c)) {
	case HOMA_SVC_EVICTED:
		return -ECONNABORTED;
	case HOMA_SVC_SHUT:
		return -ESHUTDOWN;
	default:
		return 0;
	}
}

static void fail_all(struct homa_svc *c, u32 error)
{
	u32 i, top = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);

	for (i = 0; i < top; i++) {
		struct homa_svc_slot *slot = &c->slots[i];
		u64 token = __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE);

		if (!token)
			continue;
		if (slot->gone)
			homa_svc_confirm(c, slot);
		else if (slot->state != HOMA_SVC_DONE)
			homa_svc_fail(c, slot, token, error);
	}
}

/* Threads that wait look at the state again. */
static void wake_all(struct homa_svc *c)
{
	struct homa_list *node;

	for (node = c->waiters.next; node != &c->waiters; node = node->next)
		homa_wake_signal(&homa_container_of(node, struct homa_svc_waiter,
						    list)
					  ->wake);
	if (c->blocked)
		homa_svc_nudge(c);
}

void homa_svc_lost(struct homa_svc *c, u32 state)
{
	u32 i;

	if (homa_svc_state(c) != HOMA_SVC_UP)
		return;
	/* The last of what it said; its memory is still there. */
	homa_svc_drain(c, NULL);
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
	/* Those that did not see that yet have submitted after this. */
	for (i = 0; i < HOMA_SHM_SQS; i++) {
		homa_turn_lock(&c->rings[i].lock);
		homa_turn_unlock(&c->rings[i].lock);
	}
	/* Otherwise every call fails from now on, and says why. */
	if (state == HOMA_SVC_LOST) {
		fail_all(c, ECONNRESET);
		homa_svc_drop_requests(c);
	}
	__atomic_store_n(&c->backoff, BACKOFF_MIN, __ATOMIC_RELAXED);
	__atomic_store_n(&c->next_try, 0, __ATOMIC_RELAXED);
	if (state != HOMA_SVC_SHUT) {
		c->counters.losses++;
		/* It may live, and would keep our port as long as we are connected. */
		shutdown(c->att->sock, SHUT_RDWR);
	}
	if (c->ep_fd >= 0)
		homa_svc_fd_detach(c);
	homa_svc_fd_touch(c);
	wake_all(c);
}

bool homa_svc_hung_up(const struct homa_svc_att *att)
{
	struct pollfd p = { .fd = att->sock, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void homa_svc_ended(struct homa_svc *c)
{
	/* Set before it hangs up. */
	u32 state = __atomic_load_n(&c->att->queues->h.state, __ATOMIC_ACQUIRE);

	homa_svc_lost(c, state == HOMA_SHM_EVICTED ? HOMA_SVC_EVICTED : HOMA_SVC_LOST);
}

void homa_svc_check(struct homa_svc *c)
{
	const u32 *word = &c->att->queues->h.state;
	u32 state = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (homa_svc_state(c) != HOMA_SVC_UP)
		return;
	if (state == HOMA_SHM_RUNNING && !homa_svc_hung_up(c->att))
		return;
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != HOMA_SHM_CLOSED)
		homa_svc_ended(c);
}

static int listen_again(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_LISTEN,
					    .port = c->bound,
					    .bytes = c->listen };
	struct homa_ctl_answer answer;
	int rc;

	if (!c->bound && !c->listen)
		return 0;
	rc = homa_svc_ask(att, &request, &answer, NULL, 0);
	if (rc || answer.error)
		return rc ? rc : answer.error;
	att->answer.port = answer.port;
	return 0;
}

int homa_svc_revive_locked(struct homa_svc *c)
{
	struct homa_svc_att *att = NULL;
	u64 now, backoff;
	char why[256];
	int rc;

	rc = homa_svc_error(c);
	if (rc || homa_svc_state(c) == HOMA_SVC_UP)
		return rc;
	now = homa_clock_ns();
	if (now < __atomic_load_n(&c->next_try, __ATOMIC_RELAXED))
		return -ECONNREFUSED;
	rc = homa_svc_attach(c, &att, why, sizeof(why));
	if (!rc)
		rc = listen_again(c, att);
	if (!rc && c->ep_fd >= 0)
		rc = homa_svc_fd_attach(c, att);
	if (!rc) {
		homa_svc_adopt(c, att);
		return 0;
	}
	if (att)
		homa_svc_att_put(att);
	backoff = __atomic_load_n(&c->backoff, __ATOMIC_RELAXED);
	__atomic_store_n(&c->next_try, now + backoff, __ATOMIC_RELAXED);
	__atomic_store_n(&c->backoff, homa_min_u64(2 * backoff, BACKOFF_MAX),
			 __ATOMIC_RELAXED);
	homa_turn_lock(&c->lock);
	if (c->ep_fd >= 0)
		homa_svc_fd_detach(c);
	homa_turn_unlock(&c->lock);
	return -ECONNREFUSED;
}

int homa_svc_revive(struct homa_svc *c)
{
	int rc;

	pthread_mutex_lock(&c->ctl);
	rc = homa_svc_revive_locked(c);
	pthread_mutex_unlock(&c->ctl);
	return rc;
}
