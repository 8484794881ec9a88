// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP on a fast-path thread: the engine's beginning and end, its memory, its clock, and
 * which device a connection's packets leave by.
 */
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "fast.h"
#include "homad_tcp.h"
#include "streams.h"
#include "tcp_stream.h"

#define ALIGN 64u
/* Number of connections for which the engine has memory in advance. */
#define SPARES 64u
/* Time for which the slow path is not asked for a port after it had none, ns. */
#define NO_PORTS_NS 1000000000u
/* With fewer spare connections than this the oldest orphan is dropped. */
#define FEW_SPARES 16u
/* One in this many connections may be half open. */
#define HALF_OPEN_SHARE 4u
/* One in this many connections of each engine may wait to be accepted, but FEW_READY of them in any
 * case, if that is not more than half. Nobody is charged for them, as they have no slot yet. */
#define READY_SHARE 4u
#define FEW_READY 512u
/* Most segments that go the engine's slow way in a round. */
#define EXCEPTIONS 256u
/* The longest IP packet that stays in this host, bytes. */
#define LOCAL_MTU 65535u
/* Most connections whose timers are run in a round. */
#define TIMER_BUDGET 64u

/* Sets up the engine for connections between applications of this host (tcp_local.c). */
static void set_local(struct tas_engine *engine)
{
	/* Segments arrive at once and are never lost. */
	tas_set(engine, "delack_ms", 0);
	tas_set(engine, "timestamps", 0);
	tas_set(engine, "sack", 0);
	tas_set(engine, "ecn", 0);
	tas_set(engine, "tail_loss_probe", 0);
	tas_set(engine, "black_hole", 0);
	tas_set(engine, "initial_window", 2);
	/* No segment of a former connection is still under way. */
	tas_set(engine, "time_wait_ms", 1);
	tas_set(engine, "syn_cookies", 0);
	/* Nobody can guess sequence numbers here, because homad writes all headers. */
	tas_set(engine, "challenge_acks", 100000);
	tas_set(engine, "resets", 1000000);
}

bool homad_tcp_seeds_draw(struct homad_tcp_seeds *seeds)
{
	return getrandom(seeds, sizeof(*seeds), 0) == (ssize_t)sizeof(*seeds);
}

static u32 ready_most(u32 most)
{
	return homa_max_u32(most / READY_SHARE,
			    homa_min_u32(most / 2, FEW_READY));
}

struct homad_tcp *homad_tcp_new(const struct homad_tcp_seeds *seeds, u32 most,
				u32 mtu, u64 now)
{
	size_t size = (sizeof(struct homad_tcp) + ALIGN - 1) / ALIGN * ALIGN;
	struct homad_tcp *tcp = aligned_alloc(ALIGN, size);
	u64 own[2];
	u32 i;

	if (!tcp)
		return NULL;
	memset(tcp, 0, size);
	if (getrandom(own, sizeof(own), 0) != (ssize_t)sizeof(own)) {
		free(tcp);
		return NULL;
	}
	tcp->next = tcp;
	homa_list_init(&tcp->moving);
	homa_list_init(&tcp->closing);
	homa_list_init(&tcp->lingering);
	tas_engine_init(&tcp->engine, seeds->engine, now, mtu);
	tas_engine_init(&tcp->local, seeds->local, now, LOCAL_MTU);
	/* What one instance draws says nothing about what the others do. */
	homa_rng_init(&tcp->engine.rng, own[0]);
	homa_rng_init(&tcp->local.rng, own[1]);
	set_local(&tcp->local);
	homa_slab_init(&tcp->conns, sizeof(struct homad_stream), most);
	homa_slab_init(&tcp->ended, sizeof(struct tas_ended), most);
	homa_list_init(&tcp->touched);
	homa_list_init(&tcp->resetting);
	homa_list_init(&tcp->held);
	tcp->held_at = TAS_NEVER;
	for (i = 0; i < HOMAD_LEAVING; i++)
		homa_list_init(&tcp->leaving[i]);
	tcp->engine.half_most = tcp->local.half_most = most / HALF_OPEN_SHARE;
	tcp->engine.ready_most = tcp->local.ready_most = ready_most(most);
	tcp->retry_at = TAS_NEVER;
	tcp->slow_fd = -1;
	return tcp;
}

static void free_tables(struct tas_engine *engine)
{
	struct homa_segment *segment;
	u32 i;

	for (i = 0; i < TAS_SEGMENTS; i++) {
		free(engine->segment[i]);
		free(engine->ended_segment[i]);
	}
	while ((segment = engine->segments)) {
		engine->segments = segment->next;
		free(segment);
	}
}

void homad_tcp_free(struct homad_tcp *tcp)
{
	u32 i;

	if (!tcp)
		return;
	for (i = 0; i < HOMAD_MAX_THREADS; i++)
		free(tcp->handed[i]);
	free_tables(&tcp->engine);
	free_tables(&tcp->local);
	homa_slab_drain(&tcp->conns);
	homa_slab_drain(&tcp->ended);
	free(tcp);
}

void homad_tcp_run(struct homad_thread *t, struct homad_tcp *tcp)
{
	struct homad_tcp *other = t->tcp;

	tcp->next = other ? other->next : tcp;
	if (other)
		other->next = tcp;
	t->tcp = tcp;
	t->tcps |= 1u << tcp->index;
	__atomic_store_n(&tcp->thread, t, __ATOMIC_RELEASE);
}

void homad_tcp_drop(struct homad_thread *t, struct homad_tcp *tcp)
{
	struct homad_tcp *before = tcp;

	while (before->next != tcp)
		before = before->next;
	before->next = tcp->next;
	t->tcp = before == tcp ? NULL : before;
	t->tcps &= ~(1u << tcp->index);
	tcp->next = tcp;
	__atomic_store_n(&tcp->thread, NULL, __ATOMIC_RELEASE);
}

/* Takes memory for a connection that the other engine of the instance has and does not use; false:
 * it has no more of that than @engine. */
static bool take_spare(struct tas_engine *engine, struct tas_engine *other)
{
	if (other->num_spare <= engine->num_spare + 1)
		return false;
	tas_add_spare(engine, tas_take_spare(other));
	return true;
}

void homad_tcp_refill(struct homad_tcp *tcp, struct tas_engine *engine)
{
	struct tas_engine *other =
		engine == &tcp->local ? &tcp->engine : &tcp->local;
	struct homa_segment *segment;
	struct homad_stream *stream;
	struct tas_ended *ended;

	while (unlikely(engine->num_spare < SPARES)) {
		stream = homa_slab_get(&tcp->conns);
		if (stream) {
			tas_add_spare(engine, &stream->conn);
		} else if (!take_spare(engine, other)) {
			/* Connections that are closed and wait only for their peers to
			 * close make room. */
			if (engine->num_spare < FEW_SPARES &&
			    !tas_drop_orphan(engine))
				tas_drop_orphan(other);
			break;
		}
	}
	/* When there is no more, those longest in TIME_WAIT make room. */
	if (unlikely(homa_list_empty(&engine->spare_ended))) {
		ended = homa_slab_get(&tcp->ended);
		ended = ended ? ended : tas_take_ended(other);
		if (ended)
			tas_add_ended(engine, ended);
	}
	if (unlikely(tas_wants_segment(engine))) {
		segment = malloc(sizeof(*segment));
		if (segment)
			tas_add_segment(engine, segment);
	}
}

void homad_tcp_round(struct homad_thread *t)
{
	struct homad_tcp *tcp = t->tcp;

	tas_set_now(&tcp->engine, t->ctx.now, EXCEPTIONS);
	tas_set_now(&tcp->local, t->ctx.now, UINT32_MAX);
	homad_tcp_refill(tcp, &tcp->engine);
}

void homad_tcp_use_ports(struct homad_thread *t, const u16 *ports, u32 num)
{
	struct homad_tcp *tcp = t->tcp;
	u32 i, at;

	homad_now(t);
	/* The ports are not in the order of their numbers, so that the next one cannot be
	 * guessed. */
	for (i = 0; i < num && tcp->num_ports < HOMAD_TCP_PORTS; i++) {
		at = homa_rng_below(&tcp->engine.rng, tcp->num_ports + 1);
		tcp->ports[tcp->num_ports++] = tcp->ports[at];
		tcp->ports[at] = ports[i];
	}
	tcp->no_ports_at = num ? 0 : homa_max_u64(t->ctx.now, 1);
	__atomic_store_n(&tcp->asked_ports, false, __ATOMIC_RELEASE);
}

bool homad_tcp_want_ports(struct homad_thread *t)
{
	struct homad_tcp *tcp = t->tcp;

	if (__atomic_load_n(&tcp->asked_ports, __ATOMIC_ACQUIRE))
		return true;
	if (tcp->no_ports_at &&
	    homa_since(t->ctx.now, tcp->no_ports_at) < NO_PORTS_NS)
		return false;
	__atomic_store_n(&tcp->asked_ports, true, __ATOMIC_RELEASE);
	homad_tcp_call_slow(tcp);
	return true;
}

void homad_tcp_call_slow(const struct homad_tcp *tcp)
{
	u64 one = 1;

	if (write(tcp->slow_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

u64 homad_tcp_timers(struct homad_thread *t)
{
	struct homad_tcp *tcp = t->tcp;
	u64 next;

	tas_set_now(&tcp->engine, t->ctx.now, EXCEPTIONS);
	tas_set_now(&tcp->local, t->ctx.now, UINT32_MAX);
	next = homa_min_u64(tas_timers(&tcp->engine, TIMER_BUDGET),
			    tas_timers(&tcp->local, TIMER_BUDGET));
	return homa_min_u64(next, homa_min_u64(tcp->retry_at, tcp->held_at));
}

u64 homad_tcp_app(struct tas_engine *engine, const struct tas_pair *pair)
{
	const struct tas_conn *conn = tas_known(engine, pair);
	const struct homad_stream *stream = conn ? conn->host : NULL;

	return stream && stream->home ? stream->home->app->id : 0;
}

/* Returns the device for a connection: the one that has its address; with one device, that
 * one. Of a device with several ports it is the first that this thread serves. */
struct homad_port *homad_tcp_port_towards(struct homad_thread *t,
					  const struct tas_pair *pair)
{
	struct homad_port *best = NULL;
	bool found = false;
	u32 i;

	for (i = 0; i < t->num_ports; i++) {
		struct homad_port *port = t->ports[i];

		if (!homad_port_tcp(port))
			continue;
		if (!memcmp(port->info->address.ip, pair->local,
			    sizeof(pair->local)))
			return port;
		if (!best) {
			best = port;
		} else if (!found && port->ifindex != best->ifindex &&
			   nic_has_address(port->nic, pair->local)) {
			best = port;
			found = true;
		}
	}
	return best;
}
