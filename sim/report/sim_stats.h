/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a run measured. Messages are filed by their quantile, their place by
 * size among all messages, into 50 bins of two percent each, so that each has
 * equally many whatever the workload; five bins are a decile. What was counted
 * in the network is copied when the window closes, before the rest drains.
 *
 * Recording a message costs three histogram increments: a run of W1 has
 * hundreds of thousands of messages per simulated millisecond.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include "json.h"
#include "sim.h"

#define SIM_BINS 50 /* number of bins of message sizes */
#define SIM_BINS_PER_DECILE (SIM_BINS / HOMA_DECILES)
#define SIM_SLOWDOWN_SCALE 1000 /* slowdowns count in 1/1000, as in homa-bench */
#define SIM_SAMPLES 250		/* samples of the backlog in the window */
#define SIM_FIRST_WINDOW 83	/* samples in its first third */

struct sim_causes;

/**
 * struct sim_bin - messages whose sizes are two percent of all sizes
 * @slowdown: their slowdowns, in 1/1000.
 * @min_bytes: length of the shortest of them.
 * @max_bytes: length of the longest of them.
 */
struct sim_bin {
	struct homa_hist slowdown;
	u32 min_bytes, max_bytes;
};

/**
 * struct sim_level_stats - the queues of a level of ports in the window
 * @ports: number of ports.
 * @mean: mean bytes in a queue.
 * @mean_worst: mean bytes in the queue that had the most.
 * @max: most bytes that were in a queue.
 */
struct sim_level_stats {
	u32 ports;
	double mean, mean_worst;
	u64 max;
};

/**
 * struct sim_net_stats - what the network counted in the window
 * @level: queues of each level of ports.
 * @down_bytes: bytes on the wire of links to hosts.
 * @up_bytes: bytes on the wire of links from hosts.
 * @prio_bytes: bytes on the wire of links from hosts, by priority.
 * @drops: number of packets dropped.
 * @drop_bytes: bytes on the wire of packets dropped.
 * @marks: number of packets marked.
 * @trims: number of packets whose payload was cut off.
 * @lost: number of packets lost on a link.
 * @waste_ps: sum of sim_host.waste_ps of all hosts.
 * @switch_peak: most bytes that were in one switch at a sample.
 */
struct sim_net_stats {
	struct sim_level_stats level[SIM_LEVELS];
	u64 down_bytes, up_bytes;
	u64 prio_bytes[SIM_PRIORITIES];
	u64 drops, drop_bytes, marks, trims, lost;
	u64 waste_ps;
	u64 switch_peak;
};

/**
 * struct sim_trend - a straight line through the samples of the backlog
 * @start: backlog at the beginning of the line, bytes.
 * @end: backlog at its end, bytes.
 * @growth: slope of the line, bytes per second.
 */
struct sim_trend {
	double start, end;
	double growth;
};

/**
 * struct sim_reference - the oracle's backlog in the same window under the same
 * messages, which is no protocol's fault
 * @samples: number of samples.
 * @offered: payload that was created in the window, bytes a second.
 * @backlog: the samples, bytes.
 */
struct sim_reference {
	u32 samples;
	double offered;
	double backlog[SIM_SAMPLES];
};

/**
 * struct sim_stats - results so far
 * @bin: messages by size.
 * @latency: latency of the messages of each decile of sizes, ns.
 * @failed: number of messages of each decile that were given up or not finished.
 * @censored: number of messages of each decile whose slowdown is only known to be at least
 *	what was recorded.
 * @one: slowdown of messages of one packet, in 1/1000.
 * @more: slowdown of longer messages, in 1/1000.
 * @incast: slowdown of messages of incast bursts, which are in no bin, in 1/1000.
 * @incast_latency: latency of messages of incast bursts, ns.
 * @incast_failed: number of messages of incast bursts that were given up or not finished.
 * @apart: index, plus 1, of the host whose messages are counted apart; 0: none's are.
 * @apart_latency: latency of these messages, which are in no bin, ns.
 * @apart_error: age at which such messages were given up or the run ended, ns.
 * @causes: what delayed short messages.
 * @segment: message bytes in a full packet.
 * @measured: number of messages that were created to be measured.
 * @unfinished: number of measured messages that were not finished.
 * @timeouts: number of measured messages that timed out.
 * @memory_errors: number of measured messages that failed for want of memory.
 * @other_errors: number of measured messages that failed for another reason.
 * @window_msgs: number of messages (RPCs) completed in the window.
 * @window_bytes: new payload bytes that arrived in the window.
 * @repeated_bytes: bytes on the wire of packets that brought a message nothing new.
 * @net: what the network counted in the window.
 * @at_open: counters of the run when the window opened.
 * @at_close: counters of the run when the window closed.
 * @sample_ps: time between two samples of the backlog, ps.
 * @samples: number of samples.
 * @backlog: the samples, bytes.
 * @reference: the oracle's samples; NULL: there are none.
 * @trend: trend of the backlog.
 * @excess: trend of what the backlog is more than the reference.
 */
struct sim_stats {
	struct sim_bin bin[SIM_BINS];
	struct homa_hist latency[HOMA_DECILES];
	u64 failed[HOMA_DECILES], censored[HOMA_DECILES];
	u64 incast_failed;
	struct homa_hist one, more, incast, incast_latency;
	u32 apart;
	struct homa_hist apart_latency, apart_error;
	struct sim_causes *causes;
	u32 segment;
	u64 measured, unfinished, timeouts, memory_errors, other_errors;
	u64 window_msgs, window_bytes, repeated_bytes;
	struct sim_net_stats net;
	struct sim_counts at_open, at_close;
	u64 sample_ps;
	u32 samples;
	double backlog[SIM_SAMPLES];
	const struct sim_reference *reference;
	struct sim_trend trend, excess;
};

/** sim_stats_new() - make empty results; NULL: there is no memory */
struct sim_stats *sim_stats_new(const struct sim *sim);
void sim_stats_free(struct sim_stats *stats);

/**
 * sim_stats_record() - a measured message is over
 * @msg: the message, in an RPC run the request.
 * @last: message that completed it, whose waits count.
 * @ps: time that it took, in an RPC run with the response, ps.
 * @ideal: time that it would take alone, in an RPC run with the response, ps.
 */
void sim_stats_record(struct sim_stats *stats, const struct sim_msg *msg,
		      const struct sim_msg *last, u64 ps, u64 ideal);
/** sim_stats_failed() - a measured message was given up or not finished, at the age of @ps */
void sim_stats_failed(struct sim_stats *stats, const struct sim_msg *msg, u64 ps,
		      u64 ideal, int error);

void sim_stats_open(struct sim *sim);
void sim_stats_close(struct sim *sim);
/** sim_stats_sample() - record the backlog, which is @bytes, and look at the switches */
void sim_stats_sample(struct sim *sim, u64 bytes);
/** sim_stats_trend() - fit a line to the samples, or to what they are more than @reference */
void sim_stats_trend(const struct sim_stats *stats, const struct sim_reference *reference,
		     struct sim_trend *trend);
/** sim_stats_growth() - growth of the backlog, or of its excess if there is a reference, as a
 *  share of @offered bytes per second */
double sim_stats_growth(const struct sim_stats *stats, double offered);
#define SIM_STABLE_SHARE 0.01

/* ---- causes.c ---- */

struct sim_causes *sim_causes_new(void);
void sim_causes_free(struct sim_causes *causes);
/** sim_causes_add() - count a short message with its slowdown (1/1000) and delay, of which
 *  @last says the parts */
void sim_causes_add(struct sim_causes *causes, u64 slowdown, u64 late_ps,
		    const struct sim_msg *last);
cJSON *sim_causes_json(const struct sim_causes *causes);

/* ---- report.c ---- */

/**
 * struct sim_report_run - what the program knows about its run
 * @wall_s: time that it took, without the oracle's run before it, s.
 * @cpu_s: processor time that it took, s.
 * @interrupted: somebody stopped it before its end.
 * @label: text of the user for the report.
 */
struct sim_report_run {
	double wall_s, cpu_s;
	bool interrupted;
	const char *label;
};

cJSON *sim_report(struct sim *sim, const struct sim_report_run *run);
/** sim_report_print() - print the report for people on standard output */
void sim_report_print(const cJSON *json);

/* ---- report_config.c ---- */

cJSON *sim_config_json(const struct sim *sim);

/* ---- report_software.c ---- */

/** sim_software_json() - costs of hosts' software and what of their cores it used */
cJSON *sim_software_json(const struct sim *sim);

#endif
