/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load generator: one thread, one endpoint, RPCs in numbered slots. Open
 * loop: an RPC's clock starts when the arrival process says it should be sent,
 * whether or not the generator or the transport was ready for it, so queueing
 * is never hidden. How late requests really left is reported, and a run whose
 * generator was the bottleneck says so.
 */
#ifndef HOMA_BENCH_RUN_H
#define HOMA_BENCH_RUN_H

#include "arrivals.h"
#include "bench.h"
#include "bench_stats.h"
#include "bench_transport.h"

/**
 * Low bits of a cookie are a slot, the others count its uses, so that late responses are
 * noticed.
 */
#define BENCH_SLOT_BITS 20
#define BENCH_SLOTS_MAX (1u << BENCH_SLOT_BITS)

/**
 * struct bench_slot - an RPC in flight
 * @start_ns: time at which it should have been sent, ns; latency counts from here.
 * @sent_ns: time at which it was sent, ns.
 * @size: bytes of the request.
 * @response: bytes of the response.
 * @use: number of times that the slot was used, modulo 2^16.
 * @peer: index of the server.
 * @class: decile of its size.
 * @used: the slot has an RPC.
 * @measured: the RPC counts in the results.
 */
struct bench_slot {
	uint64_t start_ns;
	uint64_t sent_ns;
	uint32_t size;
	uint32_t response;
	uint16_t use;
	uint16_t peer;
	uint8_t class;
	bool used;
	bool measured;
};

enum bench_phase {
	BENCH_CONNECT, /* probes are sent until every peer has answered */
	BENCH_WARMUP,  /* RPCs are sent and not measured */
	BENCH_WINDOW,  /* RPCs are sent and measured */
	BENCH_DRAIN,   /* no RPC is sent; those in flight may end */
};

/** struct bench_size_result - one line of the unloaded measurement */
struct bench_size_result {
	uint32_t size;
	struct homa_hist rtt;
};

/**
 * struct bench_run - a run
 * @next: open loop: the next arrival.
 * @bursts: --burst: number of bursts that have begun.
 * @slots: RPCs in flight.
 * @free_slots: stack of unused slot numbers.
 * @slot_count: number of entries of @slots.
 * @free_count: number of entries of @free_slots that are used.
 * @high: highest slot number used so far, plus 1.
 * @answered: by peer: true if it has answered a probe.
 * @late_ns: time after --start-at at which the run began, beyond the usual.
 * @retry_ns: closed loop: time at which the RPCs of @retry are started.
 * @last_success_ns: time of the last RPC that succeeded.
 * @failures: number of RPCs that have failed since then.
 * @retry: closed loop: number of RPCs that failed and are to be started again.
 * @result: result of the last RPC, 0 or a negative errno, when RPCs run one at a time.
 * @last_error: negative errno of the last RPC that failed.
 * @outcome: 0, or the negative errno that ended the run early.
 * @unloaded: results by size, config->size_count of them.
 */
struct bench_run {
	const struct bench_config *config;
	struct bench_endpoint *ep;
	struct bench_stats stats;
	struct homa_arrivals arrivals;
	struct homa_arrival next;
	uint64_t bursts;
	enum bench_phase phase;

	struct bench_slot *slots;
	uint32_t *free_slots;
	uint32_t slot_count, free_count, high;

	bool answered[BENCH_MAX_PEERS];
	uint64_t late_ns;
	uint64_t start_ns, window_ns, end_ns, drain_ns;
	uint64_t retry_ns, scan_ns;
	uint64_t last_success_ns, last_message_ns, failures;
	uint32_t retry;
	int result, last_error;
	uint64_t result_ns;
	bool result_ready;

	bool interrupted;
	bool gave_up;
	int outcome;
	uint32_t failed_peer;
	struct bench_size_result *unloaded;
};

/** bench_run_init() - prepare a run; 0 or -ENOMEM */
int bench_run_init(struct bench_run *run, const struct bench_config *config,
		   struct bench_endpoint *ep);
void bench_run_free(struct bench_run *run);

/**
 * bench_run_connect() - wait until every peer has answered a probe
 * Serves meanwhile, so that nodes can start in any order.
 * Return: 0, or a negative errno with run->failed_peer; -EINTR: stopped.
 */
int bench_run_connect(struct bench_run *run);

/** bench_run_load() - warm up, measure and drain. Return: 0 or a negative errno */
int bench_run_load(struct bench_run *run);

/** bench_run_unloaded() - measure one RPC at a time over config->sizes */
int bench_run_unloaded(struct bench_run *run);

/** bench_run_serve() - answer requests until told to stop or for the duration */
int bench_run_serve(struct bench_run *run);

/* rpc.c */

/** bench_rpc_send() - send a request; 0, -ENOBUFS (no slot) or -errno */
int bench_rpc_send(struct bench_run *run, const struct homa_arrival *arrival,
		   uint64_t start_ns, uint64_t now, bool measured);

/** bench_rpc_done(), bench_rpc_peer_failed() - the functions that the endpoint calls */
void bench_rpc_done(void *arg, uint32_t cookie, int error, uint32_t length);
void bench_rpc_peer_failed(void *arg, uint32_t peer, int error);

/** bench_rpc_expire() - fail RPCs sent before @before with @error */
void bench_rpc_expire(struct bench_run *run, uint64_t before, int error);

/** bench_rpc_in_flight() - number of RPCs that have not ended */
static inline uint32_t bench_rpc_in_flight(const struct bench_run *run)
{
	return run->slot_count - run->free_count;
}

/** bench_load_next() - closed loop: start the RPC that replaces a finished one */
void bench_load_next(struct bench_run *run, uint64_t now);

/* result.c, report.c */

/** bench_result() - return the whole result as JSON */
cJSON *bench_result(struct bench_run *run);

/** bench_config_json() - return the configuration as JSON */
cJSON *bench_config_json(const struct bench_config *config);

/** bench_report() - print a summary for people on standard output */
void bench_report(const cJSON *result);

#endif
