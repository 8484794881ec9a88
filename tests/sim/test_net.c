/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * sim/net/net.c: exact times of single packets, then what must hold of all:
 * strict priority, no idle port with packets waiting, nothing lost unseen.
 */
#include "homa_plat.h"
#include "unit.h"

#include "blast.h"
#include "net_impl.h"

#define NS(x) ((u64)((x) * 1000))
#define MANY 400

struct seen {
	u64 at[8 * MANY];
	u32 wire[8 * MANY];
	u8 prio[8 * MANY];
	u64 start[8 * MANY], arrived[8 * MANY], wait[8 * MANY], lag[8 * MANY];
	u32 n;
};

static void see(struct sim *sim, struct sim_pkt *pkt, void *arg)
{
	struct seen *seen = arg;
	const struct sim_host *src = &sim->hosts[pkt->src];
	u32 i = seen->n++;

	assert_true(i < 8 * MANY);
	seen->at[i] = sim->now;
	seen->wire[i] = pkt->wire;
	seen->prio[i] = pkt->prio;
	seen->wait[i] = pkt->wait_ps;
	seen->lag[i] = pkt->lag_ps;
	/* On one switch: when it reached the last port and when it left it. */
	seen->arrived[i] = pkt->sent_at + (u64)pkt->wire * src->up->ps_per_byte +
			   src->up->delay_ps;
	seen->start[i] = sim->now - src->down->delay_ps -
			 (u64)pkt->wire * src->down->ps_per_byte;
}

static void one_switch(struct sim_config *cfg, u32 hosts)
{
	sim_config_default(cfg);
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = hosts;
}

/* The time of one packet between two hosts of @cfg's network. */
static u64 time_of(struct sim_config *cfg, u32 src, u32 dst, u32 wire)
{
	struct sim *sim = blast_new(cfg);
	struct seen seen = { .n = 0 };

	assert_non_null(sim);
	blast_on_rx(sim, see, &seen);
	blast_send(sim, blast_pkt(sim, src, dst, wire, 0));
	sim_run(sim, SIM_NEVER);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.wait[0], 0);
	sim_free(sim);
	return seen.at[0];
}

/* ---- times ---- */

static void net_time__as_in_the_study(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	assert_int_equal(time_of(&cfg, 0, 143, 84), NS(2418));
	assert_int_equal(time_of(&cfg, 0, 15, 84), NS(1884.4));
	assert_int_equal(time_of(&cfg, 0, 143, 1538),
			 NS(1000 + 750 + 500) + 1538 * (800 + 200 + 200 + 800));
	cfg.host_prop_ps = 11;
	cfg.fabric_prop_ps = 1000;
	assert_int_equal(time_of(&cfg, 0, 143, 84), NS(2418) + 2 * 11 + 2 * 1000);
}

static void net_time__cut_through(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	cfg.cut_through = true;
	/* Within a rack: equal rates. */
	assert_int_equal(time_of(&cfg, 0, 15, 1538),
			 NS(1000 + 250 + 500) + 64 * 800 + 1538 * 800);
	/* To a faster link all of it must be there, then 64 bytes do. */
	assert_int_equal(time_of(&cfg, 0, 143, 1538),
			 NS(1000 + 750 + 500) + 1538 * 800 + 64 * 200 +
				 64 * 200 + 1538 * 800);
	cfg.fabric_mbps = 10000;
	assert_int_equal(time_of(&cfg, 0, 143, 1538),
			 NS(1000 + 750 + 500) + 3 * 64 * 800 + 1538 * 800);
}

static void net_time__shaped(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	cfg.shaped = true;
	/* An idle link costs no time but its delay, whatever the packet. */
	assert_int_equal(time_of(&cfg, 0, 15, 1538), NS(1000 + 250 + 500));
	assert_int_equal(time_of(&cfg, 0, 15, 84), NS(1000 + 250 + 500));
	assert_int_equal(time_of(&cfg, 0, 143, 1538), NS(1000 + 750 + 500));
}

/* Sends @n packets of @wire bytes in a row after a pause, over shaped links that save up @burst_ns;
 * @seen has their arrivals. */
static void after_a_pause(struct seen *seen, u64 burst_ns, u32 n, u32 wire)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	one_switch(&cfg, 3);
	cfg.shaped = true;
	cfg.burst_ps = NS(burst_ns);
	sim = blast_new(&cfg);
	assert_non_null(sim);
	seen->n = 0;
	blast_on_rx(sim, see, seen);
	for (i = 0; i < n; i++)
		blast_send_at(sim, blast_pkt(sim, 1, 0, wire, 0), NS(10000));
	sim_run(sim, SIM_NEVER);
	assert_int_equal(seen->n, n);
	sim_free(sim);
}

static void net_time__a_shaper_saves_up_a_burst(void **state)
{
	struct seen seen;

	(void)state;
	/* None: each after the time of the one before. */
	after_a_pause(&seen, 0, 3, 1538);
	assert_int_equal(seen.at[1] - seen.at[0], 1538 * 800);
	assert_int_equal(seen.at[2] - seen.at[1], 1538 * 800);
	/* The second is early, and no other of the row. */
	after_a_pause(&seen, 500, 3, 1538);
	assert_int_equal(seen.at[1] - seen.at[0], 1538 * 800 - NS(500));
	assert_int_equal(seen.at[2] - seen.at[1], 1538 * 800);
	/* Three times 67.2 ns are 1.6 ns more than 200. */
	after_a_pause(&seen, 200, 5, 84);
	assert_int_equal(seen.at[1], seen.at[0]);
	assert_int_equal(seen.at[2], seen.at[0]);
	assert_int_equal(seen.at[3] - seen.at[0], 3 * 84 * 800 - NS(200));
	assert_int_equal(seen.at[4] - seen.at[3], 84 * 800);
}

static void net_time__fat_tree(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	cfg.topology = SIM_FAT_TREE;
	cfg.k = 4;
	cfg.hosts = 0;
	assert_int_equal(time_of(&cfg, 0, 1, 84), NS(1500 + 250) + 84 * 1600);
	assert_int_equal(time_of(&cfg, 0, 2, 84),
			 NS(1500 + 750) + 84 * (1600 + 400));
	assert_int_equal(time_of(&cfg, 0, 15, 84),
			 NS(1500 + 1250) + 84 * (1600 + 800));
}

/* sim_path() says what packets then do. */
static void net_time__follows_from_the_path(void **state)
{
	u32 ps_per_byte[8], hops, i, pair;
	u64 delay[8], want;
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	sim_config_default(&cfg);
	cfg.fabric_prop_ps = 77;
	for (pair = 0; pair < 2; pair++) {
		sim = blast_new(&cfg);
		hops = sim_path(sim, 3, pair ? 100 : 5, ps_per_byte, delay);
		assert_int_equal(hops, pair ? 4 : 2);
		for (i = 0, want = 0; i < hops; i++)
			want += delay[i] + 1000ull * ps_per_byte[i];
		sim_free(sim);
		assert_int_equal(time_of(&cfg, 3, pair ? 100 : 5, 1000), want);
	}
}

/* ---- waiting ---- */

static void net_wait__behind_an_equal_is_queueing(void **state)
{
	struct seen seen = { .n = 0 };
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	one_switch(&cfg, 3);
	sim = blast_new(&cfg);
	blast_on_rx(sim, see, &seen);
	blast_send(sim, blast_pkt(sim, 1, 0, 1538, 3));
	blast_send(sim, blast_pkt(sim, 2, 0, 1538, 3));
	sim_run(sim, SIM_NEVER);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.wait[0], 0);
	assert_int_equal(seen.wait[1], 1538 * 800);
	assert_int_equal(seen.lag[1], 0);
	assert_int_equal(sim->hosts[0].down->stats.peak, 1538);
	/* 1538 bytes for 1230.4 ns, between whole ns. */
	assert_in_range(sim->hosts[0].down->stats.byte_ns, 1538 * 1230,
			1538 * 1231);
	assert_int_equal(sim->hosts[0].down->stats.prio_bytes[3], 2 * 1538);
	assert_int_equal(sim->hosts[0].down->stats.tx_packets, 2);
	sim_net_stats_reset(sim);
	assert_int_equal(sim->hosts[0].down->stats.tx_bytes, 0);
	assert_int_equal(sim->hosts[0].down->stats.byte_ns, 0);
	assert_int_equal(sim->hosts[0].down->stats.peak, 0);
	sim_free(sim);
}

/* What was before a reset does not count, what is queued then does. */
static void net_stats__start_again(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	one_switch(&cfg, 3);
	sim = blast_new(&cfg);
	blast_send(sim, blast_pkt(sim, 1, 0, 1538, 3));
	blast_send(sim, blast_pkt(sim, 2, 0, 1538, 3));
	/* The second waits from 1538 * 800 + 1250 ns on for as long again. */
	sim_run(sim, 1538 * 800 + NS(1250 + 1000));
	sim_net_stats_reset(sim);
	assert_int_equal(sim->hosts[0].down->stats.peak, 1538);
	sim_run(sim, SIM_NEVER);
	assert_in_range(sim->hosts[0].down->stats.byte_ns, 1538 * 230,
			1538 * 231);
	assert_int_equal(sim->hosts[0].down->stats.tx_packets, 1);
	sim_free(sim);
}

static void net_wait__behind_a_lower_one_is_lag(void **state)
{
	struct seen seen = { .n = 0 };
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	one_switch(&cfg, 4);
	sim = blast_new(&cfg);
	blast_on_rx(sim, see, &seen);
	blast_send(sim, blast_pkt(sim, 1, 0, 1538, 2));
	/* Reaches the port 100 ns after the long one began to leave. */
	blast_send_at(sim, blast_pkt(sim, 2, 0, 84, 7),
		      (1538 - 84) * 800 + NS(100));
	/* And another one just behind that. */
	blast_send_at(sim, blast_pkt(sim, 3, 0, 84, 7),
		      (1538 - 84) * 800 + NS(110));
	sim_run(sim, SIM_NEVER);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.prio[0], 2);
	assert_int_equal(seen.wait[1], 1538 * 800 - NS(100));
	assert_int_equal(seen.lag[1], 1538 * 800 - NS(100));
	assert_int_equal(seen.wait[2], 1538 * 800 - NS(110) + 84 * 800);
	assert_int_equal(seen.lag[2], 1538 * 800 - NS(110));
	sim_free(sim);
}

/* With ranks it is the rank that says who would have been first. */
static void net_wait__behind_a_larger_rank_is_lag(void **state)
{
	struct seen seen = { .n = 0 };
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	one_switch(&cfg, 3);
	cfg.queue = SIM_QUEUE_RANK;
	sim = blast_new(&cfg);
	blast_on_rx(sim, see, &seen);
	for (i = 0; i < 4; i++) {
		struct sim_pkt *pkt = blast_pkt(sim, 1 + i % 2, 0, 1538, (u8)i);

		/* 500 then 400, and later 500 then 600. */
		pkt->rank = i == 1 ? 400 : i == 3 ? 600 : 500;
		blast_send_at(sim, pkt, i * SIM_NS + i / 2 * 100 * SIM_US);
	}
	sim_run(sim, SIM_NEVER);
	assert_int_equal(seen.n, 4);
	assert_int_equal(seen.wait[1], 1538 * 800 - NS(1));
	assert_int_equal(seen.lag[1], 1538 * 800 - NS(1));
	assert_int_equal(seen.wait[3], 1538 * 800 - NS(1));
	assert_int_equal(seen.lag[3], 0);
	sim_free(sim);
}

static void net_withheld__idle_downlink_is_waste(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	one_switch(&cfg, 3);
	sim = blast_new(&cfg);
	sim_run(sim, NS(500));
	sim_withheld(sim, &sim->hosts[0], 2);
	/* It leaves the switch from 2000 on, 10 ns behind it another one. */
	blast_send_at(sim, blast_pkt(sim, 1, 0, 84, 0),
		      NS(2000 - 1250) - 84 * 800);
	blast_send_at(sim, blast_pkt(sim, 2, 0, 84, 0),
		      NS(2010 - 1250) - 84 * 800);
	sim_run(sim, NS(5000));
	assert_int_equal(sim->hosts[0].waste_ps, NS(1500));
	sim_withheld(sim, &sim->hosts[0], 0);
	assert_int_equal(sim->hosts[0].waste_ps,
			 NS(1500) + NS(3000) - 2 * 84 * 800);
	sim_run(sim, NS(9000));
	sim_withheld(sim, &sim->hosts[0], 1);
	assert_int_equal(sim->hosts[0].waste_ps, NS(4500) - 2 * 84 * 800);
	sim_free(sim);
}

/* A host sends one packet at a time and asks for the next when it is out. */
static void net_host__pulls_one_by_one(void **state)
{
	struct seen seen = { .n = 0 };
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	one_switch(&cfg, 2);
	sim = blast_new(&cfg);
	blast_on_rx(sim, see, &seen);
	for (i = 0; i < 5; i++)
		blast_send(sim, blast_pkt(sim, 0, 1, 100 + i, (u8)i));
	assert_int_equal(sim->counts.pkts_sent, 1);
	assert_int_equal(blast_waiting(sim), 4);
	sim_run(sim, 100 * 800 - 1);
	assert_int_equal(sim->counts.pkts_sent, 1);
	sim_run(sim, 100 * 800);
	assert_int_equal(sim->counts.pkts_sent, 2);
	sim_port_kick(sim, sim->hosts[0].up);
	assert_int_equal(sim->counts.pkts_sent, 2);
	sim_run(sim, SIM_NEVER);
	for (i = 0; i < 5; i++)
		assert_int_equal(seen.prio[i], i);
	assert_int_equal(sim->counts.pkts_live, 0);
	sim_free(sim);
}

/* ---- of all packets ---- */

/*
 * The packets of one port, in the order in which they left. Each began when
 * the one before had ended and there was one, and it was the first come of the
 * highest level of those that had come.
 */
static void check_port(const struct seen *seen, u64 seed)
{
	u64 end = 0;
	u32 i, j;

	for (i = 0; i < seen->n; i++) {
		u64 first = SIM_NEVER, start;

		for (j = i; j < seen->n; j++)
			if (seen->arrived[j] < first)
				first = seen->arrived[j];
		start = first > end ? first : end;
		unit_assert(seed, seen->start[i] == start);
		for (j = i + 1; j < seen->n; j++) {
			if (seen->arrived[j] >= start)
				continue;
			unit_assert(seed, seen->prio[j] <= seen->prio[i]);
			unit_assert(seed, seen->prio[j] < seen->prio[i] ||
						  seen->arrived[j] >=
							  seen->arrived[i]);
		}
		end = start + seen->wire[i] * 800ull;
	}
}

static void net_port__strict_and_never_idle(void **state)
{
	struct seen *seen = malloc(sizeof(*seen));
	u64 seed, base = unit_seed();
	struct sim_config cfg;
	u32 i;

	(void)state;
	for (seed = base; seed < base + 4; seed++) {
		struct sim *sim;

		one_switch(&cfg, 5);
		cfg.seed = seed;
		sim = blast_new(&cfg);
		seen->n = 0;
		blast_on_rx(sim, see, seen);
		for (i = 0; i < 4 * MANY; i++) {
			struct sim_pkt *pkt = blast_random(sim, 1 + i % 4);

			pkt->dst = 0;
			/* Lulls and rushes. */
			blast_send_at(sim, pkt,
				      i / 100 * 100 * SIM_US +
					      pkt->rank % 100 * (i / 100 % 4) *
						      SIM_US);
		}
		sim_run(sim, SIM_NEVER);
		assert_int_equal(seen->n, 4 * MANY);
		check_port(seen, seed);
		sim_free(sim);
	}
	free(seen);
}

static u64 queued_bytes(const struct sim *sim)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < sim->num_ports; i++)
		bytes += sim->ports[i].bytes;
	return bytes;
}

static void check_conservation(const struct sim *sim, u64 seed)
{
	const struct sim_counts *c = &sim->counts;
	u64 drops = 0, trims = 0;
	u32 i;

	unit_assert(seed,
		    c->pkts_sent + blast_waiting(sim) ==
			    c->pkts_received + c->pkts_dropped + c->pkts_live);
	unit_assert(seed, c->wire_sent >= c->wire_received + c->wire_dropped +
						  c->wire_trimmed +
						  queued_bytes(sim));
	for (i = 0; i < sim->num_ports; i++) {
		drops += sim->ports[i].stats.drops;
		trims += sim->ports[i].stats.trims;
	}
	unit_assert(seed, drops == c->pkts_dropped);
	unit_assert(seed, (trims != 0) == (c->wire_trimmed != 0));
}

static void conserve(struct sim_config *cfg, u64 seed)
{
	struct sim *sim;
	u32 i;

	cfg->seed = seed;
	sim = blast_new(cfg);
	assert_non_null(sim);
	blast_load(sim, 95, 100 * SIM_US);
	for (i = 1; i < 10; i++) {
		sim_run(sim, i * 11 * SIM_US);
		/* Packets that the ticks hand over are in nobody's count for no time at all. */
		check_conservation(sim, seed);
	}
	sim_run(sim, SIM_NEVER);
	check_conservation(sim, seed);
	unit_assert(seed, sim->counts.pkts_sent > 100);
	unit_assert(seed, sim->counts.pkts_live == 0);
	unit_assert(seed, queued_bytes(sim) == 0);
	unit_assert(seed,
		    sim->counts.wire_sent == sim->counts.wire_received +
						     sim->counts.wire_dropped +
						     sim->counts.wire_trimmed);
	for (i = 0; i < sim->num_ports; i++)
		unit_assert(seed, sim->ports[i].packets == 0);
	for (i = 0; i < sim->net->switches; i++)
		unit_assert(seed, sim->net->sw[i].buffered == 0);
	unit_assert(seed, (cfg->loss_ppm || cfg->num_failures) ==
					  (sim->counts.pkts_dropped != 0) ||
				  cfg->port_bytes || cfg->shared_bytes);
	sim_free(sim);
}

static void net_conserves__what_goes_in(void **state)
{
	u64 seed = unit_seed();
	struct sim_config cfg;
	u32 i, n = 0;

	(void)state;
	for (i = 0; i < 3 * 3 * 8; i++) {
		sim_config_default(&cfg);
		cfg.topology = i % 3;
		cfg.hosts = cfg.topology == SIM_FAT_TREE ? 0 : 12;
		cfg.racks = 3;
		cfg.spines = 2;
		cfg.k = 4;
		cfg.queue = i / 3 % 3;
		cfg.balance = i % 2;
		cfg.cut_through = i / 9 == 3;
		cfg.loss_ppm = i / 9 % 2 ? 20000 : 0;
		cfg.port_bytes = i / 9 % 3 == 1 ? 12000 : 0;
		cfg.shared_bytes = i / 9 >= 4 ? 30000 : 0;
		if (i / 9 % 4 == 3) {
			cfg.num_failures = 2;
			cfg.failures[0].node = 0;
			cfg.failures[0].peer =
				cfg.topology == SIM_FAT_TREE ? 16 : 12;
			cfg.failures[0].from = 20 * SIM_US;
			cfg.failures[0].until = 50 * SIM_US;
			cfg.failures[1] = cfg.failures[0];
			cfg.failures[1].from = 40 * SIM_US;
			cfg.failures[1].until = 60 * SIM_US;
			if (cfg.topology != SIM_ONE_SWITCH) {
				cfg.failures[1].node = cfg.failures[0].peer;
				cfg.failures[1].peer =
					cfg.topology == SIM_FAT_TREE ? 24 : 15;
			}
		}
		conserve(&cfg, seed + i);
		n++;
	}
	assert_int_equal(n, 72);
}

/* ---- a run follows from its seed ---- */

static void mix(struct sim *sim, struct sim_pkt *pkt, void *arg)
{
	u64 *digest = arg;

	*digest = (*digest ^ sim->now ^ (u64)pkt->src << 32 ^ pkt->wire) *
		  0x100000001b3ull;
}

static u64 digest_of(u64 seed)
{
	struct sim_config cfg;
	struct sim *sim;
	u64 digest = 1;

	sim_config_default(&cfg);
	cfg.seed = seed;
	cfg.loss_ppm = 1000;
	sim = blast_new(&cfg);
	blast_on_rx(sim, mix, &digest);
	blast_load(sim, 70, 20 * SIM_US);
	sim_run(sim, SIM_NEVER);
	sim_free(sim);
	return digest;
}

static void net_run__follows_from_its_seed(void **state)
{
	(void)state;
	assert_true(digest_of(1) == digest_of(1));
	assert_true(digest_of(1) != digest_of(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_time__as_in_the_study),
		cmocka_unit_test(net_time__cut_through),
		cmocka_unit_test(net_time__shaped),
		cmocka_unit_test(net_time__a_shaper_saves_up_a_burst),
		cmocka_unit_test(net_time__fat_tree),
		cmocka_unit_test(net_time__follows_from_the_path),
		cmocka_unit_test(net_wait__behind_an_equal_is_queueing),
		cmocka_unit_test(net_stats__start_again),
		cmocka_unit_test(net_wait__behind_a_lower_one_is_lag),
		cmocka_unit_test(net_wait__behind_a_larger_rank_is_lag),
		cmocka_unit_test(net_withheld__idle_downlink_is_waste),
		cmocka_unit_test(net_host__pulls_one_by_one),
		cmocka_unit_test(net_port__strict_and_never_idle),
		cmocka_unit_test(net_conserves__what_goes_in),
		cmocka_unit_test(net_run__follows_from_its_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
