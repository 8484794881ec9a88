/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Clusters from a seed: 3 to 12 whole engines under the harness of tests/pair, among
 * them hosts that lie and applications that misbehave. A plan is drawn from the seed:
 * what hosts send, and a list of faults with a beginning and an end each. First all of
 * it happens and nothing may be wrong; then the faults stop, liars and misbehaving
 * applications are gone, and everything must come to its end within a bound of virtual
 * time. A fault of the plan can be left out, and the rest stays the same; so a world
 * that fails can be made smaller.
 *
 *	plan.c    what is drawn from a seed	faults.c  faults begin and end
 *	load.c    what hosts send		apps.c    applications that misbehave
 *	liar.c    hosts that lie		judge.c   what must hold
 *	cover.c   what was reached		shrink.c  a smaller world that fails
 *	run.c     a world's life		main.c    options, many worlds
 */
#ifndef WORLD_H
#define WORLD_H

#include "harness.h"

#define WORLD_MIN_HOSTS 3
#define WORLD_MAX_HOSTS 12
#define WORLD_MAX_FAULTS 64
#define WORLD_BAD_PORT 101

/* WORLD_FAULT(name, "what it does") */
#define WORLD_FAULTS(X)                                                           \
	X(loss, "packets are lost by chance")                                     \
	X(silence, "a host's packets are lost, all of them, in short bursts")     \
	X(copies, "packets come twice, up to tombstone_ms late")                  \
	X(late_copies, "the same, up to 8 s late")                                \
	X(reorder, "packets overtake each other")                                 \
	X(damage, "bits flip, and no checksum notices")                           \
	X(cut, "no packet from one host to another")                              \
	X(partition, "two groups of hosts do not hear each other")                \
	X(isolate, "a host hears nobody and is heard by nobody")                  \
	X(pause, "a host does nothing for 1 ms to 10 s")                          \
	X(restart, "a host loses its memory")                                     \
	X(restart_bare, "the same; its sockets come back later")                  \
	X(crash_rx, "a host dies in the middle of a batch of packets")            \
	X(crash_tx, "a host dies when a packet has left")                         \
	X(leap, "a host's clock leaps forward, up to 100 s")                      \
	X(drift, "a host's clock runs wrong by up to 500 ppm")                    \
	X(reopen, "a server closes its socket and opens it again")                \
	X(reclose, "a client closes its socket and opens another")                \
	X(aborts, "a client aborts RPCs")                                         \
	X(tx_fail, "devices refuse packets")                                      \
	X(no_way, "a device knows no way to anybody")                             \
	X(starve, "hosts are late with spare memory")                             \
	X(app_deaf, "an application never takes")                                 \
	X(app_hoard, "an application never gives pages back")                     \
	X(app_mute, "an application never answers")                               \
	X(app_twice, "an application answers twice")                              \
	X(app_greedy, "a user takes all RPCs that he can get")                    \
	X(app_fickle, "an application aborts what it began, and closes")          \
	X(lie_change, "a liar's own packets are changed on their way out")        \
	X(lie_grant, "a liar grants beyond the end, and takes it back")           \
	X(lie_busy, "a liar is always busy")                                      \
	X(lie_need_ack, "a liar wants acks, without end")                         \
	X(lie_unknown, "a liar knows nothing of its RPCs")                        \
	X(lie_resend, "a liar asks for the same again, without end")              \
	X(lie_ack, "a liar acknowledges RPCs of others")                          \
	X(lie_cutoffs, "a liar sends cutoffs, in others' names too")              \
	X(lie_icmp, "a liar sends ICMP errors")                                   \
	X(lie_flood, "first packets of long messages from many addresses")        \
	X(lie_overlap, "DATA that overlaps with other bytes and other lengths")   \
	X(lie_forge, "whole requests in others' names, some of one packet twice") \
	X(lie_replay, "packets that the liar saw, again, to anybody")             \
	X(lie_rubbish, "bytes without sense")

enum world_kind {
#define X(name, text) WORLD_##name,
	WORLD_FAULTS(X)
#undef X
		WORLD_KINDS
};

enum world_pattern {
	WORLD_ALL_TO_ALL,
	WORLD_INCAST,
	WORLD_HOT_SPOT,
	WORLD_PATTERNS
};

/* What a socket is for; pair_sock.role. */
enum {
	WORLD_NO_ROLE,
	WORLD_SERVER,
	WORLD_CLIENT,
	WORLD_BAD_SERVER,
	WORLD_BAD_CLIENT
};

/**
 * struct world_fault - something that goes wrong from @at to @end
 * @a, @b: hosts; @mask: several.
 * @amount: per mille, ppm or a number, @ns: a time, both by kind.
 * @off: left out.
 */
struct world_fault {
	u8 kind;
	u8 a, b;
	u32 mask;
	u64 at, end;
	u32 amount;
	u64 ns;
	bool off;
	bool active;
	struct pair_rng rng;
};

/**
 * struct world_plan - all that is drawn from a seed
 * @span: how long faults and load go on.
 * @liars: so many of the last hosts lie.
 * @gap_ns: mean time between bursts of a host; @burst: RPCs in one.
 * @bits: lengths of all magnitudes up to 2^bits.
 * @most: RPCs that a host has open at once.
 * @slow: per mille of requests that a server takes long to answer.
 */
struct world_plan {
	u64 seed;
	struct pair_config cfg;
	bool idle;
	u64 span;
	u32 liars;
	enum world_pattern pattern;
	u8 hot;
	u64 gap_ns;
	u32 burst, bits, most, slow;
	struct world_fault faults[WORLD_MAX_FAULTS];
	u32 num_faults;
};

#define WORLD_SEEN 64
#define WORLD_FORGED (1u << 14)

/* struct world_seen - the header of a packet that a liar got or sent */
struct world_seen {
	u8 from, to;
	u16 len;
	u8 data[HOMA_MAX_HDR];
};

/**
 * struct world - a cluster at work
 * @calm: the faults have stopped.
 * @over: nothing may begin any more.
 * @lying: the packet that is being sent was made by a liar, not by its engine.
 * @open_rpcs: of each host's load.
 * @bare: a host starts without sockets; they come later.
 * @owners: of well-behaved and of other applications.
 * @forged: hashes of requests that liars made.
 */
struct world {
	struct pair_world *w;
	struct world_plan *plan;
	bool calm, over, lying;
	struct pair_rng load[WORLD_MAX_HOSTS];
	u32 open_rpcs[WORLD_MAX_HOSTS];
	bool bare[WORLD_MAX_HOSTS];
	struct homa_owner owners[WORLD_MAX_HOSTS][2];
	struct world_seen seen[WORLD_SEEN];
	u32 num_seen;
	u64 *forged;
	u64 calm_at;
};

static inline struct world *world_of(const struct pair_world *w)
{
	return w->user;
}

static inline u32 world_honest(const struct world *world)
{
	return world->plan->cfg.hosts - world->plan->liars;
}

extern const char *const world_fault_name[WORLD_KINDS];
extern const char *const world_fault_text[WORLD_KINDS];

/* plan.c */
/** world_draw() - @hosts 0: from the seed, too */
void world_draw(struct world_plan *plan, u64 seed, u32 hosts);

/* run.c */
/** world_run() - a world's whole life; returns if all is well */
void world_run(struct world_plan *plan);
/** world_open() - the sockets that it lacks */
void world_open(struct pair_host *h);
/** world_down() - it loses everything, and comes back later */
void world_down(struct pair_host *h, u64 ns);
/** world_sock() - the open socket of that role; -1: none */
int world_sock(const struct pair_host *h, u32 role);

/* load.c */
void world_load(struct pair_host *h);
void world_load_ended(struct pair_world *w, struct pair_rpc *rpc);
u32 world_length(struct pair_rng *rng, u32 bits);

/* faults.c */
void world_faults_begin(struct world *world);
void world_faults_end(struct world *world);

/* apps.c */
void world_app_begin(struct world *world, struct world_fault *f);
void world_app_end(struct world *world, struct world_fault *f);
/** world_apps_gone() - no misbehaving application is left at this host */
void world_apps_gone(struct pair_host *h);

/* liar.c */
void world_lie_begin(struct world *world, struct world_fault *f);
bool world_tap(struct pair_world *w, struct pair_pkt *pkt, void *arg);
bool world_forged(struct pair_world *w, const struct homa_addr *src, u64 id);

/* judge.c */
/** world_limits() - nobody has more than his share, now and from time to time */
void world_limits(struct world *world);
/** world_settle() - everything comes to its end, and everybody serves everybody */
void world_settle(struct world *world);

/* cover.c */
struct world_cover {
	u64 worlds, idle_worlds;
	u64 did[PAIR_DIDS];
	u64 again[PAIR_MAYS]; /* RPCs that ran again, by what allowed it */
	u64 faults[WORLD_KINDS];
	u64 rpcs, ok, failed, packets, events;
	u64 ns;	       /* virtual */
	u64 settle_ns; /* longest */
	u64 settle_seed;
};
extern struct world_cover world_cover;
void world_cover_add(struct world *world);
/** world_cover_print() - for people, then a line of JSON; false: something that should
 *  have happened never did */
bool world_cover_print(double seconds);

/* shrink.c */
/** world_shrink() - leaves out what is not needed to fail; prints what is left */
void world_shrink(struct world_plan *plan);

#endif
