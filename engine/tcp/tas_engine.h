/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The TCP engine as its host calls it. A host's round: tas_set_now(); for each packet
 * tas_rx_packet() and the copy that it asks for; tas_timers(); tas_next_event()
 * until there is none; tas_next_out() until there is none or the device is full.
 *
 * Written by: the one thread that the engine belongs to, in the engine's calls and between
 * them; others read at most the counters of @metrics and what a field says is shared.
 */
#ifndef HOMA_TAS_ENGINE_H
#define HOMA_TAS_ENGINE_H

#include "homa_rng.h"
#include "homa_table.h"
#include "tas_conn.h"

#define TAS_BUCKETS 256u       /* buckets of a table of connections at first */
#define TAS_SEGMENTS 1024u     /* segments by which such a table may grow */
#define TAS_LISTEN_BUCKETS 64u /* buckets of the table of listeners */
#define TAS_STRAYS 64u	       /* entries of tas_engine.stray */
#define TAS_RATE_LEAST 12500u  /* lowest rate, in bytes per second */

/**
 * struct tas_listener - a port at which connections are taken
 * @node: links it into tas_engine.listeners.
 * @ready: open connections that wait for tas_accept().
 * @half: connections that are not open yet.
 * @news: links it into tas_engine.news until tas_next_ready() has returned it.
 * @local: address at which it listens; all zeros: any address, ::ffff:0.0.0.0: any of IPv4.
 * @port: port at which it listens, in host order.
 * @v6_only: it takes no IPv4 connections although @local is any address.
 * @reuse: other listeners with @reuse may have the same address and port; a hash of the two ends
 *	of a connection decides which of them gets it.
 * @backlog: connections above which @ready takes no more; @half takes at most as many, and
 *	at least one.
 * @num_ready: number of connections in @ready.
 * @num_half: number of connections in @half.
 * @rx_shift: receive buffers of its connections have 2^rx_shift bytes at first.
 * @rx_max: bytes to which these buffers may grow.
 * @control: congestion control of its connections, an enum tas_control plus 1; 0: the setting
 *	says which.
 * @shared_half: points to memory of the host in which the engine counts half-open connections
 *	of all listeners of one owner; NULL: the owner has this listener alone. See
 *	tas_engine.half_most.
 * @shared_ready: the same for the connections in @ready and tas_engine.ready_most.
 * @places: points to the number of connections that the host has memory for now, which the
 *	host writes; NULL: any number. While it is 0, payload for connections that are not
 *	accepted is dropped, and the peer sends it again.
 * @host: the host writes here what it likes.
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
	bool reuse;
	u32 backlog;
	u32 num_ready;
	u32 num_half;
	u32 rx_max;
	u32 *shared_half, *shared_ready;
	const u32 *places;
	void *host;
};

/* A segment that leaves without its connection: a reset, a SYN cookie, or an ACK as it was
 * when it fell due. */
struct tas_stray {
	/* The two ends that the segment is between. */
	struct tas_pair pair;
	/* The segment's header; it has no payload. */
	struct tas_segment seg;
};

/* A limit on how often something may happen in a second; see tas_within(). */
struct tas_limit {
	/* Time at which the present second began, in ns. */
	u64 at;
	/* Number of times that it has happened in this second. */
	u32 used;
	/* Most times that it may happen in this second. */
	u32 most;
};

/**
 * struct tas_engine - connections of one thread
 * @now: time of this round, in ns, as tas_set_now() was told.
 * @clock_ms: @now in ms; timestamps are made of it.
 * @mtu: longest IP packet that is sent to anybody, in bytes.
 * @params: settings, which tas_set() changes.
 * @metrics: counters, which the engine only adds to.
 * @key: secrets: words 0 and 1 for the tables, 2 and 3 for initial sequence numbers, 4 and 5
 *	for cookies.
 * @hash_key: keys of tas_hash_of(), made of words 0 and 1 of @key.
 * @rng: generator of random numbers for limits.
 * @table: connections by their pair.
 * @base: the first buckets of @table.
 * @segment: the segments by which @table has grown.
 * @segments: spare segments that the host has handed in.
 * @listeners: listeners by their port.
 * @wheel: connections by their deadline.
 * @pace: connections whose next bytes must wait, by the time at which they may leave.
 * @spare: memory for connections that the host has handed in.
 * @num_spare: number of entries in @spare; the engine counts, the host reads.
 * @ended: connections in TIME_WAIT that are kept as struct tas_ended, by their pair.
 * @ended_base: the first buckets of @ended.
 * @ended_segment: the segments by which @ended has grown.
 * @ended_order: the entries of @ended, the oldest first.
 * @spare_ended: unused memory for entries of @ended that the host has handed in.
 * @num_spare_ended: number of entries in @spare_ended.
 * @half_most: most half-open connections of all listeners; one owner gets at most as many as
 *	are left to all others. 0: there is no limit. The host writes it.
 * @num_half: number of half-open connections of all listeners.
 * @ready_most: most connections in tas_listener.ready of all listeners, shared in the same way.
 *	They may be there for as long as their owners like. 0: there is no limit. The host writes
 *	it.
 * @num_ready: number of connections in tas_listener.ready of all listeners.
 * @orphans: closed connections that have nothing to send but a FIN, or wait for the peer's
 *	FIN; those that wait for longest stand first.
 * @tx: connections that may have something to send, in the order of their turns.
 * @events: connections that tas_next_event() will return.
 * @news: listeners that tas_next_ready() will return.
 * @stray: ring of segments that leave without their connection.
 * @stray_head: number of segments taken out of @stray so far, modulo 2^32.
 * @stray_tail: number of segments put into @stray so far, modulo 2^32.
 * @challenges: limit on challenge ACKs of all connections.
 * @resets: limit on resets that answer segments of no connection.
 * @cookie_at: time at which a SYN cookie was last sent, in ns.
 * @slow_left: number of segments that the slow path still takes in this round.
 * @elsewhere: another engine has listeners for the segment that tas_rx() gets. The host writes it.
 * @refused: stands for listeners that have ended: its connections are to be reset, and wait for
 *	room in @stray, which is not empty meanwhile.
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
	u32 ready_most, num_ready;
	struct homa_list orphans;
	struct homa_list tx;
	struct homa_list events;
	struct homa_list news;
	struct tas_stray stray[TAS_STRAYS];
	u32 stray_head, stray_tail;
	struct tas_limit challenges, resets;
	u64 cookie_at;
	u32 slow_left;
	bool elsewhere;
	struct tas_listener refused;
};

/** tas_engine_init() - an engine without connections
 * @seed: 48 bytes that nobody can guess.
 * @now: time of the host's clock, in ns.
 * @mtu: longest IP packet that may be sent, in bytes. */
void tas_engine_init(struct tas_engine *engine, const u64 seed[6], u64 now,
		     u32 mtu);

/** tas_set() - change the setting @name; returns 0, or TAS_EINVAL if there is no such setting
 *  or @value is out of its bounds */
int tas_set(struct tas_engine *engine, const char *name, u64 value);

/** tas_add_spare() - the host hands in memory for one connection, aligned to 64 bytes */
void tas_add_spare(struct tas_engine *engine, struct tas_conn *conn);

/** tas_take_spare() - the host takes memory for one connection back that is not in use; NULL: all
 *  is in use */
struct tas_conn *tas_take_spare(struct tas_engine *engine);

/**
 * tas_add_ended() - the host hands in memory for one connection in TIME_WAIT
 *
 * When all of this memory is in use, the oldest connection in it is forgotten for a new one.
 * A connection that its application has closed moves into it, and the host gets TAS_EV_FREE
 * at once. If no such memory was handed in, a connection in TIME_WAIT stays where it is.
 */
void tas_add_ended(struct tas_engine *engine, struct tas_ended *ended);

/** tas_take_ended() - the host takes one back that is not in use; NULL: all are in use */
struct tas_ended *tas_take_ended(struct tas_engine *engine);

/** tas_drop_orphan() - forget the first connection of tas_engine.orphans, and tell the host
 *  by TAS_EV_FREE; returns false if there is none */
bool tas_drop_orphan(struct tas_engine *engine);

/** tas_wants_segment() - true if a table of connections is full and no segment is spare */
bool tas_wants_segment(const struct tas_engine *engine);

/** tas_add_segment() - the host hands in a segment by which a table can grow */
void tas_add_segment(struct tas_engine *engine, struct homa_segment *segment);

/** tas_set_now() - begin a round
 * @now: time, in ns; if it is earlier than before the engine's clock stands still.
 * @exceptions: most segments that the slow path takes in this round; others are dropped. */
void tas_set_now(struct tas_engine *engine, u64 now, u32 exceptions);

/** tas_rx() - a segment has arrived
 * @pair: the two ends, seen from here, as the IP header said.
 * @seg: the segment, decoded.
 * @ecn: code point of the IP header, an enum tas_ecn.
 * @copy: the engine writes here what the host shall do with the payload before its next call.
 */
void tas_rx(struct tas_engine *engine, const struct tas_pair *pair,
	    const struct tas_segment *seg, u8 ecn, struct tas_copy *copy);

/** tas_rx_packet() - tas_decode() and tas_rx() in one, which is cheaper
 * @pair: the host fills in the addresses; the engine may fill in the ports.
 * @packet: TCP header and payload.
 * @length: bytes of @packet.
 * @ecn: code point of the IP header, an enum tas_ecn.
 * @copy: as for tas_rx(), but @from counts from the beginning of @packet.
 * Returns 0, or -1 if tas_decode() cannot read the packet.
 */
int tas_rx_packet(struct tas_engine *engine, struct tas_pair *pair,
		  const void *packet, u32 length, u8 ecn, struct tas_copy *copy);

/** tas_icmp() - an ICMP error about a segment of ours
 * @pair: the two ends of the quoted segment, seen from here.
 * @seq: sequence number of the quoted segment.
 * @error: negative errno that the error stands for; 0: the packet was too long.
 * @mtu: longest IP packet that the path takes, in bytes, if @error is 0.
 */
void tas_icmp(struct tas_engine *engine, const struct tas_pair *pair, u32 seq,
	      int error, u32 mtu);

/** tas_timers() - do what is due, for at most @budget connections
 *
 * Returns the time at which the host shall call again, in ns, which may have come already, or
 * TAS_NEVER. */
u64 tas_timers(struct tas_engine *engine, u32 budget);

/** tas_next_out() - write the next segment to send to @out; false if there is none now */
bool tas_next_out(struct tas_engine *engine, struct tas_out *out);

/** tas_first_out() - the two ends of the segment or connection that tas_next_out() tries
 *  first; NULL: nothing waits */
static inline const struct tas_pair *tas_first_out(const struct tas_engine *engine)
{
	if (unlikely(engine->stray_head != engine->stray_tail))
		return &engine->stray[engine->stray_head % TAS_STRAYS].pair;
	if (homa_list_empty(&engine->tx))
		return NULL;
	return &homa_container_of(engine->tx.next, struct tas_conn, f.tx)->f.pair;
}

/** tas_pass_out() - the connection that tas_next_out() would try first goes to the end of the
 *  queue; false if no connection is first */
static inline bool tas_pass_out(struct tas_engine *engine)
{
	if (engine->stray_head != engine->stray_tail ||
	    homa_list_empty(&engine->tx))
		return false;
	homa_list_add_tail(&engine->tx, homa_list_pop(&engine->tx));
	return true;
}

/** tas_next_event() - a connection to which something has happened, or NULL
 * @events: the engine writes TAS_EV_* here. After TAS_EV_FREE the memory is the host's. */
static inline struct tas_conn *tas_next_event(struct tas_engine *engine,
					      u32 *events)
{
	struct homa_list *node = homa_list_pop(&engine->events);
	struct tas_conn *conn;

	if (!node)
		return NULL;
	conn = homa_container_of(node, struct tas_conn, event);
	*events = conn->events;
	conn->events = 0;
	return conn;
}

/** tas_listen() - take connections at an address and a port
 * @listener: memory of the host, who has set the fields that are not counters or lists.
 * Returns 0, or TAS_EADDRINUSE if another listener has the same address and port and they do
 * not share it.
 */
int tas_listen(struct tas_engine *engine, struct tas_listener *listener);

/** tas_listens() - is there a listener for connections to @pair's local end? */
bool tas_listens(struct tas_engine *engine, const struct tas_pair *pair);

/** tas_known() - the connection between the two ends of @pair; NULL: there is none that is
 *  more than TIME_WAIT */
struct tas_conn *tas_known(struct tas_engine *engine,
			   const struct tas_pair *pair);

/** tas_knows() - is there any connection between the two ends of @pair? It may be in TIME_WAIT. */
bool tas_knows(struct tas_engine *engine, const struct tas_pair *pair);

/** tas_unlisten() - end @listener; its connections that were not accepted are reset, some of them
 *  by later calls of tas_next_out() if there are many */
void tas_unlisten(struct tas_engine *engine, struct tas_listener *listener);

/** tas_refuses() - has a listener ended whose connections were not all reset yet? */
static inline bool tas_refuses(const struct tas_engine *engine)
{
	return engine->refused.num_ready;
}

/** tas_next_ready() - a listener that has had a new connection since it was last returned;
 *  NULL: there is none */
struct tas_listener *tas_next_ready(struct tas_engine *engine);

/** tas_accept() - take the first connection of @listener that is open; NULL: there is none */
struct tas_conn *tas_accept(struct tas_engine *engine,
			    struct tas_listener *listener);
/** tas_accept_first() - take @conn, which is open and whose tas_conn.listener is not NULL, before
 *  those that came earlier: payload has come for it while *tas_listener.places was not 0 */
void tas_accept_first(struct tas_engine *engine, struct tas_conn *conn);

/** tas_connect() - begin a connection
 * @pair: the two ends.
 * @rx_shift: its receive buffer has 2^@rx_shift bytes.
 * @rx_max: bytes to which that buffer may grow.
 * @out: the engine writes the connection here.
 * Returns 0, TAS_ENOMEM if no memory for it was handed in, or TAS_EADDRINUSE if there is a
 * connection with that pair, or one in TIME_WAIT that it cannot follow yet.
 */
int tas_connect(struct tas_engine *engine, const struct tas_pair *pair,
		u8 rx_shift, u32 rx_max, struct tas_conn **out);

/** tas_urge() - the byte before position @end of the stream, as in struct tas_out, is urgent. The
 *  host says so before tas_written() brings it. It takes the place of an urgent byte of before.
 *  Returns 0, TAS_EPIPE as tas_written(), or TAS_EINVAL if it is 1 GiB away. */
int tas_urge(struct tas_engine *engine, struct tas_conn *conn, u32 end);

/** tas_urgent_at() - is a byte of the peer urgent that was not taken? It may have to come yet.
 *  @position: receives its position in the stream, as in struct tas_copy. */
bool tas_urgent_at(const struct tas_conn *conn, u32 *position);

/** tas_set_buffer() - the receive buffer has 2^@rx_shift bytes now, no fewer than before */
void tas_set_buffer(struct tas_engine *engine, struct tas_conn *conn,
		    u8 rx_shift);

/** tas_shut_send() - a FIN follows the last byte that was written; returns 0, or TAS_ENOTCONN
 *  if the connection is not open */
int tas_shut_send(struct tas_engine *engine, struct tas_conn *conn);

/** tas_close() - the application closes; bytes that it has written are still sent, unless
 *  bytes that it has not read force a reset. The host gets TAS_EV_FREE at the end. */
void tas_close(struct tas_engine *engine, struct tas_conn *conn);

/** tas_abort() - the application closes with a reset; the host gets TAS_EV_FREE */
void tas_abort(struct tas_engine *engine, struct tas_conn *conn);

/** tas_options() - the host calls this after it has changed TAS_F_NODELAY, TAS_F_CORK,
 *  TAS_F_KEEPALIVE, the times of keepalive or the user timeout in @conn */
void tas_options(struct tas_engine *engine, struct tas_conn *conn);

/** tas_quick_acks() - @on: an ACK that waits leaves at once, and so do the next ones, as at the
 *  begin of a connection; else ACKs wait for bytes that carry them, as far as they may. Neither
 *  lasts: what the connection goes on to do decides. */
void tas_quick_acks(struct tas_engine *engine, struct tas_conn *conn, bool on);

/** tas_set_control() - give @conn another congestion control (enum tas_control), best before
 *  anything is sent; returns 0, or TAS_EINVAL if @control is none */
int tas_set_control(struct tas_conn *conn, u32 control);

/** tas_set_rate() - set the rate of @conn under TAS_CONSTANT to @rate bytes of payload per
 *  second; 0: to the setting rate_kbps. Returns 0, or TAS_EINVAL if @rate is too low. */
int tas_set_rate(struct tas_conn *conn, u64 rate);

/** tas_readable() - number of bytes in order that the application has not taken */
static inline u32 tas_readable(const struct tas_conn *conn)
{
	return conn->f.rcv_nxt - conn->f.rcv_read -
	       !!(conn->f.flags & TAS_F_FIN_IN);
}

/** tas_unsent() - whether there are bytes, or an end, that were never sent */
static inline bool tas_unsent(const struct tas_conn *conn)
{
	return conn->f.snd_nxt != conn->f.snd_end;
}

/** tas_unacked() - number of bytes that must stay in the send buffer, as the peer has not
 *  acknowledged them */
static inline u32 tas_unacked(const struct tas_conn *conn)
{
	u32 left = conn->f.snd_end - conn->f.snd_una;

	return left - (left && (conn->f.flags & TAS_F_FIN));
}

/** tas_cube_root() - the cube root of @value, below 2^63, rounded down. */
u32 tas_cube_root(u64 value);

#endif
