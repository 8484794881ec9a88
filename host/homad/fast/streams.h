/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP on a fast-path thread: the engine with its packets (tcp.c, tcp_rx.c, tcp_tx.c) and
 * the streams of attachments (streams.c, stream_*.c), see abi/shm_stream.h.
 *
 * A connection's memory is a struct homad_stream from the begin, also while it is half
 * open and nobody's. It becomes an attachment's stream, with a slot of its shared memory,
 * when the application opens it or when it is open and came to a listener. It loses both
 * when the application has let go and the peer has all bytes; the rest of its life, such
 * as TIME_WAIT, costs the application nothing.
 */
#ifndef HOMAD_STREAMS_H
#define HOMAD_STREAMS_H

#include "app.h"
#include "homa_slab.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "nic.h"
#include "shm_stream.h"
#include "tas_engine.h"
#include "thread.h"

/* homad keeps at most so many local ports for connections. */
#define HOMAD_TCP_PORTS 60000u
/* The longest IP packet that carries TCP, in bytes. */
#define HOMAD_TCP_MTU 9216u
/* Listeners that have ended are found in so many buckets, by their port. */
#define HOMAD_LEAVING 64u
/* nic_tx() is called with at most so many packets. */
#define HOMAD_TCP_BATCH 64
/* Log2 of the bytes that a buffer has at first. */
#define HOMAD_STREAM_SHIFT HOMA_STREAM_MIN_SHIFT
/* Log2 of the bytes up to which a buffer grows only because it is full. */
#define HOMAD_USUAL_SHIFT 16u
/* The slow path changes the memory of at most so many slots at once. */
#define HOMAD_GROW_BATCH 64u

struct homad_streams;

/* A stream's buffers: for bytes that arrive, and for bytes to send. */
enum {
	HOMAD_RX,
	HOMAD_TX,
	HOMAD_BUFFERS,
};

/** struct homad_backing - memory behind a slot's buffers
 * @have: Log2 of the bytes of each buffer that have memory now.
 * @want: Log2 of the bytes that each buffer shall have. Only the slow path uses it while
 *	@busy is set.
 * @busy: True while the memory is about to change. A free slot is in no stack then. */
struct homad_backing {
	u8 have[HOMAD_BUFFERS];
	u8 want[HOMAD_BUFFERS];
	bool busy;
};

/* Counters of TCP that are homad's and not the engine's: what it drops and refuses. */
/* clang-format off */
#define HOMAD_TCP_COUNTERS(X)                                                          \
	X(malformed, "TCP segments whose header was wrong")                            \
	X(no_place, "TCP connections that homad reset, as bytes came for them and nobody had them") \
	X(no_device, "TCP segments to send that no device could take")                 \
	X(connects_refused,                                                            \
	  "TCP connections that applications asked for and that homad did not open: no rule, way, port or memory") \
	X(slots_refused, "times a TCP connection had come and its application had no memory for it") \
	X(local_opened, "TCP connections between two applications of this host that homad opened") \
	X(local_bytes, "bytes that went from the memory of one application of this host to another's by TCP")
/* clang-format on */

struct homad_tcp_counters {
#define X(name, text) u64 name;
	HOMAD_TCP_COUNTERS(X)
#undef X
};

/* What an application has to be told of a stream; bits. */
enum {
	HOMAD_NEWS_OPENED = 1,
	HOMAD_NEWS_FAILED = 2,
	HOMAD_NEWS_ACCEPTED = 4,
	HOMAD_NEWS_CHANGED = 8,
};

/** struct homad_stream - a connection, and what homad knows of it as a stream */
struct homad_stream {
	/* The engine's connection. It is the first member. */
	struct tas_conn conn;
	/* The attachment that has the stream; NULL before and after that. */
	struct homad_streams *home;
	/* @of is its place in homad_streams.open, and @pending that in homad_streams.news while
	 * @news is not 0. */
	struct homa_list of, pending;
	/* The HOMAD_NEWS_* bits that the event ring does not say yet. */
	u32 news;
	/* The number of its slot, and the slot's generation when the stream got it. */
	u32 slot, generation;
	/* The token of the CONNECT command, or the number of the listener that it came to. */
	u64 token;
	/* homad's own copies of the slot's words that say where the send buffer and the receive
	 * buffer lie. */
	u64 tx_map, rx_map;
	/* The engine has taken bytes to send up to position @tx_end. The application has taken
	 * received bytes up to position @rx_read. */
	u32 tx_end, rx_read;
	/* The application has written up to this position. The limit holds the bytes from
	 * @tx_end on. */
	u32 tx_last;
	/* Bytes up to this position were sent at least once. Only a stream with a limit
	 * keeps it up to date. */
	u32 sent_to;
	/* The position up to which the engine had sent when the stream was let go. Only a stream
	 * in homad_tcp.resetting has it. */
	u32 sent_before;
	/* The limit that rules set for it, or NULL. @held is its place in homad_limit.held. */
	struct homad_limit *limit;
	struct homa_list held;
	/* @tx_shift: log2 of the bytes of the send buffer that have memory. @rx_due: log2 of the
	 * size that the receive buffer gets when its bytes allow the move; 0: it keeps its size. */
	u8 tx_shift, rx_due;
	/* The application has taken @rx_taken bytes since the time @rx_since, in ns. About each
	 * round trip the count begins anew. */
	u32 rx_taken;
	u64 rx_since;
	/* @tx_bytes counts bytes to send that the engine has taken since the begin. @rx_bytes
	 * counts bytes that arrived in order and that the application was told of. */
	u64 tx_bytes, rx_bytes;
	/* The HOMA_STREAM_IS_* bits that stand in the slot. */
	u32 state;
	/* True while the application's connect() has not succeeded yet. */
	bool opening;
	/* True if the application has let go of the stream. */
	bool closed;
	/* True from the moment that a listener accepted it until it needs no more segments to
	 * that port; homad_tcp.coming counts it. */
	bool came;
	/* True for ever if the connection came to a listener. */
	bool accepted;
	/* True if its peer is an application of this host. homad_tcp.local runs it then. */
	bool local;
	/* True if the end of its attachment resets the connection. */
	bool resets;
	/* True if the application writes no more while its limit holds bytes up to @tx_last. The
	 * engine learns of the end after these bytes. */
	bool shutting;
	/* True if the limit delays the opening of the window for bytes that were taken. */
	bool rx_held;
	/* The DSCP in the IP headers of its packets. */
	u8 dscp;
	/* How many others have the stream beside its home: aliases, tickets, and the listener of a
	 * stream that is parked. */
	u32 holds;
	/* The aliases that stand for it, struct homad_alias. */
	struct homa_list aliases;
	/* True if its home has let go of it while others still have it. */
	bool left;
	/* It came to a listener with several holders, and none has taken it yet: its place in
	 * homad_tcp_listener.parked is @pending. */
	bool parked;
};

/** struct homad_tcp_listener - a listening port of an attachment */
struct homad_tcp_listener {
	/* @l takes connections that come by devices, and @here those from this host. */
	struct tas_listener l, here;
	/* True if only this host reaches its address. @l is not in use then. */
	bool loopback;
	/* Its connections get slots of this attachment; NULL if it takes none for now. */
	struct homad_streams *home;
	/* The attachments that take its connections, struct homad_hold. @first is the one of the
	 * attachment that began to listen. */
	struct homa_list holds;
	struct homad_hold first;
	/* So many tickets are for it. */
	u32 tickets;
	/* Connections that wait until one of several holders takes them. */
	struct homa_list parked;
	/* True if it takes no more connections. The slow path reads it, too. */
	bool ended;
	/* Links a listener that has ended into homad_tcp.leaving, as long as connections that
	 * came to its port need their segments. */
	struct homa_list of;
	/* The user who pays for it, and its place in homad_tcp_ports.held. Only the slow path
	 * uses them. */
	struct homad_user *user;
	struct homa_list held;
	/* The socket that holds the port. Until the listener has ended only the slow path uses
	 * it. */
	int fd;
	/* The next listener in the stacks homad_tcp.deaf and homad_tcp.gone. */
	struct homad_tcp_listener *next_deaf, *next_gone;
};

/** struct homad_streams - the streams of an attachment */
struct homad_streams {
	/* The attachment. */
	struct homad_app *app;
	/* The shared memory, @bytes long. @commands to @spans point to its parts. */
	struct homa_stream_area *area;
	u64 bytes;
	/* A descriptor of this memory, for a program that exec has run. Only the slow path uses
	 * it. */
	int memory_fd;
	struct homa_stream_command *commands;
	struct homa_stream_event *events;
	struct homa_stream_slot *slots;
	u8 *firsts, *spans;
	/* @entries: so many entries has each of the two rings. @num_slots: there are so many
	 * slots. @id: the same as homa_stream_area.id. */
	u32 entries, num_slots, id;
	/* homad has taken @head commands and written @tail events. Both counts wrap. */
	u32 head, tail;
	/* homad_stream.tx_bytes and rx_bytes of all its streams together, also of those that are
	 * over. Other threads read them. */
	u64 tx_bytes, rx_bytes;
	/* The value of @tail that the application was last told. */
	u32 told;
	/* The stream in each slot, or NULL. */
	struct homad_stream **stream;
	/* The numbers of free slots that have memory, in two stacks in one array; see
	 * stream_grow.c. */
	u32 *free;
	/* @num_free slots are free, @num_warm of them with larger buffers than at first.
	 * @warm_least: the least value of @num_warm since the slow path looked last. @backed: so
	 * many slots, from the first, have memory. */
	u32 num_free, num_warm, warm_least, backed;
	/* The memory behind each slot's buffers. */
	struct homad_backing *backing;
	/* Log2 of the bytes to which a receive buffer and a send buffer may grow. */
	u8 rx_most, tx_most;
	/* A ring with the numbers of slots that want more memory: @num_asks entries, a power of
	 * two. The slow path has taken @asks_head of them, the fast path has put in
	 * @asks_tail. */
	u32 *asks;
	u32 num_asks, asks_head, asks_tail;
	/* True if the slow path was told that there are some; atomic. */
	bool asks_told;
	/* Time when the slow path had no memory for larger buffers, in ns; 0 if it had some. */
	u64 grow_refused_at;
	/* The free slot for which homad_slot_prepare() has asked last; NULL: none. */
	const struct homad_backing *preparing;
	/* The bytes of larger buffers, and the place in homad_tcp_ports.grown while there are
	 * any. Only the slow path uses them. */
	u64 grown_bytes;
	struct homa_list grown;
	/* For each slot, how many streams it has had. */
	u32 *generations;
	/* How many listeners the attachment has ever had. */
	u32 listened;
	/* True if the event ring has no room for the answer to the next command. */
	bool stuck;
	/* True if connections wait in the engine because the attachment has no slot for them. */
	bool starved;
	/* True while a request for more memory waits for the slow path. Access is atomic. */
	bool asked;
	/* Time when the slow path last had no memory, in ns; 0 if it had some. */
	u64 refused_at;
	/* The next CONNECT command has found this many local ports in use. */
	u32 ports_tried;
	/* @open: the @num_open streams that have a slot. @news: those of them with news. */
	struct homa_list open, news;
	u32 num_open;
	/* For each slot, the other attachment's stream for which it stands. */
	struct homad_alias *alias;
	/* @aliases: the @num_aliases slots that stand for one. @alias_news: those of them with
	 * news. */
	struct homa_list aliases, alias_news;
	u32 num_aliases;
	/* @holding: its @num_holding listeners, struct homad_hold. @hold_news: those with news. */
	struct homa_list holding, hold_news;
	u32 num_holding;
	/* The ticket that it has joined, or NULL. Some of what that is for may not be settled.
	 * Listeners that it got by the ticket are in the ticket's memory. */
	struct homad_ticket *joined;
	/* So many entries of it were given up, and the application has not been told. */
	u32 unjoined;
	/* Links it into homad_tcp.touched when events were added in this round. */
	struct homa_list touched;
	/* True if the application is in homad's network namespace, where this host's addresses
	 * are its own, too. */
	bool same_network;
	/* What the rules say about its connections. The memory belongs to the slow path. */
	struct homad_policy *policy;
	/* Write end of the pipe that wakes the application. */
	int wake_fd;
	/* The next attachment in the stack homad_tcp.wanting. */
	struct homad_streams *next_wanting;
	/* The next attachment in the stack homad_tcp.growing. */
	struct homad_streams *next_growing;
};

/** struct homad_tcp - TCP of a fast-path thread; homad_thread.tcp, NULL: none */
struct homad_tcp {
	/* @engine runs connections with other hosts, @local those between applications of this
	 * host. A packet from a device is never given to @local. */
	struct tas_engine engine, local;
	/* Memory for struct homad_stream. */
	struct homa_slab conns;
	/* Memory for struct tas_ended, of which there are at most as many as connections. */
	struct homa_slab ended;
	/* @num_ports local ports for connections that applications open. @next_port is the index
	 * of the one that is tried next. */
	u16 ports[HOMAD_TCP_PORTS];
	u32 num_ports, next_port;
	/* True while a request for more ports waits for the slow path; atomic. */
	bool asked_ports;
	/* Time when the slow path last had no port, in ns; 0 if it had some. */
	u64 no_ports_at;
	/* Attachments with events that were added in this round. */
	struct homa_list touched;
	/* Streams that are reset when what their applications wrote last had its turn to be sent,
	 * by homad_stream.pending. */
	struct homa_list resetting;
	/* The fast path counts; other threads read. */
	struct homad_tcp_counters counters;
	/* The limits that hold streams, and the time when they are looked at again, in ns. */
	struct homa_list held;
	u64 held_at;
	/* Time when slots are asked for again for connections that wait for one, in ns. */
	u64 retry_at;
	/* For each port, how many connections came to a listener there and still need its
	 * segments. Those in TIME_WAIT do not count. */
	u32 coming[65536];
	/* Listeners that have ended while connections of their ports need segments, by port. */
	struct homa_list leaving[HOMAD_LEAVING];
	/* Stacks for the slow path, atomic. @deaf: listeners that have ended. @gone: those of them
	 * whose ports are not needed any more. */
	struct homad_tcp_listener *deaf, *gone;
	/* Atomic stacks, too. @wanting: attachments that want memory for more slots. @growing:
	 * attachments whose streams want larger buffers. */
	struct homad_streams *wanting;
	struct homad_streams *growing;
	/* An eventfd by which the slow path hears that these stacks are not empty. It belongs to
	 * the slow path. */
	int slow_fd;
	/* Packets of a round: @rx have come, @tx are to leave. */
	struct nic_rx rx[HOMAD_BATCH];
	struct nic_tx tx[HOMAD_TCP_BATCH];
	struct homa_addr from[HOMAD_TCP_BATCH];
	u8 headers[HOMAD_TCP_BATCH][64];
	/* Payload that lies in two pieces in its buffer is put together here. */
	u8 joined[HOMAD_TCP_BATCH][HOMAD_TCP_MTU];
};

static inline struct homad_stream *homad_stream_of(struct tas_conn *conn)
{
	return homa_container_of(conn, struct homad_stream, conn);
}

/* Whose connection it is. */
static inline struct tas_engine *
homad_engine_of(struct homad_tcp *tcp, const struct homad_stream *stream)
{
	return unlikely(stream->local) ? &tcp->local : &tcp->engine;
}

/* log2 of the bytes that a receive buffer of a connection of this host may grow to: so many as
 * a window can say without scale, to the byte. A window that is rounded up lets a peer send
 * what does not fit, and there it would be the only loss. */
static inline u8 homad_local_rx_most(const struct homad_streams *s)
{
	return s->rx_most < HOMAD_USUAL_SHIFT ? s->rx_most : HOMAD_USUAL_SHIFT;
}

/* The buffer of @stream with @map. */
static inline u8 *homad_stream_buffer(const struct homad_stream *stream,
				      u32 way, u64 map)
{
	const struct homad_streams *s = stream->home;
	u64 index = (u64)stream->slot * HOMAD_BUFFERS + way;

	return homa_stream_is_first(map) ? s->firsts + index * HOMA_STREAM_FIRST :
					   s->spans + index * HOMA_STREAM_SPAN;
}

/* ---- tcp.c ---- */

/** homad_tcp_new() - TCP for a thread; NULL: no memory, or no random numbers.
 * @most: connections. @mtu: bytes of an IP packet. */
struct homad_tcp *homad_tcp_new(u32 most, u32 mtu, u64 now);
void homad_tcp_free(struct homad_tcp *tcp);
/** homad_tcp_refill() - @engine of it has memory for some more connections. */
void homad_tcp_refill(struct homad_tcp *tcp, struct tas_engine *engine);
/** homad_tcp_round() - before anything else of TCP in a round. */
void homad_tcp_round(struct homad_thread *t);
/** homad_tcp_use_ports() - local ports for connections, beside those that it has; @num 0:
 *  there are no more. */
void homad_tcp_use_ports(struct homad_thread *t, const u16 *ports, u32 num);
/** homad_tcp_want_ports() - ask the slow path for more. False: it had none just now. */
bool homad_tcp_want_ports(struct homad_thread *t);
/** homad_tcp_call_slow() - the slow path has something to see to. */
void homad_tcp_call_slow(const struct homad_tcp *tcp);
/** homad_tcp_timers() - what is due; returns when there is more to do, ns. */
u64 homad_tcp_timers(struct homad_thread *t);
/** homad_tcp_port_towards() - the device for packets of @pair, NULL: none. */
struct homad_port *homad_tcp_port_towards(struct homad_thread *t,
					  const struct tas_pair *pair);

/* ---- tcp_rx.c, tcp_tx.c ---- */

/** homad_tcp_take() - take the TCP packets out of @n in homad_thread.rx, and work them
 *  off; returns how many are left. */
int homad_tcp_take(struct homad_thread *t, struct homad_port *port, int n);
/** homad_tcp_place() - bytes of a segment that @engine takes go into their buffer, if
 *  somebody has it: returns the stream, else NULL, and the connection is reset. */
struct homad_stream *homad_tcp_place(struct homad_thread *t,
				     struct tas_engine *engine,
				     const struct tas_copy *copy);
/** homad_tcp_icmp() - an ICMP error about a segment of ours. */
void homad_tcp_icmp(struct homad_thread *t, const struct nic_error *error);
/** homad_tcp_waits() - does TCP have something to send by @port? */
bool homad_tcp_waits(struct homad_thread *t, const struct homad_port *port);
/** homad_tcp_tx() - it is TCP's turn on @port: send what it has until that ends or the
 *  device is full (homad_port.tx_blocked); returns how many packets. */
int homad_tcp_tx(struct homad_thread *t, struct homad_port *port);

/* ---- tcp_local.c ---- */

/** homad_tcp_local() - what its connections have to say to each other, a bounded part of it;
 *  returns how many segments. */
int homad_tcp_local(struct homad_thread *t);
/** homad_tcp_local_waits() - is there more? */
static inline bool homad_tcp_local_waits(const struct homad_tcp *tcp)
{
	return tas_first_out(&tcp->local) != NULL;
}
/** homad_tcp_local_reset() - a connection of this host was reset: if many were, their peers
 *  hear of it now, as the engine keeps no more than TAS_STRAYS such words. */
void homad_tcp_local_reset(struct homad_thread *t);
/** homad_tcp_local_way() - @pair for a connection to an address of this host, from @wanted if
 *  that is not zeros. 0, -EAGAIN: not in this round; -EOPNOTSUPP: nobody listens there by
 *  homad, so it is the kernel's; -EADDRNOTAVAIL: @wanted is not ours. */
int homad_tcp_local_way(struct homad_thread *t, const struct homad_streams *s,
			const struct homa_stream_end *wanted,
			struct tas_pair *pair);

/* ---- stream_resets.c ---- */

/** homad_streams_reset() - after a round's segments: reset those that wait for it; how many. */
u32 homad_streams_reset(struct homad_thread *t);

/* ---- stream_news.c ---- */

/** homad_stream_news() - those who have it are to be told HOMAD_NEWS_* of it. */
void homad_stream_news(struct homad_thread *t, struct homad_stream *stream,
		       u32 news);
/** homad_streams_touch() - its event ring has more, or may have room again. */
void homad_streams_touch(struct homad_thread *t, struct homad_streams *s);

/* ---- streams.c ---- */

/** homad_streams_bytes() - of shared memory for @num_slots streams; homad_streams_fixed():
 *  of all but their buffers. homad_streams_lay(): divide it. */
u64 homad_streams_bytes(u32 num_slots);
u64 homad_streams_fixed(u32 num_slots);
void homad_streams_lay(struct homad_streams *s, struct homa_stream_area *area,
		       u32 num_slots);
/** homad_streams_want() - ask the slow path for slots if few are free. */
void homad_streams_want(struct homad_thread *t, struct homad_streams *s);
/** homad_streams_retry() - ask again for those who were refused and have connections waiting. */
void homad_streams_retry(struct homad_thread *t);
/** homad_stream_adopt() - @conn becomes a stream of @s under part @part of its policy;
 *  @local: it is homad_tcp.local's. NULL: it has no free slot. */
struct homad_stream *homad_stream_adopt(struct homad_thread *t,
					struct homad_streams *s,
					struct tas_conn *conn, int part,
					bool local);
/** homad_stream_move() - a parked one, of which nothing was read and nothing written, gets the
 *  next slot of @s, which is prepared for it. */
void homad_stream_move(struct homad_thread *t, struct homad_stream *stream,
		       struct homad_streams *s);
/** homad_stream_show_holders() - their number has changed. */
void homad_stream_show_holders(const struct homad_stream *stream);
/** homad_stream_release() - its slot is free, and it is nobody's. */
void homad_stream_release(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_quiet() - it needs no segments any more. */
void homad_stream_quiet(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_let_go() - the application has closed it; @reset: at once. */
void homad_stream_let_go(struct homad_thread *t, struct homad_stream *stream,
			 bool reset);
/** homad_stream_all_written() - it has let go, and the engine has all that it had written. */
void homad_stream_all_written(struct homad_thread *t,
			      struct homad_stream *stream, bool reset);
/** homad_stream_end() - there is nothing to wait for any more. */
void homad_stream_end(struct homad_thread *t, struct homad_stream *stream,
		      bool reset);
/** homad_streams_idle() - no stream of it has bytes to send in its memory. */
static inline bool homad_streams_idle(const struct homad_streams *s)
{
	return s->num_open == 0;
}
/** homad_listener_shared() - it has several holders, so that they have to ask. */
bool homad_listener_shared(const struct homad_tcp_listener *listener);
/** homad_listener_accept() - take what has come to it. */
void homad_listener_accept(struct homad_thread *t,
			   struct homad_tcp_listener *listener);
/** homad_listener_end() - it takes no more connections. */
void homad_listener_end(struct homad_thread *t,
			struct homad_tcp_listener *listener);
/** homad_listeners_accept() - take what has come to listeners. */
void homad_listeners_accept(struct homad_thread *t);
/** homad_streams_accept() - the same for one attachment that had no slot. */
void homad_streams_accept(struct homad_thread *t, struct homad_streams *s);

/* ---- stream_grow.c ---- */

/** homad_slot_put(), homad_slot_take() - a slot is free; one that is, of which there are. */
void homad_slot_put(struct homad_streams *s, u32 slot);
u32 homad_slot_take(struct homad_streams *s);
/** homad_slot_prepare() - the next free slot of @s has 2^@shift bytes for those that arrive. Else
 *  -EAGAIN: it will when the slow path has answered; -ENOSPC: there is no slot; -ENOMEM. */
int homad_slot_prepare(struct homad_thread *t, struct homad_streams *s, u8 shift);
/** homad_stream_widen() - its receive buffer gets as large as it is due to, if it can now. */
void homad_stream_widen(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_keeps_up() - the application has taken so many bytes. */
void homad_stream_keeps_up(struct homad_thread *t, struct homad_stream *stream,
			   u32 taken);
/** homad_stream_piles_up() - bytes have arrived; it takes none. */
void homad_stream_piles_up(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_fills() - it has written some. */
void homad_stream_fills(struct homad_thread *t, struct homad_stream *stream);

/* ---- stream_commands.c ---- */

/** homad_stream_commands() - @budget commands at most; NULL, homad_next_round, or why the
 * attachment must end. @done: how many were seen to. */
const char *homad_stream_commands(struct homad_thread *t,
				  struct homad_streams *s, u32 budget, u32 *done);
/** homad_stream_goes_on() - one that its limit held. NULL, or why the attachment must end.
 *  @waits: it still does. */
const char *homad_stream_goes_on(struct homad_thread *t,
				 struct homad_stream *stream, bool *waits);
/** homad_streams_close() - the attachment ends. */
void homad_streams_close(struct homad_thread *t, struct homad_streams *s);
/** homad_stream_commands_waiting() - is there any that can be seen to, or an event that found
 *  no room? */
bool homad_stream_commands_waiting(const struct homad_streams *s);

/* ---- stream_events.c ---- */

/** homad_streams_answerable() - is there room for an answer that is of no stream? Else the
 *  command must wait until events are read (homad_streams.stuck). @in_order: the answer
 *  comes behind all that is to be told of streams before. */
bool homad_streams_answerable(struct homad_thread *t, struct homad_streams *s,
			      bool in_order);
/** homad_streams_tell() - such an answer: FAILED, UNLISTENED or NOTHING. There is room. */
void homad_streams_tell(struct homad_thread *t, struct homad_streams *s,
			u16 kind, u64 token, int error);
/** homad_streams_untold() - something waited for room in the event ring, and there is some. */
bool homad_streams_untold(const struct homad_streams *s);
/** homad_stream_events() - what the engine has to say, into slots and event rings. */
void homad_stream_events(struct homad_thread *t);
/** homad_streams_deliver() - fill the rings of those touched, and wake them. */
void homad_streams_deliver(struct homad_thread *t);

/* ---- what the slow path asks for by homad_call() ---- */

/** homad_egress_share() - of its links TCP has what homad_config.tcp_share says now. */
int homad_egress_share(struct homad_thread *t, void *arg);

struct homad_streams_open {
	struct homad_app *app;
	struct homad_streams *streams;
};
/** homad_streams_begin() - @arg: struct homad_streams_open; -ESHUTDOWN. */
int homad_streams_begin(struct homad_thread *t, void *arg);
struct homad_streams_back {
	struct homad_streams *streams;
	u32 backed; /* slots, from the first, with memory */
};
/** struct homad_grow - memory behind the buffers of @num slots, log2: @from, @to */
struct homad_grow {
	struct homad_streams *streams;
	u32 num;
	u32 slot[HOMAD_GROW_BATCH];
	u8 from[HOMAD_GROW_BATCH][HOMAD_BUFFERS],
		to[HOMAD_GROW_BATCH][HOMAD_BUFFERS];
};
/** homad_streams_grown() - it has changed. homad_streams_cool(): fill @arg with free slots
 *  that were not needed for a while, until homad_streams_grown(). @arg: struct homad_grow. */
int homad_streams_grown(struct homad_thread *t, void *arg);
int homad_streams_cool(struct homad_thread *t, void *arg);
/** homad_streams_backed() - @arg: struct homad_streams_back. */
int homad_streams_backed(struct homad_thread *t, void *arg);
/** homad_listener_begin() - @arg: struct homad_tcp_listener with @l.local, @l.port,
 *  @l.backlog and @home set; -EADDRINUSE, -ESHUTDOWN. */
int homad_listener_begin(struct homad_thread *t, void *arg);

#endif
