/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What comes in at a host: packets in batches, payload that is copied at once or late,
 * messages that are delivered whole with their packet, ICMP errors. A host may die between
 * two packets of a batch.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define RX_BATCH 32
/* packets that a device keeps for a host that does not look */
#define RING 4096

/* A verdict that waits for its copy. */
struct late_copy {
	struct homa_rx_pkt rx;
	struct pair_pkt *pkt;
	struct pair_sock *sock;
};

struct pair_sock *pair_sock_of(struct pair_host *h, const struct homa_sock *sock)
{
	u32 i;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].sock && h->socks[i].sock == sock)
			return &h->socks[i];
	pair_fail(h->world, "host %u: payload for an RPC of no socket", h->index);
}

static void copy_pooled(struct pair_host *h, struct homa_rx_pkt *rx,
			struct pair_sock *sock)
{
	const u8 *src = (const u8 *)rx->data + rx->skip;
	u32 offset = rx->offset, left = rx->length;

	while (left) {
		u32 room = 0;
		u32 at = homa_rx_place(rx->rpc, offset, &room);
		u32 n = room < left ? room : left;
		u64 size = (u64)sock->region_pages * HOMA_BPAGE_SIZE;

		pair_check(h->world, room && (u64)at + n <= size,
			   "host %u: place %u + %u outside the region of %llu",
			   h->index, at, n, (unsigned long long)size);
		memcpy(sock->region + at, src, n);
		src += n;
		offset += n;
		left -= n;
	}
}

static void copy_private(struct homa_rx_pkt *rx)
{
	struct pair_priv *priv = homa_rpc_priv(rx->rpc);
	u32 end = rx->offset + rx->length;

	if (end > priv->in_size) {
		u32 size = priv->in_size * 2 > end ? priv->in_size * 2 : end;

		priv->in = realloc(priv->in, size);
		if (!priv->in)
			abort();
		memset(priv->in + priv->in_size, 0xee, size - priv->in_size);
		priv->in_size = size;
	}
	memcpy(priv->in + rx->offset, (const u8 *)rx->data + rx->skip,
	       rx->length);
}

static void copy_now(struct pair_host *h, struct homa_rx_pkt *rx)
{
	struct pair_sock *sock = pair_sock_of(h, homa_rpc_sock(rx->rpc));

	if (sock->pool)
		copy_pooled(h, rx, sock);
	else
		copy_private(rx);
	h->ctx.now = pair_now(h);
	homa_rx_copied(&h->ctx, rx);
}

/* The application has it already; nobody calls the engine about it any more. */
static void message(struct pair_host *h, const struct homa_rx_pkt *rx)
{
	struct pair_world *w = h->world;
	struct pair_sock *sock = pair_sock_of(h, rx->message.sock);

	pair_check(w,
		   w->cfg.deliver_whole && sock->pool && rx->whole &&
			   !rx->offset && rx->fresh == rx->length &&
			   rx->skip + rx->length == rx->len &&
			   rx->message.page + (u64)rx->length <=
				   (u64)sock->region_pages * HOMA_BPAGE_SIZE,
		   "host %u: message of %u bytes at %u", h->index, rx->length,
		   rx->message.page);
	memcpy(sock->region + rx->message.page, (const u8 *)rx->data + rx->skip,
	       rx->length);
	w->delivered_whole++;
	/* Waits for ever; only its page is not of interest. */
	if (sock->deaf) {
		homa_pool_release(&h->ctx, rx->message.sock, &rx->message.page,
				  1);
		return;
	}
	if (rx->message.kind == HOMA_EV_REQUEST)
		homa_sock_taken(rx->message.sock, 1);
	pair_app_message(h, rx);
}

static void late_copy_due(struct pair_host *h, void *arg, bool stale)
{
	struct late_copy *late = arg;

	if (!stale) {
		h->pins--;
		copy_now(h, &late->rx);
		pair_poll(h);
	}
	free(late->pkt);
	free(late);
}

static void no_listener(struct pair_host *h, struct pair_pkt *pkt)
{
	struct homa_packet p;

	if (pkt->stranger || homa_packet_decode(&p, pkt->data, pkt->len))
		return;
	pair_icmp(&h->world->hosts[pkt->src], &h->addr, p.hdr.sport,
		  p.hdr.dport, p.hdr.sender_id);
}

/* Returns true if @pkt was kept. */
static bool rx_verdict(struct pair_host *h, struct homa_rx_pkt *rx,
		       struct pair_pkt *pkt)
{
	struct pair_world *w = h->world;
	struct late_copy *late;

	switch (rx->verdict) {
	case HOMA_RX_CONTROL:
		return false;
	case HOMA_RX_DROP:
		pair_check(w, rx->reason < HOMA_M_COUNT, "bad drop reason");
		return false;
	case HOMA_RX_NO_LISTENER:
		no_listener(h, pkt);
		return false;
	case HOMA_RX_MESSAGE:
		message(h, rx);
		return false;
	case HOMA_RX_DATA:
		break;
	default:
		pair_fail(w, "verdict %u", rx->verdict);
	}
	pair_check(w,
		   rx->rpc && rx->length && rx->fresh <= rx->length &&
			   rx->skip >= HOMA_DATA_HDR &&
			   rx->skip + rx->length <= rx->len,
		   "host %u: verdict skip %u length %u fresh %u of %u",
		   h->index, rx->skip, rx->length, rx->fresh, rx->len);
	if (!w->cfg.copy_delay_ns || pair_chance(&w->rng_host, 300)) {
		copy_now(h, rx);
		return false;
	}
	late = calloc(1, sizeof(*late));
	if (!late)
		abort();
	late->rx = *rx;
	late->pkt = pkt;
	h->pins++;
	pair_event_add(h, w->now + pair_rand(&w->rng_host) % w->cfg.copy_delay_ns,
		       late_copy_due, late);
	return true;
}

static struct homa_addr source(const struct pair_host *h,
			       const struct pair_pkt *pkt)
{
	struct homa_addr addr = h->world->hosts[pkt->src].addr;

	if (pkt->stranger) {
		addr.ip[13] = (u8)(pkt->stranger >> 8);
		addr.ip[14] = (u8)pkt->stranger;
	}
	return addr;
}

static void rx_batch(struct pair_host *h)
{
	struct pair_pkt *pkts[RX_BATCH];
	struct homa_rx_pkt rx[RX_BATCH];
	struct homa_addr src[RX_BATCH];
	u32 n = 0, i;

	memset(rx, 0, sizeof(rx));
	while (n < RX_BATCH && (pkts[n] = pair_queue_get(&h->rx))) {
		rx[n].data = pkts[n]->data;
		rx[n].len = pkts[n]->len;
		src[n] = source(h, pkts[n]);
		rx[n].src = &src[n];
		rx[n].prio = pkts[n]->prio;
		rx[n].verdict = 0xff;
		pair_trace(h->world, "gets", pkts[n]);
		pair_once_arrived(h, pkts[n]);
		n++;
	}
	if (!n)
		return;
	h->rx_delivered += n;
	h->ctx.now = pair_now(h);
	homa_rx(&h->ctx, h->link, rx, n);
	memset(src, 0xa5, sizeof(src)); /* nobody may have kept a pointer */
	for (i = 0; i < n; i++) {
		src[i] = source(h, pkts[i]);
		if (h->crashed || pair_dies(h, &h->crash_rx, PAIR_DID_CRASH_RX) ||
		    !rx_verdict(h, &rx[i], pkts[i]))
			free(pkts[i]);
	}
}

static void rx_due(struct pair_host *h, void *arg, bool stale)
{
	(void)arg;
	if (stale)
		return;
	h->rx_scheduled = false;
	while (h->rx.head) {
		rx_batch(h);
		if (h->crashed) {
			pair_crash(h);
			return;
		}
		pair_poll(h);
	}
}

void pair_rx_arrived(struct pair_host *h, struct pair_pkt *pkt)
{
	bool paused = h->paused_until > h->world->now;

	if (paused && h->rx.count >= RING) {
		h->world->did[PAIR_DID_RING_FULL]++;
		free(pkt);
		return;
	}
	pair_queue_put(&h->rx, pkt);
	if (h->rx_scheduled)
		return;
	h->rx_scheduled = true;
	/* What arrives during a pause is seen in its turn among what was due meanwhile. */
	if (h->world->cfg.rx_delay_ns || paused)
		pair_event_add(h, h->world->now + h->world->cfg.rx_delay_ns,
			       rx_due, NULL);
	else
		rx_due(h, NULL, false);
}

struct icmp {
	struct homa_addr dst;
	u16 sport, dport;
	u64 id;
};

static void icmp_due(struct pair_host *h, void *arg, bool stale)
{
	struct icmp *icmp = arg;

	if (!stale) {
		h->ctx.now = pair_now(h);
		homa_icmp(&h->ctx, &icmp->dst, icmp->sport, icmp->dport,
			  icmp->id, HOMA_ENOTCONN);
		pair_poll(h);
	}
	free(icmp);
}

void pair_icmp(struct pair_host *h, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id)
{
	struct icmp *icmp = malloc(sizeof(*icmp));

	if (!icmp)
		abort();
	*icmp = (struct icmp){ *dst, sport, dport, id };
	pair_event_add(h, h->world->now + h->world->cfg.latency_ns, icmp_due,
		       icmp);
}
