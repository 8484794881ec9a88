/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The TCP engine as its host calls it. A host's round: tas_set_now(); for each packet
 * tas_rx_packet() and the copy that it asks for; tas_timers(); tas_next_event()
 * until there is none; tas_next_out() until there is none or the device is full.
 */
#ifndef HOMA_TAS_ENGINE_H
#define HOMA_TAS_ENGINE_H

#include "homa_rng.h"
#include "homa_table.h"
#include "tas_conn.h"

#define TAS_BUCKETS 256u   /* of connections at first */
#define TAS_SEGMENTS 1024u /* that the table may grow by */
#define TAS_LISTEN_BUCKETS 64u
#define TAS_STRAYS 64u /* segments of no connection that wait to be sent */
#define TAS_RATE_LEAST 12500u /* bytes per second, of a connection */

/**
 * struct tas_listener - a port at which connections are taken
 * @node: in the engine's table. @ready: connections for accept(). @half: those that are
 *	not open yet. @news: in the engine's
 *	list of listeners whose host does not know of a connection yet.
 * @local: address; all zeros: any, ::ffff:0.0.0.0: any of IPv4. @port: host order.
 * @v6_only: with any address: of IPv6.
 * @backlog: most connections in @ready, and as many in @half.
 * @num_ready, @num_half: how many there are.
 * @rx_shift, @rx_max: receive buffers of its connections; see struct tas_conn.
 * @control: congestion control of its connections, enum tas_control and one more; 0: as
 *	the setting says.
 * @shared_half: half-open connections of all listeners of one owner, the host's memory;
 *	NULL: this listener has no such company. See tas_engine.half_most.
 * @places: how many connections the host can take now; NULL: any number. Bytes of one that
 *	it cannot take have not come: the peer sends them again.
 * @host: the host's own.
 */
struct tas_listener {
	struct homa_list node;
	struct homa_list ready;
	struct homa_list half;
	struct homa_list news;
	u8 local[16];
	u16 port;
	u8 rx_shift;
	u8 control;
	bool v6_only;
	u32 backlog;
	u32 num_ready;
	u32 num_half;
	u32 rx_max;
	u32 *shared_half;
	const u32 *places;
	void *host;
};

/* A segment that belongs to no connection: a reset, or a SYN cookie. */
struct tas_stray {
	struct tas_pair pair;
	struct tas_segment seg;
};

/* @most of something in the second that begins at @at, ns; @used of them are gone. */
struct tas_limit {
	u64 at;
	u32 used;
	u32 most;
};

/**
 * struct tas_engine - connections of one thread
 * @now: ns, set by the host. @clock_ms: the same for timestamps.
 * @mtu: bytes of an IP packet towards all, unless a path is known to be narrower.
 * @key: secrets, of the table, of initial sequence numbers, and of cookies.
 * @hash_key: those of the table, as its hash uses them.
 * @spare: memory for connections that the host has handed in; @segments: for the table.
 * @wheel: deadlines of connections. @pace: connections whose next bytes wait for their time.
 * @ended: connections in TIME_WAIT whose application has let go; @ended_order: the same, the
 *	oldest first; @spare_ended: memory for them.
 * @half_most: half-open connections that are remembered; one owner of listeners gets as
 *	many as are left to all others. 0: any number. @num_half: how many there are.
 * @orphans: connections whose application has let go and whose FIN alone, or their peer's, is
 *	waited for, the oldest first; in FIN_WAIT_2 from then on.
 * @cookie_at: when a SYN cookie was sent last, ns.
 * @slow_left: exceptions that the slow path still takes in this round.
 */
struct tas_engine {
	u64 now;
	u32 clock_ms;
	u32 mtu;
	struct tas_params params;
	struct tas_metrics metrics;
	u64 key[6];
	u64 hash_key[7];
	struct homa_rng rng;
	struct homa_table table;
	struct homa_list base[TAS_BUCKETS];
	struct homa_segment *segment[TAS_SEGMENTS];
	struct homa_segment *segments;
	struct homa_list listeners[TAS_LISTEN_BUCKETS];
	struct homa_wheel wheel;
	struct homa_wheel pace;
	struct homa_list spare;
	u32 num_spare;
	struct homa_table ended;
	struct homa_list ended_base[TAS_BUCKETS];
	struct homa_segment *ended_segment[TAS_SEGMENTS];
	struct homa_list ended_order;
	struct homa_list spare_ended;
	u32 num_spare_ended;
	u32 half_most, num_half;
	struct homa_list orphans;
	struct homa_list tx;
	struct homa_list events;
	struct homa_list news;
	struct tas_stray stray[TAS_STRAYS];
	u32 stray_head, stray_tail;
	struct tas_limit challenges, resets;
	u64 cookie_at;
	u32 slow_left;
};

/** tas_engine_init() - an engine without connections
 * @seed: 48 bytes that nobody can guess. @now: ns. @mtu: bytes. */
void tas_engine_init(struct tas_engine *engine, const u64 seed[6], u64 now,
		     u32 mtu);

/** tas_set() - change a setting; TAS_EINVAL if there is none of that name or @value is
 *  out of its bounds */
int tas_set(struct tas_engine *engine, const char *name, u64 value);

/** tas_add_spare() - memory for one connection, aligned to 64 bytes */
void tas_add_spare(struct tas_engine *engine, struct tas_conn *conn);

/**
 * tas_add_ended() - memory for one connection in TIME_WAIT
 *
 * As many as were handed in are remembered, then the oldest makes room. A connection
 * that its application has let go gets its TAS_EV_FREE as soon as it is remembered so.
 * Without any such memory a connection in TIME_WAIT keeps its own.
 */
void tas_add_ended(struct tas_engine *engine, struct tas_ended *ended);

/** tas_take_ended() - one of those that are not in use goes back to the host; NULL: none */
struct tas_ended *tas_take_ended(struct tas_engine *engine);

/** tas_drop_orphan() - forget the connection that has been closed for longest, with all its
 *  bytes acknowledged; false: there is none. Its TAS_EV_FREE comes. */
bool tas_drop_orphan(struct tas_engine *engine);

/** tas_wants_segment() - one of the tables of connections would like to grow by one */
bool tas_wants_segment(const struct tas_engine *engine);
void tas_add_segment(struct tas_engine *engine, struct homa_segment *segment);

/** tas_set_now() - a round begins; its slow path takes @exceptions segments at most */
void tas_set_now(struct tas_engine *engine, u64 now, u32 exceptions);

/** tas_rx() - a segment has arrived
 * @pair: seen from here, as the IP header said. @ecn: the IP header's.
 * @copy: what to do with its payload, at once.
 */
void tas_rx(struct tas_engine *engine, const struct tas_pair *pair,
	    const struct tas_segment *seg, u8 ecn, struct tas_copy *copy);

/** tas_rx_packet() - tas_decode() and tas_rx() in one, which is cheaper
 * @pair: has the addresses; the ports may be filled in here.
 * @packet, @length: header and payload, as for tas_decode().
 * @copy: as for tas_rx(), but @from counts from the begin of @packet.
 * Returns 0, or -1 if tas_decode() would.
 */
int tas_rx_packet(struct tas_engine *engine, struct tas_pair *pair,
		  const void *packet, u32 length, u8 ecn, struct tas_copy *copy);

/** tas_icmp() - an ICMP error about a segment of ours
 * @pair: seen from here. @seq: of the quoted segment. @error: what it means, negative;
 *	0: the packet was too long. @mtu: of the path then, in bytes.
 */
void tas_icmp(struct tas_engine *engine, const struct tas_pair *pair, u32 seq,
	      int error, u32 mtu);

/** tas_timers() - do what is due; @budget: connections at most. Returns when there is
 *  more to do, ns, perhaps @now; TAS_NEVER. */
u64 tas_timers(struct tas_engine *engine, u32 budget);

/** tas_next_out() - the next segment to send; false: none now */
bool tas_next_out(struct tas_engine *engine, struct tas_out *out);

/** tas_first_out() - the ends of what tas_next_out() tries first; NULL: nothing waits */
static inline const struct tas_pair *tas_first_out(const struct tas_engine *engine)
{
	if (unlikely(engine->stray_head != engine->stray_tail))
		return &engine->stray[engine->stray_head % TAS_STRAYS].pair;
	if (homa_list_empty(&engine->tx))
		return NULL;
	return &homa_container_of(engine->tx.next, struct tas_conn, f.tx)->f.pair;
}

/** tas_pass_out() - others go before the first connection; false: it is none's */
static inline bool tas_pass_out(struct tas_engine *engine)
{
	if (engine->stray_head != engine->stray_tail ||
	    homa_list_empty(&engine->tx))
		return false;
	homa_list_add_tail(&engine->tx, homa_list_pop(&engine->tx));
	return true;
}

/** tas_next_event() - a connection to which something has happened, or NULL
 * @events: TAS_EV_*. After TAS_EV_FREE the engine does not know it any more. */
struct tas_conn *tas_next_event(struct tas_engine *engine, u32 *events);

/** tas_listen() - take connections
 * @listener: memory, with @local, @port, @backlog, @rx_shift, @rx_max and @host set.
 * TAS_EADDRINUSE if another listens there.
 */
int tas_listen(struct tas_engine *engine, struct tas_listener *listener);

/** tas_listens() - is there a listener for connections to @pair's local end? */
bool tas_listens(struct tas_engine *engine, const struct tas_pair *pair);

/** tas_unlisten() - no longer; what was not accepted is reset */
void tas_unlisten(struct tas_engine *engine, struct tas_listener *listener);

/** tas_next_ready() - a listener with a new connection for tas_accept(), or NULL */
struct tas_listener *tas_next_ready(struct tas_engine *engine);

/** tas_accept() - a connection of @listener, or NULL */
struct tas_conn *tas_accept(struct tas_engine *engine,
			    struct tas_listener *listener);

/** tas_connect() - begin a connection
 * @rx_shift, @rx_max: of its receive buffer; see struct tas_conn.
 * @out: the connection. TAS_ENOMEM: no memory was handed in; TAS_EADDRINUSE: there is
 * one with that pair, or one in TIME_WAIT that it cannot follow yet.
 */
int tas_connect(struct tas_engine *engine, const struct tas_pair *pair,
		u8 rx_shift, u32 rx_max, struct tas_conn **out);

/** tas_written() - the application has put @bytes more into its send buffer. 0, or
 *  TAS_EPIPE if it has shut down or the connection has ended, TAS_EINVAL if more than a
 *  gigabyte would wait. */
int tas_written(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);

/** tas_taken() - it has taken @bytes out of its receive buffer, no more than are there */
void tas_taken(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);

/** tas_set_buffer() - the receive buffer has 2^@rx_shift bytes now, no fewer than before */
void tas_set_buffer(struct tas_engine *engine, struct tas_conn *conn,
		    u8 rx_shift);

/** tas_shut_send() - no more will be written; the peer is told behind the last byte */
int tas_shut_send(struct tas_engine *engine, struct tas_conn *conn);

/** tas_close() - the application lets go; what it has written is still sent. The
 *  host hears TAS_EV_FREE when all is over. */
void tas_close(struct tas_engine *engine, struct tas_conn *conn);

/** tas_abort() - the same with a reset, and at once */
void tas_abort(struct tas_engine *engine, struct tas_conn *conn);

/** tas_options() - after one of TAS_F_NODELAY, TAS_F_CORK, TAS_F_KEEPALIVE, the times of
 *  keepalive or the user timeout in @conn was changed */
void tas_options(struct tas_engine *engine, struct tas_conn *conn);

/** tas_set_control() - another congestion control (enum tas_control) than the settings say,
 *  best before anything is sent; TAS_EINVAL if there is none of that number */
int tas_set_control(struct tas_conn *conn, u32 control);

/** tas_set_rate() - TAS_CONSTANT sends @rate bytes of payload per second instead of what the
 *  setting says, 0: as it says; TAS_EINVAL if that is less than TAS_RATE_LEAST */
int tas_set_rate(struct tas_conn *conn, u64 rate);

/** tas_readable() - bytes in order that the application has not taken */
static inline u32 tas_readable(const struct tas_conn *conn)
{
	return conn->f.rcv_nxt - conn->f.rcv_read -
	       !!(conn->f.flags & TAS_F_FIN_IN);
}

/** tas_unacked() - bytes in the send buffer that are not acknowledged: what must stay */
static inline u32 tas_unacked(const struct tas_conn *conn)
{
	u32 left = conn->f.snd_end - conn->f.snd_una;

	return left - (left && (conn->f.flags & TAS_F_FIN));
}

#endif
