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

/** homa_params_default() - set every setting to its default. */
void homa_params_default(struct homa_params *params);
/** homa_params_sigcomm() - set every setting as the SIGCOMM'18 study has it. */
void homa_params_sigcomm(struct homa_params *params);
/** homa_param_set() - set the setting @name; -EINVAL: there is none, or @value is out of its
 *  range. */
int homa_param_set(struct homa_params *params, const char *name, u32 value);
/** homa_params_valid() - are all settings within their ranges? */
bool homa_params_valid(const struct homa_params *params);

/* Bytes that the host provides for one object of each kind. */
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
 * @limits: sizes; copied.
 * @params: settings; copied.
 * @seeds: random and secret numbers, new for each engine; copied.
 * @now: current time in ns.
 * Returns 0, or -EINVAL if a setting or a size is out of its range.
 */
int homa_engine_init(struct homa_engine *mem, const struct homa_limits *limits,
		     const struct homa_params *params,
		     const struct homa_seeds *seeds, u64 now);
/** homa_seeds_fixed() - make all seeds from one number, for simulations and tests, which are
 *  to be repeated and keep no secret: who sees one id can compute the rest. */
void homa_seeds_fixed(struct homa_seeds *seeds, u64 seed);
/** homa_engine_set_params() - change settings at run time; no other call on
 * this engine may be under way, for settings are read everywhere. */
int homa_engine_set_params(struct homa_ctx *ctx,
			   const struct homa_params *params);
/**
 * homa_engine_set_cutoffs() - unscheduled priorities agreed on beforehand
 * All hosts set the same ones before any traffic, so that nobody has to learn
 * them from CUTOFFS packets; cutoff_interval_ms is 0 then, or they change.
 * @levels: number of priorities for unscheduled packets.
 * @sizes: @levels - 1 numbers of bytes, ascending: the longest message (with
 *	prio_by_remaining: the most bytes left) on each level but the lowest, highest first.
 * -EINVAL: more levels than num_priorities, or not ascending.
 */
int homa_engine_set_cutoffs(struct homa_engine *engine, u32 levels,
			    const u32 *sizes);
/**
 * homa_engine_learn_cutoffs() - let the engine choose such cutoffs for traffic of
 * which @sizes are a sample of @n message lengths, at least 100. All hosts are given
 * the same sample and settings.
 */
int homa_engine_learn_cutoffs(struct homa_ctx *ctx, struct homa_link *link,
			      const u32 *sizes, u32 n);
/** homa_engine_fix_cutoffs() - set cutoffs that an administrator chose, and tell peers of
 *  them; as homa_engine_set_cutoffs(). @levels 0: the engine chooses again. */
int homa_engine_fix_cutoffs(struct homa_ctx *ctx, u32 levels, const u32 *sizes);
/** homa_engine_cutoffs() - write the cutoffs in force, by level; returns their version. */
u16 homa_engine_cutoffs(const struct homa_engine *engine,
			u32 cutoffs[HOMA_PRIORITIES]);
/** homa_engine_params() - the engine's settings. */
const struct homa_params *homa_engine_params(const struct homa_engine *engine);
/** homa_ctx_init() - make a context for one caller; @cpu is its number, see homa_ctx.cpu. */
void homa_ctx_init(struct homa_ctx *ctx, struct homa_engine *engine, u32 cpu);

/**
 * homa_link_init() - make a link for a device that sends and receives
 * @mem: homa_link_size(ctrl_slots) bytes.
 * @rate_mbps: rate in Mbit/s; 0: it is unknown, and nothing is paced here.
 * @mtu: IP MTU in bytes.
 * @ctrl_slots: number of control packets that may wait, a power of two.
 */
void homa_link_init(struct homa_link *mem, struct homa_engine *engine,
		    u32 rate_mbps, u32 mtu, u32 ctrl_slots);
/** homa_link_set() - the device has another rate (Mbit/s) or IP MTU (bytes) now. */
void homa_link_set(struct homa_link *link, u32 rate_mbps, u32 mtu);
/**
 * homa_link_pace_by_room() - the host will report the device's room instead
 * of having it estimated; homa_link_room() then sets it.
 */
void homa_link_pace_by_room(struct homa_link *link);
/** homa_link_pace_by_rate() - the device's room is estimated again. */
void homa_link_pace_by_rate(struct homa_link *link);
/** homa_link_room() - set to @bytes what the device can take now. */
void homa_link_room(struct homa_link *link, u64 bytes);

/*
 * Others may send on a link, too, such as a host's TCP. Then homa_link_turn() says who
 * sends next, and the pacer counts what they send.
 */
/** homa_link_share() - the others get @percent of the link, 1 to 99, while both kinds wait */
void homa_link_share(struct homa_link *link, u32 percent);
/**
 * homa_link_turn() - who sends next on @link
 * @others: true if the other senders have something to send. The host calls with the new
 *	value each time that this changes, even if it wants nothing else.
 * @not_before: with HOMA_TURN_WAIT: time at which the host shall ask again, in ns; (u64)-1:
 *	when there is more room.
 * With HOMA_TURN_OWN the host calls homa_tx(), which may say that it has to wait. With
 * HOMA_TURN_OTHERS it sends a unit of theirs and calls homa_link_spent().
 */
enum homa_sender homa_link_turn(struct homa_ctx *ctx, struct homa_link *link,
				bool others, u64 *not_before);
/** homa_link_spent() - others have sent @bytes, headers and gaps on the cable included */
void homa_link_spent(struct homa_ctx *ctx, struct homa_link *link, u64 bytes);

/* Spare memory. The engine never allocates; without a spare a packet is a
 * counted drop and a send fails with -ENOBUFS. */
void homa_ctx_give_rpc(struct homa_ctx *ctx, void *mem);
/** homa_ctx_reuse_rpc() - does the same with an RPC that homa_retired_rpc() has returned, of
 *  which nothing but the host's private bytes was written since; it is quicker. */
void homa_ctx_reuse_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc);
void homa_ctx_give_peer(struct homa_ctx *ctx, void *mem);
void homa_ctx_give_range(struct homa_ctx *ctx, void *mem);
/** homa_ctx_give_segment() - homa_segment_size() bytes by which a hash table may grow.
 *  Without one, more RPCs or peers than buckets are found more slowly. */
void homa_ctx_give_segment(struct homa_ctx *ctx, void *mem);
/* The host takes spare memory back when the context ends; NULL: there is none left. */
void *homa_ctx_take_rpc(struct homa_ctx *ctx);
void *homa_ctx_take_peer(struct homa_ctx *ctx);
void *homa_ctx_take_range(struct homa_ctx *ctx);
void *homa_ctx_take_segment(struct homa_ctx *ctx);
/* Return objects that nothing refers to any more, whose memory is the caller's again;
 * NULL: there is none. homa_retired_rpc(), which is called after transmission, also does
 * what could wait until then: it ends RPCs whose acks came with DATA. */
struct homa_rpc *homa_retired_rpc(struct homa_ctx *ctx);
struct homa_peer *homa_retired_peer(struct homa_ctx *ctx);
/** homa_peers_drain() - at the engine's end: retire peers without RPCs, and make spare the
 *  memory of requests that ran, at most @budget of both. True: there is more. */
bool homa_peers_drain(struct homa_ctx *ctx, u32 budget);
/** homa_engine_segment() - at the engine's end: return a segment by which tables grew, the
 *  caller's again; NULL: none is left. No RPC or peer is left, and nobody else calls. */
void *homa_engine_segment(struct homa_engine *engine);

/* The host's private bytes of an RPC or a socket. */
void *homa_rpc_priv(struct homa_rpc *rpc);
void *homa_sock_priv(struct homa_sock *sock);
/* The socket, the handle and the link of an RPC. */
struct homa_sock *homa_rpc_sock(struct homa_rpc *rpc);
struct homa_handle homa_rpc_handle(const struct homa_rpc *rpc);
struct homa_link *homa_rpc_link(const struct homa_rpc *rpc);

/* An RPC that the host keeps a pointer to must be held, or it may be retired at
 * any time. Holding does not keep it from ending. */
/** homa_rpc_hold() - find and hold an RPC by its id at this end: a client's (@peer NULL, even
 *  @id) or a server's; NULL: there is none. */
struct homa_rpc *homa_rpc_hold(struct homa_ctx *ctx, u64 id,
			       const struct homa_addr *peer);
/** homa_rpc_hold_more() - hold an RPC once more; the caller holds it already. */
void homa_rpc_hold_more(struct homa_rpc *rpc);
/** homa_rpc_release() - end one hold of an RPC. */
void homa_rpc_release(struct homa_ctx *ctx, struct homa_rpc *rpc);
/** homa_ctx_next_rpc() - the spare RPC that the next homa_rpc_send() of this context uses, as
 *  its private bytes: the host writes there what other threads need as soon as they see the
 *  RPC. NULL: there is no spare. */
void *homa_ctx_next_rpc(struct homa_ctx *ctx);

/* ---- sockets ---- */

/** homa_sock_open() - make a client socket with a free port; -EADDRINUSE: none is free. */
int homa_sock_open(struct homa_ctx *ctx, struct homa_sock *mem);
/** homa_sock_bind() - give the socket @port and make it a server; -EINVAL: @port is no
 *  server's, -EADDRINUSE: another socket has it. */
int homa_sock_bind(struct homa_ctx *ctx, struct homa_sock *sock, u16 port);
/**
 * homa_sock_share() - as homa_sock_bind(), but other sockets of one owner may have the port,
 *	too
 * @taken: memory in which the host counts the requests of this socket that its application
 *	has and has not answered; read until the socket closes or binds otherwise.
 *
 * All sockets that share the port call this. A request goes to the socket among them that
 * takes requests of its peer and has the fewest, those included that its application does not
 * have yet. -EADDRINUSE: the port is another owner's or not shared, or @sock is on the engine's
 * own account; -ENOBUFS: 64 sockets share it already.
 */
int homa_sock_share(struct homa_ctx *ctx, struct homa_sock *sock, u16 port,
		    const u32 *taken);
/**
 * homa_sock_bind_at() - as homa_sock_bind(), but the socket gets only what comes to @place,
 *	and other sockets with other places may have the port
 * @port: also the port that the socket has; a client's does not make it a server.
 *
 * A request goes to the socket whose place says most about it: its address counts more than
 * its device, and that more than the peer's family. -EADDRINUSE: the place of another socket
 * overlaps, and the two do not both say that they share and have one owner (not the engine's
 * own account), or are the same; -ENOBUFS: 64 sockets have the port already.
 */
int homa_sock_bind_at(struct homa_ctx *ctx, struct homa_sock *sock, u16 port,
		      const struct homa_place *place);
/** homa_sock_on() - let the socket get only what comes on the device with number @device, or (0)
 *  on any. Places that overlap now stay: one of them gets the requests. Sends nothing and needs
 *  no context. */
void homa_sock_on(struct homa_engine *engine, struct homa_sock *sock, u32 device);
/**
 * homa_sock_charge() - say on whose account the socket's RPCs go, before it has any
 * @owner: memory of the host, 0 at first, which lasts as long as the owner has a socket.
 *	Without this call a socket is the engine's own, and limits of owners do not apply.
 */
void homa_sock_charge(struct homa_sock *sock, struct homa_owner *owner);
/** homa_sock_serve() - say whether the socket takes requests on its port. */
void homa_sock_serve(struct homa_sock *sock, bool server);
/** homa_sock_only_v4() - say whether the socket takes requests of IPv4 peers only, because
 *  its application cannot be told other addresses. */
void homa_sock_only_v4(struct homa_sock *sock, bool only);
/** homa_sock_port() - port of the socket, in host order. */
u16 homa_sock_port(const struct homa_sock *sock);
/**
 * homa_sock_set_pool() - let received messages go to a region of @pages 64 KiB pages
 * @mem: homa_pool_size(pages) bytes.
 * Without this call the host finds the place of a message itself (simulator).
 */
int homa_sock_set_pool(struct homa_ctx *ctx, struct homa_sock *sock, void *mem,
		       u32 pages);
/**
 * homa_pool_back() - say that only the first @pages of the receive region have memory and are
 * given to messages; at first all are. Pages that messages are in stay, and all before them.
 * Messages that waited go on if there are more pages than before. Returns how many pages are
 * given to messages now.
 */
u32 homa_pool_back(struct homa_ctx *ctx, struct homa_sock *sock, u32 pages);
/** homa_pool_low() - true if more than half of the pool's backed pages are in use
 * Only the thread that may exchange the pool calls it, because no lock is taken. */
bool homa_pool_low(const struct homa_sock *sock);
/** homa_sock_deliver_whole() - say which messages that are whole in one packet become the
 * application's at once. Their verdict is HOMA_RX_MESSAGE, and the host copies them to their page
 * and calls nothing more. At first none do, and never those without a pool. */
void homa_sock_deliver_whole(struct homa_sock *sock, enum homa_whole which);
/** homa_sock_taken() - the application has taken @requests more of those that came as
 * HOMA_RX_MESSAGE; they no longer count against max_backlog. Any thread may call this. */
void homa_sock_taken(struct homa_sock *sock, u32 requests);
/** homa_sock_refuse() - the host has no room for more packets: payload for the socket is
 *  dropped as if it were lost, until it is allowed again. */
void homa_sock_refuse(struct homa_sock *sock, bool refuse);
/** homa_sock_at() - the socket with a port, server or not; NULL: there is none. Only hosts may
 *  call this whose sockets' memory outlives whoever looks (RCU). */
HOMA_HOT struct homa_sock *homa_sock_at(struct homa_ctx *ctx, u16 port);
/** homa_sock_exact() - is the socket that homa_sock_at() returns the only one that a packet to
 *  its port can be for, which came to homa_ctx.heard_at? If not, homa_rpc_hold() and
 *  homa_sock_meant() say which one it is. */
bool homa_sock_exact(const struct homa_ctx *ctx, const struct homa_sock *sock);
/** homa_sock_meant() - the socket that gets a request of @peer to @port, which came on
 *  homa_ctx.heard_on to homa_ctx.heard_at; NULL: none. For hosts as homa_sock_at() is. */
struct homa_sock *homa_sock_meant(struct homa_ctx *ctx, u16 port,
				  const struct homa_addr *peer);
/** homa_sock_listening() - the socket on a port that takes requests of @peer; NULL: there is
 *  none. Only hosts with one thread may call this: nothing keeps it from being closed. */
struct homa_sock *homa_sock_listening(struct homa_ctx *ctx, u16 port,
				      const struct homa_addr *peer);
/** homa_pages_take() - take pages for a message of @length bytes that the host delivers by
 *  itself; they come back by homa_pool_release(). -ENOBUFS: not enough are free. */
int homa_pages_take(struct homa_ctx *ctx, struct homa_sock *sock, u32 length,
		    u32 *pages, u32 *num);
/** homa_pool_avail() - number of bytes in free pages of the receive region. */
u64 homa_pool_avail(struct homa_sock *sock);
/** homa_sock_idle() - is no RPC of either side open on the socket? */
bool homa_sock_idle(struct homa_sock *sock);
/** homa_sock_memory() - bytes of the host's memory that the socket's RPCs take now, @each for
 *  each of them, and the records of gaps in their messages. Any thread may call this. */
u64 homa_sock_memory(const struct homa_sock *sock, u32 each);
/** homa_sock_starved() - do messages wait for receive buffers? */
bool homa_sock_starved(struct homa_sock *sock);
/** homa_sock_close() - close the socket and end at most @budget of its RPCs; -EAGAIN: there are
 *  more, call again; 0: its memory is the host's. */
int homa_sock_close(struct homa_ctx *ctx, struct homa_sock *sock, u32 budget);
/** homa_pool_release() - give pages of a taken message back; -EINVAL: the application does not
 *  have one of them, and nothing has changed. */
int homa_pool_release(struct homa_ctx *ctx, struct homa_sock *sock,
		      const u32 *pages, u32 num);
/** homa_pool_return() - give pages back without a context; 1: messages wait for pages, so the
 *  host calls homa_pool_feed() next; 0: all is done; -EINVAL: as homa_pool_release(). */
HOMA_HOT int homa_pool_return(struct homa_sock *sock, const u32 *pages, u32 num);
/** homa_pool_feed() - give free pages to messages that wait for them. */
void homa_pool_feed(struct homa_ctx *ctx, struct homa_sock *sock);

/* ---- messages out ---- */

/* Bits of homa_send.flags. */
enum { HOMA_SEND_PRIVATE = 1 };

/**
 * struct homa_send - a request to send
 * @dst: address of the server.
 * @port: port of the server, in host order.
 * @flags: HOMA_SEND_PRIVATE marks the events of the RPC as private.
 * @length: length of the request, in bytes.
 * @available: number of bytes of the request that may be sent already; the rest follows
 *	by homa_msg_supply().
 * @cookie: value that comes back with the response or the failure.
 * @id: id of the RPC, even, at least 2, and one that nobody else can know; 0: the engine
 *	chooses it.
 * @deadline: time at which the application stops waiting, in ns on the clock of homa_ctx.now,
 *	which the server is told; the RPC goes on then. 0, or more than 73 minutes ahead: the
 *	server is told nothing.
 *
 * Written by: the host, before the call; the engine reads it and keeps no pointer to it.
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
 * @handle: the engine writes the RPC's handle here.
 * @rpc: the engine writes the RPC here; the host may write its private bytes before the next
 *	engine call.
 * Errors: -EINVAL (an RPC with @send->id is open), -ENOBUFS (there is no spare memory, or
 * max_rpcs or the owner's share is reached), -EDQUOT (the owner has as many peers as he may
 * and all are in use), -ESHUTDOWN (the socket closes).
 */
int homa_rpc_send(struct homa_ctx *ctx, struct homa_sock *sock,
		  struct homa_link *link, const struct homa_send *send,
		  struct homa_handle *handle, struct homa_rpc **rpc);
/** homa_rpc_send_now() - does the same for hosts that have it inlined: the server is @dst, not
 *  @send->dst, and a packet that may leave at once is written to @now, not to homa_ctx.tx_now.
 *  *@sent says whether one was. */
HOMA_HOT int homa_rpc_send_now(struct homa_ctx *ctx, struct homa_sock *sock,
			       struct homa_link *link,
			       const struct homa_addr *dst,
			       const struct homa_send *send,
			       struct homa_handle *handle, struct homa_rpc **rpc,
			       struct homa_tx_desc *now, bool *sent);
/**
 * homa_rpc_reply() - send the response to a taken request
 * @length: length of the response, in bytes.
 * @available: number of bytes of it that may be sent already.
 * @rpc: the engine writes the RPC here, as in homa_rpc_send().
 * Returns 0, also if the RPC has ended meanwhile: then nothing is sent and *@rpc is NULL.
 * Error: -EINVAL (it was replied to already, or is no taken request).
 */
int homa_rpc_reply(struct homa_ctx *ctx, struct homa_handle handle, u32 length,
		   u32 available, struct homa_rpc **rpc);
/**
 * homa_answer_begin() - does the first half of homa_rpc_reply(), for hosts that know the id
 * @id and the client @peer, and no handle: returns that RPC of @sock, whose shard stays locked
 * until homa_answer_end(). In between the host writes its private bytes, and calls nothing
 * but homa_rpc_priv(), homa_rpc_handle(), homa_rpc_hold_more() and homa_answer_awaited().
 * NULL: there is none, and nothing is locked.
 */
HOMA_HOT struct homa_rpc *homa_answer_begin(struct homa_ctx *ctx, u64 id,
					    const struct homa_addr *peer,
					    const struct homa_sock *sock);
/** homa_answer_awaited() - is it a taken request that was not answered? */
bool homa_answer_awaited(const struct homa_rpc *rpc);
/** homa_answer_end() - does the other half, as homa_rpc_reply() says, if the RPC is awaited and
 *  @length, which is within limits, is not 0; without a length nothing is sent. True: a packet
 *  that may leave at once was written to @now, instead of to homa_ctx.tx_now. */
HOMA_HOT bool homa_answer_end(struct homa_ctx *ctx, struct homa_rpc *rpc,
			      u32 length, u32 available,
			      struct homa_tx_desc *now);
/**
 * homa_rpc_reject() - the application will not answer a taken request
 * @error: an errno, 1 to HOMA_MAX_ERRNO, which the client's application hears.
 * @available: 1: the host has the byte of the response ready; 0: it calls homa_msg_supply().
 * @rpc: the engine writes the RPC here if the client is told, by a response of one byte whose
 *	value means nothing; else NULL: the client does not understand that and times out, or
 *	it is gone, and the RPC has ended.
 * Error: -EINVAL (it was replied to already, or is no taken request, or @error).
 */
int homa_rpc_reject(struct homa_ctx *ctx, struct homa_handle handle, u32 error,
		    u32 available, struct homa_rpc **rpc);
/** homa_rpc_awaited() - does the client of a taken request, not answered yet, still wait, as
 *  far as is known? */
bool homa_rpc_awaited(struct homa_ctx *ctx, struct homa_handle handle);
/** homa_msg_supply() - let the first @available bytes of the message be sent. */
void homa_msg_supply(struct homa_ctx *ctx, struct homa_handle handle,
		     u32 available);
/** homa_rpc_abort() - end a client's RPC with @error, a positive errno, as an event; 0: without
 * an event. The server is told if it can know of the RPC. -EINVAL: there is no such RPC. */
int homa_rpc_abort(struct homa_ctx *ctx, struct homa_handle handle, int error);
/**
 * homa_rpc_forget() - end either side's RPC at once, without event and packet; bytes
 * not yet sent are not sent, and pages not yet given to the application go
 * back. For hosts that know by other means that the RPC is over: the simulator
 * ends a one-way message at both ends when it has been delivered. (The peer
 * finds out by itself otherwise, as if this end had restarted.) A request that
 * the application has seen is remembered against duplicates. -EINVAL: no such RPC.
 */
int homa_rpc_forget(struct homa_ctx *ctx, struct homa_handle handle);
/** homa_rpc_lookup() - write the handle of the client's RPC with @id; false: there is none. */
bool homa_rpc_lookup(struct homa_ctx *ctx, u64 id, struct homa_handle *handle);

/* ---- packets ---- */

/** homa_rx() - take @n packets that came on @link, and say what the host shall do with each. */
void homa_rx(struct homa_ctx *ctx, struct homa_link *link,
	     struct homa_rx_pkt *pkts, u32 n);
/** homa_rx_alone() - does the same for one packet. */
HOMA_HOT void homa_rx_alone(struct homa_ctx *ctx, struct homa_link *link,
			    struct homa_rx_pkt *pkt);
/** homa_rx_copied() - the host has copied the payload of a HOMA_RX_DATA packet; its RPC is held
 *  no longer. */
void homa_rx_copied(struct homa_ctx *ctx, struct homa_rx_pkt *pkt);
/** homa_rx_place() - offset in the region of the message byte at @offset; *@contiguous: how many
 *  bytes of the message stand there in a row. */
u32 homa_rx_place(const struct homa_rpc *rpc, u32 offset, u32 *contiguous);
/** homa_rx_placed() - has the message pages? It has none if it began before its socket had a
 *  region. */
bool homa_rx_placed(const struct homa_rpc *rpc);
/** homa_rx_flush() - make grants and queue control packets; the host calls this after each
 *  batch of packets. */
HOMA_HOT void homa_rx_flush(struct homa_ctx *ctx);
/** homa_say() - send a control packet about no RPC, for hosts that ask each other
 * something. A RESEND asks for 0 bytes; other types must be the common header alone. */
void homa_say(struct homa_ctx *ctx, struct homa_link *link,
	      const struct homa_addr *dst, u8 type, u16 sport, u16 dport, u64 id);
/**
 * homa_icmp() - take an ICMP error about a packet of ours to @dst, with what it quotes of the
 * Homa header. It is believed only if there is an RPC with this @id and these ports.
 * @error: positive errno that the ICMP error stands for.
 */
void homa_icmp(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id, int error);
/** homa_icmp_mtu() - take an ICMP error that says that our packet was too long for the path,
 * whose IP MTU is @mtu bytes; messages started in the next ten minutes are cut smaller. False: it
 * was not believed. */
bool homa_icmp_mtu(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
		   u16 dport, u64 id, u32 mtu);

/** homa_path_mtu() - the host's routes say that the path to a peer has an IP MTU of @mtu bytes;
 * messages started later use it, and if it is less than that of the link, those of the next ten
 * minutes. So the host says it again while it knows it. */
void homa_path_mtu(struct homa_ctx *ctx, struct homa_link *link,
		   const struct homa_addr *dst, u32 mtu);

/**
 * homa_tx() - say what to send next on @link
 * @max_segs: number of packets of one message that the host can take at once, at least 1.
 * @desc: the engine writes here what to send.
 */
enum homa_tx_result homa_tx(struct homa_ctx *ctx, struct homa_link *link,
			    u32 max_segs, struct homa_tx_desc *desc);
/** homa_tx_segment() - write the header of the segment at @desc->offset + @skip to @hdr; returns
 *  its length. */
u32 homa_tx_segment(const struct homa_tx_desc *desc, u32 skip, void *hdr);
/** homa_tx_done() - the host is done with @desc, whose RPC is held no longer
 *
 * @err other than 0 says that nothing was sent. Then it is queued again, but not with
 * -HOMA_EHOSTUNREACH: the peer's address is not resolved yet, and the receiver's RESEND will
 * ask for these bytes later. A host that sent the first ones of several segments moves
 * @desc->offset on and makes @desc->length shorter before. */
HOMA_HOT void homa_tx_done(struct homa_ctx *ctx, struct homa_tx_desc *desc,
			   int err);

/* ---- events ---- */

/** homa_event_next() - write the next event to @event; false: there is none. */
bool homa_event_next(struct homa_ctx *ctx, struct homa_event *event);
/** homa_event_hold() - as homa_event_next(), but event->rpc is held until homa_rpc_release(). */
bool homa_event_hold(struct homa_ctx *ctx, struct homa_event *event);
/**
 * homa_rx_take() - give a complete message or failure to the application
 * A client RPC ends with this and is acknowledged; a server RPC waits for
 * homa_rpc_reply(). -EINVAL: the RPC is gone or not ready.
 */
int homa_rx_take(struct homa_ctx *ctx, struct homa_handle handle,
		 struct homa_msg_info *info);

/**
 * homa_rx_finish() - homa_rx_copied(), and if the message is complete with that,
 * homa_rx_take() at once and without an event. 1: @info is filled; 0: the message is not
 * complete, or its RPC has ended.
 */
int homa_rx_finish(struct homa_ctx *ctx, struct homa_rx_pkt *pkt,
		   struct homa_msg_info *info);

/* ---- time ---- */

/** homa_timer() - run the due timers of a shard, of at most @budget RPCs; returns the time at
 * which the host shall call again, in ns (ctx->now if the budget ran out). */
u64 homa_timer(struct homa_ctx *ctx, u32 shard, u32 budget);
/** homa_engine_shards() - number of shards, each of which has timers. */
u32 homa_engine_shards(const struct homa_engine *engine);

/* ---- looking in ---- */
/* homa_look.h shows links, RPCs and peers. */

/* Numbers of objects that there are now, for tests that look for leaks. Written by:
 * homa_engine_counts(), into memory of its caller's. */
struct homa_counts {
	/* Numbers of RPCs that are not dead, of peers in the table and of open sockets. */
	u32 rpcs, peers, socks;
	/* Number of spare ranges in use to remember requests that ran. */
	u32 once;
};
/** homa_engine_counts() - write these numbers to @counts. */
void homa_engine_counts(const struct homa_engine *engine,
			struct homa_counts *counts);

#endif
