/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homad from the inside: the transport as an OS service for many applications
 * that trust neither each other nor are trusted.
 *
 * Two kinds of threads. *Fast-path* threads (one in shared mode) run rounds:
 * packets in, commands of applications, packets out, completions; they alone
 * call the engine and touch the rings. The *slow path* is the main thread: it
 * makes and frees attachments, answers questions on sockets, and reaches the
 * fast path only by homad_call(), which runs a function on a fast-path thread
 * between two rounds.
 *
 *	slow path	main.c slowpath.c attach.c app.c quota.c monitor.c ...
 *	fast path	thread.c idle.c round.c rxpath.c txpath.c local.c
 *			commands.c complete.c session.c dest.c memory.c
 *	between		mailbox.c
 */
#ifndef HOMAD_SERVICE_H
#define HOMAD_SERVICE_H

#include <pthread.h>
#include "config.h"
#include "dest.h"
#include "hist.h"
#include "homa_clock.h"
#include "homa_engine.h"
#include "homa_list.h"
#include "homa_msgbuf.h"
#include "homa_packets.h"
#include "homa_spares.h"
#include "homa_spin.h"
#include "homa_turn.h"
#include "nic.h"
#include "rtnl.h"
#include "shm.h"

#define HOMAD_BATCH 32	  /* packets per nic_rx() */
#define HOMAD_TX_BATCH 64 /* packets per nic_tx(), >= segments of a unit */
#define HOMAD_SPARES (2 * HOMAD_BATCH)
#define HOMAD_TURN 32u /* commands of an application in one turn */
#define HOMAD_TURNS_OF_RINGS (HOMA_SHM_SQS * HOMA_SHM_SQ_ENTRIES / HOMAD_TURN)

struct homad;
struct homad_app;
struct homad_trace;

/**
 * struct homad_port - a way out of this host
 * @nic: packet I/O; NULL for messages between our own applications.
 * @link: the engine's.
 * @info: of @nic.
 * @thread: index of the thread that serves it.
 * @encap: peers are IP and UDP port.
 * @tx_at: when the pacer wants to be asked again, ns; HOMA_NEVER.
 * @tx_blocked: the nic had no room; packets wait in the engine.
 * @rx_at: not looked into before, ns. @heard_at: something came last, ns.
 * @name: "eth0", "udp", "local".
 */
struct homad_port {
	struct nic *nic;
	struct homa_link *link;
	const struct nic_info *info;
	u32 index;
	u32 thread;
	bool encap;
	int ifindex;
	bool virtual_device;
	u64 tx_at;
	bool tx_blocked;
	u64 rx_at, heard_at;
	char name[32];
};

/**
 * struct homad_rpc - the daemon's bytes in every RPC
 * @ready: in homad_app.ready while an event waits for room in the ring.
 * @app: whose; NULL until known.
 * @handle, @event: valid while @ready or @slot are.
 * @token: how the application calls it; 0: it does not know of it.
 * @out: bytes of the outgoing message: a copy of ours if @copied, else inside a
 *	data segment, to be announced as free at the end.
 * @sent_ns: client: when it was submitted.
 * @seen_id: server: the id that its client, an application of this host, knows, with
 *	the lowest bit changed; 0: the client is elsewhere, and the engine's id it is.
 */
struct homad_rpc {
	struct homa_list ready;
	struct homad_app *app;
	struct homa_handle handle;
	u64 token;
	u8 *out;
	u64 sent_ns;
	u64 seen_id;
	u32 out_size;
	u32 offset;
	u16 segment;
	u8 event;
	bool client;
	bool copied;
	bool is_private;
};

/**
 * struct homad_slot - one open RPC of an attachment, by token
 * @direct: the RPC if it goes the short way (direct.c); then @handle is nothing.
 * @token: 0: free.
 * @cookie, @error, @kind, @flags: of a client RPC that ended without the engine:
 *	it was refused, or aborted without a failure.
 * @next: server: free list; client: list of those that ended so.
 */
struct homad_slot {
	struct homa_handle handle;
	struct homad_direct *direct;
	u64 token;
	u64 cookie;
	u32 next;
	u32 error;
	u8 kind;
	u8 flags;
};

#define HOMAD_NO_SLOT 0xffffffffu

/**
 * struct homad_direct - an RPC between applications of this host; direct.c
 * @client, @of_client: who asked; NULL when that one has no interest any more.
 * @server, @of_server: who has to answer; NULL when that is done.
 * @addr, @client_port, @server_port: what each sees of the other.
 * @waiting, @wait: the response waits for room at the client; @out, @length: it,
 *	a copy of ours if @copied, else in a segment of @lender, whose list
 *	@of_server then is in.
 */
struct homad_direct {
	struct homa_list of_client, of_server, wait;
	struct homad_app *client, *server, *lender;
	u64 client_token, server_token;
	u64 cookie, id, sent_ns;
	struct homa_addr addr;
	u8 *out;
	u32 request_length, length, offset;
	u16 segment, client_port, server_port;
	bool is_private, copied, waiting;
};

/* struct homad_segment - memory with bytes to send */
struct homad_segment {
	u8 *base;
	u32 bytes;
};

/* Counters of one attachment; written by the fast path, read racily. */
#define HOMAD_APP_COUNTERS(X)                                         \
	X(requests, "requests submitted")                             \
	X(replies, "replies submitted")                               \
	X(aborts, "aborts submitted")                                 \
	X(delivered, "messages and failures delivered")               \
	X(tx_bytes, "message bytes submitted")                        \
	X(rx_bytes, "message bytes delivered")                        \
	X(refused, "submissions that failed at once")                 \
	X(wakeups, "times it was woken")                              \
	X(ring_full, "times its completion ring had no room")         \
	X(budget_out, "rounds that ended its turn before its commands did")

struct homad_app_counters {
#define X(name, text) u64 name;
	HOMAD_APP_COUNTERS(X)
#undef X
};

/* Requests wait apart: those over the quota must not hold up responses. */
enum { HOMAD_READY_RESPONSES, HOMAD_READY_REQUESTS, HOMAD_READY };

enum homad_app_phase {
	HOMAD_APP_OPEN,
	HOMAD_APP_CLOSING, /* its RPCs are being ended */
	HOMAD_APP_DEAD,	   /* nothing in the engine refers to it */
};

/**
 * struct homad_app - an attachment: one open handle of an application
 *
 * Slow path's, fixed while open:
 * @id: number, never used twice. @name, @pid, @uid, @gid: whose.
 * @queues, @pool, @seg, @num_segs: shared memory, hostile content.
 * @wake_fd, @ready_fd: write ends of pipes; @ready_fd -1 until asked for,
 *	@ready_every: signalled for every message. @kick_fd: eventfd, never read.
 * @max_rpcs: size of @client_slots and @server_slots.
 * @owner: its user's account in the engine; NULL: the engine's own.
 * @slow: the slow path's own record of it.
 *
 * Fast path's:
 * @thread: home: the only one that polls its rings.
 * @lock: protects the completion side when there are several threads.
 * @sock, @pool_mem: the engine's.
 * @sq_head, @release_head, @cq_tail: our own, trusted indices.
 * @sq_next: where the next turn begins.
 * @polled: in homad_thread.polled; else it must kick.
 * @quiet_since: when its rings were last seen with something, ns.
 * @ready: RPCs with an event that it has not been told of.
 * @freed: data to announce as free when the ring has room.
 * @touched: in homad_thread.touched: completions were added in this round.
 * @wake_want: what happened: HOMA_SHM_ARM_*.
 * @rpcs: RPCs that point here; 0 before it may die. Under @lock.
 * @cq_blocked: its completion ring was full.
 * @evicted, @why: it broke the rules.
 */
struct homad_app {
	u64 id;
	char name[32];
	pid_t pid;
	uid_t uid;
	gid_t gid;
	struct homa_shm_queues *queues;
	u8 *pool;
	size_t pool_bytes;
	struct homad_segment seg[HOMA_SHM_SEGMENTS];
	u32 num_segs;
	int wake_fd, kick_fd, ready_fd;
	bool ready_every;
	u32 max_rpcs;
	struct homa_owner *owner;
	void *slow;

	struct homad_thread *thread;
	struct homa_turn lock;
	struct homa_sock *sock;
	void *pool_mem;
	enum homad_app_phase phase;
	u32 sq_head[HOMA_SHM_SQS];
	u32 sq_next;
	u32 release_head;
	u32 cq_tail, cq_published;
	u32 cq_head; /* last seen */
	bool is_polled, is_touched, cq_blocked, evicted, shut;
	const char *why;
	struct homa_list member; /* of homad_thread.apps */
	struct homa_list closing;
	u32 wake_want;
	u64 quiet_since;
	struct homa_list polled;
	struct homa_list touched;
	struct homa_list ready[HOMAD_READY];
	struct homad_slot *client_slots;
	struct homad_slot *server_slots;
	u32 server_free;
	u32 ended_first, ended_last; /* client slots to tell of */
	struct homa_list direct_client, direct_server, direct_waiting;
	struct homad_freed {
		u32 offset;
		u16 segment;
	} *freed;
	u32 num_freed;
	u32 max_freed;
	u32 rpcs;
	struct homad_app *next_dead;
	struct homad_app_counters counters;
};

/* Counters of one fast-path thread. */
#define HOMAD_COUNTERS(X)                                              \
	X(rounds, "rounds of the fast path")                           \
	X(idle_rounds, "rounds that found nothing to do")              \
	X(yields, "times it gave the processor away while idle")       \
	X(blocks, "times it went to sleep")                            \
	X(busy_ns, "time in rounds with work, ns")                     \
	X(idle_ns, "time in rounds without work, ns")                  \
	X(commands, "commands taken from applications")                \
	X(completions, "entries put into completion rings")            \
	X(wakeups, "applications woken")                               \
	X(kicks, "times an application woke us")                       \
	X(local_packets, "packets between applications of this host")  \
	X(direct, "RPCs between applications of this host, the short way") \
	X(bulk, "requests that went over UDP because they are long")   \
	X(route_lookups, "questions to the kernel for the way to a destination") \
	X(route_waits, "turns that ended because their user had one this round") \
	X(evictions, "applications that broke the rules")              \
	X(out_of_memory, "allocations for messages or objects that failed") \
	X(jobs, "requests of the slow path")

struct homad_counters {
#define X(name, text) u64 name;
	HOMAD_COUNTERS(X)
#undef X
};

/* struct homad_job - something for a fast-path thread to do; see mailbox.c */
struct homad_job {
	struct homad_job *next;
	int (*run)(struct homad_thread *t, void *arg);
	void *arg;
	int result;
	u32 done; /* futex */
};

/**
 * struct homad_thread - a fast-path thread
 * @active: takes part; an inactive one sleeps (dedicated mode, core scaling).
 * @ports: those it serves.
 * @deadline: no homa_timer() needed before, ns, in the shards that it runs.
 * @apps: all attachments at home here.
 * @polled: attachments whose rings it looks at, in order of turns.
 * @put_off: one of them that must wait for its user's next look-up of a route.
 * @touched: attachments that got completions in this round.
 * @closing: attachments whose RPCs are being ended.
 * @asleep: blocked in epoll_wait(); set before the last look at the rings.
 * @spin: how long it polls without work.
 * @rtt: RPCs by latency from submission to completion, ns.
 * @trace: not NULL: packets and events are recorded.
 */
struct homad_thread {
	struct homad *d;
	u32 index;
	int core; /* -1: any */
	pthread_t thread;
	bool running;
	bool active;
	bool stop;
	int epfd;
	int mail_fd;
	struct homad_job *mail; /* atomic stack */
	struct homa_ctx ctx;
	u64 deadline;
	struct homad_port *ports[HOMAD_MAX_PORTS + 1];
	u32 num_ports;
	struct homa_list apps;
	u32 num_apps;
	struct homa_list polled;
	u32 num_polled;
	struct homad_app *put_off;
	struct homa_list touched;
	struct homa_list closing;
	bool asleep;
	struct homa_spin spin;
	u64 epoll_at;
	u64 evictions_seen;
	u64 waits_seen;
	bool some_starved;
	struct homad_counters counters;
	struct homa_hist rtt;
	struct homad_trace *trace;
	struct homa_msgbufs bufs;
	struct homa_spares spares;
	struct homa_slab directs;
	u64 direct_id;
	struct nic_rtnl rtnl;
	struct homad_dests dests;
	u64 bulk_answered; /* somebody's question, bulk.c */
	struct nic_rx rx[HOMAD_BATCH];
	struct homa_rx_pkt pkts[HOMAD_BATCH];
	struct nic_tx tx[HOMAD_TX_BATCH];
	struct homa_tx_desc descs[HOMAD_TX_BATCH];
	u8 headers[HOMAD_TX_BATCH][96];
};

/**
 * struct homad - the daemon
 * @ports: NICs, then UDP if served, then "local", the last.
 * @num_active: threads that take part, the first ones. Atomic.
 * @dead_fd: eventfd by which the fast path tells that @dead is not empty.
 * @dead: attachments for homad_session_free(); atomic stack by @next_dead.
 */
struct homad {
	struct homad_config config;
	struct homa_engine *engine;
	struct homa_limits limits;
	struct homad_port ports[HOMAD_MAX_PORTS + 1];
	u32 num_ports;
	struct homad_port *local;
	struct homad_port *udp;
	struct homad_thread *threads[HOMAD_MAX_THREADS];
	u32 num_threads;
	u32 num_active;
	u64 started_ns;
	int dead_fd;
	struct homad_app *dead;
	void *slow; /* struct homad_slow, slowpath.h */
	struct homad_scaling *scaling;
};

/* ---- core.c: engine, ports and threads ---- */

/** homad_start() - open the NICs, make the engine, start the threads. @err
 *  receives one sentence on failure; what did not work but need not is logged. */
int homad_start(struct homad *d, char *err, size_t errlen);
/** homad_stop() - applications see HOMA_SHM_STOPPING; threads end. */
void homad_stop(struct homad *d);

/* ---- scaling.c ---- */
/** homad_thread_for_app() - where a new attachment should live. */
struct homad_thread *homad_thread_for_app(struct homad *d);
/** homad_scale_to() - make the first @active threads the active ones. */
void homad_scale_to(struct homad *d, u32 active);

/* ---- mailbox.c ---- */

/**
 * homad_call() - run @fn(thread, @arg) on a fast-path thread between two
 * rounds, and wait for it. From the slow path only. Returns @fn's result.
 */
int homad_call(struct homad_thread *t, int (*fn)(struct homad_thread *, void *),
	       void *arg);
/** homad_mail() - fast path: run what the slow path wants; returns how much. */
int homad_mail(struct homad_thread *t);

/* ---- session.c: attachments as the fast path sees them; via homad_call() ---- */

/** homad_session_open() - @arg: struct homad_app with its memory in place; opens
 *  a socket with an automatic port and begins to poll. */
int homad_session_open(struct homad_thread *t, void *arg);
/** homad_session_close() - @arg: struct homad_app; ends RPCs over the next rounds and
 *  then hands it to homad.dead. Harmless twice. */
int homad_session_close(struct homad_thread *t, void *arg);

/** homad_session_give() - one of this thread's attachments, at home nowhere now;
 *  NULL: it has none. homad_session_take(): make another thread its home. */
struct homad_app *homad_session_give(struct homad_thread *t);
int homad_session_take(struct homad_thread *t, struct homad_app *app);

struct homad_bind {
	struct homad_app *app;
	u16 port;
};
/** homad_session_bind() - @arg: struct homad_bind; -EINVAL, -EADDRINUSE. */
int homad_session_bind(struct homad_thread *t, void *arg);

struct homad_listen {
	struct homad_app *app;
	u16 port;
	u32 flags;
};
/** homad_session_listen() - @arg: struct homad_listen with HOMA_CTL_LISTEN_*; its
 *  @port, if not 0, becomes the socket's and is the present one afterwards. -EINVAL,
 *  -EADDRINUSE. */
int homad_session_listen(struct homad_thread *t, void *arg);

struct homad_pool {
	struct homad_app *app;
	u8 *pool;
	size_t bytes;
	void *pool_mem; /* homa_pool_size() bytes; out: the old one, to be freed */
};
/** homad_session_pool() - @arg: struct homad_pool; exchange the receive pool;
 *  -EBUSY if messages have been received; the old memory is the caller's. */
int homad_session_pool(struct homad_thread *t, void *arg);

struct homad_route {
	struct homad_app *app;
	struct homa_addr addr;
};
/** homad_session_route() - @arg: struct homad_route; 0, -EHOSTUNREACH, -ENETUNREACH. */
int homad_session_route(struct homad_thread *t, void *arg);
/** homad_session_shutdown() - @arg: struct homad_app; HOMA_CTL_SHUTDOWN. */
int homad_session_shutdown(struct homad_thread *t, void *arg);
/** homad_app_evict() - it broke the rules: ends, and the slow path hears of it. */
void homad_app_evict(struct homad_thread *t, struct homad_app *app,
		     const char *why);
/** homad_session_free() - slow path: what session_open() allocated; the
 *  attachment came from homad.dead. */
void homad_session_free(struct homad_app *app);
/** homad_sessions_closing() - a budget's worth of ending RPCs; returns how much. */
int homad_sessions_closing(struct homad_thread *t);

/* ---- round.c, idle.c, thread.c ---- */
int homad_round(struct homad_thread *t);
u64 homad_next_deadline(struct homad_thread *t);
void homad_now(struct homad_thread *t);
/** homad_idle() - after a round without work: yield, spin or block. */
void homad_idle(struct homad_thread *t);
/** homad_listen() - after a round with work: now and then, kicks. */
void homad_listen(struct homad_thread *t);
/** homad_thread_make() - homad.threads[@index], not yet running. */
int homad_thread_make(struct homad *d, u32 index);
/** homad_thread_serve() - the thread serves a port from now on. */
int homad_thread_serve(struct homad_thread *t, struct homad_port *port);
int homad_thread_start(struct homad_thread *t);
void homad_thread_stop(struct homad_thread *t);
void homad_thread_free(struct homad_thread *t);

/* ---- rxpath.c, txpath.c, local.c: return how many packets they moved ---- */
int homad_rx(struct homad_thread *t, struct homad_port *port);
int homad_tx(struct homad_thread *t, struct homad_port *port);
int homad_local(struct homad_thread *t, struct homad_port *port);
void homad_icmp(struct homad_thread *t, struct homad_port *port);
void homad_copy_payload(const struct homa_rx_pkt *pkt, const u8 *payload);

/* ---- commands.c: from the submission rings ---- */
/** homad_commands() - a turn for each polled application; returns commands. */
int homad_commands(struct homad_thread *t);
/** homad_turn_of() - one turn for @arg, a struct homad_app; more in its rings? For
 *  homad_call(). HOMAD_TURNS_OF_RINGS of them see to all that was there at first. */
int homad_turn_of(struct homad_thread *t, void *arg);
/** homad_poll_app() - look at its rings from now on. */
void homad_poll_app(struct homad_thread *t, struct homad_app *app);
/** homad_unpoll_app() - look at them no more. */
void homad_unpoll_app(struct homad_thread *t, struct homad_app *app);
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

/* ---- direct.c: the short way between applications of this host ---- */
/** homad_direct_request() - false: not now, send it the usual way. */
bool homad_direct_request(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe,
			  const struct homa_addr *addr, const u8 *bytes);
/** homad_direct_reply() - to a request that came so. */
void homad_direct_reply(struct homad_thread *t, struct homad_app *server,
			const struct homa_sqe *sqe, u8 *bytes);
/** homad_direct_retry() - there may be room for responses that wait. */
void homad_direct_retry(struct homad_thread *t, struct homad_app *client);
void homad_direct_abort(struct homad_thread *t, struct homad_direct *d, int error);
/** homad_direct_close() - @app ends. */
void homad_direct_close(struct homad_thread *t, struct homad_app *app);

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

#endif
