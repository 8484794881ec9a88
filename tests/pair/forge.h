/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * For tests of what is believed: packets and errors in another host's name, and
 * a look at what comes back.
 */
#ifndef PAIR_FORGE_H
#define PAIR_FORGE_H

#include "pair_test.h"

#include "homa_look.h"

/* What hosts have sent, by type and recipient; see world(). */
struct seen {
	u32 sent[PAIR_MAX_HOSTS][HOMA_TYPES];
	struct homa_packet last[HOMA_TYPES];
};

static inline bool see(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct seen *seen = arg;
	struct homa_packet p;

	(void)w;
	if (homa_packet_decode(&p, pkt->data, pkt->len))
		return false;
	seen->sent[pkt->dst][p.hdr.type - HOMA_TYPE_FIRST]++;
	seen->last[p.hdr.type - HOMA_TYPE_FIRST] = p;
	return false;
}

static inline struct pair_world *world(u32 hosts, u16 encap, struct seen *seen)
{
	struct pair_config cfg;
	struct pair_world *w;

	pair_config_default(&cfg);
	cfg.hosts = hosts;
	cfg.encap = encap;
	w = pair_world_new(&cfg);
	memset(seen, 0, sizeof(*seen));
	w->tap = see;
	w->tap_arg = seen;
	return w;
}

static inline u32 sent(const struct seen *seen, u8 to, u8 type)
{
	return seen->sent[to][type - HOMA_TYPE_FIRST];
}

static inline const struct homa_packet *last(const struct seen *seen, u8 type)
{
	return &seen->last[type - HOMA_TYPE_FIRST];
}

/* A control packet, or DATA with @payload zeros, arrives at @to in @from's name. */
static inline void forge(struct pair_world *w, u8 from, u8 to,
			 const struct homa_packet *p, u32 payload)
{
	struct pair_pkt *pkt = pair_pkt_new(from, to, 7, HOMA_MAX_HDR + payload);

	memset(pkt->data, 0, pkt->len);
	pkt->len = homa_packet_encode(pkt->data, p) + payload;
	pair_net_deliver(w, pkt);
	pair_run_for(w, PAIR_MS);
}

static inline struct homa_packet question(u8 type, u64 sender_id)
{
	struct homa_packet p = { .hdr = { .sport = 1,
					  .dport = 0x8000,
					  .type = type,
					  .sender_id = sender_id } };

	return p;
}

static inline struct homa_ctx *ctx_of(struct pair_world *w, u32 host)
{
	w->hosts[host].ctx.now = pair_now(&w->hosts[host]);
	return &w->hosts[host].ctx;
}

static inline u64 count(struct pair_world *w, u32 host, enum homa_metric metric)
{
	return pair_host_metric(&w->hosts[host], metric);
}

/* What host 0 keeps of host @who; it is asked for one that is there. */
static inline struct homa_peer_look peer_of(struct pair_world *w, u32 host,
					    u32 who)
{
	struct homa_look_cursor at = { 0 };
	struct homa_peer_look look;

	while (!at.end)
		if (homa_peers_look(ctx_of(w, host), &at, &look, 1) &&
		    homa_addr_equal(&look.addr, &w->hosts[who].addr))
			return look;
	fail_msg("host %u does not know host %u", host, who);
	return look;
}

/* An RPC from host 0 whose request host 1 has, and answers in @delay. */
static inline struct pair_rpc *begin(struct pair_world *w, u32 response, u64 delay)
{
	struct pair_rpc *r = pair_rpc(w, 0, 1, 100, response);

	r->reply_delay_set = true;
	r->reply_delay = delay;
	return r;
}

/* A packet of that type about @r as its server, or its client, sends it. */
static inline struct homa_packet about(const struct pair_rpc *r, u8 type,
				       bool server)
{
	struct homa_packet p;

	memset(&p, 0, sizeof(p));
	p.hdr.type = type;
	p.hdr.sport = server ? r->server_port : r->client_port;
	p.hdr.dport = server ? r->client_port : r->server_port;
	p.hdr.sender_id = r->handle.id ^ (server ? 1 : 0);
	if (type == HOMA_RESEND)
		p.resend.length = HOMA_RESEND_ALL;
	if (type == HOMA_DATA)
		p.data.length = p.data.incoming = p.data.payload_len = 100;
	if (type == HOMA_CUTOFFS) {
		p.cutoffs.cutoff[7] = 4711;
		p.cutoffs.version = 999;
	}
	return p;
}

#endif
