/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The embedded host: the engine inside the application's process, over one
 * nic. Whoever waits for a message runs the protocol itself, to completion,
 * on its own thread (wait.c, loop.c); a progress thread (progress.c) does so
 * only when the application is busy elsewhere.
 *
 * One lock (struct homa_gate) protects everything here, the engine and the
 * nic. It is held for one round of the loop, never while sleeping. A second
 * notion, the poller, says which waiting thread is responsible for the nic:
 * the one that spins on it or sleeps in ppoll() on it.
 *
 * Guarded by: homa_emb.lock, for all structs here, unless a field says otherwise.
 */
#ifndef HOMA_EMBEDDED_H
#define HOMA_EMBEDDED_H

#include <pthread.h>
#include "homa_backend.h"
#include "homa_clock.h"
#include "homa_engine.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "homa_msgbuf.h"
#include "homa_overdue.h"
#include "homa_packets.h"
#include "homa_spares.h"
#include "nic.h"

/* How many packets one nic_rx() gets, at most. */
#define HOMA_EMB_BATCH 32
/* How many packets one nic_tx() gets, at most. A unit has no more segments. */
#define HOMA_EMB_TX_BATCH 64
/* How many destinations are remembered as reachable. */
#define HOMA_EMB_ROUTES 64

/* struct homa_msg_info and struct homa_message agree on the number of pieces. */
HOMA_STATIC_ASSERT(sizeof(((struct homa_message *)0)->iov) / sizeof(struct iovec) ==
			   HOMA_MAX_BPAGES,
		   "one piece per page");

/*
 * A message remembers in priv[] its pages, 16 offsets of which the first that is
 * none ends the list, and the handle of its RPC.
 */
#define HOMA_EMB_NO_PAGE 0xffffffffu

static inline u32 homa_emb_num_pages(const struct homa_message *msg)
{
	const u32 *pages = (const u32 *)&msg->priv[HOMA_PRIV_PAGES];
	u32 n = 0;

	while (n < HOMA_MAX_BPAGES && pages[n] != HOMA_EMB_NO_PAGE)
		n++;
	return n;
}

static inline struct homa_handle homa_emb_handle(const struct homa_message *msg)
{
	const u64 *priv = &msg->priv[HOMA_PRIV_HOST];

	return (struct homa_handle){ .id = priv[0],
				     .generation = (u32)(priv[1] >> 32),
				     .hash = (u32)priv[1] };
}

/* struct homa_emb_rpc - this host's part of every RPC of the engine */
struct homa_emb_rpc {
	/* Links it into homa_emb.ready while its message is complete and nobody took it. */
	struct homa_list ready;
	/* Links it into homa_emb.clients while this side is its client and it lives. */
	struct homa_list client;
	/* The engine's name for the RPC; valid from its first event or its sending on. */
	struct homa_handle handle;
	/* A number that orders complete messages of both kinds by when they became
	 * ready. */
	u64 order;
	/* The outgoing message, NULL if there is none: a copy of @out_size bytes, or the
	 * application's own bytes if @borrowed. */
	u8 *out;
	u32 out_size;
	bool borrowed;
};

/* struct homa_emb_waiter - a thread inside homa_receive(), on its stack */
struct homa_emb_waiter {
	/* Links it into homa_emb.waiters. */
	struct homa_list list;
	/* Receives the message, from the thread that finds it. */
	struct homa_message *msg;
	/* The id of the one RPC that it waits for; 0: any that @flags allow. */
	u64 id;
	/* HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE. */
	u32 flags;
	/* The result of the call, valid once @done is set. */
	int result;
	bool done;
	/* It is woken when @done is set, and when it shall become the poller. */
	struct homa_wake wake;
};

enum homa_emb_queue {
	HOMA_EMB_REQUESTS,
	HOMA_EMB_RESPONSES, /* responses and failures */
	HOMA_EMB_QUEUES,
};

/* struct homa_emb_progress - the progress thread; see progress.c */
struct homa_emb_progress {
	/* The progress thread; valid while @on. */
	pthread_t thread;
	/* The thread has been started and not been stopped. */
	bool on;
	/* The thread does not watch the nic, and homa_emb_alarm() has to set its timer
	 * when the application stops looking. */
	bool parked;
	/* The thread sleeps in epoll_wait() on this, which has @timer_fd and the nic. */
	int epoll_fd;
	/* A timerfd, set to @wake_at. */
	int timer_fd;
	/* The time at which @timer_fd wakes the thread, ns, or HOMA_NEVER. */
	u64 wake_at;
	/* How long the application may be away before the thread runs the protocol, ns. */
	u64 tick_ns;
	/* The value of homa_emb.entries when the thread last looked. */
	u64 entries_seen;
};

/* Counters of this host, for homa_metrics(). */
#define HOMA_EMB_COUNTERS(X)                                               \
	X(rounds, "rounds of the protocol loop")                           \
	X(timers_waited,                                                   \
	  "rounds in which the timer waited for packets that had arrived") \
	X(blocks, "times a receive slept on the packet interface")         \
	X(handoffs, "messages handed to another waiting thread")           \
	X(batched, "messages taken in one turn with another one")          \
	X(deferrals, "sends left to the next round to leave together")     \
	X(progress_rounds, "rounds run by the progress thread")            \
	X(progress_wakeups, "times the progress thread woke up")           \
	X(progress_takeovers, "times it found the application absent")     \
	X(out_of_memory, "allocations for messages or objects that failed")

struct homa_emb_counters {
#define X(name, text) u64 name;
	HOMA_EMB_COUNTERS(X)
#undef X
};

/* struct homa_emb - an open embedded host. Its lock protects all members. */
struct homa_emb {
	struct homa_gate lock;
	/* The way to the network, and what it says of itself. */
	struct nic *nic;
	/* What @nic says of itself. */
	const struct nic_info *info;
	/* The engine with its only link and its only socket, made by homa_emb_open(). */
	struct homa_engine *engine;
	/* The engine's only link. */
	struct homa_link *link;
	/* The engine's only socket. */
	struct homa_sock *sock;
	/* The context of whoever holds @lock. */
	struct homa_ctx ctx;
	/* True if peers are named by IP address and UDP port. */
	bool encap;
	/* True once the application has chosen the server port. */
	bool bound;
	/* True once the host begins to close, so that calls end with -ESHUTDOWN. */
	bool closing;

	/* Time before which homa_timer() has nothing to do, ns. */
	u64 deadline;
	/* Timers that are due and wait for packets. */
	struct homa_overdue overdue;
	/* Time at which the pacer wants to be asked again, ns, or HOMA_NEVER. */
	u64 tx_at;
	/* True if the nic had no room, so that packets wait in the engine. */
	bool tx_blocked;
	/* Number of messages that were handed in since the engine was last asked for packets. */
	u32 deferred;
	/* Time at which the first of them was handed in, ns. */
	u64 deferred_at;

	/* Complete messages that nobody took, by kind, oldest first. */
	struct homa_list ready[HOMA_EMB_QUEUES];
	/* Number of complete messages of both kinds that nobody took. */
	u32 ready_count;
	/* Number of messages that became ready; homa_emb_rpc.order gets its value. */
	u64 order;
	/* The open RPCs whose client is this side. */
	struct homa_list clients;
	/* Threads inside homa_receive(), newest first. */
	struct homa_list waiters;
	/* The thread that looks at the nic for all; NULL: none does. */
	struct homa_emb_waiter *poller;
	/* True if the poller sleeps in ppoll(), until @blocked_until, ns. */
	bool blocked;
	u64 blocked_until;
	/* An eventfd that wakes the poller. */
	int kick_fd;
	/* An eventfd behind homa_fd(); -1 until the application asks for it. */
	int ready_fd;
	/* An eventfd behind homa_send_fd(), always readable; -1 until the application asks
	 * for it. */
	int send_fd;
	/* True if @ready_fd is readable. */
	bool ready_signalled;
	/* True if the application wants @ready_fd to be signalled for each message, not to
	 * stay readable while there are messages. */
	bool fd_edges;
	/* Calls of the application so far, by which the progress thread sees that it is there. */
	u64 entries;
	/* The number of threads in calls that may sleep, for which closing waits. */
	u32 inside;

	/* The time that a receive looks for messages before it sleeps, ns; -1: for ever. */
	s64 spin_ns;
	/* Where messages arrive; it is the application's memory if @lent. */
	u8 *region;
	/* Size of @region, in bytes. */
	size_t region_size;
	/* True if @region is the application's memory. */
	bool lent;
	/* True if the application has taken a message, so that @region cannot be changed
	 * any more. */
	bool received;
	/* Memory of the engine's for the pages of @region (homa_pool_size()). */
	void *pool;
	/* Copies of messages to send. */
	struct homa_msgbufs bufs;
	/* Spare objects for the engine. */
	struct homa_spares spares;
	/* Destinations that were found reachable. */
	struct homa_addr routes[HOMA_EMB_ROUTES];
	/* Time at which each of @routes was found reachable, ns. */
	u64 routes_at[HOMA_EMB_ROUTES];
	/* The progress thread. */
	struct homa_emb_progress progress;
	/* What this host counts beside the engine. */
	struct homa_emb_counters counters;

	/* Packets that one round of the loop receives, as the nic says. */
	struct nic_rx rx[HOMA_EMB_BATCH];
	/* The same packets, as the engine is told. */
	struct homa_rx_pkt pkts[HOMA_EMB_BATCH];
	/* Packets that one round sends, as the nic is told. */
	struct nic_tx tx[HOMA_EMB_TX_BATCH];
	/* The same packets, as the engine says. */
	struct homa_tx_desc descs[HOMA_EMB_TX_BATCH];
	/* Homa headers of further segments of the packets in @descs. */
	u8 headers[HOMA_EMB_TX_BATCH][96];
};

/* open.c */
int homa_emb_open(void **out, const struct homa_backend_options *options,
		  char *err, size_t errlen);
void homa_emb_close(void *host);

/* memory.c: spare objects for the engine, and messages that it is done with */
int homa_emb_memory_init(struct homa_emb *e, const struct homa_limits *limits,
			 u32 max_rpcs, u32 max_peers);
void homa_emb_reap(struct homa_emb *e);
static inline void homa_emb_refill(struct homa_emb *e)
{
	homa_spares_refill(&e->spares, &e->ctx);
}
void homa_emb_memory_free(struct homa_emb *e);

/* rxpath.c, txpath.c: each returns how many packets it moved */
int homa_emb_rx(struct homa_emb *e);
int homa_emb_tx(struct homa_emb *e);
void homa_emb_icmp(struct homa_emb *e);

/* enter.c */
void homa_emb_now(struct homa_emb *e);
void homa_emb_lock(struct homa_emb *e);
void homa_emb_unlock(struct homa_emb *e, bool submitted);
void homa_emb_kick(struct homa_emb *e);
void homa_emb_alarm(struct homa_emb *e, u64 delay_ns);

/* loop.c */
int homa_emb_round(struct homa_emb *e);
u64 homa_emb_next_deadline(struct homa_emb *e);

/* ready.c: from the engine's events to the application's messages */
void homa_emb_events(struct homa_emb *e);
struct homa_emb_rpc *homa_emb_oldest(struct homa_emb *e, u32 flags);
int homa_emb_take_handle(struct homa_emb *e, struct homa_handle handle,
			 struct homa_message *msg);
void homa_emb_unready(struct homa_emb *e, struct homa_emb_rpc *priv);
void homa_emb_gone(struct homa_emb *e, u64 id);

/* calls.c, wait.c, metrics.c: the functions of struct homa_backend_ops */
int homa_emb_bind(void *host, uint16_t port);
int homa_emb_getsockname(void *host, struct sockaddr_storage *addr);
uint16_t homa_emb_udp_port(void *host);
int homa_emb_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_emb_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out);
int homa_emb_reject(void *host, const struct homa_message *request, int error);
int homa_emb_wait_send(void *host, size_t length, int64_t timeout_ns);
int homa_emb_send_fd(void *host);
int homa_emb_alive(void *host, const struct homa_message *request);
int homa_emb_release(void *host, struct homa_message *msg);
void homa_emb_released(struct homa_emb *e);
int homa_emb_abort(void *host, uint64_t id, int error);
int homa_emb_fd(void *host);
int homa_emb_poll(void *host);
int homa_emb_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns);
int homa_emb_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
			   unsigned int flags, int64_t timeout_ns);
void homa_emb_shutdown_waiters(struct homa_emb *e);
void homa_emb_metrics(void *host,
		      void (*visit)(void *arg, const char *name,
				    const char *description, uint64_t value),
		      void *arg);

/* socket.c */
u8 *homa_emb_region(void *lent, size_t bytes);
int homa_emb_listen(void *host, uint16_t port, unsigned int flags);
int homa_emb_set_region(void *host, void *lent, size_t bytes);
int homa_emb_release_pages(void *host, const uint32_t *pages, unsigned int num);
int homa_emb_rpcs(void *host,
		  void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		  void *arg);
int homa_emb_fd_edges(void *host);
int homa_emb_shutdown(void *host);

/* progress.c */
int homa_emb_progress_start(struct homa_emb *e);
void homa_emb_progress_stop(struct homa_emb *e);

#endif
