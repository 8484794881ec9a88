// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections by their pair, listeners by their port. The hash is keyed: whoever
 * chooses addresses and ports cannot aim at a bucket. It is pair-multiply-shift (Thorup,
 * "High Speed Hashing for Integers and Strings", 2015), of which it is proved that any
 * two pairs meet in a bucket as seldom as by chance, for keys that the pairs were chosen
 * without; no hash leaves the engine. SipHash, which would withstand even one who saw
 * the hashes, costs eight times as much for each segment and is used where they can be seen:
 * sequence numbers and cookies.
 */
#include "tas_impl.h"

static struct homa_list *listen_bucket(struct tas_engine *engine, u16 port)
{
	u64 mixed = homa_hash_mix(port ^ engine->key[0]);

	return &engine->listeners[mixed % TAS_LISTEN_BUCKETS];
}

static bool is_at(const struct tas_listener *l, const u8 *local, u16 port)
{
	return l->port == port && !memcmp(l->local, local, sizeof(l->local));
}

/* Returns the first listener at exactly this address and port, or NULL. */
static struct tas_listener *listener_of(struct tas_engine *engine,
					const u8 *local, u16 port)
{
	struct homa_list *node, *head = listen_bucket(engine, port);

	homa_list_for_each(node, head) {
		struct tas_listener *l =
			homa_container_of(node, struct tas_listener, node);

		if (is_at(l, local, port))
			return l;
	}
	return NULL;
}

/* Which of the listeners that share the address and port of @first gets the connection: the hash
 * of its ends decides, so all its segments come to the same one. The ports of a peer follow each
 * other, and for some keys the upper bits of their hashes hardly change, so these are mixed. */
static struct tas_listener *one_of(struct tas_engine *engine,
				   struct tas_listener *first,
				   const struct tas_pair *pair)
{
	struct homa_list *node, *head = listen_bucket(engine, first->port);
	u64 hash = homa_hash_mix(tas_hash(engine, pair)) >> 32;
	u32 num = 0, skip;

	homa_list_for_each(node, head)
		num += is_at(homa_container_of(node, struct tas_listener, node),
			     first->local, first->port);
	skip = (u32)(hash * num >> 32);
	homa_list_for_each(node, head) {
		struct tas_listener *l =
			homa_container_of(node, struct tas_listener, node);

		if (is_at(l, first->local, first->port) && !skip--)
			return l;
	}
	return first;
}

struct tas_listener *tas_find_listener(struct tas_engine *engine,
				       const struct tas_pair *pair)
{
	static const u8 any[16], any_v4[16] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(pair->local, any_v4, 12);
	struct tas_listener *l =
		listener_of(engine, pair->local, pair->local_port);

	if (!l && v4)
		l = listener_of(engine, any_v4, pair->local_port);
	if (!l)
		l = listener_of(engine, any, pair->local_port);
	if (l && l->v6_only && v4)
		return NULL;
	return unlikely(l && l->reuse) ? one_of(engine, l, pair) : l;
}

bool tas_listens(struct tas_engine *engine, const struct tas_pair *pair)
{
	return tas_find_listener(engine, pair) != NULL;
}

struct tas_conn *tas_known(struct tas_engine *engine, const struct tas_pair *pair)
{
	return tas_find(engine, pair);
}

int tas_listen(struct tas_engine *engine, struct tas_listener *listener)
{
	const struct tas_listener *other =
		listener_of(engine, listener->local, listener->port);

	/* All that share an address and a port agree to that, so the first one speaks for all,
	 * also about v6_only. */
	if (other && (!other->reuse || !listener->reuse ||
		      other->v6_only != listener->v6_only))
		return TAS_EADDRINUSE;
	homa_list_init(&listener->ready);
	homa_list_init(&listener->half);
	homa_list_init(&listener->news);
	listener->num_ready = 0;
	listener->num_half = 0;
	homa_list_add_tail(listen_bucket(engine, listener->port),
			   &listener->node);
	return 0;
}

u32 tas_initial_seq(const struct tas_engine *engine,
		    const struct tas_pair *pair, u32 *ts_offset)
{
	struct homa_siphash s =
		homa_siphash_begin(engine->key[2], engine->key[3]);

	homa_siphash_word(&s, homa_get_be64(pair->local));
	homa_siphash_word(&s, homa_get_be64(pair->local + 8));
	homa_siphash_word(&s, homa_get_be64(pair->remote));
	homa_siphash_word(&s, homa_get_be64(pair->remote + 8));
	homa_siphash_word(&s, (u64)pair->local_port << 16 | pair->remote_port);
	/* A pair's next connection has newer timestamps, too (RFC 6191). */
	*ts_offset = (u32)((s.v0 ^ s.v1 ^ s.v2 ^ s.v3) >> 32);
	/* A clock that ticks every 256 ns, so that a pair's next connection begins
	 * behind its last one. */
	return (u32)homa_siphash_end(&s) + (u32)(engine->now >> 8);
}

static u32 hash_of(const struct homa_list *node)
{
	return tas_conn_at(node)->hash;
}

bool tas_wants_segment(const struct tas_engine *engine)
{
	return (homa_table_full(&engine->table) ||
		homa_table_full(&engine->ended)) &&
	       !engine->segments;
}

void tas_add_segment(struct tas_engine *engine, struct homa_segment *segment)
{
	segment->next = engine->segments;
	engine->segments = segment;
}

static void add(struct tas_engine *engine, struct tas_conn *conn)
{
	struct homa_segment *segment = engine->segments;

	conn->hash = tas_hash(engine, &conn->f.pair);
	homa_table_add(&engine->table, conn->hash, &conn->f.hash);
	if (unlikely(homa_table_full(&engine->table)) &&
	    homa_table_grow(&engine->table, segment, hash_of))
		engine->segments = segment->next;
}

struct tas_conn *tas_new(struct tas_engine *engine, const struct tas_pair *pair)
{
	struct tas_conn *conn = tas_take_spare(engine);
	u32 i;

	if (!conn)
		return NULL;
	memset(conn, 0, sizeof(*conn));
	conn->f.pair = *pair;
	homa_list_init(&conn->f.tx);
	homa_list_init(&conn->pending);
	homa_list_init(&conn->event);
	homa_wheel_node_init(&conn->wheel);
	homa_wheel_node_init(&conn->rate.node);
	for (i = 0; i < TAS_TIMERS; i++)
		conn->deadline[i] = TAS_NEVER;
	conn->rto = engine->params.rto_initial_ms * TAS_MSEC;
	conn->iss = tas_initial_seq(engine, pair, &conn->ts_offset);
	conn->f.snd_una = conn->f.snd_nxt = conn->iss;
	conn->f.snd_end = conn->iss + 1;
	conn->rtx_nxt = conn->rtx_end = conn->recover = conn->iss;
	conn->ecn_seq = conn->iss;
	conn->heard_at = conn->born_at = engine->now;
	conn->pacing = engine->params.pacing;
	tas_set_control(conn, engine->params.dctcp ? TAS_DCTCP :
						     engine->params.congestion);
	conn->keep_idle_ms = engine->params.keepalive_ms;
	conn->keep_interval_ms = engine->params.keepalive_interval_ms;
	conn->keep_most = (u8)engine->params.keepalive_probes;
	add(engine, conn);
	return conn;
}

/* Makes the memory of a connection spare that was not accepted; if the host has set
 * tas_conn.host, it gets TAS_EV_FREE instead. */
static void reuse(struct tas_engine *engine, struct tas_conn *conn)
{
	homa_list_del(&conn->event);
	if (!conn->host) {
		tas_add_spare(engine, conn);
		return;
	}
	conn->f.flags |= TAS_F_CLOSED;
	tas_tell(engine, conn, TAS_EV_FREE);
}

void tas_gone(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_listener *listener = conn->listener;
	bool half = conn->f.state == TAS_SYN_RECEIVED;

	/* Nothing is written to a connection that has ended. */
	conn->f.flags &= ~(u32)TAS_F_SHORT;
	conn->f.state = TAS_CLOSED;
	homa_wheel_del(&engine->wheel, &conn->wheel);
	homa_wheel_del(&engine->pace, &conn->rate.node);
	homa_list_del(&conn->f.tx);
	homa_list_del(&conn->pending);
	if (homa_list_linked(&conn->f.hash))
		homa_table_del(&engine->table, &conn->f.hash);
	if (listener) {
		if (half)
			tas_half(engine, listener, false);
		else
			tas_ready(engine, listener, false);
		conn->listener = NULL;
		reuse(engine, conn);
	} else if (conn->f.flags & TAS_F_CLOSED) {
		tas_tell(engine, conn, TAS_EV_FREE);
	}
}

void tas_tell(struct tas_engine *engine, struct tas_conn *conn, u32 events)
{
	/* The host hears of a closed connection only that it has ended, and that its bytes
	 * have arrived. */
	if (conn->f.flags & TAS_F_CLOSED)
		events &= TAS_EV_FREE | TAS_EV_SENT;
	if (!events || conn->listener)
		return;
	conn->events |= events;
	if (!homa_list_linked(&conn->event))
		homa_list_add_tail(&engine->events, &conn->event);
}

void tas_add_spare(struct tas_engine *engine, struct tas_conn *conn)
{
	homa_list_init(&conn->f.hash);
	homa_list_add_head(&engine->spare, &conn->f.hash);
	engine->num_spare++;
}

struct tas_conn *tas_take_spare(struct tas_engine *engine)
{
	struct homa_list *node = homa_list_pop(&engine->spare);

	if (!node)
		return NULL;
	engine->num_spare--;
	return tas_conn_at(node);
}
