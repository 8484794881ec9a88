/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the daemon counts, gathered into one picture for whoever asks: ./homa ss
 * and top (monitor.c), Prometheus (http.c), an application (ctl.c). Called on
 * the slow path, by either of its threads. Counters of the fast path are read while it
 * writes them: each is right, and two of them may be a packet apart. What needs the
 * engine or the nic is asked by homad_call(), what needs the control thread by
 * homad_control(), a bounded piece at a time.
 *
 * Written by: the thread that asks, control or admin, into memory of its own, or a fast-path
 * thread for it while it waits.
 */
#ifndef HOMAD_STATS_H
#define HOMAD_STATS_H

#include "homa_look.h"
#include "homad_tcp.h"
#include "session.h"
#include "tas_look.h"

/* Latencies are counted in buckets of 1/32 octave, and in the fewer ones of Prometheus. */
#define HOMAD_LATENCY_SHIFT 5
#define HOMAD_LATENCY_BUCKETS (HOMA_HIST_BUCKETS >> HOMAD_LATENCY_SHIFT)
#define HOMAD_LATENCY_BOUNDS 22 /* 1, 2, 5 us ... 10 s */

/**
 * struct homad_latency - how long RPCs took from submission to completion
 * @count: The number of RPCs.
 * @sum: The sum of their times, ns.
 * @counts: The number of RPCs in each bucket, by homa_hist_index() >> HOMAD_LATENCY_SHIFT.
 * @below: The number of RPCs that took no longer than homad_latency_bound() of the index.
 */
struct homad_latency {
	u64 count, sum;
	u64 counts[HOMAD_LATENCY_BUCKETS];
	u64 below[HOMAD_LATENCY_BOUNDS];
};

/** homad_latency_bound() - the upper bound of Prometheus' bucket @i, ns. */
u64 homad_latency_bound(u32 i);

/**
 * struct homad_tcp_stats - the TCP of a thread, or the sum over all threads
 * @on: The thread has TCP.
 * @engine: What the TCP engines for packets and for connections inside the host count.
 * @host: What homad counts of TCP.
 * @counts: The number of connections at present.
 */
struct homad_tcp_stats {
	bool on;
	struct tas_metrics engine;
	struct homad_tcp_counters host;
	struct tas_counts counts;
};

/**
 * struct homad_thread_stats - a fast-path thread
 * @index: The number of the thread.
 * @core: The CPU that the thread is bound to, as in struct homad_thread.
 * @active: The thread takes part in the work; in dedicated mode it may rest.
 * @asleep: The thread is asleep.
 * @spin_ns: The time for which the thread polls without work before it sleeps, ns.
 * @cpu_ns: The processor time that it has used, ns.
 * @out_bytes: The memory of the copies of outgoing messages that it has made, less that of
 *	those that it has freed, bytes. It is below zero if the thread has freed those of
 *	others; the sum over all threads is what is in use.
 * @counters: What homad counts in the thread.
 * @engine: What the Homa engine counts in the thread, by enum homa_metric.
 * @tcp: What is counted of TCP in the thread.
 */
struct homad_thread_stats {
	u32 index;
	int core;
	bool active, asleep;
	u64 spin_ns, cpu_ns;
	s64 out_bytes;
	struct homad_counters counters;
	u64 engine[HOMA_M_COUNT];
	struct homad_tcp_stats tcp;
};

/**
 * struct homad_port_stats - a port: an interface, UDP, or the way inside the host
 * @port: The port itself.
 * @has_nic: The port has a nic, which the way inside the host has not.
 * @nic: What the nic counts.
 * @link: The state of the port's link in the engine.
 */
struct homad_port_stats {
	const struct homad_port *port;
	bool has_nic;
	struct nic_stats nic;
	struct homa_link_state link;
};

struct homad_stats {
	/* The time at which the copy was made, ns. */
	u64 now_ns;
	/* The numbers of entries of @threads and @ports that are used. */
	u32 num_threads, num_ports;
	/* What each fast-path thread counts. */
	struct homad_thread_stats threads[HOMAD_MAX_THREADS];
	/* What each port counts, in the order of homad.ports. */
	struct homad_port_stats ports[HOMAD_MAX_PORTS + 1];
	/* @engine, @tcp, @counters and @latency are sums over the threads. */
	u64 engine[HOMA_M_COUNT];
	struct homad_tcp_stats tcp;
	struct homad_counters counters;
	/* How many objects the engine has. */
	struct homa_counts counts;
	struct homad_latency latency;
	u64 log_lost; /* number of lines of the log that could not be written */
};

/** homad_stats_collect() - fill in @s, which is too large for a stack. Attachments are not
 *  in it; apps.h has them. */
void homad_stats_collect(struct homad *d, struct homad_stats *s);

typedef void homad_visitor(void *arg, const char *name, const char *text,
			   u64 value);
/** homad_stats_metrics() - visit every counter that an application may see: the daemon's
 *  totals, and those of @app itself. */
void homad_stats_metrics(struct homad *d, const struct homad_app *app,
			 homad_visitor *visit, void *arg);
/** homad_nic_visit() - visit the counters of a nic. */
void homad_nic_visit(const struct nic_stats *s, homad_visitor *visit, void *arg);
/** homad_stats_rpcs() - write the open RPCs of an attachment to @out, at most @max; returns
 *  how many. @all: there are no more. The rounds that this took after the first are added to
 *  @rounds. */
u32 homad_stats_rpcs(struct homad_app *app, struct homa_ctl_rpc *out, u32 max,
		     bool *all, u32 *rounds);

/**
 * struct homad_rpc_cursor - where homad_stats_some_rpcs() goes on; it begins with all zeros
 * @engine: Where it goes on among the RPCs in the engine, which come first.
 * @app: After those, the number of the attachment whose direct RPCs come next.
 * @slot: The place in that attachment's tables at which it goes on.
 * @end: All RPCs have been seen.
 */
struct homad_rpc_cursor {
	struct homa_look_cursor engine;
	u64 app;
	u32 slot;
	bool end;
};

/**
 * struct homad_rpc_owner - the attachment of an RPC
 * @id: The attachment's number, or 0 if it has gone.
 * @name: The attachment's name.
 */
struct homad_rpc_owner {
	u64 id;
	char name[32];
};

/** homad_stats_some_rpcs() - write the next RPCs of all attachments to @out, and the
 *  attachment of each to @owner; at most @max. Returns how many, which may be none before
 *  @at->end. */
u32 homad_stats_some_rpcs(struct homad *d, struct homad_rpc_cursor *at,
			  struct homa_rpc_look *out,
			  struct homad_rpc_owner *owner, u32 max);
/** homad_stats_some_peers() - write the next peers to @out, as homa_peers_look() does. */
u32 homad_stats_some_peers(struct homad *d, struct homa_look_cursor *at,
			   struct homa_peer_look *out, u32 max);

#endif
