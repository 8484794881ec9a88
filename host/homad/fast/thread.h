/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A fast-path thread: it alone calls the engine and touches the rings of the attachments
 * that are at home with it, round after round.
 *
 * Written by: the thread itself, from homad_thread_start() to homad_thread_stop(), unless a field
 * says otherwise; before and after that by control. Counters are read by others, too.
 */
#ifndef HOMAD_THREAD_H
#define HOMAD_THREAD_H

#include <pthread.h>
#include "config.h"
#include "dest.h"
#include "hist.h"
#include "homa_engine.h"
#include "homa_list.h"
#include "homa_msgbuf.h"
#include "homa_overdue.h"
#include "homa_packets.h"
#include "homa_seldom.h"
#include "homa_spares.h"
#include "homa_spin.h"
#include "nic.h"
#include "rtnl.h"

#define HOMAD_BATCH 32 /* most packets that one nic_rx() gets */
/* Most batches that a thread takes in a round from a port, and from a ring of tcp_handed.h: as many
 * as commands may make packets, or a ring would fill. */
#define HOMAD_RX_BATCHES 8
/* most packets that one nic_tx() gets; at least the segments of a unit */
#define HOMAD_TX_BATCH 64
#define HOMAD_SPARES (2 * HOMAD_BATCH)

/* Step between two ids that a thread gives to RPCs within this host (direct.c), so that no
 * two threads give the same. */
#define DIRECT_IDS (2 * HOMAD_MAX_THREADS)

struct homad;
struct homad_app;
struct homad_port;
struct homad_steering;
struct homad_tcp;
struct homad_trace;

/* Counters of one fast-path thread. */
#define HOMAD_COUNTERS(X)                                                        \
	X(rounds, "rounds of the fast path")                                     \
	X(idle_rounds, "rounds that found nothing to do")                        \
	X(yields, "times it gave the processor away while idle")                 \
	X(blocks, "times it went to sleep")                                      \
	X(timers_waited,                                                         \
	  "rounds in which timers waited for packets that had arrived")          \
	X(early_blocks,                                                          \
	  "times it went to sleep after a short look because work is rare")      \
	X(busy_ns, "time in rounds with work, ns")                               \
	X(idle_ns, "time in rounds without work, ns")                            \
	X(commands, "commands taken from applications")                          \
	X(completions, "entries put into completion rings")                      \
	X(wakeups, "applications woken")                                         \
	X(kicks, "times an application woke us")                                 \
	X(local_packets, "packets between applications of this host")            \
	X(direct, "RPCs between applications of this host, the short way")       \
	X(direct_across,                                                         \
	  "those of them whose server is at home with another thread")           \
	X(whole_in, "messages of one packet that were delivered as they came")   \
	X(whole_out, "messages of one packet that left with their command")      \
	X(udp_news,                                                              \
	  "times a UDP socket was looked into because a datagram was counted")   \
	X(bulk, "requests that went over UDP because they are long")             \
	X(route_lookups, "questions to the kernel for the way to a destination") \
	X(credit_out, "turns of users that ended because other users wait")      \
	X(route_waits,                                                           \
	  "turns that ended because their user had such a question under way")   \
	X(ways_asked,                                                            \
	  "questions of devices to the kernel, asked by another thread")         \
	X(memory_asked,                                                          \
	  "times the slow path was asked for more memory of an attachment")      \
	X(tcp_denied, "TCP connections that a rule with deny refused")           \
	X(tcp_refused, "TCP connections beyond the limits of a rule")            \
	X(tcp_handed,                                                            \
	  "TCP segments that came in here and were handed to another thread")    \
	X(tcp_handed_lost,                                                       \
	  "those of them for which the other thread was too slow, dropped")      \
	X(evictions, "applications that broke the rules")                        \
	X(copies_refused,                                                        \
	  "messages for whose copy its user or all users have no room left")     \
	X(out_of_memory, "allocations for messages or objects that failed")      \
	X(jobs, "requests of the slow path")

struct homad_counters {
#define X(name, text) u64 name;
	HOMAD_COUNTERS(X)
#undef X
};

/*
 * struct homad_polled - the attachments of a user that a fast-path thread looks at. That
 * thread alone uses it; it lives as long as an attachment of the user.
 */
struct homad_polled {
	/* The user's place in homad_thread.users while @num is not 0. */
	struct homa_list node;
	/* The attachments in the order of their turns, linked by homad_app.polled. */
	struct homa_list apps;
	/* The number of attachments in @apps. */
	u32 num;
	/* Looks at rings and commands that the user has left in this turn, which ends when
	 * there are none. Each look lowers it by homad_turn_cost(). */
	int credit;
};

void homad_polled_init(struct homad_polled *user);

/* struct homad_thread - a fast-path thread */
struct homad_thread {
	/* The daemon. */
	struct homad *d;
	/* Its place in homad.threads. */
	u32 index;
	/* The number of the processor that the thread stays on; -1 if it may use any. */
	int core;
	/* The POSIX thread; valid while @running. */
	pthread_t thread;
	/* True from homad_thread_start() to homad_thread_stop(). Control writes it; read by
	 * others. */
	bool running;
	/* True if the thread takes part in the work. With core scaling in dedicated mode, a
	 * thread that does not take part sleeps. */
	bool active;
	/* True once the thread shall end. Control writes it; atomic. */
	bool stop;
	/* The epoll set in which the thread sleeps. */
	int epfd;
	/* Bytes of replies above HOMAD_DIRECT_MAX that were copied to applications of this host
	 * and that nobody was charged for yet. */
	u32 long_replies;
	/* An eventfd that wakes the thread because of @mail. Any thread writes to it. */
	int mail_fd;
	/* Jobs that other threads push for this thread to run. The stack is atomic. */
	struct homad_job *mail;
	/* The context by which the thread calls the engine. */
	struct homa_ctx ctx;
	/* Time before which homa_timer() has nothing to do in the shards that this thread
	 * runs, in ns. */
	u64 deadline;
	/* Timers that are due and wait for packets. @rx_left: true if a port may have more
	 * packets than this round has taken. */
	struct homa_overdue overdue;
	bool rx_left;
	/* The ports that the thread serves; @num_ports of them are set. */
	struct homad_port *ports[HOMAD_MAX_PORTS + 1];
	u32 num_ports;
	/* All attachments whose home is this thread; @num_apps counts them. */
	struct homa_list apps;
	u32 num_apps;
	/* The users whose attachments the thread polls, each a struct homad_polled, in the order
	 * of their turns. */
	struct homa_list users;
	/* @num_users counts the entries of @users, and @num_polled the polled attachments of all
	 * these users together. */
	u32 num_users, num_polled;
	/* The polled attachments that have no user, as in tests. */
	struct homad_polled others;
	/* A polled attachment whose next command waits for a route, or until its user may
	 * ask for one. NULL if there is none. */
	struct homad_app *put_off;
	/* Attachments whose completion rings homad_deliver() fills in this round. */
	struct homa_list touched;
	/* Attachments whose RPCs are being ended. */
	struct homa_list closing;
	/* True while the thread sleeps in epoll_wait(). The thread sets it before its last look
	 * for work, so that nothing that arrives then is missed. */
	bool asleep;
	/* The number of rounds that the thread has begun. Other threads read it
	 * (grace.c). */
	u32 passed;
	/* Decides how long the thread polls without work before it sleeps. */
	struct homa_spin spin;
	/* Time when the thread last looked at its epoll set, in ns. */
	u64 epoll_at;
	/* True if an attachment of this thread was evicted. Any thread may set it. */
	bool some_evicted;
	/* The value of the engine's counter buffer_waits when this thread last read it. */
	u64 waits_seen;
	/* True if a socket may lack receive pages. Any thread may set it; this one clears it. */
	bool some_starved;
	/* What the thread counts; others read it. */
	struct homad_counters counters;
	/* A histogram of RPCs by the time from submission to completion, in ns. */
	struct homa_hist rtt;
	/* The ring that packets and events are recorded in; NULL if nothing is recorded. */
	struct homad_trace *trace;
	/* Copies of messages to send. */
	struct homa_msgbufs bufs;
	/* Spare objects for the engine. */
	struct homa_spares spares;
	/* Memory for RPCs that take the short way of direct.c. */
	struct homa_slab directs;
	/* The id of the last RPC that took the short way of direct.c and got its id here. */
	u64 direct_id;
	/* The TCP instance that the thread works on now, one of those that it runs, which are
	 * linked in a circle (homad_tcp.h); NULL: it runs none. */
	struct homad_tcp *tcp;
	/* A bit for each TCP instance that it runs, by its index. */
	u32 tcps;
	/* Says which instance gets a segment (tcp_steer.h); NULL: there is no TCP, or one instance
	 * that this thread runs. */
	struct homad_steering *steering;
	/* A socket by which the thread asks the kernel for routes. */
	struct nic_rtnl rtnl;
	/* The ways to destinations that the thread remembers. */
	struct homad_dests dests;
	/* When bulk.c answered questions of other hosts. */
	struct homa_seldom bulk_answered;
	/* Packets that came with their messages and wait to be sent over @early_port: the first
	 * @num_early of @tx and @descs, whose i-th is of @early[i] packets. The port has room for
	 * @early_room. */
	struct homad_port *early_port;
	int num_early, early_room;
	u8 early[HOMAD_TX_BATCH];
	/* Packets that nic_rx() got in this round. */
	struct nic_rx rx[HOMAD_BATCH];
	/* The same packets, as the engine is told. */
	struct homa_rx_pkt pkts[HOMAD_BATCH];
	struct nic_tx tx[HOMAD_TX_BATCH];
	struct homa_tx_desc descs[HOMAD_TX_BATCH];
	/* Homa headers of further segments of the packets in @descs. */
	u8 headers[HOMAD_TX_BATCH][96];
};

/* ---- thread.c ---- */
/** homad_thread_make() - make homad.threads[@index], which does not run yet. */
int homad_thread_make(struct homad *d, u32 index);
/** homad_thread_serve() - let the thread serve a port from now on. */
int homad_thread_serve(struct homad_thread *t, struct homad_port *port);
int homad_thread_start(struct homad_thread *t);
void homad_thread_stop(struct homad_thread *t);
void homad_thread_free(struct homad_thread *t);

/* ---- mailbox.c ---- */
/**
 * homad_call() - run @fn(thread, @arg) on a fast-path thread between two
 * rounds, and wait for it. From the slow path only. Returns @fn's result.
 */
int homad_call(struct homad_thread *t, int (*fn)(struct homad_thread *, void *),
	       void *arg);
/**
 * homad_ask(), homad_await() - the two halves of homad_call(): @job belongs to the thread
 * between them. The thread must be running.
 */
void homad_ask(struct homad_thread *t, struct homad_job *job);
int homad_await(struct homad_job *job);
/** homad_post() - do the same from any thread, without waiting: @job belongs to the
 *  thread until it runs, and @run may free it. A thread that has ended does not run it
 *  any more. */
void homad_post(struct homad_thread *t, struct homad_job *job);

/* ---- pause.c ---- */
/**
 * homad_call_alone() - run @fn on one of the fast-path threads while all of them are
 * between two rounds, so that none is in the engine. From the slow path only. Returns
 * @fn's result.
 */
int homad_call_alone(struct homad *d,
		     int (*fn)(struct homad_thread *t, void *arg), void *arg);

#endif
