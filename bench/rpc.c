/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * RPCs in flight: an array of slots and a stack of the free ones, so that
 * starting and ending an RPC touches one line of memory and nothing is
 * allocated during a run. A cookie names a slot and its use; a response that
 * comes after its RPC was given up does not match and is ignored.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define SLOT_MASK (BENCH_SLOTS_MAX - 1)
#define USE_MASK ((1u << (32 - BENCH_SLOT_BITS)) - 1)

int bench_run_init(struct bench_run *run, const struct bench_config *config,
		   struct bench_endpoint *ep)
{
	uint32_t i;

	memset(run, 0, sizeof(*run));
	run->config = config;
	run->ep = ep;
	run->slot_count = config->max_outstanding;
	if (run->slot_count < config->outstanding + config->peer_count)
		run->slot_count = config->outstanding + config->peer_count;
	run->slots = calloc(run->slot_count, sizeof(*run->slots));
	run->free_slots = malloc(run->slot_count * sizeof(*run->free_slots));
	run->unloaded = calloc(config->size_count + 1, sizeof(*run->unloaded));
	if (!run->slots || !run->free_slots || !run->unloaded)
		return -ENOMEM;
	for (i = 0; i < run->slot_count; i++)
		run->free_slots[i] = run->slot_count - 1 - i;
	run->free_count = run->slot_count;
	ep->done = bench_rpc_done;
	ep->peer_failed = bench_rpc_peer_failed;
	ep->arg = run;
	return bench_stats_init(&run->stats, config);
}

void bench_run_free(struct bench_run *run)
{
	uint32_t i;

	for (i = 0; run->unloaded && i < run->config->size_count; i++)
		homa_hist_free(&run->unloaded[i].rtt);
	free(run->unloaded);
	free(run->slots);
	free(run->free_slots);
	bench_stats_free(&run->stats);
}

/* Records the failure of a measured RPC; @age_ns 0: it was never sent. */
static void count_failure(struct bench_run *run, uint32_t class, uint32_t size,
			  uint64_t age_ns, int error)
{
	struct bench_class *c = &run->stats.classes[class];

	c->failed++;
	bench_errors_add(class == BENCH_APART ? &run->stats.apart_errors :
						&run->stats.errors,
			 error);
	if (class == BENCH_APART) {
		if (age_ns)
			homa_hist_record(&run->stats.apart_error_ns, age_ns);
		return;
	}
	if (age_ns) {
		c->censored++;
		bench_stats_latency(&run->stats, class, age_ns);
		bench_stats_slowdown(&run->stats, class, size, age_ns);
	}
}

int bench_rpc_send(struct bench_run *run, const struct homa_arrival *arrival,
		   uint64_t start_ns, uint64_t now, bool measured)
{
	uint32_t class = run->stats.class_count > 1 ? arrival->decile : 0;
	uint32_t index, response = run->config->response;
	struct bench_slot *slot;
	int ret;

	if (arrival->peer == run->config->apart)
		class = BENCH_APART;
	if (!run->free_count) {
		if (measured) {
			run->stats.overflow++;
			count_failure(run, class, arrival->size, 0, ENOBUFS);
		}
		return -ENOBUFS;
	}
	index = run->free_slots[--run->free_count];
	if (index >= run->high)
		run->high = index + 1;
	slot = &run->slots[index];
	slot->start_ns = start_ns;
	slot->sent_ns = now;
	slot->size = arrival->size;
	slot->response = response;
	slot->use++;
	slot->peer = (uint16_t)arrival->peer;
	slot->class = (uint8_t)class;
	slot->used = true;
	slot->measured = measured;
	run->stats.issued++;
	ret = run->ep->transport->request(run->ep, arrival->peer, arrival->size,
					  response,
					  index | (uint32_t)(slot->use & USE_MASK)
							  << BENCH_SLOT_BITS);
	if (!ret)
		return 0;
	slot->used = false;
	run->free_slots[run->free_count++] = index;
	run->failures++;
	run->failed_peer = arrival->peer;
	run->result = run->last_error = ret;
	if (measured) {
		run->stats.overflow += ret == -ENOBUFS;
		count_failure(run, class, arrival->size, 0, ret);
	}
	return ret;
}

/* Counts a response that ended within the window for throughput. */
static void count_throughput(struct bench_run *run,
			     const struct bench_slot *slot, uint32_t length)
{
	struct bench_stats *stats = &run->stats;
	const struct homa_wire_format *wire = &run->config->wire;

	stats->window_completed++;
	stats->window_tx_bytes += slot->size;
	stats->window_rx_bytes += length;
	stats->window_wire_bytes += homa_wire_bytes(slot->size, wire) +
				    homa_wire_bytes(length, wire);
}

static void finish(struct bench_run *run, uint32_t index, int error,
		   uint32_t length, uint64_t now)
{
	struct bench_slot *slot = &run->slots[index];
	uint64_t took = now - slot->start_ns;

	slot->used = false;
	run->free_slots[run->free_count++] = index;
	run->result = error;
	run->result_ns = took;
	run->result_ready = true;
	run->last_message_ns = now;
	if (run->config->loop == BENCH_OPEN && run->phase != BENCH_CONNECT)
		run->stats.ended_bytes +=
			slot->size +
			(slot->response ? slot->response : slot->size);
	if (error) {
		run->failures++;
		run->failed_peer = slot->peer;
		run->last_error = error;
		if (slot->measured)
			count_failure(run, slot->class, slot->size, took, error);
	} else {
		run->failures = 0;
		run->last_success_ns = now;
		if (run->phase == BENCH_CONNECT)
			run->answered[slot->peer] = true;
		if (run->phase == BENCH_WINDOW)
			count_throughput(run, slot, length);
		if (slot->measured) {
			struct bench_class *c = &run->stats.classes[slot->class];

			bench_stats_latency(&run->stats, slot->class, took);
			bench_stats_slowdown(&run->stats, slot->class,
					     slot->size, took);
			homa_hist_record(&run->stats.from_send,
					 now - slot->sent_ns);
			c->bytes += slot->size + length;
		}
	}
	if (run->phase == BENCH_DRAIN || run->phase == BENCH_CONNECT ||
	    run->config->loop != BENCH_CLOSED)
		return;
	if (error)
		run->retry++;
	else
		bench_load_next(run, now);
}

void bench_rpc_done(void *arg, uint32_t cookie, int error, uint32_t length)
{
	struct bench_run *run = arg;
	uint32_t index = cookie & SLOT_MASK;
	struct bench_slot *slot;
	uint32_t wanted;

	if (index >= run->slot_count)
		return;
	slot = &run->slots[index];
	if (!slot->used || (slot->use & USE_MASK) != cookie >> BENCH_SLOT_BITS)
		return;
	wanted = slot->response ? slot->response : slot->size;
	if (!error && length != wanted)
		error = -EBADMSG;
	finish(run, index, error, length, bench_now());
}

void bench_rpc_peer_failed(void *arg, uint32_t peer, int error)
{
	struct bench_run *run = arg;
	uint64_t now = bench_now();
	uint32_t i;

	for (i = 0; i < run->high; i++)
		if (run->slots[i].used && run->slots[i].peer == peer &&
		    run->slots[i].sent_ns < now)
			finish(run, i, error, 0, now);
}

void bench_rpc_expire(struct bench_run *run, uint64_t before, int error)
{
	const struct bench_transport *transport = run->ep->transport;
	uint64_t now = bench_now();
	uint32_t i;

	for (i = 0; i < run->high; i++) {
		struct bench_slot *slot = &run->slots[i];

		if (!slot->used || slot->sent_ns > before)
			continue;
		if (transport->abandon)
			transport->abandon(run->ep,
					   i | (uint32_t)(slot->use & USE_MASK)
							   << BENCH_SLOT_BITS);
		finish(run, i, error, 0, now);
	}
}
