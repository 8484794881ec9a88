/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loops of the load generator; see run.h. Phases follow the clock: probe
 * every peer, warm up, measure, drain. A node goes on serving while it drains,
 * since its peers may still be waiting for it.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* Longest wait of one poll, so that signals and phases are seen. */
#define POLL_NS (BENCH_NS_PER_S / 20)
/* How often RPCs are checked for having timed out. */
#define SCAN_NS (BENCH_NS_PER_S / 20)
/* Pause before a failed RPC of a closed loop is tried again. */
#define RETRY_NS (BENCH_NS_PER_S / 100)
/* A probe is repeated after this time without an answer. */
#define PROBE_NS (BENCH_NS_PER_S / 4)
#define PROBE_BYTES 16
static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Probes the peers that have not answered, and waits for answers. */
static void probe(struct bench_run *run)
{
	struct homa_arrival arrival = { .size = PROBE_BYTES };
	uint64_t now = bench_now(), end = now + PROBE_NS;
	uint32_t i;

	for (i = 0; i < run->config->peer_count; i++) {
		arrival.peer = i;
		if (!run->answered[i])
			bench_rpc_send(run, &arrival, now, now, false);
	}
	while (bench_rpc_in_flight(run) && now < end && !bench_stop) {
		run->ep->transport->poll(run->ep, end - now);
		now = bench_now();
	}
	bench_rpc_expire(run, UINT64_MAX, -ETIMEDOUT);
}

/* Returns the first peer that has not answered yet, or the number of peers. */
static uint32_t silent_peer(const struct bench_run *run)
{
	uint32_t i = 0;

	while (i < run->config->peer_count && run->answered[i])
		i++;
	return i;
}

int bench_run_connect(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	uint64_t deadline = bench_now() + bench_ns(config->connect_timeout);
	uint64_t again;

	run->phase = BENCH_CONNECT;
	for (;;) {
		probe(run);
		run->failed_peer = silent_peer(run);
		if (run->failed_peer == config->peer_count)
			break;
		if (bench_stop)
			return -EINTR;
		if (bench_now() >= deadline)
			return run->last_error;
		again = bench_now() + RETRY_NS;
		while (bench_now() < again && !bench_stop)
			run->ep->transport->poll(run->ep, RETRY_NS);
	}
	run->failed_peer = 0;
	if (run->ep->transport->prepare)
		return run->ep->transport->prepare(run->ep);
	return 0;
}

void bench_load_next(struct bench_run *run, uint64_t now)
{
	struct homa_arrival arrival;
	bool measured = run->phase == BENCH_WINDOW;

	homa_arrivals_next(&run->arrivals, &arrival);
	run->stats.measured += measured;
	if (bench_rpc_send(run, &arrival, now, now, measured))
		run->retry++;
}

/* Finds the next message of the open loop; of a burst, the one to the next peer. */
static void next_arrival(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	struct homa_arrival *next = &run->next;
	uint64_t at = next->at_ns;
	uint32_t peer = next->peer + 1;

	homa_arrivals_next(&run->arrivals, next);
	if (!config->burst)
		return;
	if (peer >= config->peer_count || !run->bursts) {
		run->bursts++;
		at = (uint64_t)((double)run->bursts * config->peer_count * 1e9 /
				config->rate);
		peer = 0;
	}
	next->at_ns = at;
	next->peer = peer;
}

/* Sends the requests of the open loop that are due. */
static void send_due(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	struct bench_stats *stats = &run->stats;
	uint64_t now, start;
	uint32_t response;
	bool measured;
	int burst;

	/* The burst is bounded, so that responses are handled even when the loop is
	 * hopelessly late. */
	for (burst = 0; burst < 64; burst++) {
		start = run->start_ns + run->next.at_ns;
		now = bench_now();
		if (start > now || start >= run->end_ns)
			return;
		measured = start >= run->window_ns;
		response = config->response ? config->response : run->next.size;
		stats->due_bytes += run->next.size + response;
		if (measured) {
			stats->measured++;
			homa_hist_record(&stats->lag, now - start);
			stats->offered_bytes += run->next.size + response;
			stats->offered_wire_bytes +=
				homa_wire_bytes(run->next.size, &config->wire) +
				homa_wire_bytes(response, &config->wire);
		}
		if (bench_rpc_send(run, &run->next, start, now, measured))
			stats->ended_bytes += run->next.size + response;
		next_arrival(run);
	}
}

/* Looks at how much is under way, as often as it is time to. */
static void sample(struct bench_run *run, uint64_t now)
{
	struct bench_stats *stats = &run->stats;
	uint64_t window = run->end_ns - run->window_ns;

	while (stats->samples < BENCH_SAMPLES &&
	       now >= run->window_ns +
			       window * stats->samples / (BENCH_SAMPLES - 1))
		stats->backlog[stats->samples++] =
			(double)(stats->due_bytes - stats->ended_bytes);
}

/* Enters the phases that the clock has reached. */
static void advance(struct bench_run *run, uint64_t now)
{
	struct bench_stats *stats = &run->stats;

	if (run->phase == BENCH_WARMUP && now >= run->window_ns) {
		run->phase = BENCH_WINDOW;
		bench_window_opens(stats);
	}
	if (run->phase == BENCH_WINDOW && now >= run->end_ns) {
		/* The last arrivals of an open loop that is late are still sent. */
		run->phase = BENCH_DRAIN;
		bench_window_closes(stats);
	}
}

static bool owes_arrivals(const struct bench_run *run)
{
	return run->config->loop == BENCH_OPEN &&
	       run->start_ns + run->next.at_ns < run->end_ns;
}

static void restart_failed(struct bench_run *run, uint64_t now)
{
	uint32_t n = run->retry;

	if (now < run->retry_ns)
		return;
	run->retry_ns = now + RETRY_NS;
	run->retry = 0;
	while (n--)
		bench_load_next(run, now);
}

/* Have ten RPCs or more failed, and has none succeeded for config->give_up seconds? */
static bool hopeless(const struct bench_run *run, uint64_t now)
{
	return run->failures >= 10 &&
	       now > run->last_success_ns + bench_ns(run->config->give_up);
}

/*
 * Handles messages until an arrival is due at @next. An open loop gives up sleeping --lead
 * before an arrival, about what it takes to wake up; from there it polls, yielding the
 * core. All transports get the same treatment, and requests leave on time. Without a lead
 * the generator costs no more than it must, and the time that it takes to wake up is part
 * of the latency.
 */
static int wait_open(struct bench_run *run, uint64_t next)
{
	uint64_t lead = (uint64_t)(run->config->lead_us * 1e3);
	uint64_t now = bench_now();
	int n;

	if (next > now + lead)
		return run->ep->transport->poll(run->ep, next - now - lead);
	n = run->ep->transport->poll(run->ep, 0);
	if (!n && next > now && run->config->wait != BENCH_WAIT_SPIN)
		sched_yield();
	return n;
}

/* Now and then ends RPCs that are too old. Returns whether it looked. */
static bool scan(struct bench_run *run, uint64_t now)
{
	uint64_t timeout = bench_ns(run->config->timeout);

	if (now < run->scan_ns)
		return false;
	run->scan_ns = now + SCAN_NS;
	if (now > timeout)
		bench_rpc_expire(run, now - timeout, -ETIMEDOUT);
	return true;
}

static int measure(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	uint64_t now, next;
	int ret;

	for (;;) {
		now = bench_now();
		advance(run, now);
		sample(run, now);
		if (run->phase == BENCH_DRAIN && !owes_arrivals(run))
			return 0;
		if (bench_stop)
			return -EINTR;
		next = earlier(now + POLL_NS, run->phase == BENCH_WARMUP ?
						      run->window_ns :
						      run->end_ns);
		if (config->loop == BENCH_OPEN) {
			send_due(run);
			next = earlier(next, run->start_ns + run->next.at_ns);
		} else if (run->retry) {
			restart_failed(run, now);
			next = earlier(next, run->retry_ns);
		}
		if (scan(run, now) && hopeless(run, now)) {
			run->gave_up = true;
			return run->last_error;
		}
		ret = config->loop == BENCH_OPEN ?
			      wait_open(run, next) :
			      run->ep->transport->poll(run->ep,
						       next > now ? next - now :
								    0);
		if (ret < 0)
			return ret;
	}
}

/* Waits for the RPCs in flight, and serves peers that are not done. */
static void drain(struct bench_run *run)
{
	uint64_t now = bench_now(), deadline = now + run->drain_ns;
	uint64_t began = now, served = run->ep->served;
	uint64_t stay = bench_ns(run->config->stay);
	bool serving = run->config->role & BENCH_SERVER;

	run->phase = BENCH_DRAIN;
	run->last_message_ns = now;
	while (!bench_stop && now < deadline) {
		if (!bench_rpc_in_flight(run)) {
			if (!run->stats.drained_ns)
				run->stats.drained_ns = now - began + 1;
			if (!serving || now > run->last_message_ns + stay)
				break;
		}
		if (run->ep->transport->poll(run->ep,
					     earlier(POLL_NS, deadline - now)) < 0)
			break;
		now = bench_now();
		scan(run, now);
		if (run->ep->served != served) {
			served = run->ep->served;
			run->last_message_ns = now;
		}
	}
	run->stats.unfinished = bench_rpc_in_flight(run);
	bench_rpc_expire(run, UINT64_MAX, -ETIME);
}

static void wait_for_start(struct bench_run *run)
{
	uint64_t now;

	while ((now = bench_now()) < run->config->start_at_ns && !bench_stop)
		run->ep->transport->poll(run->ep,
					 earlier(POLL_NS,
						 run->config->start_at_ns - now));
}

int bench_run_load(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	bool open = config->loop == BENCH_OPEN;
	uint32_t i;
	int ret;

	wait_for_start(run);
	homa_arrivals_init(&run->arrivals, &config->workload,
			   open ? 1e9 / config->rate : 0, config->peer_count,
			   config->seed, config->host_index);
	run->start_ns = bench_now();
	if (config->start_at_ns && run->start_ns < config->start_at_ns + POLL_NS)
		run->start_ns = config->start_at_ns;
	else if (config->start_at_ns)
		run->late_ns = run->start_ns - config->start_at_ns;
	run->window_ns = run->start_ns + bench_ns(config->warmup);
	run->end_ns = run->window_ns + bench_ns(config->duration);
	run->drain_ns = bench_ns(config->drain);
	run->last_success_ns = run->start_ns;
	run->failures = 0;
	run->stats.issued = 0;
	run->phase = BENCH_WARMUP;
	advance(run, run->start_ns);
	if (open)
		next_arrival(run);
	else
		for (i = 0; i < config->outstanding; i++)
			bench_load_next(run, bench_now());
	ret = measure(run);
	if (run->phase == BENCH_WARMUP) /* nothing was measured */
		bench_window_opens(&run->stats);
	if (run->phase != BENCH_DRAIN)
		bench_window_closes(&run->stats);
	if (ret == -EINTR)
		run->interrupted = true;
	if (ret)
		run->drain_ns = 0;
	drain(run);
	run->outcome = ret;
	return ret;
}

/* Runs one RPC alone on the network. Returns 0 and sets run->result_ns, or returns a
 * negative errno. */
static int single(struct bench_run *run, uint32_t size)
{
	struct homa_arrival arrival = { .size = size };
	uint64_t now = bench_now();
	uint64_t deadline = now + bench_ns(run->config->timeout);
	int ret;

	run->result_ready = false;
	ret = bench_rpc_send(run, &arrival, now, now, false);
	while (!ret && !run->result_ready) {
		if (bench_stop)
			return -EINTR;
		if (bench_now() > deadline)
			return -ETIMEDOUT;
		ret = run->ep->transport->poll(run->ep, POLL_NS);
		ret = ret < 0 ? ret : 0;
	}
	return ret ? ret : run->result;
}

/* Lets time pass after an RPC. The transport is looked after meanwhile, so that what it still
 * has to say leaves. Returns 0 or a negative errno. */
static int rest(struct bench_run *run)
{
	uint64_t end = bench_now() + (uint64_t)(run->config->pause_us * 1e3);
	uint64_t now;
	int ret = 0;

	while (ret >= 0 && (now = bench_now()) < end && !bench_stop)
		ret = run->ep->transport->poll(run->ep,
					       earlier(POLL_NS, end - now));
	return bench_stop ? -EINTR : ret < 0 ? ret : 0;
}

int bench_run_unloaded(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	/* Time that each size may take. */
	double share = config->duration / config->size_count;
	uint32_t i, k;
	int ret = 0;

	wait_for_start(run);
	run->phase = BENCH_WARMUP;
	bench_window_opens(&run->stats);
	for (i = 0; i < config->size_count && !ret; i++) {
		struct bench_size_result *result = &run->unloaded[i];
		uint64_t deadline = bench_now() + bench_ns(share);

		result->size = config->sizes[i];
		if (homa_hist_init(&result->rtt))
			return -ENOMEM;
		/* The first few RPCs open windows and fill caches. */
		for (k = 0; k < config->samples + 3 && !ret; k++) {
			ret = single(run, result->size);
			if (!ret && k >= 3)
				homa_hist_record(&result->rtt, run->result_ns);
			if (!ret && config->pause_us > 0)
				ret = rest(run);
			if (k >= 8 && bench_now() > deadline)
				break;
		}
	}
	bench_window_closes(&run->stats);
	run->phase = BENCH_DRAIN;
	run->interrupted = ret == -EINTR;
	run->outcome = ret;
	return ret;
}

int bench_run_serve(struct bench_run *run)
{
	uint64_t now = bench_now();
	uint64_t end = run->config->duration > 0 ?
			       now + bench_ns(run->config->duration) :
			       UINT64_MAX;
	int ret = 0;

	run->phase = BENCH_DRAIN;
	bench_window_opens(&run->stats);
	/* The clock is read rarely while requests come, because answering them is all that
	 * a server does. */
	while (!bench_stop && now < end && ret >= 0) {
		int k;

		for (k = 0; k < 64 && !bench_stop && ret >= 0; k++) {
			ret = run->ep->transport->poll(run->ep,
						       earlier(POLL_NS,
							       end - now));
			if (!ret && run->config->wait <= BENCH_WAIT_BLOCK)
				break;
		}
		now = bench_now();
	}
	bench_window_closes(&run->stats);
	run->outcome = ret < 0 ? ret : 0;
	return run->outcome;
}
