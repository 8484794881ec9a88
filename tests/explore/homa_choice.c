/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What applications, hosts and strangers may do in a state.
 */
#include "homa_world.h"

#include <string.h>

/* Choices of ours; the argument is an RPC unless said otherwise. */
enum {
	BEGIN = XP_OWN, /* its client begins it */
	GO_ON,		/* the host's application is not slow any more */
	GO_SLOW,	/* argument: how, see struct xh_host */
	GIVE_UP,	/* its client aborts it */
	CLOSE,		/* argument: a socket */
	SHORT,	  /* argument: a packet that arrives where no memory is spare */
	FORGE,	  /* argument: which of forgeries */
	TOGETHER, /* argument: a packet that arrives with the next one */
	REFUSE, /* its device will not send the next packet of a message, 1: of control */
	REFUSED, /* it says so; argument 1: and that it cannot now */
};

enum { ICMP_SHORT = 0, ICMP_PORTS, ICMP_LATE, START_MSG, FORGERIES };

/* ---- choices ---- */

/* The payload that was to be copied later. */
static void copy_late(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];

	if (!h->is_late)
		return;
	h->is_late = false;
	xh_copy(w, host, &h->late, h->late_note);
	homa_rx_copied(&h->ctx, &h->late);
}

static void go_on(struct xp_world *w, u32 host)
{
	struct xh_host *h = xh_clock(w, host);
	struct xh_held held[XH_HOLD];
	u32 i, n = h->num_held;

	memcpy(held, h->held, sizeof(held));
	memset(h->held, 0, sizeof(h->held));
	h->num_held = 0;
	h->slow = 0;
	h->waits = 0;
	copy_late(w, host);
	if (h->num_kept &&
	    homa_pool_release(&h->ctx, h->sock[0], h->kept, h->num_kept))
		xp_fail("host %u: pages of a message are not the application's",
			host);
	memset(h->kept, 0, sizeof(h->kept));
	h->num_kept = 0;
	for (i = 0; i < n; i++)
		if (held[i].taken)
			xh_answer(w, host, held[i].handle, held[i].note);
		else
			xh_take(w, host, held[i].handle);
}

static void close_sock(struct xp_world *w, u32 host, u32 sock)
{
	struct xh_host *h = xh_clock(w, host);
	u32 turns = 0;
	int err;

	h->closed |= (u8)(1u << sock);
	xh_gone(w, host, sock);
	do {
		err = homa_sock_close(&h->ctx, h->sock[sock], 1);
		xh_poll(w, host);
		if (turns == 10) { /* it waits for that */
			copy_late(w, host);
			xh_refused(w, host, false);
		}
	} while (err == -HOMA_EAGAIN && ++turns < 20);
	if (err)
		xp_fail("host %u: a socket does not close: %d", host, err);
}

/* Messages that are on their way to @host are announced in their sender's name, in one train. */
static void announce(struct xp_world *w, u32 host)
{
	struct xp_packet p[XH_RPCS];
	struct xh_world *x = xh_of(w);
	u32 i, n = 0;

	memset(p, 0, sizeof(p));
	for (i = 0; i < xh_what->num; i++) {
		const struct xh_plan *plan = &xh_what->rpc[i];
		bool response = plan->client == host;
		u16 port = homa_sock_port(x->host[plan->client].sock[1]);
		struct homa_packet q = {
			.hdr = { .type = HOMA_START_MSG,
				 .sport = port,
				 .dport = XH_PORT,
				 .sender_id = x->book[i].handle.id }
		};

		if (x->book[i].state != XH_PENDING ||
		    (response ? !x->book[i].answered || plan->reject :
				plan->server != host || x->book[i].executed))
			continue;
		q.start.length = response ? plan->response : plan->request;
		p[n].src = response ? plan->server : plan->client;
		if (response) {
			q.hdr.sport = XH_PORT;
			q.hdr.dport = port;
			q.hdr.sender_id ^= 1;
		}
		p[n].dst = (u8)host;
		p[n].len = (u16)homa_packet_encode(p[n].data, &q);
		n++;
	}
	if (n)
		xh_deliver_train(w, p, n);
}

/* Errors that quote too little, or another's ports: they are believed by nobody. */
static void forge(struct xp_world *w, u32 host, u32 which)
{
	struct xh_world *x = xh_of(w);
	struct xh_host *h = xh_clock(w, host);
	struct homa_addr dst;
	u32 i;

	xh_address(&dst, 1 - host);
	if (which == ICMP_SHORT)
		homa_icmp(&h->ctx, &dst, 0, 0, 0, HOMA_EHOSTUNREACH);
	for (i = 0; i < xh_what->num && which == ICMP_PORTS; i++)
		if (x->book[i].state == XH_PENDING &&
		    xh_what->rpc[i].client == host)
			homa_icmp(&h->ctx, &dst, 1, XH_PORT,
				  x->book[i].handle.id, HOMA_EHOSTUNREACH);
	for (i = 0; i < xh_what->num && which == ICMP_LATE; i++)
		if (x->book[i].state == XH_PENDING &&
		    xh_what->rpc[i].client == host && x->book[i].fresh_at[1])
			homa_icmp(&h->ctx, &dst, homa_sock_port(h->sock[1]),
				  XH_PORT, x->book[i].handle.id,
				  HOMA_EHOSTUNREACH);
	if (which == START_MSG)
		announce(w, host);
	xh_poll(w, host);
	for (i = 0; i < xh_what->num; i++)
		if (x->book[i].error == HOMA_EHOSTUNREACH)
			xp_fail("a forged error ended RPC %u", i);
}

static u32 add(struct xp_choice *c, u32 n, u8 kind, u8 fault, u32 host, u32 arg)
{
	if (n < XP_CHOICES)
		c[n++] = (struct xp_choice){ kind, fault, (u8)host, (u8)arg };
	return n;
}

static u32 choices_of_host(struct xp_world *w, struct xp_choice *c, u32 n,
			   u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	u32 i;

	if (w->left[XP_SLOW] && !h->slow) {
		n = add(c, n, GO_SLOW, XP_SLOW, host, 1);
		n = add(c, n, GO_SLOW, XP_SLOW, host, 2);
		n = add(c, n, GO_SLOW, XP_SLOW, host, 3);
	}
	for (i = 0; w->left[XP_CLOSE] && i < XH_SOCKS; i++)
		if (!(h->closed & 1u << i))
			n = add(c, n, CLOSE, XP_CLOSE, host, i);
	if (w->left[XP_REFUSE] && !h->refusing)
		for (i = 0; i < 2; i++)
			n = add(c, n, REFUSE, XP_REFUSE, host, i);
	for (i = 0; w->left[XP_FORGE] && i < FORGERIES; i++)
		n = add(c, n, FORGE, XP_FORGE, host, i);
	return n;
}

static bool may_begin(struct xp_world *w, u32 i)
{
	struct xh_world *x = xh_of(w);
	u32 k;

	if (!xh_what->rpc[i].after_ns)
		return true;
	for (k = 0; k < i; k++)
		if (x->book[k].state <= XH_PENDING)
			return false;
	for (k = 0; k < w->hosts; k++)
		if (x->host[k].engine->num_rpcs)
			return false;
	for (k = 0; k < w->num_packets; k++)
		if (!w->packets[k].copy)
			return false;
	return true;
}

/* The first packet on each way may meet a host without memory, or come with the next. */
static u32 choices_of_packets(struct xp_world *w, struct xp_choice *c, u32 n)
{
	u32 i, k, seen = 0, two = 0, first[XP_HOSTS * XP_HOSTS];

	for (i = 0; i < w->num_packets; i++) {
		const struct xp_packet *p = &w->packets[i];
		u32 way = p->src * XP_HOSTS + p->dst;

		if (p->copy || p->kind)
			continue;
		if (!(seen & 1u << way)) {
			first[way] = i;
			if (w->left[XP_SHORT])
				n = add(c, n, SHORT, XP_SHORT, p->dst, i);
		} else if (!(two & 1u << way) && w->left[XP_BATCH]) {
			two |= 1u << way;
			k = first[way];
			n = add(c, n, TOGETHER, XP_BATCH, p->dst, k);
		}
		seen |= 1u << way;
	}
	return n;
}

u32 xh_choices(struct xp_world *w, struct xp_choice *c)
{
	struct xh_world *x = xh_of(w);
	u32 i, n = 0;

	for (i = 0; i < xh_what->num; i++) {
		if (x->book[i].state == XH_PLANNED) {
			if (may_begin(w, i))
				n = add(c, n, BEGIN, XP_NONE,
					xh_what->rpc[i].client, i);
			break; /* in their order */
		}
	}
	/* Slow ones go on when nothing else is left to do, or earlier. */
	for (i = 0; i < w->hosts; i++)
		if (x->host[i].slow)
			n = add(c, n, GO_ON, XP_NONE, i, 0);
	for (i = 0; i < w->hosts; i++)
		if (x->host[i].refusing == 2) {
			n = add(c, n, REFUSED, XP_NONE, i, 0);
			n = add(c, n, REFUSED, XP_NONE, i, 1);
		}
	for (i = 0; w->left[XP_ABORT] && i < xh_what->num; i++)
		if (x->book[i].state == XH_PENDING && !x->book[i].given_up)
			n = add(c, n, GIVE_UP, XP_ABORT, xh_what->rpc[i].client,
				i);
	for (i = 0; i < w->hosts; i++)
		n = choices_of_host(w, c, n, i);
	n = choices_of_packets(w, c, n);
	return xh_ways(w, c, n);
}

static void give_up(struct xp_world *w, u32 i)
{
	struct xh_host *h = xh_clock(w, xh_what->rpc[i].client);
	struct xh_rpc *line = &xh_of(w)->book[i];

	if (homa_rpc_abort(&h->ctx, line->handle,
			   xh_what->untaken ? XH_GIVEN_UP : 0))
		xp_fail("RPC %u cannot be aborted", i);
	if (xh_what->untaken)
		line->given_up = true; /* its outcome may be there already */
	else
		line->state = XH_ABORTED;
}

void xh_act(struct xp_world *w, struct xp_choice c)
{
	struct xh_host *h = &xh_of(w)->host[c.host];

	switch (c.kind) {
	case BEGIN:
		if (h->closed & 2 || h->halted)
			xh_of(w)->book[c.arg].state = XH_GONE;
		else
			xh_begin(w, c.arg);
		break;
	case GO_ON:
		go_on(w, c.host);
		break;
	case GO_SLOW:
		h->slow = c.arg;
		break;
	case GIVE_UP:
		give_up(w, c.arg);
		break;
	case CLOSE:
		close_sock(w, c.host, c.arg);
		return;
	case SHORT:
		xh_deliver_short(w, c.arg);
		return;
	case FORGE:
		forge(w, c.host, c.arg);
		return;
	case TOGETHER:
		xh_deliver_two(w, c.arg);
		return;
	case REFUSE:
		h->refusing = c.arg ? 3 : 1;
		return;
	case REFUSED:
		xh_refused(w, c.host, c.arg);
		break;
	default:
		if (!xh_ways_act(w, c))
			return;
	}
	xh_poll(w, c.host);
}

void xh_name_of(struct xp_choice c, char *text, size_t size)
{
	static const char *const forgeries[] = {
		"an ICMP error that quotes too little",
		"an ICMP error that quotes another's port",
		"an ICMP error about a request that is answered",
		"a forged START_MSG"
	};

	switch (c.kind) {
	case BEGIN:
		snprintf(text, size, "host %u begins RPC %u", c.host, c.arg);
		break;
	case GO_ON:
		snprintf(text, size, "host %u goes on", c.host);
		break;
	case GO_SLOW:
		snprintf(text, size, "host %u %s", c.host,
			 c.arg == 1 ? "takes no requests" :
			 c.arg == 2 ? "answers nothing" :
				      "copies payload late");
		break;
	case GIVE_UP:
		snprintf(text, size, "host %u aborts RPC %u", c.host, c.arg);
		break;
	case CLOSE:
		snprintf(text, size, "host %u closes its %s", c.host,
			 c.arg ? "client's socket" : "server's socket");
		break;
	case SHORT:
		snprintf(text, size,
			 "packet %u arrives, host %u has no spare memory",
			 c.arg, c.host);
		break;
	case TOGETHER:
		snprintf(text, size,
			 "packet %u and the next one arrive together", c.arg);
		break;
	case REFUSE:
		snprintf(text, size, "host %u cannot send its next packet %s",
			 c.host, c.arg ? "of control" : "of a message");
		break;
	case REFUSED:
		snprintf(text, size, "host %u is told that it could not%s",
			 c.host, c.arg ? ", and cannot" : "");
		break;
	case FORGE:
		snprintf(text, size, "host %u gets %s", c.host,
			 forgeries[c.arg % FORGERIES]);
		break;
	default:
		if (!xh_ways_name(c, text, size))
			snprintf(text, size, "?");
	}
}
