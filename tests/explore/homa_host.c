/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host's loop, as homa_engine.h describes it. Every object that an engine may have
 * is its spare from the beginning, so what is not spare at the end is lost. A host
 * that starts again has the same address and other seeds.
 */
#include "homa_world.h"

#include <string.h>

const struct homa_limits *xh_limits(void)
{
	static struct homa_limits limits = {
		.shards = 1,
		.buckets = 1,
		.max_buckets = 1,
		.tombstones = 16,
		.peer_buckets = 1,
		.max_peer_buckets = 1,
		.sock_buckets = 1,
		.rpc_priv = sizeof(struct xh_priv),
	};

	limits.tell_gone = xh_what->gone;
	return &limits;
}

static size_t align(size_t n)
{
	return (n + 63) / 64 * 64;
}

static size_t pool_bytes(void)
{
	return xh_what->pages ? align(homa_pool_size(xh_what->pages)) : 0;
}

static u32 ctrl_slots(void)
{
	return xh_what->ctrl ? xh_what->ctrl : XH_CTRL;
}

static size_t host_bytes(void)
{
	return align(homa_engine_size(xh_limits())) +
	       XH_LINKS * align(homa_link_size(ctrl_slots())) +
	       XH_SOCKS * (align(homa_sock_size(xh_limits())) + pool_bytes()) +
	       XH_SPARE_RPCS * align(homa_rpc_size(xh_limits())) +
	       XH_SPARE_PEERS * align(homa_peer_size(xh_limits())) +
	       XH_SPARE_RANGES * align(homa_range_size());
}

size_t xh_size(const struct xp_scenario *s)
{
	u32 hosts = s->hosts;

	xh_what = s->what;
	return sizeof(struct xh_world) + 192 +
	       hosts * (sizeof(struct xh_host) + host_bytes());
}

void xh_address(struct homa_addr *addr, u32 host)
{
	memset(addr, 0, sizeof(*addr));
	addr->ip[10] = addr->ip[11] = 0xff;
	addr->ip[12] = 10;
	addr->ip[15] = (u8)(1 + host);
}

static u32 host_of(const struct homa_addr *addr)
{
	return addr->ip[15] - 1u;
}

struct xh_host *xh_clock(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];

	xp_touch(host);
	h->ctx.now = w->now + xh_what->behind_ns;
	return h;
}

/* ---- beginning ---- */

static char *give_spares(struct xh_host *h, char *mem)
{
	u32 i;

	for (i = 0; i < XH_SPARE_RPCS; i++) {
		homa_ctx_give_rpc(&h->ctx, mem);
		mem += align(homa_rpc_size(xh_limits()));
	}
	for (i = 0; i < XH_SPARE_PEERS; i++) {
		homa_ctx_give_peer(&h->ctx, mem);
		mem += align(homa_peer_size(xh_limits()));
	}
	for (i = 0; i < XH_SPARE_RANGES; i++) {
		homa_ctx_give_range(&h->ctx, mem);
		mem += align(homa_range_size());
	}
	return mem;
}

static void open_socks(struct xh_host *h, bool deaf)
{
	u32 i;

	for (i = 0; i < XH_SOCKS; i++) {
		if (homa_sock_open(&h->ctx, h->sock[i]))
			xp_fail("a socket cannot be opened");
		if (xh_what->owned)
			homa_sock_charge(h->sock[i], &h->owner[i]);
	}
	if (homa_sock_port(h->sock[0]) == homa_sock_port(h->sock[1]))
		xp_fail("two sockets have one port");
	if (!deaf && homa_sock_bind(&h->ctx, h->sock[0], XH_PORT))
		xp_fail("a socket cannot be bound");
	for (i = 0; i < XH_SOCKS && xh_what->pages; i++) {
		if (homa_sock_set_pool(&h->ctx, h->sock[i], h->pool[i],
				       xh_what->pages))
			xp_fail("a socket cannot have its pages");
		homa_sock_deliver_whole(h->sock[i], xh_what->deliver_whole);
	}
}

static void settings(struct homa_params *params)
{
	homa_params_default(params);
	params->unsched_bytes = xh_burst();
	params->max_incoming = 3 * xh_what->seg;
	params->window = xh_what->seg;
	params->grant_quantum = 1;
	params->resend_interval_us = 5000;
	params->timeout_us = 20000;
	params->tombstone_ms = 40;
	params->restart_guard_us = 0;
	params->cutoff_interval_ms = xh_what->cutoffs ? 1000 : 0;
	params->max_backlog = XH_RPCS;
	if (xh_what->tweak)
		xh_what->tweak(params);
}

static char *memory_of(struct xp_world *w, u32 host)
{
	return (char *)align((size_t)&xh_of(w)->host[w->hosts]) +
	       host * host_bytes();
}

void xh_extents(struct xp_world *w, u32 host, struct xp_extent extent[XP_EXTENTS])
{
	extent[0].from = (u32)((char *)&xh_of(w)->host[host] - (char *)w);
	extent[0].to = extent[0].from + (u32)sizeof(struct xh_host);
	extent[1].from = (u32)(memory_of(w, host) - (char *)w);
	extent[1].to = extent[1].from + (u32)host_bytes();
}

void xh_host_start(struct xp_world *w, u32 host, bool deaf)
{
	struct xh_host *h = &xh_of(w)->host[host];
	char *mem = memory_of(w, host);
	struct homa_params params;
	struct homa_seeds seeds;
	u32 i;

	memset(h, 0, sizeof(*h));
	memset(mem, 6, host_bytes());
	h->deaf = deaf;
	h->engine = (struct homa_engine *)mem;
	mem += align(homa_engine_size(xh_limits()));
	settings(&params);
	homa_seeds_fixed(&seeds, 1000 * (host + 1) + w->life[host]);
	if (homa_engine_init(h->engine, xh_limits(), &params, &seeds, w->now))
		xp_fail("the engine does not start");
	homa_ctx_init(&h->ctx, h->engine, 0);
	h->ctx.now = w->now;
	for (i = 0; i < XH_LINKS; i++) {
		h->link[i] = (struct homa_link *)mem;
		/* 20 bytes of IP and the header of DATA. */
		homa_link_init(h->link[i], h->engine, xh_what->rate,
			       xh_what->seg + HOMA_DATA_HDR + 20, ctrl_slots());
		if (xh_what->by_room)
			homa_link_pace_by_room(h->link[i]);
		mem += align(homa_link_size(ctrl_slots()));
	}
	for (i = 0; i < XH_SOCKS; i++) {
		h->sock[i] = (struct homa_sock *)mem;
		mem += align(homa_sock_size(xh_limits()));
		h->pool[i] = (struct homa_pool *)mem;
		mem += pool_bytes();
	}
	give_spares(h, mem);
	open_socks(h, deaf);
	if (w->life[host])
		xh_gone(w, host, XH_SOCKS);
}

/* ---- packets out ---- */

static void send_packet(struct xp_world *w, u32 host,
			const struct homa_tx_desc *desc)
{
	struct xp_packet p = {
		.src = (u8)host,
		.dst = (u8)host_of(&desc->dst),
		.prio = desc->prio,
	};

	if (p.dst >= w->hosts) {
		if (!xh_what->hostile)
			xp_fail("host %u sends to nobody", host);
		return;
	}
	memcpy(p.data, desc->hdr, desc->hdr_len);
	if (xh_what->no_lives) {
		homa_wire_set_life(p.data, 0);
		if (!desc->rpc)
			homa_wire_set_up(p.data, 0);
	}
	if (xh_what->no_rejects && desc->rpc && homa_rpc_is_client(desc->rpc))
		p.data[offsetof(struct homa_wire_data, ext)] = 0;
	p.len = (u16)(desc->hdr_len + (desc->rpc ? desc->length : 0));
	p.link = xh_what->other_way && host == 1;
	if (desc->rpc)
		p.note = ((struct xh_priv *)homa_rpc_priv(desc->rpc))->out;
	xh_check_packet(w, host, &p);
	xp_send(w, &p);
}

void xh_transmit(struct xp_world *w, u32 host, struct homa_tx_desc *desc)
{
	struct xh_host *h = &xh_of(w)->host[host];

	if (h->refusing == 3 && !desc->rpc) {
		h->refusing = 0;
		homa_tx_done(&h->ctx, desc, -HOMA_ENOBUFS);
		return;
	}
	if (h->refusing == 1 && desc->rpc) {
		u32 note = ((struct xh_priv *)homa_rpc_priv(desc->rpc))->out;
		struct xh_rpc *line = &xh_of(w)->book[(note - 1) / 2];
		u32 *sent = &line->sent[(note - 1) % 2];

		/* For all that its engine knows it has left. */
		*sent = homa_max_u32(*sent, desc->offset + desc->length);
		line->sign_at = w->now;
		h->refused = *desc;
		h->refusing = 2;
		return;
	}
	send_packet(w, host, desc);
	homa_tx_done(&h->ctx, desc, 0);
}

void xh_refused(struct xp_world *w, u32 host, bool later)
{
	struct xh_host *h = xh_clock(w, host);

	if (h->refusing == 2)
		homa_tx_done(&h->ctx, &h->refused,
			     later ? -HOMA_EHOSTUNREACH : -HOMA_ENOBUFS);
	memset(&h->refused, 0, sizeof(h->refused));
	h->refusing = 0;
}

void xh_fill(struct xp_world *w, u32 host)
{
	struct xh_host *h = xh_clock(w, host);
	u32 n;

	while (h->num_kept < XH_KEPT &&
	       !homa_pool_alloc(h->pool[0], h->ctx.now, 0, 0, HOMA_BPAGE_SIZE,
				&h->kept[h->num_kept], &n))
		h->num_kept++;
	h->slow = 4;
}

/* Has @rpc left every list, wheel and heap, as homa_ctx_reuse_rpc() supposes? */
static bool is_loose(const struct homa_rpc *rpc)
{
	const struct homa_sendable *send = &rpc->out.send;

	return !homa_list_linked(&rpc->sock_rpcs) &&
	       !homa_list_linked(&rpc->holding) &&
	       !homa_wheel_linked(&rpc->timer) &&
	       !homa_list_linked(&rpc->in.age) &&
	       !homa_heap_linked(&rpc->in.node) && !rpc->in.node.child &&
	       !homa_heap_linked(&send->node) && !send->node.child &&
	       !homa_heap_linked(&send->fifo) && !send->fifo.child &&
	       !send->queued;
}

static void retire(struct xh_host *h)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&h->ctx))) {
		if (!is_loose(rpc))
			xp_fail("an RPC has ended and is still in a list, wheel or heap");
		homa_ctx_reuse_rpc(&h->ctx, rpc);
	}
	while ((peer = homa_retired_peer(&h->ctx)))
		homa_ctx_give_peer(&h->ctx, peer);
}

static void send_all(struct xp_world *w, u32 host, struct homa_link *link)
{
	struct xh_host *h = &xh_of(w)->host[host];
	enum homa_tx_result result;
	struct homa_tx_desc desc;

	while ((result = homa_tx(&h->ctx, link, 1, &desc)) == HOMA_TX_PACKET &&
	       !xp_full && !xp_why[0])
		xh_transmit(w, host, &desc);
	if (result == HOMA_TX_WAIT)
		h->tx_at = h->tx_at ? homa_min_u64(h->tx_at, desc.not_before) :
				      desc.not_before;
}

void xh_poll(struct xp_world *w, u32 host)
{
	struct xh_host *h = xh_clock(w, host);
	u32 i, turns, sent;

	h->tx_at = 0;
	for (turns = 0; turns < 64; turns++) {
		homa_rx_flush(&h->ctx);
		xh_events(w, host);
		sent = w->sent;
		for (i = 0; i < XH_LINKS; i++)
			send_all(w, host, h->link[i]);
		retire(h);
		if (xp_full || xp_why[0] ||
		    (sent == w->sent && !h->ctx.event_head))
			return;
	}
	xp_fail("host %u sends and sends without being asked", host);
}

/* ---- packets in ---- */

void xh_unreachable(struct xp_world *w, const struct xp_packet *p)
{
	struct xp_packet icmp = *p;

	icmp.src = p->dst;
	icmp.dst = p->src;
	icmp.kind = XH_ICMP;
	icmp.copy = 0;
	icmp.note = 0;
	xp_send(w, &icmp);
}

static void get_icmp(struct xp_world *w, struct xh_host *h,
		     const struct xp_packet *p)
{
	struct homa_addr dst;
	struct homa_packet q;

	(void)w;
	xh_address(&dst, p->src);
	if (!homa_packet_decode(&q, p->data, p->len))
		homa_icmp(&h->ctx, &dst, q.hdr.sport, q.hdr.dport,
			  q.hdr.sender_id, HOMA_ENOTCONN);
}

/* The host's part in a packet is done; who finishes takes what is whole with that. */
static void copied(struct xp_world *w, u32 host, struct homa_rx_pkt *rx)
{
	struct xh_host *h = &xh_of(w)->host[host];
	struct homa_handle handle = homa_rpc_handle(rx->rpc);
	struct xh_priv priv = *(struct xh_priv *)homa_rpc_priv(rx->rpc);
	struct homa_msg_info info;

	if (!xh_what->finish || h->slow == 1)
		homa_rx_copied(&h->ctx, rx);
	else if (homa_rx_finish(&h->ctx, rx, &info))
		xh_delivered(w, host, handle, &priv, &info);
}

static void verdict(struct xp_world *w, struct xh_host *h,
		    const struct xp_packet *p, struct homa_rx_pkt *rx)
{
	struct xh_rpc *line;
	u32 room;

	switch (rx->verdict) {
	case HOMA_RX_DATA:
		line = &xh_of(w)->book[(p->note - 1) / 2];
		line->fresh_at[(p->note - 1) % 2] = w->now;
		xh_came(w, p, rx->offset + rx->length);
		if (h->slow == 3 && !h->is_late) {
			h->late = *rx;
			h->late_note = p->note;
			h->late_page = rx->rpc->sock->pool ?
					       homa_rx_place(rx->rpc,
							     rx->offset, &room) :
					       0;
			h->is_late = true;
		} else {
			xh_copy(w, p->dst, rx, p->note);
			copied(w, p->dst, rx);
		}
		break;
	case HOMA_RX_MESSAGE:
		xh_copy(w, p->dst, rx, p->note);
		xh_message(w, p->dst, rx, p->note);
		break;
	case HOMA_RX_NO_LISTENER:
		xh_unreachable(w, p);
		break;
	case HOMA_RX_DROP:
		xp_tell("                   dropped: %s\n",
			homa_metric_table[rx->reason].name);
		if (rx->reason == HOMA_M_drop_no_buffer)
			xh_check_refused(w, p->dst, p->note);
		if (rx->reason == HOMA_M_drop_tombstone && p->note) {
			line = &xh_of(w)->book[(p->note - 1) / 2];
			line->refused_at = w->now;
			line->refused_life = w->life[p->dst];
		}
		break;
	default:
		xh_note_control(w, h, p);
		break;
	}
}

static void deliver(struct xp_world *w, const struct xp_packet *p, u32 num)
{
	struct xh_host *h = xh_clock(w, p->dst);
	struct homa_rx_pkt rx[XH_RPCS];
	struct homa_addr src[XH_RPCS];
	u32 i;

	memset(rx, 0, sizeof(rx));
	for (i = 0; i < num; i++) {
		xh_note_excuse(w, &p[i]);
		xh_address(&src[i], p[i].src);
		rx[i].data = p[i].data;
		rx[i].len = p[i].len;
		rx[i].src = &src[i];
		rx[i].prio = p[i].prio;
	}
	if (num == 1)
		homa_rx_alone(&h->ctx, h->link[p->link], rx);
	else
		homa_rx(&h->ctx, h->link[p->link], rx, num);
	memset(src, 0xa5, sizeof(src)); /* nobody may have kept it */
	for (i = 0; i < num; i++) {
		xh_address(&src[i], p[i].src);
		verdict(w, h, &p[i], &rx[i]);
	}
	xh_poll(w, p->dst);
	if (num == 1) {
		xh_check_restart(w, p);
		xh_check_rejected(w, p);
	}
}

void xh_deliver_train(struct xp_world *w, const struct xp_packet *p, u32 num)
{
	deliver(w, p, num);
}

void xh_deliver(struct xp_world *w, const struct xp_packet *p)
{
	struct xh_host *h = xh_clock(w, p->dst);

	if (h->halted) {
		if (p->kind != XH_ICMP)
			xh_unreachable(w, p);
		return;
	}
	if (p->kind == XH_ICMP) {
		get_icmp(w, h, p);
		xh_poll(w, p->dst);
		return;
	}
	deliver(w, p, 1);
}

void xh_deliver_two(struct xp_world *w, u32 i)
{
	struct xp_packet two[2] = { w->packets[i] };
	u32 k, n = 0;

	for (k = i + 1; k < w->num_packets; k++)
		if (w->packets[k].src == two[0].src &&
		    w->packets[k].dst == two[0].dst && !w->packets[k].copy &&
		    !w->packets[k].kind)
			break;
	two[1] = w->packets[k];
	for (n = 0; n < 2; n++) {
		w->num_packets--;
		memmove(&w->packets[n ? i : k], &w->packets[(n ? i : k) + 1],
			(w->num_packets - (n ? i : k)) * sizeof(w->packets[0]));
	}
	deliver(w, two, 2);
}

/* ---- time ---- */

u64 xh_next_timer(struct xp_world *w, u32 host)
{
	const struct xh_host *h = &xh_of(w)->host[host];
	u64 at = homa_wheel_next(&h->engine->shards[0].wheel);

	if (h->halted)
		return XP_NEVER;
	return h->tx_at ? homa_min_u64(h->tx_at, at) : at;
}

/* What shows that a timer did something. */
static u64 seen(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];

	return (u64)w->sent << 32 ^ (u64)h->engine->num_rpcs << 16 ^
	       h->num_held ^ (u64)h->ctx.metrics[HOMA_M_rpc_timeouts] << 8 ^
	       (u64)h->ctx.metrics[HOMA_M_buffers_given_back] << 24;
}

bool xh_timer(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	u64 before = seen(w, host);
	u32 i;

	for (i = 0; i < w->hosts; i++)
		if (xh_owes(w, i)) {
			xp_touch(i);
			xh_of(w)->host[i].waits++;
		} else if (xh_of(w)->host[i].waits) {
			xp_touch(i);
			xh_of(w)->host[i].waits = 0;
		}
	h->ctx.now = w->now;
	homa_timer(&h->ctx, 0, 1000);
	xh_poll(w, host);
	return seen(w, host) != before;
}
