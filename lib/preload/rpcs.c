// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a Homa socket names by id and libhoma by something else: requests that
 * were received and wait for a response (libhoma wants its message back), and
 * which of our RPCs are private. Ids of requests are their clients' and not
 * unique, so a request is found by id and peer. A server that never responds
 * loses the oldest beyond HOMA_PL_REQUESTS.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "preload.h"

static struct homa_pl_rpc **bucket(struct homa_pl_sock *s, uint64_t id)
{
	if (!s->rpcs)
		s->rpcs = calloc(HOMA_PL_BUCKETS, sizeof(*s->rpcs));
	return s->rpcs ? &s->rpcs[(id >> 1) % HOMA_PL_BUCKETS] : NULL;
}

/* Write the address as 16 bytes, and the port, whatever the family. */
static void plain(const struct sockaddr *sa, uint8_t *ip, uint16_t *port)
{
	static const uint8_t v4[12] = { [10] = 0xff, 0xff };

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		memcpy(ip, v4, 12);
		memcpy(ip + 12, &in->sin_addr, 4);
		*port = in->sin_port;
	} else {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		memcpy(ip, &in6->sin6_addr, 16);
		*port = in6->sin6_port;
	}
}

static bool same_peer(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t ip[2][16];
	uint16_t port[2];

	plain(a, ip[0], &port[0]);
	plain(b, ip[1], &port[1]);
	return port[0] == port[1] && !memcmp(ip[0], ip[1], 16);
}

struct homa_pl_rpc *homa_pl_rpc_find(struct homa_pl_sock *s, uint64_t id,
				     const struct sockaddr *peer)
{
	struct homa_pl_rpc **b = bucket(s, id);
	struct homa_pl_rpc *rpc = b ? *b : NULL;

	for (; rpc; rpc = rpc->next) {
		if (rpc->id != id || rpc->private_rpc != !peer)
			continue;
		if (!peer ||
		    same_peer(peer, (const struct sockaddr *)&rpc->msg.peer))
			return rpc;
	}
	return NULL;
}

static struct homa_pl_rpc *add(struct homa_pl_sock *s, uint64_t id)
{
	struct homa_pl_rpc *rpc = malloc(sizeof(*rpc));
	struct homa_pl_rpc **b = bucket(s, id);

	if (!rpc || !b) {
		free(rpc);
		return NULL;
	}
	rpc->newer = rpc->older = NULL;
	rpc->held = false;
	rpc->id = id;
	rpc->next = *b;
	*b = rpc;
	return rpc;
}

int homa_pl_rpc_private(struct homa_pl_sock *s, uint64_t id, uint64_t cookie)
{
	struct homa_pl_rpc *rpc = add(s, id);

	if (!rpc)
		return -ENOMEM;
	rpc->private_rpc = true;
	rpc->cookie = cookie;
	return 0;
}

int homa_pl_rpc_request(struct homa_pl_sock *s, const struct homa_message *msg)
{
	struct homa_pl_rpc *rpc;

	if (s->requests >= HOMA_PL_REQUESTS) {
		rpc = s->oldest;
		homa_pl_rpc_take(s, rpc);
		free(rpc);
	}
	rpc = add(s, msg->id);
	if (!rpc)
		return -ENOMEM;
	rpc->private_rpc = false;
	rpc->cookie = 0;
	memcpy(&rpc->msg, msg, offsetof(struct homa_message, iov));
	rpc->msg.iovcnt = 0;
	memcpy(&rpc->msg.peer, &msg->peer,
	       sizeof(*msg) - offsetof(struct homa_message, peer));
	rpc->older = s->newest;
	if (s->newest)
		s->newest->newer = rpc;
	else
		s->oldest = rpc;
	s->newest = rpc;
	s->requests++;
	return 0;
}

void homa_pl_rpc_take(struct homa_pl_sock *s, struct homa_pl_rpc *rpc)
{
	struct homa_pl_rpc **p = bucket(s, rpc->id);

	while (*p != rpc)
		p = &(*p)->next;
	*p = rpc->next;
	if (rpc->private_rpc)
		return;
	if (rpc->older)
		rpc->older->newer = rpc->newer;
	else
		s->oldest = rpc->newer;
	if (rpc->newer)
		rpc->newer->older = rpc->older;
	else
		s->newest = rpc->older;
	s->requests--;
}

static void forget_all(struct homa_pl_sock *s)
{
	uint32_t i;

	for (i = 0; s->rpcs && i < HOMA_PL_BUCKETS; i++) {
		struct homa_pl_rpc **p = &s->rpcs[i];

		while (*p) {
			struct homa_pl_rpc *rpc = *p;

			if (!rpc->private_rpc || rpc->held) {
				p = &rpc->next;
				continue;
			}
			*p = rpc->next;
			free(rpc);
		}
	}
}

void homa_pl_rpc_forget(struct homa_pl_sock *s, uint64_t id)
{
	struct homa_pl_rpc *rpc;

	if (!id) {
		forget_all(s);
		return;
	}
	rpc = homa_pl_rpc_find(s, id, NULL);
	if (!rpc || rpc->held)
		return;
	homa_pl_rpc_take(s, rpc);
	free(rpc);
}

void homa_pl_rpc_held(struct homa_pl_sock *s,
		      void (*visit)(void *arg, const struct homa_message *msg),
		      void *arg)
{
	const struct homa_pl_rpc *rpc;
	uint32_t i;

	for (i = 0; s->rpcs && i < HOMA_PL_BUCKETS; i++)
		for (rpc = s->rpcs[i]; rpc; rpc = rpc->next)
			if (rpc->private_rpc && rpc->held)
				visit(arg, &rpc->msg);
}

void homa_pl_rpcs_free(struct homa_pl_sock *s)
{
	uint32_t i;

	for (i = 0; s->rpcs && i < HOMA_PL_BUCKETS; i++) {
		while (s->rpcs[i]) {
			struct homa_pl_rpc *rpc = s->rpcs[i];

			s->rpcs[i] = rpc->next;
			free(rpc);
		}
	}
	free(s->rpcs);
	s->rpcs = NULL;
	s->oldest = s->newest = NULL;
	s->requests = 0;
}
