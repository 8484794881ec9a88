// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TAS: the TCP engine that ships (engine/tcp), one in every host. Described in A. Kaufmann,
 * T. Stamler, S. Peter, N. Sharma, A. Krishnamurthy, T. Anderson, "TAS: TCP Acceleration
 * as an OS Service", EuroSys 2019. This file is a host in the sense of tas_engine.h:
 * real TCP headers go into the engine and come out of it, in virtual time.
 *
 * A message is a connection of its own: opened with a handshake, which counts, closed
 * behind its last byte. It has arrived when all of its bytes are there in order.
 *
 * Where it simplifies: software takes the same time for every packet and is no
 * bottleneck; payload has no content, and whoever receives takes it at once, out of a
 * buffer of 8 MB; a segment is sent when the host's port is free, so pieces of many
 * segments do not exist.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tas_call.h"
#include "tas_host.h"

#define TIMER_BUDGET 1000u
#define SLOW_BUDGET 1000u
#define RX_SHIFT 23
#define SLAB_CONNS 64u
#define PORT_FIRST 1024u
#define PORT_TRIES 64u

struct sim_tas_slab {
	/* The slab that was made before this one; NULL: none was. */
	struct sim_tas_slab *next;
	/* Memory for connections. */
	struct tas_conn *conns;
};

static inline struct sim_tas *tas_of(const struct sim *sim)
{
	return sim->proto;
}

static inline struct tas_engine *engine_now(const struct sim *sim, struct sim_tas_host *th)
{
	tas_set_now(&th->engine, SIM_TAS_EPOCH_NS + sim_ns(sim->now), SLOW_BUDGET);
	return &th->engine;
}

static void address(u8 *ip, u32 host)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 10;
	ip[14] = (u8)(host >> 8);
	ip[15] = (u8)host;
}

static u32 host_at(const u8 *ip)
{
	return (u32)ip[14] << 8 | ip[15];
}

/* ---- memory ---- */

static bool more_conns(struct sim_tas *tas)
{
	struct sim_tas_slab *slab = malloc(sizeof(*slab));
	size_t size = (sizeof(struct tas_conn) + 63) / 64 * 64 * SLAB_CONNS;
	u32 i;

	if (!slab)
		return false;
	slab->conns = aligned_alloc(64, size);
	if (!slab->conns) {
		free(slab);
		return false;
	}
	memset(slab->conns, 0, size);
	slab->next = tas->slabs;
	tas->slabs = slab;
	tas->bytes += size;
	for (i = 0; i < SLAB_CONNS; i++) {
		homa_list_init(&slab->conns[i].f.hash);
		homa_list_add_tail(&tas->spare, &slab->conns[i].f.hash);
	}
	return true;
}

/* Gives the engine the memory that a message, or a segment of a new one, may use up; returns false
 * if there is none. */
static bool refill(struct sim_tas *tas, struct tas_engine *engine)
{
	struct homa_list *node;

	if (engine->num_spare)
		return true;
	node = homa_list_pop(&tas->spare);
	if (!node && more_conns(tas))
		node = homa_list_pop(&tas->spare);
	if (!node)
		return false;
	tas_add_spare(engine, homa_container_of(node, struct tas_conn, f.hash));
	return true;
}

/* ---- what has happened to connections ---- */

/* Is this the end that sends the message? That end has begun the connection; the other one has
 * SIM_TAS_PORT. */
static bool sends(const struct tas_conn *conn)
{
	return conn->f.pair.local_port != SIM_TAS_PORT;
}

static void fail(struct sim *sim, struct tas_engine *engine, struct tas_conn *conn)
{
	struct sim_msg *msg = conn->host;

	if (msg && sends(conn) && !msg->delivered)
		sim_failed(sim, msg, conn->error ? -conn->error : ECONNRESET);
	if (!(conn->f.flags & TAS_F_CLOSED))
		tas_close(engine, conn);
}

static void over(struct sim *sim, struct tas_conn *conn)
{
	struct sim_msg *msg = conn->host;

	conn->host = NULL;
	homa_list_init(&conn->f.hash);
	homa_list_add_head(&tas_of(sim)->spare, &conn->f.hash);
	if (msg)
		sim_msg_put(sim, msg);
}

static void conn_events(struct sim *sim, struct tas_engine *engine, struct tas_conn *conn,
			u32 events)
{
	const struct sim_msg *msg = conn->host;

	if (events & TAS_EV_FREE) {
		over(sim, conn);
		return;
	}
	if (events & TAS_EV_ERROR) {
		fail(sim, engine, conn);
		return;
	}
	if ((events & TAS_EV_OPEN) && sends(conn) && msg) {
		tas_written(engine, conn, msg->length);
		tas_close(engine, conn);
		return;
	}
	if (events & TAS_EV_READABLE)
		tas_taken(engine, conn, tas_readable(conn));
	if ((events & TAS_EV_END) && !(conn->f.flags & TAS_F_CLOSED))
		tas_close(engine, conn);
}

/* Does what follows a call of the engine: handles its events, sets the timer to what it
 * asks for, and has the port look for packets. */
static void leave(struct sim *sim, struct sim_tas_host *th)
{
	struct tas_engine *engine = &th->engine;
	struct tas_listener *listener;
	struct tas_conn *conn;
	u32 events;
	u64 next;

	while ((listener = tas_next_ready(engine)))
		while (tas_accept(engine, listener))
			;
	while ((conn = tas_next_event(engine, &events)))
		conn_events(sim, engine, conn, events);
	next = tas_timers(engine, 0);
	sim_event_cancel(sim->agenda, &th->timer);
	if (next != TAS_NEVER)
		sim_event_add(sim->agenda, &th->timer,
			      sim->now + (next > engine->now ? next - engine->now : 0) *
						 SIM_NS);
	sim_port_kick(sim, th->host->up);
}

static void timer(struct sim *sim, struct sim_event *ev)
{
	struct sim_tas_host *th = homa_container_of(ev, struct sim_tas_host, timer);
	struct tas_engine *engine = engine_now(sim, th);

	while (tas_timers(engine, TIMER_BUDGET) <= engine->now)
		;
	leave(sim, th);
}

/* ---- packets in ---- */

/* Returns the bytes of the message that have arrived in order. */
static u32 in_order(const struct tas_conn *conn)
{
	return conn->f.rcv_nxt - conn->irs - 1 - !!(conn->f.flags & TAS_F_FIN_IN);
}

/* Notes that @conn has received bytes of @msg; true: @msg is complete now. */
static bool received(struct tas_conn *conn, struct sim_msg *msg)
{
	if (sends(conn) || !msg)
		return false;
	if (!conn->host) {
		sim_msg_get(msg);
		conn->host = msg;
	}
	return conn->host == msg && !msg->delivered && in_order(conn) >= msg->length;
}

static void tas_sim_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_tas_host *th = host->proto;
	struct tas_engine *engine = engine_now(sim, th);
	struct sim_msg *msg = sim_pkt_msg(pkt);
	struct tas_segment seg;
	struct tas_copy copy;
	struct tas_pair pair;
	bool whole = false;
	u8 ecn = TAS_ECN_NONE;

	if (!refill(tas_of(sim), engine) || tas_decode(&seg, pkt->hdr, pkt->hdr_len)) {
		sim_pkt_free(sim, pkt);
		return;
	}
	if (pkt->flags & SIM_ECN_CAPABLE)
		ecn = pkt->flags & SIM_ECN_CE ? TAS_ECN_CE : TAS_ECN_ECT0;
	seg.length = pkt->payload;
	address(pair.local, host->index);
	address(pair.remote, pkt->src);
	pair.local_port = seg.dport;
	pair.remote_port = seg.sport;
	tas_rx(engine, &pair, &seg, ecn, &copy);
	if (copy.conn)
		whole = received(copy.conn, msg);
	if (whole)
		sim_msg_get(msg);
	leave(sim, th);
	if (whole) {
		sim_delivered(sim, msg, pkt);
		sim_msg_put(sim, msg);
	}
	sim_pkt_free(sim, pkt);
}

/* ---- packets out ---- */

static void pkt_of(const struct tas_out *out, struct sim_pkt *pkt)
{
	struct sim_msg *msg = out->conn ? out->conn->host : NULL;
	u32 ports = (u32)out->pair->local_port << 16 | out->pair->remote_port;

	pkt->dst = (u16)host_at(out->pair->remote);
	pkt->hdr_len = out->header_length;
	memcpy(pkt->hdr, out->header, out->header_length);
	pkt->payload = out->length;
	pkt->wire = sim_wire(SIM_TAS_HEADERS + out->header_length + out->length);
	pkt->flow =
		(u32)((ports * 0x9e3779b97f4a7c15ull + pkt->dst * 31u + pkt->src) >> 16);
	if (out->ecn)
		pkt->flags |= SIM_ECN_CAPABLE;
	if (!out->length) {
		pkt->flags |= SIM_CONTROL;
		return;
	}
	if (msg) {
		pkt->msg = msg;
		pkt->msg_serial = msg->serial;
		pkt->offset = out->from;
	}
}

static struct sim_pkt *tas_sim_tx(struct sim *sim, struct sim_host *host)
{
	struct sim_tas_host *th = host->proto;
	struct tas_engine *engine = engine_now(sim, th);
	struct tas_out out;
	struct sim_pkt *pkt;
	u64 again = engine->metrics.retransmits, next;

	if (!tas_next_out(engine, &out))
		pkt = NULL;
	else
		pkt = sim_pkt_new(sim);
	if (pkt) {
		pkt->src = (u16)host->index;
		pkt_of(&out, pkt);
		if (engine->metrics.retransmits != again)
			pkt->flags |= SIM_RETRANSMIT;
	}
	/* Sending sets timers, mostly that of the rate. */
	next = tas_timers(engine, 0);
	if (next != TAS_NEVER) {
		next = sim->now + (next > engine->now ? next - engine->now : 0) * SIM_NS;
		if (!sim_event_pending(&th->timer) || th->timer.at > next) {
			sim_event_cancel(sim->agenda, &th->timer);
			sim_event_add(sim->agenda, &th->timer, next);
		}
	}
	return pkt;
}

/* ---- messages out ---- */

static void tas_sim_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct sim_tas_host *th = host->proto;
	struct tas_engine *engine = engine_now(sim, th);
	struct tas_conn *conn = NULL;
	struct tas_pair pair;
	u32 tries = PORT_TRIES;

	address(pair.local, msg->src);
	address(pair.remote, msg->dst);
	pair.remote_port = SIM_TAS_PORT;
	if (refill(tas_of(sim), engine)) {
		do {
			th->port = th->port < PORT_FIRST ? PORT_FIRST : (u16)(th->port + 1);
			pair.local_port = th->port;
		} while (pair.local_port < PORT_FIRST ||
			 (tas_connect(engine, &pair, RX_SHIFT, 1u << RX_SHIFT, &conn) ==
				  TAS_EADDRINUSE &&
			  --tries));
	}
	if (conn) {
		sim_msg_get(msg);
		conn->host = msg;
		conn->f.flags |= TAS_F_NODELAY;
	}
	leave(sim, th);
	if (!conn)
		sim_failed(sim, msg, ENOMEM);
}

/* ---- the run ---- */

static int tas_sim_start(struct sim *sim)
{
	struct sim_tas *tas = calloc(1, sizeof(*tas));
	u32 i;

	if (!tas)
		return -ENOMEM;
	sim->proto = tas;
	homa_list_init(&tas->spare);
	tas->hosts = calloc(sim->cfg.hosts, sizeof(*tas->hosts));
	if (!tas->hosts)
		return -ENOMEM;
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct sim_tas_host *th = &tas->hosts[i];
		u64 seed[6] = { sim->cfg.seed, i, 1, 2, 3, 4 };

		tas_engine_init(&th->engine, seed, SIM_TAS_EPOCH_NS, sim->cfg.mtu);
		if (sim_tas_settle(&sim->cfg, &th->engine))
			return -EINVAL;
		th->listener = (struct tas_listener){ .port = SIM_TAS_PORT,
						      .rx_shift = RX_SHIFT,
						      .rx_max = 1u << RX_SHIFT,
						      .backlog = 1u << 20 };
		tas_listen(&th->engine, &th->listener);
		th->host = &sim->hosts[i];
		th->timer.fn = timer;
		sim->hosts[i].proto = th;
	}
	return 0;
}

static void tas_sim_stop(struct sim *sim)
{
	struct sim_tas *tas = tas_of(sim);
	struct sim_tas_slab *slab;

	if (!tas)
		return;
	while ((slab = tas->slabs)) {
		tas->slabs = slab->next;
		free(slab->conns);
		free(slab);
	}
	free(tas->hosts);
	free(tas);
	sim->proto = NULL;
}

static void tas_sim_metrics(struct sim *sim,
			    void (*put)(void *arg, const char *name, double value),
			    void *arg)
{
	struct tas_metrics sum = { 0 };
	const struct tas_metrics *m;
	u32 i;

	for (i = 0; i < sim->cfg.hosts; i++) {
		m = &tas_of(sim)->hosts[i].engine.metrics;
#define X(name, text) sum.name += m->name;
#include "tas_metrics.def"
#undef X
	}
#define X(name, text) put(arg, #name, (double)sum.name);
#include "tas_metrics.def"
#undef X
	put(arg, "engine_memory_bytes", (double)tas_of(sim)->bytes);
}

const struct sim_transport sim_tas = {
	.name = "tas",
	.title = "TAS",
	.text = "the TCP engine that this project ships, a connection for each message",
	.options = sim_tas_options,
	.defaults = sim_tas_defaults,
	.start = tas_sim_start,
	.stop = tas_sim_stop,
	.send = tas_sim_send,
	.tx = tas_sim_tx,
	.rx = tas_sim_rx,
	.metrics = tas_sim_metrics,
};
