/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a run measured: latencies and slowdowns by decile of message size,
 * failures by kind, generator lag, bytes, CPU time. Only RPCs whose intended
 * start lies in the measured window count. An RPC that ended without a response
 * is "censored": its age when it ended is recorded as its latency, since it
 * would have taken at least that long; leaving it out would flatter whoever
 * loses the slowest RPCs.
 */
#ifndef HOMA_BENCH_STATS_H
#define HOMA_BENCH_STATS_H

#include "bench.h"
#include "hist.h"

/** Most different errnos that are counted, the last one for all others. */
#define BENCH_ERROR_KINDS 16

/** Slowdowns are kept in 1/1000. */
#define BENCH_SLOWDOWN_SCALE 1000

/**
 * struct bench_denominators - best unloaded RTT by message size
 * @count: number of points.
 * @sizes: message size of each point, ascending, bytes.
 * @rtt_ns: round trip of each point, ns.
 */
struct bench_denominators {
	uint32_t count;
	double sizes[BENCH_MAX_SIZES * 4];
	double rtt_ns[BENCH_MAX_SIZES * 4];
};

/**
 * struct bench_class - results of a decile of message sizes
 * @latency: latency of its RPCs, ns.
 * @slowdown: slowdown of its RPCs, in 1/1000.
 * @failed: number of RPCs that got no response or were never sent.
 * @censored: number of @failed that are in @latency with their age.
 * @bytes: payload of requests and responses of completed RPCs.
 */
struct bench_class {
	struct homa_hist latency;
	struct homa_hist slowdown;
	uint64_t failed;
	uint64_t censored;
	uint64_t bytes;
};

/** Class of the RPCs that are counted apart (--apart); it is none of the deciles. */
#define BENCH_APART HOMA_DECILES

/**
 * struct bench_errors - failures by kind
 * @codes: errnos, positive; 0: unused, or in the last entry all others.
 * @counts: number of failures of each.
 */
struct bench_errors {
	int codes[BENCH_ERROR_KINDS];
	uint64_t counts[BENCH_ERROR_KINDS];
};

/** Samples of the backlog in the window, the first when it opens, the last when it closes. */
#define BENCH_SAMPLES 250

/** struct bench_cpu - CPU time at one moment, seconds */
struct bench_cpu {
	double user, system; /* CPU time of this process */
	/* CPU time of the whole machine, all cores */
	double busy, total;
	double steal;			 /* CPU time taken by the hypervisor */
	uint64_t voluntary, involuntary; /* context switches of this process */
	uint64_t wall_ns;
};

/** Most network devices that are looked at. */
#define BENCH_NETDEVS 16

/** struct bench_netdev - counters of a network device since it was made */
struct bench_netdev {
	char name[16];
	uint64_t rx_bytes, rx_packets, rx_dropped;
	uint64_t tx_bytes, tx_packets, tx_dropped;
};

/** struct bench_netdevs - the devices of this namespace at one moment */
struct bench_netdevs {
	uint32_t count;
	struct bench_netdev list[BENCH_NETDEVS];
};

/** struct bench_stats - everything measured by one process */
struct bench_stats {
	struct bench_denominators denominators;
	struct bench_class classes[BENCH_APART + 1];
	uint32_t class_count;
	struct homa_hist lag;
	/* latencies of RPCs that succeeded, from when they were sent, ns */
	struct homa_hist from_send;

	/* number of RPCs that were sent, warm-up included */
	uint64_t issued;
	uint64_t measured;   /* number of arrivals in the window */
	uint64_t overflow;   /* number of these that were dropped unsent */
	uint64_t unfinished; /* number of RPCs in flight when the drain ended */

	/* open loop: payload, requests and responses, of all RPCs that were due and of those
	 * that have ended, warm-up included */
	uint64_t due_bytes, ended_bytes;
	uint32_t samples; /* number of entries of backlog that are used */
	double backlog[BENCH_SAMPLES];
	/* payload of measured arrivals, requests and responses */
	uint64_t offered_bytes;
	uint64_t offered_wire_bytes;
	/* number of RPCs that ended in the window */
	uint64_t window_completed;
	uint64_t window_tx_bytes; /* payload of their requests, bytes */
	uint64_t window_rx_bytes; /* payload of their responses, bytes */
	/* bytes of both on the wire, headers included */
	uint64_t window_wire_bytes;

	struct bench_errors errors, apart_errors;
	/* ages at which RPCs that are counted apart failed, ns */
	struct homa_hist apart_error_ns;

	struct bench_cpu cpu_start, cpu_end;
	struct bench_netdevs net_start, net_end;
	uint64_t window_start_ns, window_end_ns;
	uint64_t drained_ns; /* time from the window's end to the last RPC */
};

/** bench_stats_init() - prepare empty results; 0 or -ENOMEM */
int bench_stats_init(struct bench_stats *stats,
		     const struct bench_config *config);
void bench_stats_free(struct bench_stats *stats);

/** bench_stats_latency() - record that a measured RPC of @size bytes took @ns */
static inline void bench_stats_latency(struct bench_stats *stats,
				       uint32_t class, uint64_t ns)
{
	homa_hist_record(&stats->classes[class].latency, ns);
}

/** bench_stats_slowdown() - record the slowdown of such an RPC, if there are denominators */
void bench_stats_slowdown(struct bench_stats *stats, uint32_t class,
			  uint32_t size, uint64_t ns);

/** bench_errors_add() - count a failure by errno (positive or negative) */
void bench_errors_add(struct bench_errors *errors, int error);

/** bench_denominators_load() - read @d from a result with "unloaded" or a merged file */
int bench_denominators_load(struct bench_denominators *d, const char *path,
			    char *err, size_t errlen);

/**
 * bench_denominator() - unloaded RTT of a message of @size bytes, ns
 * Linear in size between two measured sizes: an idle network takes a constant
 * plus a time per byte, which a straight line reproduces exactly.
 */
double bench_denominator(const struct bench_denominators *d, uint32_t size);

/** bench_cpu_now() - write the CPU time so far to @cpu */
void bench_cpu_now(struct bench_cpu *cpu);

/** bench_netdevs_now() - write the counters of all devices to @devs */
void bench_netdevs_now(struct bench_netdevs *devs);

/** bench_netdev_find() - find a device by its name, or NULL */
const struct bench_netdev *bench_netdev_find(const struct bench_netdevs *devs,
					     const char *name);

/** bench_window_opens(), bench_window_closes() - note time and all counters */
void bench_window_opens(struct bench_stats *stats);
void bench_window_closes(struct bench_stats *stats);

#endif
