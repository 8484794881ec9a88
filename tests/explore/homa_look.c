/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tools that look in after each step: they see what there is, each thing once, and leave
 * all bytes as they were. And calls that make no sense, which are refused.
 */
#include "homa_world.h"

#include "homa_look.h"
#include <stdlib.h>
#include <string.h>

static u32 count_rpcs(struct xh_host *h, const struct homa_sock *sock)
{
	struct homa_look_cursor at = { 0 };
	struct homa_rpc_look look;
	u32 n = 0, got, turns = 0;

	while (!at.end && turns++ < 100) {
		got = homa_rpcs_look(&h->ctx, &at, sock, &look, 1);
		n += got;
		if (got && homa_rpc_look(&h->ctx, look.handle, &look))
			xp_fail("an RPC that is there cannot be looked at");
		if (got && look.phase == HOMA_LOOK_NEW)
			xp_fail("an RPC is in no phase of its life");
	}
	return n;
}

static u32 count_peers(struct xh_host *h)
{
	struct homa_look_cursor at = { 0 };
	struct homa_peer_look look;
	u32 n = 0, turns = 0;

	while (!at.end && turns++ < 100)
		n += homa_peers_look(&h->ctx, &at, &look, 1);
	return n;
}

static void look_at_sock(struct xh_host *h, u32 host, struct homa_sock *sock)
{
	u32 n = count_rpcs(h, sock);

	if (homa_sock_idle(sock) != !n)
		xp_fail("host %u: a socket with %u RPCs is idle, or not", host,
			n);
	if (homa_sock_starved(sock) && !n)
		xp_fail("host %u: a socket without RPCs lacks pages", host);
	if (homa_sock_memory(sock, 1) < n)
		xp_fail("host %u: %u RPCs take less memory", host, n);
	if (homa_sock_at(&h->ctx, homa_sock_port(sock)) != sock)
		xp_fail("host %u does not find a socket by its port", host);
	if (xh_what->pages &&
	    homa_pool_avail(sock) > xh_what->pages * HOMA_BPAGE_SIZE)
		xp_fail("host %u has more pages than there are", host);
}

/* A peer that a request goes to already: else the call would leave one. */
static void refused_ids(struct xh_host *h, u32 host, struct homa_send *send)
{
	const struct homa_rpc *rpc =
		homa_list_entry(homa_list_first(&h->sock[1]->rpcs),
				struct homa_rpc, sock_rpcs);
	struct homa_handle handle;

	send->port = XH_PORT;
	send->dst = rpc->peer->addr;
	if (!homa_rpc_send(&h->ctx, h->sock[1], h->link[0], send, NULL, NULL))
		xp_fail("host %u sends a request with the id of a response",
			host);
	send->id = rpc->id;
	if (!homa_rpc_send(&h->ctx, h->sock[1], h->link[0], send, NULL, NULL))
		xp_fail("host %u has two requests with one id", host);
	if (!homa_rpc_lookup(&h->ctx, rpc->id, &handle))
		xp_fail("host %u does not find its request by its id", host);
}

/* A server cannot abort what a client asks of it, and nobody awaits a client's answer. */
static void refused_ends(struct xh_host *h, u32 host)
{
	const struct homa_list *pos;

	homa_list_for_each(pos, &h->sock[0]->rpcs)
		if (!homa_rpc_abort(&h->ctx,
				    homa_rpc_handle(
					    homa_list_entry(pos, struct homa_rpc,
							    sock_rpcs)),
				    1))
			xp_fail("host %u aborts the request of another", host);
	homa_list_for_each(pos, &h->sock[1]->rpcs)
		if (homa_rpc_awaited(&h->ctx,
				     homa_rpc_handle(
					     homa_list_entry(pos, struct homa_rpc,
							     sock_rpcs))))
			xp_fail("host %u: its own request awaits its answer",
				host);
}

static void refused_calls(struct xh_host *h, u32 host)
{
	struct homa_handle none = { 0 }, client = { .id = 2 },
			   asked = { .id = 0x8889 };
	struct homa_send send = {
		.port = XH_PORT, .length = 1, .available = 1, .id = 3
	};
	struct homa_addr nobody;
	struct homa_rpc *rpc;

	xh_address(&nobody, 0);
	if (!homa_rpc_abort(&h->ctx, none, 1) || !homa_rpc_forget(&h->ctx, none))
		xp_fail("host %u ends an RPC that is not there", host);
	if (homa_rpc_lookup(&h->ctx, 3, &none) ||
	    homa_rpc_lookup(&h->ctx, 0x8888, &none) ||
	    homa_rpc_hold(&h->ctx, 3, NULL) ||
	    homa_rpc_hold(&h->ctx, 0x8889, &nobody))
		xp_fail("host %u knows an RPC that is not there", host);
	if (!homa_rpc_reply(&h->ctx, client, 1, 1, &rpc) ||
	    !homa_rpc_reply(&h->ctx, none, 0, 0, &rpc) ||
	    !homa_rpc_reply(&h->ctx, none, ~0u, 0, &rpc))
		xp_fail("host %u answers what it was not asked", host);
	if (!homa_rpc_reject(&h->ctx, client, 1, 1, &rpc) ||
	    !homa_rpc_reject(&h->ctx, asked, 0, 1, &rpc) ||
	    !homa_rpc_reject(&h->ctx, asked, HOMA_MAX_ERRNO + 1, 1, &rpc))
		xp_fail("host %u rejects what is no request, or for no reason",
			host);
	if (homa_rpc_reject(&h->ctx, asked, 1, 1, &rpc) || rpc ||
	    homa_rpc_awaited(&h->ctx, asked))
		xp_fail("host %u knows a request that is over", host);
	refused_ends(h, host);
	homa_msg_supply(&h->ctx, none, 1);
	send.length = 0;
	if (!homa_rpc_send(&h->ctx, h->sock[1], h->link[0], &send, NULL, NULL))
		xp_fail("host %u sends nothing", host);
	send.length = ~0u;
	if (!homa_rpc_send(&h->ctx, h->sock[1], h->link[0], &send, NULL, NULL))
		xp_fail("host %u sends more than there can be", host);
	send.length = 1;
	send.port = 0;
	if (!homa_rpc_send(&h->ctx, h->sock[1], h->link[0], &send, NULL, NULL))
		xp_fail("host %u sends to no port", host);
	if (!homa_list_empty(&h->sock[1]->rpcs))
		refused_ids(h, host, &send);
	if (!homa_sock_bind(&h->ctx, h->sock[1], 0) ||
	    !homa_sock_bind(&h->ctx, h->sock[1], 0xffff))
		xp_fail("host %u serves a port that is none", host);
	if (!h->deaf && !homa_sock_bind(&h->ctx, h->sock[1], XH_PORT))
		xp_fail("host %u: two sockets serve one port", host);
}

void xh_look(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	struct homa_link_state state;
	struct xp_extent e[XP_EXTENTS];
	struct homa_addr addr;
	static struct xp_sink sink[2];
	static u8 *before;
	u32 i;

	if (!before)
		before = malloc(xp_most_bytes);
	if (!before || h->closed || h->halted)
		return;
	memcpy(before, w, xp_bytes);
	xh_address(&addr, 1 - host);
	for (i = 0; i < XH_SOCKS; i++)
		look_at_sock(h, host, h->sock[i]);
	if (count_rpcs(h, NULL) != h->engine->num_rpcs ||
	    count_peers(h) != h->engine->num_peers)
		xp_fail("host %u: those who look in do not see all RPCs and peers",
			host);
	if (!homa_sock_listening(&h->ctx, XH_PORT, &addr) != h->deaf)
		xp_fail("host %u: nobody takes requests, or somebody does", host);
	homa_link_state(&h->ctx, h->link[0], &state);
	if (state.granting != h->link[0]->grants.num_active ||
	    homa_link_withheld(h->link[0]) > state.waiting)
		xp_fail("host %u: a link is not as it is looked at", host);
	xh_extents(w, host, e);
	for (i = 0; i < XP_EXTENTS; i++)
		if (memcmp((u8 *)w + e[i].from, before + e[i].from,
			   e[i].to - e[i].from) != 0)
			xp_fail("host %u is not what it was after it was looked at",
				host);
	xh_clock(w, host);
	refused_calls(h, host);
	sink[0].n = sink[1].n = 0;
	xh_canon_host(w, host, &sink[1]);
	memcpy(w, before, xp_bytes);
	xh_canon_host(w, host, &sink[0]);
	if (sink[0].n != sink[1].n ||
	    memcmp(sink[0].word, sink[1].word, sink[0].n * sizeof(u64)) != 0)
		xp_fail("host %u is not what it was after calls that it refused",
			host);
}
