/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the fast path call of each other. All of it runs on a fast-path
 * thread.
 */
#ifndef HOMAD_FAST_H
#define HOMAD_FAST_H

#include "app.h"
#include "homad.h"
#include "session.h"
#include "thread.h"

/* Take and give back @app's lock. With one fast-path thread nobody else could hold it, so
 * nothing is done. */
static inline void homad_lock(struct homad_app *app)
{
	if (!homa_plat_alone)
		homa_gate_lock(&app->lock);
}

static inline void homad_unlock(struct homad_app *app)
{
	if (!homa_plat_alone)
		homa_gate_unlock(&app->lock);
}

/* Writes or clears the bit @why of homad_app.held_back. The caller holds @app's lock. */
static inline void homad_hold_back(struct homad_app *app, u32 why, bool yes)
{
	HOMA_WRITE_ONCE(app->held_back,
			yes ? app->held_back | why : app->held_back & ~why);
}

/* ---- round.c, idle.c ---- */
/** homad_round() - do once what there is to do. Returns how many packets, commands and jobs
 *  that was; 0: there is nothing to do now. */
int homad_round(struct homad_thread *t);
/** homad_next_deadline() - the time at which a round is needed even if nothing comes in, in ns;
 *  HOMA_NEVER: none is. */
u64 homad_next_deadline(struct homad_thread *t);
/** homad_now() - read the clock for the round that begins. */
static inline void homad_now(struct homad_thread *t)
{
	t->ctx.now = homa_clock_ns();
}
/* A bit in the data of an epoll event: the rest is the address of a struct homad_port. */
#define HOMAD_EVENT_OF_NIC 1u

/** homad_rx_pause() - no quiet UDP socket of the thread has a packet now: look into it later. */
void homad_rx_pause(struct homad_thread *t);
/** homad_idle() - called after a round without work, it yields, spins or blocks. */
void homad_idle(struct homad_thread *t);
/** homad_listen() - called after a round with work, it looks now and then for kicks of
 *  attachments that are not polled. */
void homad_listen(struct homad_thread *t);

/* ---- mailbox.c ---- */
/** homad_mail() - run the jobs that other threads have left. Returns how many. */
int homad_mail(struct homad_thread *t);

/* ---- session.c ---- */
/** homad_app_evict() - end @app because it broke the rules, as @why says in words. The log
 *  says so, and the slow path hears of the end. Any thread may call this. */
void homad_app_evict(struct homad_thread *t, struct homad_app *app,
		     const char *why);
/** homad_sessions_closing() - go on to end the RPCs of attachments that close, a bounded
 *  number. Returns how many attachments are still closing. */
int homad_sessions_closing(struct homad_thread *t);
/** homad_abort_slot() - end the RPC in @app's client slot @index, if one is open there and @token
 *  is its name or 0, with @error or, if that is 0, without a failure. */
void homad_abort_slot(struct homad_thread *t, struct homad_app *app, u32 index,
		      u64 token, int error);
/** homad_abort_some() - do that for as many slots as a turn allows, from number @from on. Returns
 *  the slot to go on with; 0: these were the last. */
u32 homad_abort_some(struct homad_thread *t, struct homad_app *app, u32 from,
		     int error);

/* ---- rxpath.c, txpath.c, local.c ---- */
/** homad_rx(), homad_tx() - take a batch of packets from @port's nic to the engine, or from the
 *  engine to the nic. Each returns how many. */
int homad_rx(struct homad_thread *t, struct homad_port *port);
int homad_tx(struct homad_thread *t, struct homad_port *port);
/** homad_tx_early() - where the engine may write the only packet of a message to @port, as
 *  homa_ctx.tx_now; NULL: nowhere. If it does so, homad_tx_early_taken() is called when the
 *  message's bytes are known, and homad_tx_early_end() before anything else is sent. */
struct homa_tx_desc *homad_tx_early(struct homad_thread *t,
				    struct homad_port *port);
void homad_tx_early_taken(struct homad_thread *t);
void homad_tx_early_end(struct homad_thread *t);

/* ---- egress.c ---- */

/** homad_egress() - like homad_tx(), by a port that TCP shares, and send TCP's packets, too. */
int homad_egress(struct homad_thread *t, struct homad_port *port);
/** homad_egress_leave() - let TCP wait for @port no more, as the port leaves this thread. A thread
 *  without TCP would hold Homa's packets back for TCP's turn. */
void homad_egress_leave(struct homad_thread *t, struct homad_port *port);
/** homad_local() - take packets between applications of this host from the engine back to it.
 *  Returns how many. */
int homad_local(struct homad_thread *t, struct homad_port *port);
/** homad_icmp() - tell the engine and TCP of the ICMP errors that @port's nic has received. */
void homad_icmp(struct homad_thread *t, struct homad_port *port);
/** homad_copy_payload() - copy a packet's message bytes to where the engine wants them. */
void homad_copy_payload(const struct homa_rx_pkt *pkt, const u8 *payload);

/* ---- commands.c: what an entry of a submission ring says ---- */
/** homad_next_round, homad_goes_on - what homad_command() returns if nothing is wrong with the
 *  command, but it has to be looked at again in the next round: it waits for something, or a
 *  turn's work of it is done and there is more. */
extern const char homad_next_round[], homad_goes_on[];
/** homad_command() - do what @sqe says, which is homad's own copy of the entry, from the
 *  submission ring homad_app.sq_next. Returns NULL, homad_next_round, homad_goes_on, or a sentence
 *  that says what is wrong with it. */
const char *homad_command(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe);

/* ---- rings.c: the submission and release rings ---- */
/** homad_look_at_rings() - give @app a turn: see to pages that it gave back and to commands, so
 *  many that the others do not wait long. Returns the number of pages and commands; a command
 *  that took as long as several, or whose bytes homad copied, counts as several. */
u32 homad_look_at_rings(struct homad_thread *t, struct homad_app *app);
/** homad_rings_waiting() - true if something is in its rings, which the next look finds. */
bool homad_rings_waiting(struct homad_app *app);
/** homad_ask_kick() - tell @app by shared memory that it must kick when it has something. */
void homad_ask_kick(struct homad_app *app);

/* ---- poll.c: whose rings are looked at ---- */
/** homad_polled_of() - the list of the attachments of @app's user that @t polls. */
static inline struct homad_polled *homad_polled_of(struct homad_thread *t,
						   struct homad_app *app)
{
	return app->user_polled ? &app->user_polled[t->index] : &t->others;
}
/** homad_poll_app() - look at @app's rings from now on without being kicked. */
void homad_poll_app(struct homad_thread *t, struct homad_app *app);
/** homad_unpoll_app() - do not look at @app's rings any more, until it kicks. */
void homad_unpoll_app(struct homad_thread *t, struct homad_app *app);

/* ---- turns.c: in which order ---- */
/** homad_turn_cost() - return what a look at an attachment's rings that did @done costs its
 *  user. Pages that are given back count as commands, up to a turn, so that an application
 *  that received much is not late. */
static inline int homad_turn_cost(u32 done)
{
	return 1 + (int)homa_min_u32(done, HOMAD_TURN);
}
/* Credit that a user gets in a round while others are polled: the turn of one
 * attachment. */
#define HOMAD_USER_CREDIT ((int)homad_turn_cost(HOMAD_TURN))

/** homad_owes_much() - has @user had two turns more than were his, while others are at work? By
 *  questions to the slow path he can have one in each round, where many users wait longer. */
static inline bool homad_owes_much(const struct homad_thread *t,
				   const struct homad_polled *user)
{
	return user->num && t->num_users > 1 &&
	       user->credit < -2 * HOMAD_USER_CREDIT;
}

/** homad_commands() - give turns to the polled applications. Returns how many commands were
 *  done. */
int homad_commands(struct homad_thread *t);
/** homad_ask_kicks() - ask all applications to kick, because this thread wants to sleep. Returns
 *  true if something is in a ring already, so that it must not sleep. */
bool homad_ask_kicks(struct homad_thread *t);
/**
 * homad_drop_kicks() - tell polled applications that they need not kick, because the thread
 * is awake again.
 */
void homad_drop_kicks(struct homad_thread *t);

/* ---- complete.c: to the completion rings ---- */
/** homad_events() - take the engine's events and make completions of them. */
void homad_events(struct homad_thread *t);
/**
 * homad_touch() - note that @app has something to be told, and wake it for that if it waits
 * for one of @want, bits of HOMA_SHM_ARM_*.
 */
void homad_touch(struct homad_thread *t, struct homad_app *app, u32 want);
/** homad_want_of() - which sleepers of the application an event of this RPC wakes: those who
 *  wait for shared messages sleep on if it is private. */
u32 homad_want_of(const struct homad_rpc *priv);
/** homad_seen_id() - the id that the client, an application of this host, has for the request
 *  @id; 0: the same. An application that does not number its requests names them itself: the
 *  engine's id means nothing to it, and to a server here it would not be the client's. */
u64 homad_seen_id(struct homad_thread *t, u64 id);
/** homad_deliver() - publish the completions of the attachments that were touched, and wake
 *  those that wait. */
void homad_deliver(struct homad_thread *t);
/** homad_tell_room() - wake @app if it wants to hear that there may be room to send. */
void homad_tell_room(struct homad_thread *t, struct homad_app *app);
/** homad_unready() - note that no event of the RPC waits for room in the ring any more. */
void homad_unready(struct homad_rpc *priv);
/** homad_refuse() - let a request fail with @error, a positive errno, that the engine has never
 *  seen. */
void homad_refuse(struct homad_thread *t, struct homad_app *app, u64 token,
		  u64 cookie, u8 flags, int error);
/** homad_free_bytes() - tell @app that the message at @offset of its data segment @segment, which
 *  it has just submitted, is its own again. Returns false if that would be more messages than it
 *  can have. */
bool homad_free_bytes(struct homad_thread *t, struct homad_app *app,
		      u16 segment, u32 offset);
/** homad_free_lent() - tell @app the same of a message of an RPC that ends, however many there
 *  are: others may have ended their RPCs with @app. */
void homad_free_lent(struct homad_thread *t, struct homad_app *app, u16 segment,
		     u32 offset);
/** homad_freed_drop() - forget what @app, which has ended, was not told of. */
void homad_freed_drop(struct homad_app *app);
/** homad_forget() - free what homad had for an RPC that the engine has retired. */
void homad_forget(struct homad_thread *t, struct homad_rpc *priv);
/** homad_end_slot() - end a client's RPC that the engine does not know. Its completion is
 *  FAILED with @error, a positive errno, or GONE if @error is 0. */
void homad_end_slot(struct homad_thread *t, struct homad_app *app, u64 token,
		    int error, u64 cookie, bool is_private);
/**
 * homad_next_cqe() - return the next entry of @app's completion ring, to be filled in;
 * NULL: it is full.
 */
struct homa_cqe *homad_next_cqe(struct homad_app *app);
/**
 * homad_slot_new() - take a server slot for the RPC @handle. Returns its token; 0: none is
 * free.
 */
u64 homad_slot_new(struct homad_app *app, struct homa_handle handle);
/** homad_slot_free() - free the server slot @token. */
void homad_slot_free(struct homad_app *app, u64 token);
/** homad_slot_back() - like homad_slot_free(), and deliver a request that waited for the slot. */
void homad_slot_back(struct homad_thread *t, struct homad_app *app, u64 token);

/* ---- one_packet.c ---- */
/** homad_message() - deliver a message that came whole by @pkt, with verdict HOMA_RX_MESSAGE,
 *  over @port; its bytes are at @payload. */
void homad_message(struct homad_thread *t, const struct homad_port *port,
		   const struct homa_rx_pkt *pkt, const u8 *payload);

/* ---- direct.c: the short way between applications of this host ---- */
/* Longest message that goes this way, in bytes: a longer one gains nothing and holds others
 * up. */
#define HOMAD_DIRECT_MAX 16384u
/** homad_direct_request() - deliver @app's request to the server of this host that @send names,
 *  with the id that @send has, or any if that is 0. Returns false if it has to go through the
 *  engine this time. */
bool homad_direct_request(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe,
			  const struct homa_send *send, const u8 *bytes);
/** homad_direct_reply() - deliver the reply to a request that came this way. Returns false if
 *  the request of @sqe's token did not. */
bool homad_direct_reply(struct homad_thread *t, struct homad_app *server,
			const struct homa_sqe *sqe, u8 *bytes);
/** homad_direct_reject() - like homad_direct_reply(), but the client's RPC fails with @error, a
 *  positive errno. */
bool homad_direct_reject(struct homad_thread *t, struct homad_app *server,
			 u64 token, int error);
/** homad_direct_retry() - try again to deliver responses that wait for room in @client's ring or
 *  pool, and copy @bytes at most; each response counts as much as a command at least. Returns what
 *  is left of @bytes; 0: responses may wait for the next look. */
u32 homad_direct_retry(struct homad_thread *t, struct homad_app *client,
		       u32 bytes);
/** homad_look_for_room() - have the home thread of @client look at its rings until there is room
 *  for responses that wait. */
void homad_look_for_room(struct homad_thread *t, struct homad_app *client);
/** homad_direct_abort() - end the client's RPC @token, with a failure unless @error is 0.
 *  Returns false if it did not go this way. */
bool homad_direct_abort(struct homad_thread *t, struct homad_app *client,
			u64 token, int error);
/** homad_ring_closes() - let @app's completion ring look full, because @app ends. */
void homad_ring_closes(struct homad_app *app);
/** homad_direct_close() - end at most @budget RPCs of @app that go this way, because @app ends.
 *  Returns what is left of @budget; 0: there may be more. */
u32 homad_direct_close(struct homad_thread *t, struct homad_app *app, u32 budget);

/* ---- grace.c: when no thread knows of an attachment any more ---- */
/** homad_grace_begin() - note that no thread can find @app from now on. */
void homad_grace_begin(struct homad_thread *t, struct homad_app *app);
/** homad_grace_over() - has every thread that may have found @app before released it? */
bool homad_grace_over(struct homad_thread *t, const struct homad_app *app);

/* ---- bulk.c ---- */
/**
 * homad_bulk() - does a message of @length bytes go better over UDP? Then @addr and @port
 * are changed accordingly.
 */
bool homad_bulk(struct homad_thread *t, struct homad_dest *dest, u32 length,
		struct homa_addr *addr, struct homad_port **port);
/** homad_bulk_heard() - look whether @pkt, which is no Homa packet, is another homad's question
 *  about its UDP port, or an answer to ours. */
void homad_bulk_heard(struct homad_thread *t, const struct homad_port *port,
		      const struct nic_rx *pkt);

/* ---- memory.c ---- */
/** homad_memory_init() - make @t's slabs and spare objects. Returns 0 or -ENOMEM. */
int homad_memory_init(struct homad_thread *t);
void homad_memory_free(struct homad_thread *t);
/** homad_reap() - free the RPCs and peers that the engine has retired. */
void homad_reap(struct homad_thread *t);
/** homad_refill() - give the engine spare objects for the packets that follow. */
static inline void homad_refill(struct homad_thread *t)
{
	homa_spares_refill(&t->spares, &t->ctx);
}

/* ---- more_memory.c: more memory for an application ---- */
/** homad_want_memory() - ask the slow path for memory behind @pages pages of @app's pool and
 *  behind all submission rings that it uses. While an answer is awaited nothing is asked. */
void homad_want_memory(struct homad_thread *t, struct homad_app *app, u32 pages);
/** homad_lacks_pages() - ask for more pages of @app's pool, because a message waits for some. */
void homad_lacks_pages(struct homad_thread *t, struct homad_app *app);
/** homad_look_at_pool() - ask for more pages of @app's pool if few are left. */
void homad_look_at_pool(struct homad_thread *t, struct homad_app *app);

#endif
