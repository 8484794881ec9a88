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
#include "fd.h"
#include "homa_clock.h"
#include "svc_att.h"
#include "svc_slot.h"
#include "svc_wait.h"
#include "transfer.h"

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

/* Wake all threads that wait, so that they look at the state again. */
static void wake_all(struct homa_svc *c)
{
	struct homa_list *node;

	for (node = c->waiters.next; node != &c->waiters; node = node->next)
		homa_wake_signal(
			&homa_container_of(node, struct homa_svc_waiter, list)->wake);
	if (c->blocked)
		homa_svc_nudge(c);
}

void homa_svc_lost(struct homa_svc *c, u32 state)
{
	u32 i;

	if (homa_svc_state(c) != HOMA_SVC_UP)
		return;
	/* Take homad's last completions; its memory is still mapped. */
	homa_svc_drain(c, NULL);
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
	/* Threads that have not seen the new state have finished submitting after this. */
	for (i = 0; i < HOMA_SHM_SQS; i++) {
		homa_gate_lock(&c->rings[i].lock);
		homa_gate_unlock(&c->rings[i].lock);
	}
	/* In the other states every call fails from now on, so nothing need fail here. */
	if (state == HOMA_SVC_LOST) {
		fail_all(c, ECONNRESET);
		homa_svc_drop_requests(c);
	}
	__atomic_store_n(&c->backoff, BACKOFF_MIN, __ATOMIC_RELAXED);
	__atomic_store_n(&c->next_try, 0, __ATOMIC_RELAXED);
	if (state != HOMA_SVC_SHUT) {
		c->counters.losses++;
		/* homad may live, and would keep our port as long as we are connected. */
		shutdown(c->att->sock, SHUT_RDWR);
	}
	if (c->ep_fd >= 0)
		homa_svc_fd_detach(c);
	homa_svc_fd_touch(c);
	homa_svc_send_woken(c);
	wake_all(c);
}

void homa_svc_undo_shut(struct homa_svc *c, bool ended)
{
	__atomic_store_n(&c->state, HOMA_SVC_UP, __ATOMIC_RELEASE);
	if (ended)
		homa_svc_ended(c);
	homa_svc_fd_touch(c);
}

void homa_svc_done_shut(struct homa_svc *c)
{
	if (c->ep_fd >= 0)
		homa_svc_fd_detach(c);
	homa_svc_fd_touch(c);
	wake_all(c);
}

bool homa_svc_hung_up(const struct homa_svc_att *att)
{
	struct pollfd p = { .fd = att->sock, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 &&
	       (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void homa_svc_ended(struct homa_svc *c)
{
	/* homad sets the state before it hangs up. */
	u32 state = __atomic_load_n(&c->att->queues->state, __ATOMIC_ACQUIRE);

	homa_svc_lost(c, state == HOMA_SHM_EVICTED ? HOMA_SVC_EVICTED :
						     HOMA_SVC_LOST);
}

void homa_svc_check(struct homa_svc *c)
{
	const u32 *word = &c->att->queues->state;
	u32 state = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (homa_svc_state(c) != HOMA_SVC_UP)
		return;
	if (state == HOMA_SHM_RUNNING && !homa_svc_hung_up(c->att))
		return;
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != HOMA_SHM_CLOSED)
		homa_svc_ended(c);
}

/* ---- the next attachment ---- */

/* Give homad HOMA_SVC_ANSWER_S seconds to answer. */
static void set_patience(struct homa_svc *c)
{
	__atomic_store_n(&c->next_try,
			 homa_clock_ns() + HOMA_SVC_ANSWER_S * 1000000000ull,
			 __ATOMIC_RELAXED);
	c->coming.awaited = false;
}

static int listen_again(struct homa_svc *c)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_LISTEN,
					    .port = c->bound,
					    .bytes = c->listen };

	return homa_svc_tell(c->coming.att, &request);
}

static int heard_listen(struct homa_svc_att *att)
{
	struct homa_ctl_answer answer;
	int rc = homa_svc_hear(att, HOMA_CTL_LISTEN, &answer, NULL, 0);

	if (!rc)
		rc = answer.error;
	if (!rc)
		att->answer.port = answer.port;
	return rc;
}

/* Ask homad for what the new attachment lacks; returns 1, or 0 if it lacks nothing. */
static int ask_more(struct homa_svc *c)
{
	struct homa_svc_coming *coming = &c->coming;
	int rc;

	if (!coming->listens) {
		coming->op = HOMA_CTL_LISTEN;
		rc = listen_again(c);
	} else if (c->ep_fd >= 0 && !coming->signals) {
		coming->op = HOMA_CTL_READY_FD;
		coming->edges = c->fd_edges;
		rc = homa_svc_fd_ask(c, coming->att);
	} else {
		return 0;
	}
	set_patience(c);
	return rc ? rc : 1;
}

/* Read the answer to the last question; it has come, or the connection has ended. */
static int hear(struct homa_svc *c)
{
	struct homa_svc_coming *coming = &c->coming;
	char why[256];
	int rc;

	switch (coming->op) {
	case HOMA_CTL_ATTACH:
		return homa_svc_attach_hear(c, coming->att, why, sizeof(why));
	case HOMA_CTL_LISTEN:
		coming->listens = true;
		return heard_listen(coming->att);
	default:
		rc = homa_svc_fd_hear(c, coming->att);
		/* If the program wants other signals by now, homad is asked again. */
		coming->signals = coming->edges == c->fd_edges;
		return rc;
	}
}

/* Has homad answered? If @wait, this waits until it has or its time is over. */
static bool has_answered(struct homa_svc *c, bool wait)
{
	u64 until = __atomic_load_n(&c->next_try, __ATOMIC_RELAXED), now;
	struct pollfd p = { .fd = c->coming.att->sock, .events = POLLIN };

	for (;;) {
		now = homa_clock_ns();
		if (poll(&p, 1,
			 wait && now < until ? (int)((until - now) / 1000000) + 1 :
					       0) > 0)
			return true;
		if (!wait || homa_clock_ns() >= until)
			return false;
	}
}

static int begin(struct homa_svc *c, bool wait)
{
	char why[256];
	int rc;

	c->coming =
		(struct homa_svc_coming){ .op = HOMA_CTL_ATTACH,
					  .listens = !c->bound && !c->listen };
	rc = homa_svc_attach_ask(c, &c->coming.att, wait, why, sizeof(why));
	set_patience(c);
	/* -EAGAIN means that homad has too many connections to accept at the moment. */
	return rc == -EAGAIN ? -ECONNREFUSED : rc;
}

/* Read answers and ask on. Returns 0 if the new attachment has all that it needs, -EAGAIN if homad
 * has not answered yet, or an error. */
static int go_on(struct homa_svc *c, bool wait)
{
	int rc = 1;

	while (rc > 0) {
		if (!has_answered(c, wait))
			return homa_clock_ns() <
					       __atomic_load_n(&c->next_try,
							       __ATOMIC_RELAXED) ?
				       -EAGAIN :
				       -ETIMEDOUT;
		rc = hear(c);
		if (!rc)
			rc = ask_more(c);
		/* An -EAGAIN of homad's own is a refusal, and does not mean that it is late. */
		if (rc == -EAGAIN)
			rc = -ECONNREFUSED;
	}
	return rc;
}

static void give_up(struct homa_svc *c)
{
	u64 backoff = __atomic_load_n(&c->backoff, __ATOMIC_RELAXED);

	__atomic_store_n(&c->next_try, homa_clock_ns() + backoff,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&c->backoff, homa_min_u64(2 * backoff, BACKOFF_MAX),
			 __ATOMIC_RELAXED);
	homa_svc_fd_leave(c, c->coming.att);
	if (c->coming.att)
		homa_svc_att_put(c->coming.att);
	c->coming.att = NULL;
}

static void succeed(struct homa_svc *c)
{
	homa_svc_adopt(c, c->coming.att);
	c->coming.att = NULL;
}

/* Wake the poller: it may sleep until homad's answer comes, which was read here. */
static void tell_poller(struct homa_svc *c)
{
	homa_gate_lock(&c->lock);
	if (c->blocked)
		homa_svc_nudge(c);
	homa_gate_unlock(&c->lock);
}

static int revive(struct homa_svc *c, bool wait)
{
	int rc;

	rc = homa_svc_error(c);
	if (rc || homa_svc_state(c) == HOMA_SVC_UP)
		return rc;
	if (!c->coming.att) {
		if (homa_clock_ns() <
		    __atomic_load_n(&c->next_try, __ATOMIC_RELAXED))
			return -ECONNREFUSED;
		rc = begin(c, wait);
	}
	if (!rc)
		rc = go_on(c, wait);
	if (rc == -EAGAIN) {
		if (c->ep_fd >= 0 && !c->coming.awaited)
			homa_svc_fd_await(c, c->coming.att);
		c->coming.awaited = c->ep_fd >= 0;
		return rc;
	}
	if (rc)
		give_up(c);
	else
		succeed(c);
	tell_poller(c);
	return rc ? -ECONNREFUSED : 0;
}

int homa_svc_revive_locked(struct homa_svc *c)
{
	return revive(c, true);
}

int homa_svc_revive(struct homa_svc *c)
{
	int rc;

	pthread_mutex_lock(&c->ctl);
	rc = revive(c, true);
	pthread_mutex_unlock(&c->ctl);
	return rc;
}

int homa_svc_revive_try(struct homa_svc *c, struct homa_svc_att **coming)
{
	int rc;

	if (coming)
		*coming = NULL;
	if (pthread_mutex_trylock(&c->ctl)) {
		rc = homa_svc_error(c);
		return rc ? rc : -EAGAIN;
	}
	rc = revive(c, false);
	if (rc == -EAGAIN && coming) {
		*coming = c->coming.att;
		homa_svc_att_get(*coming);
	}
	pthread_mutex_unlock(&c->ctl);
	return rc;
}
