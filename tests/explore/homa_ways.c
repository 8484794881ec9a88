/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * More ways that a state may go on: messages that their application hands in piece by
 * piece, devices that have room again, hosts that sleep or leave, settings that change,
 * and packets of strangers and of peers that make no sense.
 */
#include "homa_world.h"

#include <string.h>

/* longer than clients wait, and packets live longer */
#define SLEEP_NS (30 * XP_MS)
#define OUTSIDER 99u /* a host that is not in this world */

enum {
	SUPPLY = XH_WAYS, /* argument: a message, whose next piece is handed in */
	ROOM,		  /* the host's device has room again */
	SLEEP,
	HALT,
	CHANGE,
	STRANGE, /* argument: which */
};

enum {
	OTHER_PORTS = 0,
	NONSENSE,
	LIES,
	MTU,
	ROUTE,
	PORT_GONE,
	AHEAD,
	STRANGE_KINDS
};

/* ---- pieces ---- */

u32 xh_supply(struct xh_rpc *line, bool response, u32 length)
{
	if (!xh_what->pieces)
		return length;
	line->supplied[response] = homa_min_u32(xh_what->seg, length);
	return line->supplied[response];
}

static bool lacks_pieces(const struct xh_rpc *line, u32 note)
{
	u32 supplied = line->supplied[(note - 1) % 2];

	return supplied && supplied < xh_length(note);
}

static void supply(struct xp_world *w, u32 note)
{
	u32 i = (note - 1) / 2, dir = (note - 1) % 2;
	struct xh_rpc *line = &xh_of(w)->book[i];
	const struct xh_plan *plan = &xh_what->rpc[i];
	struct xh_host *h = xh_clock(w, dir ? plan->server : plan->client);

	line->supplied[dir] = homa_min_u32(line->supplied[dir] + xh_what->seg,
					   xh_length(note));
	h->waits = 0;
	homa_msg_supply(&h->ctx, dir ? line->served : line->handle,
			line->supplied[dir]);
}

bool xh_owes(struct xp_world *w, u32 host)
{
	const struct xh_host *h = &xh_of(w)->host[host];
	u32 i;

	if (h->slow || h->tx_at == HOMA_NEVER)
		return true;
	for (i = 0; i < 2 * xh_what->num && xh_what->pieces; i++)
		if (lacks_pieces(&xh_of(w)->book[i / 2], i + 1) &&
		    host == (i % 2 ? xh_what->rpc[i / 2].server :
				     xh_what->rpc[i / 2].client))
			return true;
	return false;
}

/* ---- no memory, sleep, death ---- */

void xh_deliver_short(struct xp_world *w, u32 i)
{
	struct xp_packet p = w->packets[i];
	struct xh_host *h = &xh_of(w)->host[p.dst];
	struct homa_rpc *rpc = h->ctx.spare_rpc;
	struct homa_range *range = h->ctx.spare_range;
	u32 rpcs = h->ctx.spare_rpcs, ranges = h->ctx.spare_ranges;
	void *mem;

	w->num_packets--;
	memmove(&w->packets[i], &w->packets[i + 1],
		(w->num_packets - i) * sizeof(w->packets[0]));
	h->ctx.spare_rpc = NULL;
	h->ctx.spare_range = NULL;
	h->ctx.spare_rpcs = h->ctx.spare_ranges = 0;
	xh_deliver(w, &p);
	while ((mem = homa_ctx_take_rpc(&h->ctx))) {
		*(struct homa_rpc **)&((struct homa_rpc *)mem)->hash.next = rpc;
		rpc = mem;
		rpcs++;
	}
	while ((mem = homa_ctx_take_range(&h->ctx))) {
		((struct homa_range *)mem)->next = range;
		range = mem;
		ranges++;
	}
	h->ctx.spare_rpc = rpc;
	h->ctx.spare_rpcs = rpcs;
	h->ctx.spare_range = range;
	h->ctx.spare_ranges = ranges;
}

/* The others go on; packets for the host wait. */
static void sleep_now(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	u64 until = w->now + SLEEP_NS, at, best;
	u32 i, turns, next = 0;

	h->slept = true;
	for (turns = 0; turns < 256 && !xp_full && !xp_why[0]; turns++) {
		best = XP_NEVER;
		for (i = 0; i < w->hosts; i++) {
			at = i == host ? XP_NEVER : xh_next_timer(w, i);
			if (at < best) {
				best = at;
				next = i;
			}
		}
		if (best > until)
			break;
		xp_time_is(w, best);
		xp_touch(next);
		xh_timer(w, next);
	}
	xp_time_is(w, until);
}

static void halt(struct xp_world *w, u32 host)
{
	w->life[host]++;
	xh_host_start(w, host, true);
	xh_of(w)->host[host].halted = true;
}

/* ---- packets of strangers ---- */

static void look_at(struct xp_world *w, u32 host, struct xp_sink *sink)
{
	sink->n = 0;
	xh_canon_host(w, host, sink);
}

static void arrives(struct xp_world *w, u32 host, u32 from, const void *data,
		    u32 len)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_addr src;
	struct homa_rx_pkt rx = { .data = data, .len = (u16)len, .src = &src };

	xh_address(&src, from);
	homa_rx(&h->ctx, h->link[0], &rx, 1);
	if (rx.verdict == HOMA_RX_DATA || rx.verdict == HOMA_RX_MESSAGE)
		xp_fail("host %u takes bytes of a stranger", host);
	xh_poll(w, host);
}

/* @length: of the message that a packet is about. */
static void says_of(struct xp_world *w, u32 host, u32 from,
		    struct homa_packet *p, u8 type, u32 length)
{
	u8 data[HOMA_MAX_HDR + 1] = { 0 };
	u32 len;

	p->hdr.type = type;
	memset(&p->data, 0, sizeof(p->data));
	if (type == HOMA_DATA) {
		p->data.length = length;
		p->data.payload_len = 1;
	} else if (type == HOMA_START_MSG) {
		p->start.length = length;
	}
	if (type == HOMA_GRANT)
		p->grant.offset = 1u << 20;
	else if (type == HOMA_RESEND)
		p->resend.length = HOMA_RESEND_ALL;
	len = homa_packet_encode(data, p) + (type == HOMA_DATA);
	arrives(w, host, from, data, len);
}

static void says(struct xp_world *w, u32 host, u32 from, struct homa_packet *p,
		 u8 type)
{
	says_of(w, host, from, p, type, 1);
}

/* Right but for the ports: nobody believes it, and nothing changes. */
static void other_ports(struct xp_world *w, u32 host, u32 from,
			struct homa_packet *p, const struct homa_rpc *rpc)
{
	static const u8 types[] = { HOMA_GRANT,	      HOMA_RESEND,
				    HOMA_RPC_UNKNOWN, HOMA_BUSY,
				    HOMA_CUTOFFS,     HOMA_NEED_ACK,
				    HOMA_DATA,	      HOMA_START_MSG,
				    HOMA_ACK };
	u32 length = rpc->state == HOMA_RPC_INCOMING ? rpc->in.length : 1, i;
	u16 sport = p->hdr.sport, dport = p->hdr.dport;

	for (i = 0; i < HOMA_ARRAY_SIZE(types); i++) {
		p->hdr.dport = dport + 1u;
		says_of(w, host, from, p, types[i], length);
		p->hdr.dport = dport;
		if (types[i] == HOMA_ACK) /* names the server's port only */
			continue;
		p->hdr.sport = sport + 1u;
		says_of(w, host, from, p, types[i], length);
		p->hdr.sport = sport;
	}
}

/* About nothing that there is: nobody answers but that he does not know it. */
static void nonsense(struct xp_world *w, u32 host)
{
	static const u8 empty[4], full[HOMA_MAX_HDR];
	struct homa_packet p = { .hdr = { .sport = 1, .dport = XH_PORT } };
	u32 client;

	arrives(w, host, OUTSIDER, empty, sizeof(empty));
	arrives(w, host, OUTSIDER, full, sizeof(full));
	says(w, host, OUTSIDER, &p, HOMA_GRANT); /* id 0 */
	says(w, host, OUTSIDER, &p, HOMA_NEED_ACK);
	p.hdr.sender_id = 1;
	says(w, host, OUTSIDER, &p, HOMA_GRANT);
	says(w, host, OUTSIDER, &p, HOMA_NEED_ACK);
	p.hdr.sport = 0;
	says(w, host, OUTSIDER, &p, HOMA_FREEZE);
	p.hdr.sport = 1;
	p.hdr.dport = 0;
	says(w, host, OUTSIDER, &p, HOMA_DATA);
	p.hdr.dport = XH_PORT;
	for (client = 0; client < 2; client++) {
		p.hdr.sender_id = 0x7654320 + client;
		says(w, host, OUTSIDER, &p, HOMA_FREEZE);
		says(w, host, OUTSIDER, &p, HOMA_GRANT);
		says(w, host, OUTSIDER, &p, HOMA_RESEND);
		says(w, host, OUTSIDER, &p, HOMA_NEED_ACK);
		says(w, host, OUTSIDER, &p, HOMA_ACK);
		if (client)
			says(w, host, OUTSIDER, &p, HOMA_DATA);
	}
}

/* What the peer itself would never say: beyond the end, and in another's part. */
static void lies(struct xp_world *w, u32 host, u32 from, struct homa_packet *p,
		 const struct homa_rpc *rpc)
{
	u8 data[HOMA_MAX_HDR + 1] = { 0 };
	u32 len;

	if (homa_rpc_is_client(rpc) && rpc->state == HOMA_RPC_OUTGOING) {
		p->hdr.type = HOMA_RESEND;
		p->resend.offset = rpc->out.length;
		p->resend.length = 1;
		p->resend.priority = 0;
		len = homa_packet_encode(data, p);
		arrives(w, host, from, data, len);
	} else if (!homa_rpc_is_client(rpc)) {
		says(w, host, from, p, HOMA_NEED_ACK);
		if (rpc->state != HOMA_RPC_OUTGOING)
			says(w, host, from, p, HOMA_ACK);
	}
	if (rpc->state != HOMA_RPC_INCOMING)
		return;
	says(w, host, from, p, HOMA_DATA);
	says(w, host, from, p, HOMA_START_MSG);
}

/* An RPC that @host knows, as its peer would name it in a packet. */
static struct homa_rpc *known(struct xp_world *w, u32 host,
			      struct homa_packet *p, u32 *from)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_list *pos;
	u32 i;

	for (i = 0; i < XH_SOCKS; i++) {
		if (h->closed & 1u << i)
			continue;
		homa_list_for_each(pos, &h->sock[i]->rpcs) {
			struct homa_rpc *rpc =
				homa_list_entry(pos, struct homa_rpc, sock_rpcs);

			memset(p, 0, sizeof(*p));
			p->hdr.sport = rpc->dport;
			p->hdr.dport = rpc->sport;
			p->hdr.sender_id = rpc->id ^ 1;
			*from = rpc->peer->addr.ip[15] - 1u;
			return rpc;
		}
	}
	return NULL;
}

static void mtu_of(struct xp_world *w, u32 host, const struct homa_rpc *rpc,
		   bool route)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_addr dst = rpc->peer->addr;
	u32 mtu = h->link[0]->mtu * 2 / 3;

	if (route)
		homa_path_mtu(&h->ctx, h->link[0], &dst, mtu);
	else if (!homa_icmp_mtu(&h->ctx, &dst, rpc->sport, rpc->dport, rpc->id,
				mtu))
		xp_fail("host %u does not believe an error about a packet of its own",
			host);
	if (homa_icmp_mtu(&h->ctx, &dst, rpc->sport + 1u, rpc->dport, rpc->id,
			  mtu))
		xp_fail("host %u believes an error about another's port", host);
	if (homa_icmp_mtu(&h->ctx, &dst, rpc->sport, rpc->dport + 1u, rpc->id,
			  mtu) ||
	    homa_icmp_mtu(&h->ctx, &dst, 0, rpc->dport, rpc->id, mtu) ||
	    homa_icmp_mtu(&h->ctx, &dst, rpc->sport, 0, rpc->id, mtu) ||
	    homa_icmp_mtu(&h->ctx, &dst, rpc->sport, rpc->dport, 0, mtu))
		xp_fail("host %u believes an error that quotes too little", host);
}

/* The client's host says that its port is gone: it does not want the response any more. */
static void port_gone(struct xp_world *w, u32 host, const struct homa_rpc *rpc)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_addr dst = rpc->peer->addr;
	u64 id = rpc->id;

	if (homa_rpc_is_client(rpc))
		return;
	homa_icmp(&h->ctx, &dst, rpc->sport, rpc->dport, id, HOMA_EHOSTUNREACH);
	homa_icmp(&h->ctx, &dst, rpc->sport, rpc->dport, id, HOMA_ENOTCONN);
	xh_of(w)->host[host].slept = true; /* its RPC may fail now */
}

/* The last packet of each long request comes, which its sender was not granted. */
static void ahead(struct xp_world *w, u32 host)
{
	struct homa_packet q = { .hdr = { .type = HOMA_DATA, .dport = XH_PORT } };
	struct xp_packet p = { .dst = (u8)host,
			       .sent = w->now,
			       .dst_life = w->life[host] };
	u32 i;

	for (i = 0; i < xh_what->num; i++) {
		const struct xh_plan *plan = &xh_what->rpc[i];
		const struct xh_rpc *line = &xh_of(w)->book[i];

		if (plan->server != host || line->state != XH_PENDING ||
		    line->executed ||
		    line->sent[0] + 2 * xh_what->seg > plan->request)
			continue;
		q.hdr.sport =
			homa_sock_port(xh_of(w)->host[plan->client].sock[1]);
		q.hdr.sender_id = line->handle.id;
		q.data.length = plan->request;
		q.data.incoming = xh_unasked(plan->request);
		q.data.payload_len = (u16)xh_what->seg;
		q.data.offset = plan->request - xh_what->seg;
		p.src = plan->client;
		p.note = xh_note(i, false);
		p.len = (u16)(homa_packet_encode(p.data, &q) + xh_what->seg);
		xh_deliver(w, &p);
	}
}

static void strange(struct xp_world *w, u32 host, u32 which)
{
	static struct xp_sink before, after;
	struct homa_rpc *rpc;
	struct homa_packet p;
	u32 from = 0;

	homa_rx(&xh_clock(w, host)->ctx, xh_of(w)->host[host].link[0], NULL, 0);
	look_at(w, host, &before);
	rpc = known(w, host, &p, &from);
	if (which == NONSENSE)
		nonsense(w, host);
	else if (!rpc)
		return;
	else if (which == OTHER_PORTS)
		other_ports(w, host, from, &p, rpc);
	else if (which == LIES)
		lies(w, host, from, &p, rpc);
	else if (which == PORT_GONE)
		port_gone(w, host, rpc);
	else if (which == AHEAD)
		ahead(w, host);
	else
		mtu_of(w, host, rpc, which == ROUTE);
	if (which > NONSENSE)
		return;
	look_at(w, host, &after);
	if (before.n != after.n ||
	    memcmp(before.word, after.word, before.n * sizeof(u64)) != 0)
		xp_fail("host %u is not what it was after packets that nobody believes",
			host);
}

/* ---- choices ---- */

static u32 add(struct xp_choice *c, u32 n, u8 kind, u8 fault, u32 host, u32 arg)
{
	if (n < XP_CHOICES)
		c[n++] = (struct xp_choice){ kind, fault, (u8)host, (u8)arg };
	return n;
}

u32 xh_ways(struct xp_world *w, struct xp_choice *c, u32 n)
{
	struct xh_world *x = xh_of(w);
	u32 i, k;

	for (i = 0; i < 2 * xh_what->num && xh_what->pieces; i++)
		if (lacks_pieces(&x->book[i / 2], i + 1))
			n = add(c, n, SUPPLY, XP_NONE,
				i % 2 ? xh_what->rpc[i / 2].server :
					xh_what->rpc[i / 2].client,
				i + 1);
	for (i = 0; i < w->hosts; i++) {
		const struct xh_host *h = &x->host[i];

		if (h->tx_at == HOMA_NEVER)
			n = add(c, n, ROOM, XP_NONE, i, 0);
		if (w->left[XP_SLEEP] && !h->halted)
			n = add(c, n, SLEEP, XP_SLEEP, i, 0);
		if (w->left[XP_HALT] && !h->halted)
			n = add(c, n, HALT, XP_HALT, i, 0);
		if (w->left[XP_CHANGE] && xh_what->change)
			n = add(c, n, CHANGE, XP_CHANGE, i, 0);
		for (k = 0;
		     w->left[XP_FORGE] && xh_what->hostile && k < STRANGE_KINDS;
		     k++)
			n = add(c, n, STRANGE, XP_FORGE, i, k);
	}
	return n;
}

bool xh_ways_act(struct xp_world *w, struct xp_choice c)
{
	struct xh_host *h = xh_clock(w, c.host);

	switch (c.kind) {
	case SUPPLY:
		supply(w, c.arg);
		return true;
	case ROOM:
		h->waits = 0;
		homa_link_room(h->link[0], xh_what->seg);
		homa_link_room(h->link[1], xh_what->seg);
		return true;
	case SLEEP:
		sleep_now(w, c.host);
		return false;
	case HALT:
		halt(w, c.host);
		return false;
	case CHANGE:
		h->changed = true;
		xh_what->change(&h->ctx);
		return true;
	case STRANGE:
		strange(w, c.host, c.arg);
		return true;
	default:
		return false;
	}
}

bool xh_ways_name(struct xp_choice c, char *text, size_t size)
{
	static const char *const strangers[STRANGE_KINDS] = {
		"packets with other ports",
		"packets that make no sense",
		"from its peer what that would not say",
		"an error about the path's MTU",
		"a route of a smaller MTU",
		"an error about a client's port",
		"the last packet of a request, which was not granted",
	};

	switch (c.kind) {
	case SUPPLY:
		snprintf(text, size, "host %u hands in more of the %s of RPC %u",
			 c.host, (c.arg - 1) % 2 ? "response" : "request",
			 (c.arg - 1) / 2);
		return true;
	case ROOM:
		snprintf(text, size, "host %u's device has room again", c.host);
		return true;
	case SLEEP:
		snprintf(text, size, "host %u stands still for %llu ms", c.host,
			 (unsigned long long)(SLEEP_NS / XP_MS));
		return true;
	case HALT:
		snprintf(text, size, "host %u leaves for good", c.host);
		return true;
	case CHANGE:
		snprintf(text, size, "settings of host %u change", c.host);
		return true;
	case STRANGE:
		snprintf(text, size, "host %u gets %s", c.host,
			 strangers[c.arg % STRANGE_KINDS]);
		return true;
	default:
		return false;
	}
}
