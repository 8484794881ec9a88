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

/* Only needed with several fast-path threads. */
static inline void homad_lock(struct homad_app *app)
{
	if (!homa_plat_alone)
		homa_turn_lock(&app->lock);
}

static inline void homad_unlock(struct homad_app *app)
{
	if (!homa_plat_alone)
		homa_turn_unlock(&app->lock);
}

/* With the lock. */
static inline void homad_hold_back(struct homad_app *app, u32 why, bool yes)
{
	HOMA_WRITE_ONCE(app->held_back,
			yes ? app->held_back | why : app->held_back & ~why);
}

/* ---- round.c, idle.c ---- */
int homad_round(struct homad_thread *t);
u64 homad_next_deadline(struct homad_thread *t);
static inline void homad_now(struct homad_thread *t)
{
	t->ctx.now = homa_clock_ns();
}
/** homad_idle() - after a round without work: yield, spin or block. */
void homad_idle(struct homad_thread *t);
/** homad_listen() - after a round with work: now and then, kicks. */
void homad_listen(struct homad_thread *t);

/* ---- mailbox.c ---- */
/** homad_mail() - run what the slow path wants; returns how much. */
int homad_mail(struct homad_thread *t);

/* ---- session.c ---- */
/** homad_app_evict() - it broke the rules: ends, and the slow path hears of it. */
void homad_app_evict(struct homad_thread *t, struct homad_app *app,
		     const char *why);
/** homad_sessions_closing() - a budget's worth of ending RPCs; returns how much. */
int homad_sessions_closing(struct homad_thread *t);

/* ---- rxpath.c, txpath.c, local.c: return how many packets they moved ---- */
int homad_rx(struct homad_thread *t, struct homad_port *port);
int homad_tx(struct homad_thread *t, struct homad_port *port);

/* ---- egress.c ---- */

/** homad_egress() - the same by a port that TCP may use, and TCP's packets. */
int homad_egress(struct homad_thread *t, struct homad_port *port);
int homad_local(struct homad_thread *t, struct homad_port *port);
void homad_icmp(struct homad_thread *t, struct homad_port *port);
void homad_copy_payload(const struct homa_rx_pkt *pkt, const u8 *payload);

/* ---- commands.c: what an entry of a submission ring says ---- */
/** homad_next_round - a command that has to be looked at again, not a wrong one. */
extern const char homad_next_round[];
/** homad_command() - do what @sqe says, a copy; NULL, or what is wrong with it. */
const char *homad_command(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe);

/* ---- rings.c: the submission and release rings ---- */
/** homad_look_at_rings() - a turn of @app: what it gave back, and commands, so many that
 *  the others do not wait long. Returns how much that was. */
u32 homad_look_at_rings(struct homad_thread *t, struct homad_app *app);
/** homad_rings_waiting() - is anything in its rings? Then the next look finds it. */
bool homad_rings_waiting(struct homad_app *app);
/** homad_ask_kick() - it must kick when it has something for us. */
void homad_ask_kick(struct homad_app *app);

/* ---- poll.c: whose rings are looked at ---- */
/** homad_polled_of() - where @app's user has what @t polls. */
static inline struct homad_polled *homad_polled_of(struct homad_thread *t,
						   struct homad_app *app)
{
	return app->user_polled ? &app->user_polled[t->index] : &t->others;
}
/** homad_poll_app() - look at its rings from now on. */
void homad_poll_app(struct homad_thread *t, struct homad_app *app);
/** homad_unpoll_app() - look at them no more. */
void homad_unpoll_app(struct homad_thread *t, struct homad_app *app);

/* ---- turns.c: in which order ---- */
/** homad_turn_cost() - what a look at an attachment's rings that did so much costs its user.
 *  Pages that it gives back count as commands, up to a turn: who received much is not late. */
static inline int homad_turn_cost(u32 done)
{
	return 1 + (int)homa_min_u32(done, HOMAD_TURN);
}
/** homad_commands() - turns of the polled applications; returns commands. */
int homad_commands(struct homad_thread *t);
/** homad_ask_kicks() - before sleeping: ask everybody for kicks; true if there
 *  is something in a ring already: do not sleep. */
bool homad_ask_kicks(struct homad_thread *t);
/** homad_drop_kicks() - awake again. */
void homad_drop_kicks(struct homad_thread *t);

/* ---- complete.c: to the completion rings ---- */
void homad_events(struct homad_thread *t);
/** homad_touch() - it has something to be told; @want: HOMA_SHM_ARM_*. */
void homad_touch(struct homad_thread *t, struct homad_app *app, u32 want);
/** homad_deliver() - fill the rings of those touched, and wake them. */
void homad_deliver(struct homad_thread *t);
/** homad_tell_room() - wake it if it wants to hear that there may be room to send. */
void homad_tell_room(struct homad_thread *t, struct homad_app *app);
void homad_unready(struct homad_rpc *priv);
/** homad_refuse() - a request that the engine never saw fails. */
void homad_refuse(struct homad_thread *t, struct homad_app *app, u64 token,
		  u64 cookie, u8 flags, int error);
/** homad_free_bytes() - bytes of a data segment are the application's again;
 *  false: it has more of them than it can have. */
bool homad_free_bytes(struct homad_thread *t, struct homad_app *app,
		      u16 segment, u32 offset);
/** homad_forget() - an RPC of an application is retired. */
void homad_forget(struct homad_thread *t, struct homad_rpc *priv);
/** homad_end_slot() - a client RPC that the engine does not know ends: failed, or
 *  gone if @error is 0. */
void homad_end_slot(struct homad_thread *t, struct homad_app *app, u64 token,
		    int error, u64 cookie, bool is_private);
struct homa_cqe *homad_next_cqe(struct homad_app *app);
u64 homad_slot_new(struct homad_app *app, struct homa_handle handle);
void homad_slot_free(struct homad_app *app, u64 token);
/** homad_slot_back() - the same, and a request may have waited for the slot. */
void homad_slot_back(struct homad_thread *t, struct homad_app *app, u64 token);

/* ---- direct.c: the short way between applications of this host ---- */
/** homad_direct_request() - @send says whom, and with which id, 0: any. false: not now,
 *  send it the usual way. */
bool homad_direct_request(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe,
			  const struct homa_send *send, const u8 *bytes);
/** homad_direct_reply() - to a request that came so; false: the token's is none. */
bool homad_direct_reply(struct homad_thread *t, struct homad_app *server,
			const struct homa_sqe *sqe, u8 *bytes);
/** homad_direct_reject() - the same, but there is no answer, for a reason: positive errno. */
bool homad_direct_reject(struct homad_thread *t, struct homad_app *server,
			 u64 token, int error);
/** homad_direct_retry() - there may be room for responses that wait. */
void homad_direct_retry(struct homad_thread *t, struct homad_app *client);
/** homad_direct_abort() - the client's RPC ends, with a failure unless @error is 0;
 *  false: the token's is none. */
bool homad_direct_abort(struct homad_thread *t, struct homad_app *client,
			u64 token, int error);
/** homad_direct_close() - @app ends. */
void homad_direct_close(struct homad_thread *t, struct homad_app *app);

/* ---- grace.c: when no thread knows of an attachment any more ---- */
/** homad_grace_begin() - nobody can find @app from now on. */
void homad_grace_begin(struct homad_thread *t, struct homad_app *app);
/** homad_grace_over() - and who had found it before has let it go. */
bool homad_grace_over(struct homad_thread *t, const struct homad_app *app);

/* ---- bulk.c ---- */
/** homad_bulk() - if a message of @length goes better over UDP: true, with @addr
 *  and @port changed. */
bool homad_bulk(struct homad_thread *t, struct homad_dest *dest, u32 length,
		struct homa_addr *addr, struct homad_port **port);
/** homad_bulk_heard() - a packet that is no message may be a question or answer. */
void homad_bulk_heard(struct homad_thread *t, const struct homad_port *port,
		      const struct nic_rx *pkt);

/* ---- memory.c ---- */
int homad_memory_init(struct homad_thread *t);
void homad_memory_free(struct homad_thread *t);
void homad_reap(struct homad_thread *t);
static inline void homad_refill(struct homad_thread *t)
{
	homa_spares_refill(&t->spares, &t->ctx);
}

/* ---- want.c: more memory for an application ---- */
/** homad_want_memory() - ask the slow path to let @app's pool have @pages, and all the
 *  submission rings that it uses; once until it has answered. */
void homad_want_memory(struct homad_thread *t, struct homad_app *app, u32 pages);
/** homad_lacks_pages() - a message waits for pages of @app's pool: ask for more. */
void homad_lacks_pages(struct homad_thread *t, struct homad_app *app);
/** homad_look_at_pool() - ask for more pages if few are left. */
void homad_look_at_pool(struct homad_thread *t, struct homad_app *app);

#endif
