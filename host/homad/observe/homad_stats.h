/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the daemon counts, gathered into one picture for whoever asks: ./homa ss
 * and top (monitor.c), Prometheus (http.c), an application (ctl.c). Called on
 * the slow path, by either of its threads. Counters of the fast path are read while it
 * writes them: each is right, and two of them may be a packet apart. What needs the
 * engine or the nic is asked by homad_call(), what needs the control thread by
 * homad_control(), a bounded piece at a time.
 */
#ifndef HOMAD_STATS_H
#define HOMAD_STATS_H

#include "homa_look.h"
#include "session.h"
#include "streams.h"
#include "tas_look.h"

/* Latency in buckets of 1/32 octave, and in those that Prometheus wants. */
#define HOMAD_LATENCY_SHIFT 5
#define HOMAD_LATENCY_BUCKETS (HOMA_HIST_BUCKETS >> HOMAD_LATENCY_SHIFT)
#define HOMAD_LATENCY_BOUNDS 22 /* 1, 2, 5 us ... 10 s */

/**
 * struct homad_latency - RPCs from submission to completion
 * @counts: by homa_hist_index() >> HOMAD_LATENCY_SHIFT.
 * @below: not longer than homad_latency_bound() of the same index, cumulative.
 */
struct homad_latency {
	u64 count, sum;
	u64 counts[HOMAD_LATENCY_BUCKETS];
	u64 below[HOMAD_LATENCY_BOUNDS];
};

/** homad_latency_bound() - upper bound of Prometheus' bucket @i, ns. */
u64 homad_latency_bound(u32 i);

/**
 * struct homad_tcp_stats - TCP of a thread, or the sum over all
 * @on: it has TCP.
 */
struct homad_tcp_stats {
	bool on;
	struct tas_metrics engine;
	struct homad_tcp_counters host;
	struct tas_counts counts;
};

/**
 * struct homad_thread_stats - a fast-path thread
 * @cpu_ns: processor time that it has used.
 * @out_bytes: memory of the copies of outgoing messages that it has made, less that of those
 * that it has freed, bytes. It is below zero if the thread has freed those of others; the sum
 * over all threads is what is in use.
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

/* struct homad_port_stats - @has_nic: false for messages inside the host */
struct homad_port_stats {
	const struct homad_port *port;
	bool has_nic;
	struct nic_stats nic;
	struct homa_link_state link;
};

struct homad_stats {
	u64 now_ns;
	u32 num_threads, num_ports;
	struct homad_thread_stats threads[HOMAD_MAX_THREADS];
	struct homad_port_stats ports[HOMAD_MAX_PORTS + 1];
	u64 engine[HOMA_M_COUNT];   /* sum over the threads */
	struct homad_tcp_stats tcp; /* the same */
	struct homad_counters counters;
	struct homa_counts counts;
	struct homad_latency latency;
	u64 log_lost;
};

/** homad_stats_collect() - the whole picture but the attachments, for which there is
 *  apps.h. @s is large: allocate it. */
void homad_stats_collect(struct homad *d, struct homad_stats *s);

typedef void homad_visitor(void *arg, const char *name, const char *text,
			   u64 value);
/** homad_stats_metrics() - every counter for an application: the daemon's
 *  totals, and what concerns @app. */
void homad_stats_metrics(struct homad *d, const struct homad_app *app,
			 homad_visitor *visit, void *arg);
/** homad_nic_visit() - the counters of a nic by name. */
void homad_nic_visit(const struct nic_stats *s, homad_visitor *visit, void *arg);
/** homad_stats_rpcs() - open RPCs of an attachment, at most @max; returns how many. */
u32 homad_stats_rpcs(struct homad_app *app, struct homa_ctl_rpc *out, u32 max);

/**
 * struct homad_rpc_cursor - all zero: begin; @end: everything was seen
 * @app, @slot: after the engine's: attachment and place in its tables.
 */
struct homad_rpc_cursor {
	struct homa_look_cursor engine;
	u64 app;
	u32 slot;
	bool end;
};

/** struct homad_rpc_owner - the attachment of an RPC; @id 0: it has gone */
struct homad_rpc_owner {
	u64 id;
	char name[32];
};

/** homad_stats_some_rpcs() - the next RPCs of all, as homa_rpcs_look(), and whose they
 *  are. */
u32 homad_stats_some_rpcs(struct homad *d, struct homad_rpc_cursor *at,
			  struct homa_rpc_look *out,
			  struct homad_rpc_owner *owner, u32 max);
/** homad_stats_some_peers() - the next peers, as homa_peers_look(). */
u32 homad_stats_some_peers(struct homad *d, struct homa_look_cursor *at,
			   struct homa_peer_look *out, u32 max);

#endif
