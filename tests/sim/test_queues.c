/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The three queueing disciplines, fed directly at one port: what they take,
 * mark, trim and drop, and in which order they give it back.
 */
#include "homa_plat.h"
#include "unit.h"

#include "blast.h"
#include "net_impl.h"

#define FULL 1538u

static struct sim *switch_with(enum sim_queue_kind queue,
			       void (*set)(struct sim_config *cfg))
{
	struct sim_config cfg;
	struct sim *sim;

	sim_config_default(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = 4;
	cfg.queue = queue;
	if (set)
		set(&cfg);
	sim = blast_new(&cfg);
	assert_non_null(sim);
	return sim;
}

static struct sim_pkt *put(struct sim *sim, struct sim_port *port, u32 wire,
			   u8 prio, u8 flags)
{
	struct sim_pkt *pkt = blast_pkt(sim, 1, 0, wire, prio);

	pkt->flags = flags;
	port->queue->put(sim, port, pkt);
	return pkt;
}

static struct sim_pkt *get(struct sim *sim, struct sim_port *port)
{
	return port->queue->get(sim, port);
}

/* ---- priority ---- */

static void queue_priority__levels_then_order(void **state)
{
	static const u8 prio[] = { 3, 0, 7, 3, 7, 1, 0 };
	static const u8 want[] = { 2, 4, 0, 3, 5, 1, 6 };
	struct sim *sim = switch_with(SIM_QUEUE_PRIORITY, NULL);
	struct sim_port *port = sim->hosts[0].down;
	struct sim_pkt *pkt[HOMA_ARRAY_SIZE(prio)];
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(prio); i++)
		pkt[i] = put(sim, port, 100 + i, prio[i], 0);
	assert_int_equal(port->packets, HOMA_ARRAY_SIZE(prio));
	assert_int_equal(port->bytes, 7 * 100 + 21);
	assert_int_equal(port->fifo[7].packets, 2);
	assert_int_equal(port->fifo[7].bytes, 206);
	for (i = 0; i < HOMA_ARRAY_SIZE(prio); i++)
		assert_ptr_equal(get(sim, port), pkt[want[i]]);
	assert_null(get(sim, port));
	assert_int_equal(port->bytes, 0);
	assert_int_equal(port->packets, 0);
	sim_free(sim);
}

static void set_limit(struct sim_config *cfg)
{
	cfg->port_bytes = 3 * FULL;
}

static void queue_priority__limit_drops_the_tail(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_PRIORITY, set_limit);
	struct sim_port *port = sim->hosts[0].down;
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++)
		put(sim, port, FULL, 0, 0);
	assert_int_equal(port->stats.drops, 0);
	put(sim, port, 84, 7, 0);
	assert_int_equal(port->stats.drops, 1);
	assert_int_equal(port->stats.drop_bytes, 84);
	assert_int_equal(sim->counts.pkts_live, 3);
	/* A byte too many, then none. */
	get(sim, port);
	put(sim, port, FULL + 1, 7, 0);
	assert_int_equal(port->stats.drops, 2);
	put(sim, port, FULL, 7, 0);
	assert_int_equal(port->stats.drops, 2);
	assert_int_equal(port->bytes, 3 * FULL);
	/* The other ports have their own. */
	put(sim, sim->hosts[1].down, FULL, 0, 0);
	assert_int_equal(sim->counts.pkts_dropped, 2);
	sim_free(sim);
}

static void set_htb_limit(struct sim_config *cfg)
{
	cfg->shaped = true;
	cfg->burst_ps = SIM_US;
	cfg->port_bytes = 3 * (FULL - 24);
}

/* Linux does not count preamble, CRC and gap: three full frames fit, and no byte more. */
static void queue_priority__limit_counts_as_linux_does(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_PRIORITY, set_htb_limit);
	struct sim_port *port = sim->hosts[0].down;
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++)
		put(sim, port, FULL, 0, 0);
	assert_int_equal(port->stats.drops, 0);
	assert_int_equal(port->bytes, 3 * FULL);
	put(sim, port, 84, 7, 0);
	assert_int_equal(port->stats.drops, 1);
	get(sim, port);
	put(sim, port, FULL + 1, 7, 0);
	assert_int_equal(port->stats.drops, 2);
	put(sim, port, FULL, 7, 0);
	assert_int_equal(port->stats.drops, 2);
	sim_free(sim);
}

static void set_ecn(struct sim_config *cfg)
{
	cfg->ecn_bytes = 4 * FULL;
}

static void queue_priority__marks_what_comes_to_a_long_queue(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_PRIORITY, set_ecn);
	struct sim_port *port = sim->hosts[0].down;
	u32 i;

	(void)state;
	/* One byte less than the limit is in front of the fifth. */
	put(sim, port, FULL - 1, 0, SIM_ECN_CAPABLE);
	for (i = 0; i < 3; i++)
		put(sim, port, FULL, 0, SIM_ECN_CAPABLE);
	assert_int_equal(put(sim, port, FULL, 0, SIM_ECN_CAPABLE)->flags,
			 SIM_ECN_CAPABLE);
	/* All levels count together, and the level does not help. */
	assert_int_equal(put(sim, port, 84, 7, SIM_ECN_CAPABLE)->flags,
			 SIM_ECN_CAPABLE | SIM_ECN_CE);
	assert_int_equal(put(sim, port, FULL, 0, 0)->flags, 0);
	assert_int_equal(port->stats.marks, 1);
	for (i = 0; i < 6; i++)
		get(sim, port);
	assert_int_equal(put(sim, port, FULL, 0, SIM_ECN_CAPABLE)->flags,
			 SIM_ECN_CAPABLE);
	assert_int_equal(port->stats.marks, 1);
	assert_int_equal(port->stats.drops, 0);
	/* Exactly as much is enough. */
	port = sim->hosts[2].down;
	for (i = 0; i < 4; i++)
		assert_int_equal(put(sim, port, FULL, 0, SIM_ECN_CAPABLE)->flags,
				 SIM_ECN_CAPABLE);
	assert_int_equal(put(sim, port, FULL, 0, SIM_ECN_CAPABLE)->flags,
			 SIM_ECN_CAPABLE | SIM_ECN_CE);
	sim_free(sim);

	sim = switch_with(SIM_QUEUE_PRIORITY, NULL);
	for (i = 0; i < 100; i++)
		assert_int_equal(put(sim, sim->hosts[0].down, FULL, 0,
				     SIM_ECN_CAPABLE)
					 ->flags,
				 SIM_ECN_CAPABLE);
	sim_free(sim);
}

static void set_shared(struct sim_config *cfg)
{
	cfg->shared_bytes = 90 * 1000;
	cfg->shared_alpha = 256;
}

static void set_shared_half(struct sim_config *cfg)
{
	cfg->shared_bytes = 90 * 1000;
	cfg->shared_alpha = 128;
}

static void set_shared_all(struct sim_config *cfg)
{
	cfg->shared_bytes = 90 * 1000 + 500;
	cfg->shared_alpha = 256 * 1000;
}

/* Packets of 1000 bytes that @port takes until it drops one. */
static u32 fill(struct sim *sim, struct sim_port *port)
{
	u64 drops = port->stats.drops;
	u32 n = 0;

	while (n < 1000) {
		put(sim, port, 1000, 0, 0);
		if (port->stats.drops != drops)
			break;
		n++;
	}
	return n;
}

/* A port takes while it holds no more than alpha times what is free: x = alpha (S - x). */
static void queue_shared__a_port_leaves_room_for_others(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_PRIORITY, set_shared);
	struct sim_pkt *pkt;
	u32 i;

	(void)state;
	assert_int_equal(fill(sim, sim->hosts[0].down), 45);
	assert_int_equal(sim->net->sw[0].buffered, 45000);
	/* 45 are free for the second, 22 for the third: half of them each. */
	assert_int_equal(fill(sim, sim->hosts[1].down), 23);
	assert_int_equal(fill(sim, sim->hosts[2].down), 11);
	for (i = 0; i < 45; i++) {
		pkt = get(sim, sim->hosts[0].down);
		sim_pkt_free(sim, pkt);
	}
	assert_int_equal(sim->net->sw[0].buffered, 34000);
	assert_int_equal(fill(sim, sim->hosts[3].down), 28);
	sim_free(sim);

	sim = switch_with(SIM_QUEUE_PRIORITY, set_shared_half);
	assert_int_equal(fill(sim, sim->hosts[0].down), 30);
	sim_free(sim);

	/* However greedy: never more than there is. */
	sim = switch_with(SIM_QUEUE_PRIORITY, set_shared_all);
	assert_int_equal(fill(sim, sim->hosts[0].down) +
				 fill(sim, sim->hosts[1].down),
			 90);
	sim_free(sim);
}

/* ---- rank ---- */

#define RANKED 60

struct ranked {
	struct sim_pkt *pkt[RANKED]; /* in order of arrival */
	u32 n;
	const struct sim_pkt *dropped[RANKED];
	u32 drops;
};

static void note_drop(void *arg, struct sim *sim, const struct sim_port *port,
		      const struct sim_pkt *pkt)
{
	struct ranked *r = arg;

	(void)sim;
	(void)port;
	r->dropped[r->drops++] = pkt;
}

static void ranked_forget(struct ranked *r, const struct sim_pkt *pkt, u64 seed)
{
	u32 i = 0;

	while (i < r->n && r->pkt[i] != pkt)
		i++;
	unit_assert(seed, i < r->n);
	r->n--;
	memmove(&r->pkt[i], &r->pkt[i + 1], (r->n - i) * sizeof(r->pkt[0]));
}

/* A packet arrives: the largest ranks go, and no more of them than necessary. */
static void ranked_put(struct ranked *r, struct sim *sim, struct sim_port *port,
		       u64 seed)
{
	struct sim_pkt *pkt = blast_random(sim, 1);
	u64 bytes = port->bytes + pkt->wire, last = 0;
	u32 i, j;

	pkt->rank %= 40;
	r->drops = 0;
	r->pkt[r->n++] = pkt;
	port->queue->put(sim, port, pkt);
	for (i = 0; i < r->drops; i++) {
		/* sim_pkt_free() leaves all but the link in place. */
		const struct sim_pkt *gone = r->dropped[i];

		unit_assert(seed, bytes > port->limit);
		bytes -= gone->wire;
		for (j = 0; j < r->n; j++) {
			unit_assert(seed, r->pkt[j]->rank <= gone->rank);
			if (r->pkt[j]->rank == gone->rank)
				last = j;
		}
		unit_assert(seed, r->pkt[last] == gone);
		ranked_forget(r, gone, seed);
	}
	unit_assert(seed, bytes == port->bytes && bytes <= port->limit);
	unit_assert(seed, port->packets == r->n);
}

/* The earliest packet of the message that was the first to have the smallest rank. */
static void ranked_get(struct ranked *r, struct sim *sim, struct sim_port *port,
		       u64 seed)
{
	struct sim_pkt *pkt = port->queue->get(sim, port);
	u64 least = UINT64_MAX;
	u32 i, first = RANKED, best = RANKED;

	unit_assert(seed, (pkt != NULL) == (r->n != 0));
	if (!pkt)
		return;
	for (i = 0; i < r->n; i++)
		least = homa_min_u64(least, r->pkt[i]->rank);
	for (i = 0; i < r->n; i++) {
		if (best == RANKED && r->pkt[i]->rank == least)
			best = i;
	}
	/* Packets of no message stand for themselves. */
	for (i = 0; i <= best && first == RANKED; i++)
		if (r->pkt[i]->msg_serial == r->pkt[best]->msg_serial &&
		    (i == best || r->pkt[i]->msg_serial))
			first = i;
	unit_assert(seed, r->pkt[first] == pkt);
	ranked_forget(r, pkt, seed);
	sim_pkt_free(sim, pkt);
	unit_assert(seed, port->packets == r->n);
}

static void set_small(struct sim_config *cfg)
{
	cfg->port_bytes = 36864;
}

static void queue_rank__random(void **state)
{
	u64 seed, base = unit_seed();
	u32 i, dropped;

	(void)state;
	for (seed = base; seed < base + 5; seed++) {
		struct sim *sim = switch_with(SIM_QUEUE_RANK, set_small);
		struct sim_port *port = sim->hosts[0].down;
		struct ranked r = { .n = 0 };
		struct sim_tap tap = { .arg = &r, .dropped = note_drop };
		struct homa_rng rng;

		homa_rng_init(&rng, seed);
		sim->taps = &tap;
		for (i = 0, dropped = 0; i < 5000; i++) {
			/* Rather full, at times empty. */
			u32 puts = i / 1000 % 2 ? 3 : 5;

			if (homa_rng_below(&rng, 8) < puts && r.n < RANKED)
				ranked_put(&r, sim, port, seed);
			else
				ranked_get(&r, sim, port, seed);
			dropped += r.drops;
			r.drops = 0;
		}
		unit_assert(seed, dropped > 100);
		sim_free(sim);
	}
}

static void queue_rank__no_limit_grows(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_RANK, NULL);
	struct sim_port *port = sim->hosts[0].down;
	struct sim_pkt *pkt;
	u32 i;

	(void)state;
	for (i = 0; i < 500; i++) {
		pkt = blast_pkt(sim, 1, 0, 84, 0);
		pkt->rank = (i * 7919) % 500;
		port->queue->put(sim, port, pkt);
	}
	for (i = 0; i < 500; i++)
		assert_int_equal(get(sim, port)->rank, i);
	assert_null(get(sim, port));
	sim_free(sim);
}

/* ---- trim ---- */

static void set_trim(struct sim_config *cfg)
{
	cfg->trim_packets = 8;
}

static void queue_trim__payload_goes_when_full(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_TRIM, set_trim);
	struct sim_port *port = sim->hosts[0].down;
	u32 i, arriving = 0;

	(void)state;
	for (i = 0; i < 8; i++)
		put(sim, port, FULL, 0, 0);
	assert_int_equal(port->stats.trims, 0);
	for (i = 0; i < 1000; i++) {
		struct sim_pkt *pkt = put(sim, port, FULL, 0, 0);

		assert_int_equal(pkt->payload, FULL - 84);
		if (!(pkt->flags & SIM_TRIMMED)) {
			assert_int_equal(pkt->wire, FULL);
			continue;
		}
		arriving++;
		assert_int_equal(pkt->wire, 84);
		assert_int_equal(pkt->prio, 7);
	}
	assert_int_equal(port->stats.trims, 1000);
	assert_int_equal(sim->counts.wire_trimmed, 1000 * (FULL - 84));
	assert_int_equal(port->packets, 1008);
	assert_int_equal(port->bytes, 8 * FULL + 1000 * 84);
	/* A coin: six sigma. */
	assert_in_range(arriving, 405, 595);
	assert_int_equal(port->stats.drops, 0);
	sim_free(sim);
}

static void queue_trim__control_is_not_trimmed(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_TRIM, set_trim);
	struct sim_port *port = sim->hosts[0].down;
	u32 i;

	(void)state;
	for (i = 0; i < 50; i++)
		assert_int_equal(put(sim, port, 100, 7, SIM_CONTROL)->flags,
				 SIM_CONTROL);
	for (i = 0; i < 8; i++)
		put(sim, port, FULL, 0, 0);
	assert_int_equal(port->stats.trims, 0);
	assert_int_equal(port->bytes, 50 * 100 + 8 * FULL);
	sim_free(sim);
}

static void queue_trim__ten_headers_then_data(void **state)
{
	struct sim *sim = switch_with(SIM_QUEUE_TRIM, set_trim);
	struct sim_port *port = sim->hosts[0].down;
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++)
		put(sim, port, FULL, 0, 0);
	for (i = 0; i < 35; i++)
		put(sim, port, 84, 7, SIM_CONTROL);
	for (i = 0; i < 33; i++)
		assert_int_equal(get(sim, port)->wire, i % 11 == 10 ? FULL : 84);
	for (i = 0; i < 5; i++)
		assert_int_equal(get(sim, port)->wire, 84);
	assert_null(get(sim, port));
	assert_int_equal(port->bytes, 0);
	/* Headers that nobody waited for do not count. */
	for (i = 0; i < 9; i++)
		put(sim, port, 84, 7, SIM_CONTROL);
	for (i = 0; i < 9; i++)
		get(sim, port);
	put(sim, port, FULL, 0, 0);
	for (i = 0; i < 11; i++)
		put(sim, port, 84, 7, SIM_CONTROL);
	for (i = 0; i < 10; i++)
		assert_int_equal(get(sim, port)->wire, 84);
	assert_int_equal(get(sim, port)->wire, FULL);
	assert_int_equal(get(sim, port)->wire, 84);
	sim_free(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_priority__levels_then_order),
		cmocka_unit_test(queue_priority__limit_drops_the_tail),
		cmocka_unit_test(queue_priority__limit_counts_as_linux_does),
		cmocka_unit_test(queue_priority__marks_what_comes_to_a_long_queue),
		cmocka_unit_test(queue_shared__a_port_leaves_room_for_others),
		cmocka_unit_test(queue_rank__random),
		cmocka_unit_test(queue_rank__no_limit_grows),
		cmocka_unit_test(queue_trim__payload_goes_when_full),
		cmocka_unit_test(queue_trim__control_is_not_trimmed),
		cmocka_unit_test(queue_trim__ten_headers_then_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
