/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Homa transport's own state: an engine with what it needs in every
 * simulated host. homa.c is the host's loop, homa_memory.c hands the engine
 * its memory, homa_presets.c knows the studies' settings.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_HOMA_HOST_H
#define SIM_HOMA_HOST_H

#include "sim_transport.h"

#define SIM_HOMA_PORT 1u
/* Time of the engine's clock when a run begins, in ns: past the time in which a young
 * engine distrusts retransmissions. */
#define SIM_HOMA_EPOCH_NS 2000000000ull

/* indices of cfg->option[] */
enum sim_homa_option {
	/* number of scheduled levels and of messages granted to; 0: the preset's */
	SIM_HOMA_SCHEDULED,
	/* number of unscheduled levels; 0: the preset's */
	SIM_HOMA_UNSCHEDULED,
	SIM_HOMA_CUTOFFS, /* an enum sim_homa_cutoffs */
	SIM_HOMA_CARD,	  /* hosts have a card that does not say when it has room */
	/* a bit for each engine setting that the user gave */
	SIM_HOMA_GIVEN = SIM_MAX_OPTIONS - 1,
};

enum sim_homa_cutoffs {
	/* engines learn cutoffs from traffic and tell them by CUTOFFS packets */
	SIM_HOMA_CUTOFFS_LEARNT,
	/* engines know cutoffs that fit the workload from the beginning */
	SIM_HOMA_CUTOFFS_KNOWN,
};

/**
 * struct sim_homa_priv - the host's part of an RPC
 * The msg->tx and msg->rx of a message point to the RPCs at its two ends. These may be
 * freed already, so the pointers must not be followed.
 * @out: message that the RPC sends, with a reference, or NULL.
 * @in: message that the RPC receives, with a reference, or NULL.
 * @error: positive errno with which @out failed; 0: it did not.
 */
struct sim_homa_priv {
	struct sim_msg *out, *in;
	int error;
};

struct sim_homa_slab;

/**
 * struct sim_homa_pool - memory for all engines; one list per kind of object. An object
 * that was given back last is given out first, because it is still in the cache.
 */
struct sim_homa_pool {
	/* Memory from which objects were cut, a list. */
	struct sim_homa_slab *slabs;
	/* Lists of free objects of each kind. */
	void *rpcs, *peers, *ranges;
	/* Bytes of an object of each kind. */
	size_t rpc_size, peer_size, range_size;
	/* Bytes of all slabs together. */
	u64 bytes;
};

/**
 * struct sim_homa_card - the queue of a host's network card
 * @head: the packet that is sent next, or NULL.
 * @tail: where the pointer to the next packet will be written.
 * @due: event at the time before which the engine's pacer gives the card nothing.
 */
struct sim_homa_card {
	struct sim_pkt *head, **tail;
	struct sim_event due;
};

/**
 * struct sim_homa_host - one engine
 * @ctx: context of all calls; it comes first because every call uses it.
 * @engine: the engine.
 * @link: its only link.
 * @client, @server: its sockets, from which requests are sent and to which they come.
 * @host: the simulated host.
 * @timer: event at the time at which the engine is to be called.
 * @card: its network card, with SIM_HOMA_CARD.
 * @addr: address of the host, as other engines know it.
 */
struct sim_homa_host {
	struct homa_ctx ctx;
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_sock *client, *server;
	struct sim_host *host;
	struct sim_event timer;
	struct sim_homa_card card;
	struct homa_addr addr;
};

/**
 * struct sim_homa - sim->proto
 * @hosts: an engine for each host, by its number.
 * @host_mem: memory of hosts[], engines, links and sockets, in one piece.
 * @limits: sizes with which all engines were made.
 * @params: settings of all engines.
 * @pool: memory of RPCs, peers and ranges of all engines.
 * @mtu: IP MTU of all links, in bytes.
 * @levels: number of unscheduled levels; 0: none is given.
 * @cutoffs: cutoffs of these levels, in bytes.
 * @sample: message sizes from which engines learn the cutoffs if @levels is 0; NULL:
 *	engines learn them from traffic.
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

/**
 * sim_homa_memory_init() - make engines, links and sockets of all hosts; -ENOMEM, -EINVAL
 */
int sim_homa_memory_init(struct sim *sim, struct sim_homa *homa);
void sim_homa_memory_free(struct sim_homa *homa);
/**
 * sim_homa_refill() - give the engine the memory that a message, or DATA of a new one, may
 * use up; false: there is none
 */
bool sim_homa_refill(struct sim_homa *homa, struct homa_ctx *ctx);
void sim_homa_release_rpc(struct sim_homa *homa, struct homa_rpc *rpc);
void sim_homa_release_peer(struct sim_homa *homa, struct homa_peer *peer);

/* ---- homa_presets.c ---- */

extern const struct sim_option sim_homa_options[];
extern const char *const sim_homa_presets[];
int sim_homa_defaults(struct sim_config *cfg);
int sim_homa_set(struct sim_config *cfg, const char *name, u64 value);
/** sim_homa_settle() - make the settings that follow from network and workload; -ENOMEM */
int sim_homa_settle(const struct sim *sim, struct sim_homa *homa);

/* ---- homa_card.c ---- */

void sim_homa_card_init(struct sim_homa_card *card);
/** sim_homa_card_put() - put a packet at the end of the queue */
void sim_homa_card_put(struct sim_homa_card *card, struct sim_pkt *pkt);
/** sim_homa_card_get() - take the packet that has waited longest; NULL: there is none */
struct sim_pkt *sim_homa_card_get(struct sim_homa_card *card);

/* ---- homa.c ---- */

/** sim_homa_card_due() - the event function of sim_homa_card.due */
void sim_homa_card_due(struct sim *sim, struct sim_event *ev);

/** sim_homa_timer() - the event function of sim_homa_host.timer */
void sim_homa_timer(struct sim *sim, struct sim_event *ev);

#endif
