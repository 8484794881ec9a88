/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine's contract with its hosts. The engine is the Homa protocol and
 * nothing else: no I/O, no clock, no allocation, no thread. A host hands in
 * packets, time and memory; it takes out verdicts on packets, packets to send,
 * events and objects to free. Payload bytes never pass through here: the
 * engine says which bytes of which message are where.
 *
 * One call at a time per struct homa_ctx; any number of contexts may call at
 * once if the engine was built with HOMA_MT. The host holds no engine lock
 * when it calls (there is none that it could hold).
 *
 * Typical loop of a host:
 *
 *	n = receive(pkts);
 *	ctx->now = clock();
 *	homa_rx(ctx, link, pkts, n);
 *	for each pkts[i] with verdict HOMA_RX_DATA: copy payload, then
 *		homa_rx_copied(ctx, &pkts[i]);
 *	homa_rx_flush(ctx);
 *	while (homa_event_next(ctx, &event)) queue it for the application;
 *	while (homa_tx(ctx, link, segs, &desc) == HOMA_TX_PACKET) {
 *		transmit; homa_tx_done(ctx, &desc, 0);
 *	}
 *	if (ctx->now >= deadline) deadline = homa_timer(ctx, shard, budget);
 *	while ((rpc = homa_retired_rpc(ctx))) reuse or free it;
 *	refill spares;
 */
#ifndef HOMA_ENGINE_H
#define HOMA_ENGINE_H

#include "homa_turns.h"
#include "homa_types.h"

/* ---- set-up ---- */

/** homa_params_default() - fill in every default. */
void homa_params_default(struct homa_params *params);
/** homa_params_sigcomm() - the settings of the SIGCOMM'18 study. */
void homa_params_sigcomm(struct homa_params *params);
/** homa_param_set() - set by name; -EINVAL unknown name or out of range. */
int homa_param_set(struct homa_params *params, const char *name, u32 value);
/** homa_params_valid() - all within their ranges? */
bool homa_params_valid(const struct homa_params *params);

size_t homa_engine_size(const struct homa_limits *limits);
size_t homa_sock_size(const struct homa_limits *limits);
size_t homa_peer_size(const struct homa_limits *limits);
size_t homa_rpc_size(const struct homa_limits *limits);
size_t homa_range_size(void);
size_t homa_segment_size(void);
size_t homa_link_size(u32 ctrl_slots);
/** homa_pool_size() - memory for the bookkeeping of a receive region. */
size_t homa_pool_size(u32 pages);

/**
 * homa_engine_init() - make an engine in @mem (homa_engine_size() bytes, 64-byte
 * aligned, any content)
 * @seeds: random and secret, new for each engine; copied.
 * @now: current time in ns.
 */
int homa_engine_init(struct homa_engine *mem, const struct homa_limits *limits,
		     const struct homa_params *params,
		     const struct homa_seeds *seeds, u64 now);
/** homa_seeds_fixed() - all from one number: simulations and tests, which are to be
 *  repeated and keep no secret. Who sees one id can compute the rest. */
void homa_seeds_fixed(struct homa_seeds *seeds, u64 seed);
/** homa_engine_set_params() - change settings at run time; no other call on
 * this engine may be under way, for settings are read everywhere. */
int homa_engine_set_params(struct homa_ctx *ctx,
			   const struct homa_params *params);
/**
 * homa_engine_set_cutoffs() - unscheduled priorities agreed on beforehand
 * All hosts set the same ones before any traffic, so that nobody has to learn
 * them from CUTOFFS packets; cutoff_interval_ms is 0 then, or they change.
 * @levels: priorities for unscheduled packets.
 * @sizes: @levels - 1 of them, ascending: the longest messages (with
 *	prio_by_remaining: most bytes left) on each but the lowest, highest first.
 * -EINVAL: more levels than num_priorities, or not ascending.
 */
int homa_engine_set_cutoffs(struct homa_engine *engine, u32 levels,
			    const u32 *sizes);
/**
 * homa_engine_learn_cutoffs() - the same, chosen by the engine for traffic of
 * which @sizes are a sample of at least 100 message lengths. All hosts are given
 * the same sample and settings.
 */
int homa_engine_learn_cutoffs(struct homa_ctx *ctx, struct homa_link *link,
			      const u32 *sizes, u32 n);
/** homa_engine_fix_cutoffs() - an administrator's choice, which peers are told; as
 *  homa_engine_set_cutoffs(). @levels 0: the engine chooses again. */
int homa_engine_fix_cutoffs(struct homa_ctx *ctx, u32 levels, const u32 *sizes);
/** homa_engine_cutoffs() - those in force, by level; returns their version. */
u16 homa_engine_cutoffs(const struct homa_engine *engine,
			u32 cutoffs[HOMA_PRIORITIES]);
const struct homa_params *homa_engine_params(const struct homa_engine *engine);
void homa_ctx_init(struct homa_ctx *ctx, struct homa_engine *engine, u32 cpu);

/**
 * homa_link_init() - an egress (and ingress) device
 * @rate_mbps: 0: unknown; then nothing is paced here.
 * @mtu: IP MTU in bytes.
 * @ctrl_slots: control packets that may wait, a power of two.
 */
void homa_link_init(struct homa_link *mem, struct homa_engine *engine,
		    u32 rate_mbps, u32 mtu, u32 ctrl_slots);
/** homa_link_set() - what a device is like now; peers keep their packet size. */
void homa_link_set(struct homa_link *link, u32 rate_mbps, u32 mtu);
/**
 * homa_link_pace_by_room() - the host will report the device's room instead
 * of having it estimated; homa_link_room() then sets it.
 */
void homa_link_pace_by_room(struct homa_link *link);
/** homa_link_pace_by_rate() - it is estimated again. */
void homa_link_pace_by_rate(struct homa_link *link);
void homa_link_room(struct homa_link *link, u64 bytes);

/*
 * Others may send on a link, too, such as a host's TCP. Then homa_link_turn() says who
 * does next, and the pacer counts what they send.
 */
/** homa_link_share() - they get @percent of it, 1 to 99, when both kinds have something */
void homa_link_share(struct homa_link *link, u32 percent);
/**
 * homa_link_turn() - who sends next on @link
 * @others: true if the other senders have something to send. The host calls with the new
 *	value each time that this changes, even if it wants nothing else.
 * @not_before: HOMA_TURN_WAIT: when to ask again, ns; (u64)-1: when there is more room.
 * HOMA_TURN_OWN: homa_tx(), which may have to wait, too. HOMA_TURN_OTHERS: a unit of
 * theirs, then homa_link_spent().
 */
enum homa_sender homa_link_turn(struct homa_ctx *ctx, struct homa_link *link,
				bool others, u64 *not_before);
/** homa_link_spent() - they have sent @bytes, headers and gaps on the cable included */
void homa_link_spent(struct homa_ctx *ctx, struct homa_link *link, u64 bytes);

/* Spare memory. The engine never allocates; without a spare a packet is a
 * counted drop and a send fails with -ENOBUFS. */
void homa_ctx_give_rpc(struct homa_ctx *ctx, void *mem);
void homa_ctx_give_peer(struct homa_ctx *ctx, void *mem);
void homa_ctx_give_range(struct homa_ctx *ctx, void *mem);
/** homa_ctx_give_segment() - homa_segment_size() bytes by which a hash table may grow.
 *  Without one, more RPCs or peers than buckets are found more slowly. */
void homa_ctx_give_segment(struct homa_ctx *ctx, void *mem);
/* Spares back, when the context ends; NULL: none. */
void *homa_ctx_take_rpc(struct homa_ctx *ctx);
void *homa_ctx_take_peer(struct homa_ctx *ctx);
void *homa_ctx_take_range(struct homa_ctx *ctx);
void *homa_ctx_take_segment(struct homa_ctx *ctx);
/* Objects that nothing refers to any more, the caller's again; NULL: none.
 * Called after transmission, the first also does what could wait until then:
 * it ends RPCs whose acks came with DATA. */
struct homa_rpc *homa_retired_rpc(struct homa_ctx *ctx);
struct homa_peer *homa_retired_peer(struct homa_ctx *ctx);
/** homa_peers_drain() - at the engine's end: retire peers without RPCs, and make spare the
 *  memory of requests that ran, at most @budget of both. True: there is more. */
bool homa_peers_drain(struct homa_ctx *ctx, u32 budget);
/** homa_engine_segment() - one that the tables grew by, the caller's again; NULL: none
 *  left. The engine's end: no RPC or peer is left, and nobody calls it any more. */
void *homa_engine_segment(struct homa_engine *engine);

void *homa_rpc_priv(struct homa_rpc *rpc);
void *homa_sock_priv(struct homa_sock *sock);
struct homa_sock *homa_rpc_sock(struct homa_rpc *rpc);
struct homa_handle homa_rpc_handle(const struct homa_rpc *rpc);
struct homa_link *homa_rpc_link(const struct homa_rpc *rpc);

/* An RPC that the host keeps a pointer to must be held, or it may be retired at
 * any time. Holding does not keep it from ending. */
/** homa_rpc_hold() - find by id: a client's (@peer NULL, even @id) or a server's;
 *  NULL: none. */
struct homa_rpc *homa_rpc_hold(struct homa_ctx *ctx, u64 id,
			       const struct homa_addr *peer);
/** homa_rpc_hold_more() - once more, by someone who holds it. */
void homa_rpc_hold_more(struct homa_rpc *rpc);
void homa_rpc_release(struct homa_ctx *ctx, struct homa_rpc *rpc);
/** homa_ctx_next_rpc() - private bytes of the RPC that the next homa_rpc_send() or
 *  homa_rx() of this context makes: what other threads need as soon as they see it.
 *  NULL: no spare. */
void *homa_ctx_next_rpc(struct homa_ctx *ctx);
/** homa_ctx_rpc_after() - those of the one after it, for a batch of packets. */
void *homa_ctx_rpc_after(struct homa_rpc *spare);

/* ---- sockets ---- */

/** homa_sock_open() - client socket with an automatic port; -EADDRINUSE: all taken. */
int homa_sock_open(struct homa_ctx *ctx, struct homa_sock *mem);
/** homa_sock_bind() - -EINVAL (port), -EADDRINUSE. Makes it a server. */
int homa_sock_bind(struct homa_ctx *ctx, struct homa_sock *sock, u16 port);
/**
 * homa_sock_share() - the same, but other sockets of one owner may have the port, too
 * @taken: where the host counts the requests of this socket that its application has and
 *	has not answered; read until the socket closes or binds otherwise.
 *
 * All of them ask for it. Each request goes to the one of them that takes requests of its
 * peer and has the fewest, those included that its application does not have yet. Others
 * hear -EADDRINUSE, and so do sockets of the engine's own account; -ENOBUFS: 64 share it.
 */
int homa_sock_share(struct homa_ctx *ctx, struct homa_sock *sock, u16 port,
		    const u32 *taken);
/**
 * homa_sock_charge() - whose account the socket's RPCs go on, before it has any
 * @owner: the host's memory, 0 at first, alive as long as a socket of it. Without this
 *	call a socket is the engine's own, and limits of owners do not apply to it.
 */
void homa_sock_charge(struct homa_sock *sock, struct homa_owner *owner);
/** homa_sock_serve() - take requests on the port it has, or no longer. */
void homa_sock_serve(struct homa_sock *sock, bool server);
/** homa_sock_only_v4() - as a server it is one for IPv4 peers only, whose addresses
 *  are all that its application can be told; others are refused. */
void homa_sock_only_v4(struct homa_sock *sock, bool only);
u16 homa_sock_port(const struct homa_sock *sock);
/**
 * homa_sock_set_pool() - received messages go to a region of @pages 64 KiB pages
 * @mem: homa_pool_size(pages) bytes. Without a pool the host finds the place
 * of a message itself (simulator).
 */
int homa_sock_set_pool(struct homa_ctx *ctx, struct homa_sock *sock, void *mem,
		       u32 pages);
/**
 * homa_pool_back() - only the first @pages of the receive region are given to messages,
 * the others have no memory behind them (yet); at first all are. What messages are in
 * stays, and all before it. Messages that waited go on if there are more than before.
 * Returns how many it is now.
 */
u32 homa_pool_back(struct homa_ctx *ctx, struct homa_sock *sock, u32 pages);
/** homa_pool_low() - true if more than half of the pool's backed pages are in use
 * Only the thread that may exchange the pool calls it, because no lock is taken. */
bool homa_pool_low(const struct homa_sock *sock);
/** homa_sock_give() - may a message that is whole in one packet be given to the application
 * at once? Verdict HOMA_RX_MESSAGE: the host copies it to its page and calls nothing
 * more. Not for private RPCs, nor without a pool. At first off. */
void homa_sock_give(struct homa_sock *sock, bool give);
/** homa_sock_taken() - the application has taken @requests more of those that came as
 * HOMA_RX_MESSAGE; they no longer count against max_backlog. Any context. */
void homa_sock_taken(struct homa_sock *sock, u32 requests);
/** homa_sock_refuse() - the host has no room for more packets: payload for the socket is
 *  dropped as if it were lost, until it is allowed again. */
void homa_sock_refuse(struct homa_sock *sock, bool refuse);
/** homa_sock_at() - the socket with a port, server or not; NULL: none. For hosts whose
 *  sockets' memory outlives whoever looks (RCU). */
struct homa_sock *homa_sock_at(struct homa_ctx *ctx, u16 port);
/** homa_sock_listening() - the socket on a port that takes requests of @peer, NULL:
 *  none. For hosts with one thread: nothing keeps it from being closed. */
struct homa_sock *homa_sock_listening(struct homa_ctx *ctx, u16 port,
				      const struct homa_addr *peer);
/** homa_pages_take() - pages for a message that the host delivers by itself; they
 *  come back by homa_pool_release(). -ENOBUFS: not enough are free. */
int homa_pages_take(struct homa_ctx *ctx, struct homa_sock *sock, u32 length,
		    u32 *pages, u32 *num);
/** homa_pool_avail() - bytes in free pages of the receive region. */
u64 homa_pool_avail(struct homa_sock *sock);
/** homa_sock_idle() - no RPC of either side is open on it. */
bool homa_sock_idle(struct homa_sock *sock);
/** homa_sock_memory() - bytes of the host's that its RPCs, @each, and what is noted about them
 *  take now. Any context. */
u64 homa_sock_memory(const struct homa_sock *sock, u32 each);
/** homa_sock_starved() - do messages wait for receive buffers? */
bool homa_sock_starved(struct homa_sock *sock);
/** homa_sock_close() - end up to @budget RPCs; -EAGAIN: call again; 0: memory is the host's. */
int homa_sock_close(struct homa_ctx *ctx, struct homa_sock *sock, u32 budget);
/** homa_pool_release() - give pages of a taken message back; -EINVAL: not out. */
int homa_pool_release(struct homa_ctx *ctx, struct homa_sock *sock,
		      const u32 *pages, u32 num);
/** homa_pool_return() - the same in two steps, the first without a context: 1: messages
 *  wait for pages, homa_pool_feed() is wanted; 0: done; -EINVAL: not out. */
int homa_pool_return(struct homa_sock *sock, const u32 *pages, u32 num);
void homa_pool_feed(struct homa_ctx *ctx, struct homa_sock *sock);

/* ---- messages out ---- */

enum { HOMA_SEND_PRIVATE = 1 };

/**
 * struct homa_send - a request to send
 * @available: bytes of the message that may be sent already; the rest follows
 *	by homa_msg_supply().
 * @flags: HOMA_SEND_PRIVATE: its events are marked private.
 * @id: even, at least 2, and one that nobody else can know; 0: the engine's choice.
 * @deadline: when its application stops waiting, ns on the clock of homa_ctx.now, which the
 *	server is told; the RPC goes on then. 0, or more than 73 minutes ahead: nothing is told.
 */
struct homa_send {
	struct homa_addr dst;
	u16 port;
	u16 flags;
	u32 length;
	u32 available;
	u64 cookie;
	u64 id;
	u64 deadline;
};

/**
 * homa_rpc_send() - start an RPC as client
 * @rpc: out: where to put private bytes, before the next engine call.
 * Errors: -EINVAL (@send->id is open, too), -ENOBUFS (no spare, max_rpcs, or its
 * owner's share), -ESHUTDOWN.
 */
int homa_rpc_send(struct homa_ctx *ctx, struct homa_sock *sock,
		  struct homa_link *link, const struct homa_send *send,
		  struct homa_handle *handle, struct homa_rpc **rpc);
/**
 * homa_rpc_reply() - send the response to a taken request
 * @rpc: out: where to put private bytes, before the next engine call.
 * Returns 0, also if the RPC has ended meanwhile: then nothing is sent and *@rpc is NULL.
 * Error: -EINVAL (it was replied to already, or is no taken request).
 */
int homa_rpc_reply(struct homa_ctx *ctx, struct homa_handle handle, u32 length,
		   u32 available, struct homa_rpc **rpc);
/**
 * homa_rpc_reject() - the application will not answer a taken request
 * @error: an errno, 1 to HOMA_MAX_ERRNO, which the client's application hears.
 * @rpc: out: set if the client is told, by a response of one byte whose value means
 *	nothing: the host hands it in, at once (@available is 1) or later, as with
 *	homa_rpc_reply(). NULL: the client does not understand that and times out, or it is
 *	gone; the RPC has ended.
 * Error: -EINVAL (it was replied to already, or is no taken request, or @error).
 */
int homa_rpc_reject(struct homa_ctx *ctx, struct homa_handle handle, u32 error,
		    u32 available, struct homa_rpc **rpc);
/** homa_rpc_awaited() - does the client of a taken request, not answered yet, still wait, as
 *  far as is known? */
bool homa_rpc_awaited(struct homa_ctx *ctx, struct homa_handle handle);
/** homa_msg_supply() - the first @available bytes may be sent now. */
void homa_msg_supply(struct homa_ctx *ctx, struct homa_handle handle,
		     u32 available);
/** homa_rpc_abort() - end a client RPC; @error 0: silently, else an event. The server
 * is told, if it can know of the RPC. -EINVAL: no such RPC. */
int homa_rpc_abort(struct homa_ctx *ctx, struct homa_handle handle, int error);
/**
 * homa_rpc_forget() - end either side's RPC at once: no event, no packet; bytes
 * not yet sent are not sent, and pages not yet given to the application go
 * back. For hosts that know by other means that the RPC is over: the simulator
 * ends a one-way message at both ends when it has been delivered. (The peer
 * finds out by itself otherwise, as if this end had restarted.) A request that
 * the application has seen is remembered against duplicates. -EINVAL: no such RPC.
 */
int homa_rpc_forget(struct homa_ctx *ctx, struct homa_handle handle);
/** homa_rpc_lookup() - handle of a client RPC by its id, for aborts by id. */
bool homa_rpc_lookup(struct homa_ctx *ctx, u64 id, struct homa_handle *handle);

/* ---- packets ---- */

void homa_rx(struct homa_ctx *ctx, struct homa_link *link,
	     struct homa_rx_pkt *pkts, u32 n);
/** homa_rx_copied() - the payload of a HOMA_RX_DATA packet is in place; unpins. */
void homa_rx_copied(struct homa_ctx *ctx, struct homa_rx_pkt *pkt);
/** homa_rx_place() - region offset of a message byte and how many follow it there. */
u32 homa_rx_place(const struct homa_rpc *rpc, u32 offset, u32 *contiguous);
/** homa_rx_placed() - has the message pages? Not if it began before its socket had a
 *  region. */
bool homa_rx_placed(const struct homa_rpc *rpc);
/** homa_rx_flush() - issue grants and queue control packets; after each batch. */
void homa_rx_flush(struct homa_ctx *ctx);
/** homa_say() - send a control packet about no RPC, for hosts that ask each other
 * something. RESEND is of no bytes; other types must be the common header alone. */
void homa_say(struct homa_ctx *ctx, struct homa_link *link,
	      const struct homa_addr *dst, u8 type, u16 sport, u16 dport, u64 id);
/**
 * homa_icmp() - an ICMP error about a packet of ours to @dst, with what it quotes
 * of the Homa header. Believed only about an RPC with this @id and these ports.
 */
void homa_icmp(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id, int error);
/** homa_icmp_mtu() - the same: it was too long for the path, whose IP MTU is @mtu;
 * messages started later are cut smaller. False: not believed. */
bool homa_icmp_mtu(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
		   u16 dport, u64 id, u32 mtu);

/** homa_path_mtu() - IP MTU of the path to a peer, as the host's routes have it;
 * messages started later use it. */
void homa_path_mtu(struct homa_ctx *ctx, struct homa_link *link,
		   const struct homa_addr *dst, u32 mtu);

/**
 * homa_tx() - the next packet to send on @link
 * @max_segs: packets of one message the host can take at once, >= 1.
 */
enum homa_tx_result homa_tx(struct homa_ctx *ctx, struct homa_link *link,
			    u32 max_segs, struct homa_tx_desc *desc);
/** homa_tx_segment() - header of the segment at @desc->offset + @skip, into @hdr. */
u32 homa_tx_segment(const struct homa_tx_desc *desc, u32 skip, void *hdr);
/** homa_tx_done() - unpin; @err != 0: nothing of it was sent. It is queued again, but not
 *  with -HOMA_EHOSTUNREACH: the peer's address is not resolved yet, and the receiver's
 *  RESEND will ask for these bytes later. A host that sent the first part of several segments moves
 *  @desc->offset on and makes @desc->length shorter before. */
void homa_tx_done(struct homa_ctx *ctx, struct homa_tx_desc *desc, int err);

/* ---- events ---- */

bool homa_event_next(struct homa_ctx *ctx, struct homa_event *event);
/** homa_event_hold() - the same; the caller holds event->rpc, for homa_rpc_release(). */
bool homa_event_hold(struct homa_ctx *ctx, struct homa_event *event);
/**
 * homa_rx_take() - give a complete message or failure to the application
 * A client RPC ends with this and is acknowledged; a server RPC waits for
 * homa_rpc_reply(). Errors: -EINVAL (gone or not ready).
 */
int homa_rx_take(struct homa_ctx *ctx, struct homa_handle handle,
		 struct homa_msg_info *info);

/**
 * homa_rx_finish() - homa_rx_copied(), and if the message is complete with that,
 * homa_rx_take() at once and no event. 1: @info is filled; 0: not complete, or not
 * any more.
 */
int homa_rx_finish(struct homa_ctx *ctx, struct homa_rx_pkt *pkt,
		   struct homa_msg_info *info);

/* ---- time ---- */

/** homa_timer() - run due timers of a shard, at most @budget RPCs.
 * Returns when to call again (ctx->now if the budget ran out). */
u64 homa_timer(struct homa_ctx *ctx, u32 shard, u32 budget);
u32 homa_engine_shards(const struct homa_engine *engine);

/* ---- looking in ---- */
/* A link, one RPC, all RPCs, all peers: homa_look.h. Numbers of live objects, for
 * leak tests: */
struct homa_counts {
	u32 rpcs, peers, socks;
	u32 once; /* ranges in use to remember requests that ran */
};
void homa_engine_counts(const struct homa_engine *engine,
			struct homa_counts *counts);

#endif
