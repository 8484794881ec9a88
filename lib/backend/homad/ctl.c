// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a handle asks homad (ask.c says how a question travels). The handle attaches
 * again first if homad has ended, and a homad that does not answer has ended. homad
 * answers from its slow path, so none of this belongs into a path that is repeated.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "client.h"
#include "homa_clock.h"
#include "homa_sockaddr.h"
#include "libhoma_impl.h"
#include "svc_att.h"
#include "transfer.h"

#define ROUTES_A_SECOND 200u

/* homad's sentence about its last refusal of this thread; "" once it was told. */
static _Thread_local char why[HOMA_SHM_TEXT];

const char *homa_svc_why(void)
{
	static _Thread_local char told[HOMA_SHM_TEXT];

	if (!why[0])
		return NULL;
	memcpy(told, why, sizeof(told));
	why[0] = '\0';
	return told;
}

void homa_svc_set_why(const char *text)
{
	snprintf(why, sizeof(why), "%s", text);
}

/* Ask homad; false if @att has ended, or ends with this. @by_itself becomes true if homad has hung
 * up, and false if its answer was late or strange. */
static bool is_told(struct homa_svc *c, struct homa_svc_att *att,
		    struct homa_ctl_request *request,
		    struct homa_ctl_answer *answer, int *fd, bool *by_itself)
{
	if (!homa_svc_ask(att, request, answer, fd, fd ? 1 : 0)) {
		/* This library has a better sentence about routes. */
		memcpy(why, answer->text, sizeof(why));
		if (!answer->error || request->op == HOMA_CTL_ROUTE)
			why[0] = '\0';
		return true;
	}
	homa_gate_lock(&c->lock);
	*by_itself = homa_svc_hung_up(att);
	homa_svc_ended(c);
	homa_gate_unlock(&c->lock);
	return false;
}

/* Read the next packet of records; returns their number, 0 if it has none or a broken one. */
static u32 next_records(const struct homa_svc_att *att, void *batch, size_t size)
{
	ssize_t n;

	do {
		n = recv(att->sock, batch, size * HOMA_CTL_BATCH, 0);
	} while (n < 0 && errno == EINTR);
	return n > 0 && (size_t)n % size == 0 ? (u32)((size_t)n / size) : 0;
}

int homa_svc_records(struct homa_svc *c, void *all, size_t size, u32 total)
{
	struct homa_ctl_metric batch[HOMA_CTL_BATCH];
	u32 got = 0, n;

	while (got < total) {
		n = next_records(c->att, batch, size);
		if (!n || n > total - got)
			break;
		if (all)
			memcpy((u8 *)all + got * size, batch, n * size);
		got += n;
	}
	if (got == total)
		return 0;
	/* Records that come later would be taken for the answer to the next question. */
	homa_gate_lock(&c->lock);
	homa_svc_ended(c);
	homa_gate_unlock(&c->lock);
	return -ECONNRESET;
}

HOMA_STATIC_ASSERT(sizeof(struct homa_ctl_rpc) <= sizeof(struct homa_ctl_metric),
		   "a batch has room for either");

static int error_without_homad(const struct homa_svc *c)
{
	int rc = homa_svc_error(c);

	return rc ? rc : -ECONNREFUSED;
}

int homa_svc_question(struct homa_svc *c, struct homa_ctl_request *request,
		      struct homa_ctl_answer *answer, int *fd)
{
	bool by_itself = true;
	int i, rc;

	/* At most twice, because homad may end because of this very question. */
	for (i = 0; i < 2 && by_itself; i++) {
		rc = homa_svc_revive_locked(c);
		if (rc)
			return rc;
		if (is_told(c, c->att, request, answer, fd, &by_itself))
			return answer->error;
	}
	return error_without_homad(c);
}

int homa_svc_question_of(struct homa_svc *c, struct homa_svc_att *att,
			 struct homa_ctl_request *request,
			 struct homa_ctl_answer *answer, int *fd)
{
	bool by_itself;

	return is_told(c, att, request, answer, fd, &by_itself) ?
		       answer->error :
		       error_without_homad(c);
}

int homa_svc_bind(void *host, uint16_t port)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_BIND, .port = port };
	struct homa_ctl_answer answer;
	struct homa_svc *c = host;
	u32 listen = HOMA_CTL_LISTEN_ON;
	int rc = -EINVAL;

	if (c->shared_port) {
		listen |= HOMA_CTL_LISTEN_SHARED;
		request.op = HOMA_CTL_LISTEN;
		request.bytes = listen;
	}
	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&c->ctl);
	if (!c->bound)
		rc = homa_svc_question(c, &request, &answer, NULL);
	if (!rc) {
		c->bound = port;
		c->listen = listen;
		c->att->answer.port = port;
	}
	pthread_mutex_unlock(&c->ctl);
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return rc;
}

/* May homad be asked for another route? The RPC would fail as well if there is none, and
 * a program that sends to very many destinations shall not wait for each. */
static bool may_ask(struct homa_svc *c)
{
	u64 now = homa_clock_ns();

	if (now - c->routes_since > 1000000000u) {
		c->routes_since = now;
		c->routes_asked = 0;
	}
	return c->routes_asked++ < ROUTES_A_SECOND;
}

int homa_svc_route(struct homa_svc *c, const struct homa_addr *addr)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_ROUTE,
					    .encap = addr->encap };
	struct homa_ctl_answer answer;
	int rc;

	memcpy(request.ip, addr->ip, sizeof(request.ip));
	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&c->ctl);
	rc = homa_svc_error(c);
	if (!rc && may_ask(c)) {
		rc = homa_svc_question(c, &request, &answer, NULL);
		c->counters.routes++;
	}
	pthread_mutex_unlock(&c->ctl);
	/* The caller goes on to use the handle, which is freed once nobody is inside. */
	if (!rc && __atomic_load_n(&c->closing, __ATOMIC_SEQ_CST))
		rc = -ESHUTDOWN;
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return rc;
}

int homa_svc_getsockname(void *host, struct sockaddr_storage *addr)
{
	struct homa_svc *c = host;
	struct homa_addr ours = { .encap = 0 };
	const struct homa_ctl_answer *answer;

	pthread_mutex_lock(&c->ctl);
	answer = &c->att->answer;
	memcpy(ours.ip, answer->ip, sizeof(ours.ip));
	if (!answer->native)
		ours.encap = answer->encap;
	homa_sockaddr_from_addr(addr, &ours, answer->port);
	pthread_mutex_unlock(&c->ctl);
	return 0;
}

uint16_t homa_svc_udp_port(void *host)
{
	struct homa_svc *c = host;
	uint16_t port;

	pthread_mutex_lock(&c->ctl);
	port = c->att->answer.encap;
	pthread_mutex_unlock(&c->ctl);
	return port;
}
