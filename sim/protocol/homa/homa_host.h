/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Homa transport's own state: an engine with what it needs in every
 * simulated host. homa.c is the host's loop, homa_memory.c hands the engine
 * its memory, homa_presets.c knows the studies' settings.
 */
#ifndef SIM_HOMA_HOST_H
#define SIM_HOMA_HOST_H

#include "sim_transport.h"

#define SIM_HOMA_PORT 1u
/* The engine's clock is so far ahead: past the time in which a young engine
 * distrusts retransmissions. */
#define SIM_HOMA_EPOCH_NS 2000000000ull

/* cfg->option[] */
enum sim_homa_option {
	SIM_HOMA_SCHEDULED,   /* scheduled levels and messages granted to, 0: preset */
	SIM_HOMA_UNSCHEDULED, /* unscheduled levels, 0: preset */
	SIM_HOMA_CUTOFFS,     /* enum sim_homa_cutoffs */
	SIM_HOMA_GIVEN = SIM_MAX_OPTIONS - 1, /* a bit per engine setting the user gave */
};

enum sim_homa_cutoffs {
	SIM_HOMA_CUTOFFS_LEARNT, /* from traffic, told by CUTOFFS packets */
	SIM_HOMA_CUTOFFS_KNOWN,	 /* from the workload, known from the beginning */
};

/**
 * struct sim_homa_priv - the host's part of an RPC; msg->tx and msg->rx point
 * back to the RPCs at its two ends, which may be gone: not to be followed
 * @out, @in: messages it sends and receives; a reference to each is held.
 * @error: what @out failed of, positive errno.
 */
struct sim_homa_priv {
	struct sim_msg *out, *in;
	int error;
};

struct sim_homa_slab;

/**
 * struct sim_homa_pool - memory for all engines; one list per kind of object.
 * What was given back last is given out first: it is still in the cache.
 */
struct sim_homa_pool {
	struct sim_homa_slab *slabs;
	void *rpcs, *peers, *ranges;
	size_t rpc_size, peer_size, range_size;
	u64 bytes;
};

/**
 * struct sim_homa_host - one engine
 * @ctx first: it is used in every call.
 */
struct sim_homa_host {
	struct homa_ctx ctx;
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_sock *client, *server;
	struct sim_host *host;
	struct sim_event timer;
	struct homa_addr addr;
};

/**
 * struct sim_homa - sim->proto
 * @host_mem: hosts[], engines, links and sockets, in one piece.
 * @levels, @cutoffs: unscheduled levels and their cutoffs; 0: not given, then
 * @sample: message sizes from which engines learn them; NULL: from traffic.
 */
struct sim_homa {
	struct sim_homa_host *hosts;
	void *host_mem;
	struct homa_limits limits;
	struct homa_params params;
	struct sim_homa_pool pool;
	u32 mtu;
	u32 levels;
	u32 cutoffs[HOMA_PRIORITIES];
	u32 *sample;
};

#define SIM_HOMA_SAMPLE 5000u

/* ---- homa_memory.c ---- */

/** sim_homa_memory_init() - engines, links, sockets of all hosts; -ENOMEM, -EINVAL */
int sim_homa_memory_init(struct sim *sim, struct sim_homa *homa);
void sim_homa_memory_free(struct sim_homa *homa);
/** sim_homa_refill() - what a message, or DATA of a new one, may use up; false: no memory */
bool sim_homa_refill(struct sim_homa *homa, struct homa_ctx *ctx);
void sim_homa_give_back(struct sim_homa *homa, struct homa_rpc *rpc);
void sim_homa_give_back_peer(struct sim_homa *homa, struct homa_peer *peer);

/* ---- homa_presets.c ---- */

extern const struct sim_option sim_homa_options[];
extern const char *const sim_homa_presets[];
int sim_homa_defaults(struct sim_config *cfg);
int sim_homa_set(struct sim_config *cfg, const char *name, u64 value);
/** sim_homa_settle() - settings that follow from network and workload; -ENOMEM */
int sim_homa_settle(const struct sim *sim, struct sim_homa *homa);

/* ---- homa.c ---- */

/** sim_homa_timer() - the event function of sim_homa_host.timer */
void sim_homa_timer(struct sim *sim, struct sim_event *ev);

#endif
