// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Homa: the engine that ships (engine/homa), one in every host. Described in
 * B. Montazeri, Y. Li, M. Alizadeh, J. Ousterhout, "Homa: A Receiver-Driven
 * Low-Latency Transport Protocol Using Network Priorities", SIGCOMM 2018, and
 * J. Ousterhout, "A Linux Kernel Implementation of the Homa Transport Protocol",
 * USENIX ATC 2021. This file is a host in the sense of homa_engine.h: real
 * headers go into the engine and come out of it, in virtual time; how many
 * bytes they count on the wire is the header model's business (ideal.c).
 *
 * A message is a request to the engine. In an RPC run the response is the
 * answer to it and the engine's own acknowledgments end the RPC. In a one-way
 * run, as in SIGCOMM'18, there is none: when the request has arrived whole,
 * both engines forget the RPC (homa_rpc_forget()) and no packet says so.
 *
 * Where it simplifies: software takes the same time for every packet and is no
 * bottleneck, unless the run has cores (sim/host); payload has no content;
 * receive buffers never run out.
 */
#include <errno.h>
#include <stdlib.h>

#include "homa_codec.h"
#include "homa_host.h"
#include "homa_look.h"

#define TIMER_BUDGET 1000u

static inline struct sim_homa *homa_of(const struct sim *sim)
{
	return sim->proto;
}

static inline struct sim_homa_host *host_of(const struct sim *sim, u32 index)
{
	return &homa_of(sim)->hosts[index];
}

static inline struct homa_ctx *ctx_now(const struct sim *sim, struct sim_homa_host *hh)
{
	hh->ctx.now = SIM_HOMA_EPOCH_NS + sim_ns(sim->now);
	return &hh->ctx;
}

/* ---- the ends of RPCs ---- */

/* Gives up both references; a message that was still to be sent has failed. */
static void priv_end(struct sim *sim, struct sim_homa_priv *priv)
{
	struct sim_msg *out = priv->out, *in = priv->in;
	int error = priv->error ? priv->error : ETIMEDOUT;

	priv->out = NULL;
	priv->in = NULL;
	priv->error = 0;
	if (in)
		sim_msg_put(sim, in);
	if (!out)
		return;
	if (unlikely(!out->delivered))
		sim_failed(sim, out, error);
	sim_msg_put(sim, out);
}

static void host_retire(struct sim *sim, struct sim_homa_host *hh)
{
	struct sim_homa *homa = homa_of(sim);
	struct homa_peer *peer;
	struct homa_rpc *rpc;

	while ((rpc = homa_retired_rpc(&hh->ctx)) != NULL) {
		struct sim_homa_priv priv = *(struct sim_homa_priv *)homa_rpc_priv(rpc);

		*(struct sim_homa_priv *)homa_rpc_priv(rpc) = (struct sim_homa_priv){ 0 };
		sim_homa_release_rpc(homa, rpc);
		priv_end(sim, &priv);
	}
	while (unlikely((peer = homa_retired_peer(&hh->ctx)) != NULL))
		sim_homa_release_peer(homa, peer);
}

static inline void host_clean(struct sim *sim, struct sim_homa_host *hh)
{
	if (hh->ctx.retired_rpc || hh->ctx.num_acks || hh->ctx.retired_peer)
		host_retire(sim, hh);
}

static void card_fill(struct sim *sim, struct sim_homa_host *hh);

/* Called after each call of a host's engine. */
static void host_leave(struct sim *sim, struct sim_homa_host *hh)
{
	host_clean(sim, hh);
	sim_withheld(sim, hh->host, homa_link_withheld(hh->link));
	if (!sim_event_pending(&hh->timer)) {
		struct homa_counts counts;

		homa_engine_counts(hh->engine, &counts);
		if (counts.rpcs)
			sim_event_add(sim->agenda, &hh->timer, sim->now + SIM_MS);
	}
	if (hh->ctx.tx_link) {
		hh->ctx.tx_link = NULL;
		if (sim->cfg.option[SIM_HOMA_CARD])
			card_fill(sim, hh);
		sim_port_kick(sim, hh->host->up);
	}
}

/* ---- messages in ---- */

/* The handles of an RPC's two ends are kept in its request, msg->x: the client's
 * in the lower halves. */
static struct homa_handle client_handle(const struct sim_msg *request)
{
	return (struct homa_handle){ .id = request->x[0],
				     .generation = (u32)request->x[1],
				     .hash = (u32)request->x[2] };
}

static struct homa_handle server_handle(const struct sim_msg *request)
{
	return (struct homa_handle){ .id = request->x[0] ^ 1,
				     .generation = (u32)(request->x[1] >> 32),
				     .hash = (u32)(request->x[2] >> 32) };
}

/* Forgets a one-way message at both ends, as it has been delivered. */
static void oneway_over(struct sim *sim, struct sim_homa_host *hh,
			struct homa_handle handle, const struct sim_msg *msg)
{
	struct sim_homa_host *from = host_of(sim, msg->src);

	homa_rpc_forget(&hh->ctx, handle);
	homa_rpc_forget(ctx_now(sim, from), client_handle(msg));
	host_leave(sim, from);
}

static void host_event(struct sim *sim, struct sim_homa_host *hh,
		       const struct homa_event *event, const struct sim_pkt *last)
{
	struct homa_handle handle = event->handle;
	struct sim_homa_priv *priv = homa_rpc_priv(event->rpc);
	struct sim_msg *msg = priv->in;
	struct homa_msg_info info;

	if (msg)
		sim_msg_get(msg);
	if (!homa_rx_take(&hh->ctx, handle, &info) && info.kind == HOMA_EV_FAILED)
		priv->error = info.error; /* it is retired later */
	else if (msg) {
		if (info.kind == HOMA_EV_REQUEST) {
			msg->x[1] = (u32)msg->x[1] | (u64)handle.generation << 32;
			msg->x[2] = (u32)msg->x[2] | (u64)handle.hash << 32;
		}
		sim_delivered(sim, msg, last);
		if (!sim->cfg.rpc)
			oneway_over(sim, hh, handle, msg);
	}
	if (msg)
		sim_msg_put(sim, msg);
}

static inline void host_events(struct sim *sim, struct sim_homa_host *hh,
			       const struct sim_pkt *last)
{
	struct homa_event event;

	while (unlikely(homa_event_next(&hh->ctx, &event)))
		host_event(sim, hh, &event, last);
}

/*
 * A run goes from host to host, and what it finds there has mostly left the caches since
 * the last time. So prefetch the lines of RPCs that will be needed. (Offsets of what
 * homa_rpc_kill() and the grant scheduler touch.)
 */
static inline void fetch_rpc(const void *rpc)
{
	const char *line = rpc;

	__builtin_prefetch(line, 1);
	__builtin_prefetch(line + 64, 1);
	__builtin_prefetch(line + 128, 1);
	__builtin_prefetch(line + 192);
	__builtin_prefetch(line + 320, 1);
	__builtin_prefetch(line + 512, 1);
	__builtin_prefetch(line + 640, 1);
}

static inline void fetch_early(const struct sim *sim, const struct sim_msg *msg,
			       const struct sim_pkt *pkt)
{
	if (msg->rx)
		fetch_rpc(msg->rx);
	if (!sim->cfg.rpc && pkt->payload == msg->length)
		fetch_rpc(msg->tx);
}

/*
 * Takes in payload of an RPC. A new RPC gets the packet's message. If that message is over,
 * the packet is a late duplicate that has created an RPC, which is forgotten again.
 */
static void host_data(struct sim_homa_host *hh, struct homa_rx_pkt *rx,
		      const struct sim_pkt *pkt)
{
	struct homa_handle handle = homa_rpc_handle(rx->rpc);
	struct sim_homa_priv *priv = homa_rpc_priv(rx->rpc);
	bool stray = false;

	if (!priv->in) {
		struct sim_msg *msg = sim_pkt_msg(pkt);

		stray = !msg || msg->delivered;
		if (!stray) {
			sim_msg_get(msg);
			priv->in = msg;
			msg->rx = rx->rpc;
		}
	}
	homa_rx_copied(&hh->ctx, rx);
	if (unlikely(stray))
		homa_rpc_forget(&hh->ctx, handle);
}

static void homa_sim_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_homa_host *hh = host->proto;
	struct homa_ctx *ctx = ctx_now(sim, hh);
	struct homa_rx_pkt rx = {
		.data = pkt->hdr,
		.len = pkt->hdr_len + pkt->payload,
		.src = &host_of(sim, pkt->src)->addr,
		.prio = pkt->prio,
	};

	if (pkt->type == HOMA_DATA) {
		const struct sim_msg *msg = sim_pkt_msg(pkt);
		bool fresh = !msg || !msg->rx || ctx->spare_ranges < 2;

		if (msg)
			fetch_early(sim, msg, pkt);
		if (unlikely(pkt->flags & SIM_TRIMMED) ||
		    (fresh && !sim_homa_refill(homa_of(sim), ctx))) {
			sim_pkt_free(sim, pkt);
			return;
		}
	}
	homa_rx_alone(ctx, hh->link, &rx);
	if (rx.verdict == HOMA_RX_DATA)
		host_data(hh, &rx, pkt);
	homa_rx_flush(ctx);
	host_events(sim, hh, pkt);
	sim_pkt_free(sim, pkt);
	host_leave(sim, hh);
}

/* ---- messages out ---- */

static int send_request(const struct sim *sim, struct sim_homa_host *hh,
			struct sim_msg *msg, struct homa_rpc **rpc)
{
	struct homa_send send = {
		.dst = host_of(sim, msg->dst)->addr,
		.port = SIM_HOMA_PORT,
		.length = msg->length,
		.available = msg->length,
	};
	struct homa_handle handle;
	int err;

	err = homa_rpc_send(&hh->ctx, hh->client, hh->link, &send, &handle, rpc);
	if (err)
		return -err;
	msg->x[0] = handle.id;
	msg->x[1] = handle.generation;
	msg->x[2] = handle.hash;
	return 0;
}

static void homa_sim_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct sim_homa_host *hh = host->proto;
	struct homa_ctx *ctx = ctx_now(sim, hh);
	struct homa_rpc *rpc = NULL;
	int err = ENOMEM;

	if (sim_homa_refill(homa_of(sim), ctx)) {
		if (!msg->request)
			err = send_request(sim, hh, msg, &rpc);
		else
			err = -homa_rpc_reply(ctx, server_handle(msg->request),
					      msg->length, msg->length, &rpc);
	}
	if (rpc) {
		struct sim_homa_priv *priv = homa_rpc_priv(rpc);

		sim_msg_get(msg);
		priv->out = msg;
		msg->tx = rpc;
	} else {
		/* The engine has given up the RPC of this response, and so has the
		 * client. */
		sim_failed(sim, msg, err ? err : ETIMEDOUT);
	}
	host_leave(sim, hh);
}

static void pkt_data(const struct sim *sim, struct sim_pkt *pkt,
		     const struct homa_tx_desc *desc)
{
	const struct sim_homa_priv *priv = homa_rpc_priv(desc->rpc);
	struct sim_msg *msg = priv->out;

	pkt->wire = sim_wire(sim_homa_data_ip(&sim->cfg, desc->length));
	pkt->offset = desc->offset;
	pkt->payload = desc->length;
	pkt->msg = msg;
	pkt->msg_serial = msg->serial;
	pkt->dst = msg->dst;
	pkt->flow = (u32)(msg->serial * 0x9e3779b97f4a7c15ull >> 32);
	if (desc->retransmit)
		pkt->flags |= SIM_RETRANSMIT;
}

/* The address contains the number of the host, see homa_memory.c. */
static void pkt_ctrl(const struct sim *sim, struct sim_pkt *pkt,
		     const struct homa_tx_desc *desc)
{
	const struct homa_wire_grant *grant = (const struct homa_wire_grant *)desc->hdr;
	const u8 *ip = desc->dst.ip;

	pkt->wire = sim_wire(sim_homa_ctrl_ip(&sim->cfg, desc->hdr_len));
	pkt->flags |= SIM_CONTROL;
	pkt->dst = (u16)(ip[14] << 8 | ip[15]);
	pkt->x[0] = homa_get_be64(&grant->common.sender_id);
	pkt->flow = (u32)(pkt->x[0] * 0x9e3779b97f4a7c15ull >> 32);
	if (pkt->type == HOMA_GRANT || pkt->type == HOMA_RESEND)
		pkt->offset = homa_get_be32(&grant->offset);
}

/* Returns the engine's next packet; NULL: it has none now, and *@not_before is the time of its
 * clock at which its pacer wants to be asked again, or HOMA_NEVER. */
static struct sim_pkt *take_packet(struct sim *sim, struct sim_homa_host *hh,
				   u64 *not_before)
{
	struct homa_ctx *ctx = ctx_now(sim, hh);
	enum homa_tx_result result;
	struct homa_tx_desc desc;
	struct sim_pkt *pkt;

	*not_before = HOMA_NEVER;
	result = homa_tx(ctx, hh->link, 1, &desc);
	if (result == HOMA_TX_WAIT)
		*not_before = desc.not_before;
	if (result != HOMA_TX_PACKET)
		return NULL;
	pkt = sim_pkt_new(sim);
	if (!pkt) {
		homa_tx_done(ctx, &desc, -ENOMEM);
		return NULL;
	}
	pkt->src = (u16)hh->host->index;
	pkt->prio = desc.prio;
	pkt->hdr_len = desc.hdr_len;
	memcpy(pkt->hdr, desc.hdr, desc.hdr_len);
	pkt->type = homa_peek_type(pkt->hdr);
	if (desc.rpc)
		pkt_data(sim, pkt, &desc);
	else
		pkt_ctrl(sim, pkt, &desc);
	homa_tx_done(ctx, &desc, 0);
	if (unlikely(ctx->retired_rpc != NULL))
		host_retire(sim, hh);
	return pkt;
}

/* Gives the card what the pacer lets go now; while its link is down, nothing. */
static void card_fill(struct sim *sim, struct sim_homa_host *hh)
{
	struct sim_event *due = &hh->card.due;
	struct sim_pkt *pkt;
	u64 not_before;

	if (hh->host->up->down)
		return;
	while ((pkt = take_packet(sim, hh, &not_before)) != NULL)
		sim_homa_card_put(&hh->card, pkt);
	if (not_before != HOMA_NEVER && !sim_event_pending(due))
		sim_event_add(sim->agenda, due,
			      sim->now + (not_before - hh->ctx.now) * SIM_NS);
}

void sim_homa_card_due(struct sim *sim, struct sim_event *ev)
{
	struct sim_homa_host *hh = homa_container_of(ev, struct sim_homa_host, card.due);

	card_fill(sim, hh);
	sim_port_kick(sim, hh->host->up);
}

static struct sim_pkt *homa_sim_tx(struct sim *sim, struct sim_host *host)
{
	struct sim_homa_host *hh = host->proto;
	u64 not_before;

	if (sim->cfg.option[SIM_HOMA_CARD]) {
		/* After its link was down the card may be empty. */
		if (!hh->card.head)
			card_fill(sim, hh);
		return sim_homa_card_get(&hh->card);
	}
	return take_packet(sim, hh, &not_before);
}

/* ---- time ---- */

void sim_homa_timer(struct sim *sim, struct sim_event *ev)
{
	struct sim_homa_host *hh = homa_container_of(ev, struct sim_homa_host, timer);
	struct homa_ctx *ctx = ctx_now(sim, hh);
	u64 now = ctx->now, next;

	if (!sim_homa_refill(homa_of(sim), ctx))
		return;
	do {
		next = homa_timer(ctx, 0, TIMER_BUDGET);
	} while (next <= now);
	host_events(sim, hh, NULL);
	/* An RPC that begins later may be due before @next, but not within a millisecond.
	 * So beyond that host_leave() sets the timer. */
	if (next - now < 1000000)
		sim_event_add(sim->agenda, &hh->timer, sim->now + (next - now) * SIM_NS);
	host_leave(sim, hh);
}

/* ---- the run ---- */

static int homa_sim_start(struct sim *sim)
{
	struct sim_homa *homa = calloc(1, sizeof(*homa));
	int err;

	if (!homa)
		return -ENOMEM;
	sim->proto = homa;
	err = sim_homa_settle(sim, homa);
	return err ? err : sim_homa_memory_init(sim, homa);
}

static void homa_sim_stop(struct sim *sim)
{
	struct sim_homa *homa = homa_of(sim);

	if (!homa)
		return;
	sim_homa_memory_free(homa);
	free(homa);
	sim->proto = NULL;
}

static void homa_sim_metrics(struct sim *sim,
			     void (*put)(void *arg, const char *name, double value),
			     void *arg)
{
	const struct sim_homa *homa = homa_of(sim);
	u32 i, m;

	for (m = 0; m < HOMA_M_COUNT; m++) {
		u64 sum = 0;

		for (i = 0; i < sim->cfg.hosts; i++)
			sum += homa->hosts[i].ctx.metrics[m];
		put(arg, homa_metric_table[m].name, (double)sum);
	}
	put(arg, "engine_memory_bytes", (double)homa->pool.bytes);
}

const struct sim_transport sim_homa = {
	.name = "homa",
	.title = "Homa",
	.text = "the engine that this project ships",
	.options = sim_homa_options,
	.presets = sim_homa_presets,
	.defaults = sim_homa_defaults,
	.set = sim_homa_set,
	.start = homa_sim_start,
	.stop = homa_sim_stop,
	.send = homa_sim_send,
	.tx = homa_sim_tx,
	.rx = homa_sim_rx,
	.metrics = homa_sim_metrics,
};
