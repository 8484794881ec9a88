/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Links that lose packets or fail for a while: what is on them is lost, what
 * comes later takes another way if there is one.
 */
#include "homa_plat.h"
#include "unit.h"

#include "blast.h"
#include "net_impl.h"

#define WIRE_PS (1538 * 800ull)

/* Six hosts in three racks, two spines: hosts 0-5, leaves 6-8, spines 9 and 10. */
static void small(struct sim_config *cfg)
{
	sim_config_default(cfg);
	cfg->hosts = 6;
	cfg->racks = 3;
	cfg->spines = 2;
	cfg->fabric_mbps = 10000;
}

static void fails(struct sim_config *cfg, u32 node, u32 peer, u64 from, u64 until)
{
	struct sim_failure *f = &cfg->failures[cfg->num_failures++];

	f->node = node;
	f->peer = peer;
	f->from = from;
	f->until = until;
}

static u64 sent_by(const struct sim *sim, u32 node, u32 peer)
{
	return sim->ports[sim_port_between(sim, node, peer)].stats.tx_packets;
}

static void failure_spine__others_take_over(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	/* From before the first packet reaches the leaf until half of them have. */
	fails(&cfg, 6, 9, SIM_US, 500 * WIRE_PS);
	sim = blast_new(&cfg);
	for (i = 0; i < 1000; i++)
		blast_send(sim, blast_pkt(sim, 0, 3, 1538, 0));
	sim_run(sim, 400 * WIRE_PS);
	assert_int_equal(sent_by(sim, 6, 9), 0);
	assert_true(sent_by(sim, 6, 10) > 390);
	sim_run(sim, SIM_NEVER);
	assert_int_equal(sim->counts.pkts_dropped, 0);
	assert_int_equal(sim->counts.pkts_received, 1000);
	assert_in_range(sent_by(sim, 6, 9), 180, 320);
	sim_free(sim);
}

/* A packet's next port is settled when it is sent; what happens meanwhile counts. */
static void failure_meanwhile__packets_on_their_way_turn(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	cfg.send_ps = 100 * SIM_US;
	fails(&cfg, 6, 9, 50 * SIM_US, SIM_NEVER);
	sim = blast_new(&cfg);
	for (i = 0; i < 30; i++)
		blast_send(sim, blast_pkt(sim, 0, 3, 1538, 0));
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 30);
	assert_int_equal(sent_by(sim, 6, 10), 30);
	sim_free(sim);

	/* And the other way round: no way when it is sent, but when it is there. */
	small(&cfg);
	cfg.send_ps = 100 * SIM_US;
	fails(&cfg, 6, 9, 0, 50 * SIM_US);
	fails(&cfg, 6, 10, 0, SIM_NEVER);
	sim = blast_new(&cfg);
	sim_run(sim, 0);
	blast_send(sim, blast_pkt(sim, 0, 3, 1538, 0));
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 1);
	sim_free(sim);
}

/* The spine's way down is broken: the leaf must not send there for that rack only. */
static void failure_below_a_spine__only_that_rack_avoids_it(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	fails(&cfg, 9, 7, 0, SIM_NEVER);
	sim = blast_new(&cfg);
	for (i = 0; i < 400; i++)
		blast_send(sim, blast_pkt(sim, 0, i % 2 ? 2 : 4, 1538, 0));
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 400);
	assert_int_equal(sim->counts.pkts_dropped, 0);
	/* Half of the half that goes to rack 2: six sigma are 42. */
	assert_in_range(sent_by(sim, 6, 9), 58, 142);
	assert_int_equal(sent_by(sim, 9, 8), sent_by(sim, 6, 9));
	sim_free(sim);
}

/* No spine is joined to both racks: down to the third rack and up again. */
static void failure_valley__is_found(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	small(&cfg);
	fails(&cfg, 6, 9, 0, SIM_NEVER);
	fails(&cfg, 7, 10, 0, SIM_NEVER);
	sim = blast_new(&cfg);
	sim_run(sim, 0);
	blast_send(sim, blast_pkt(sim, 0, 2, 84, 0));
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 1);
	assert_int_equal(sim->counts.hops, 6);
	assert_int_equal(sent_by(sim, 10, 8), 1);
	assert_int_equal(sent_by(sim, 8, 9), 1);
	sim_free(sim);
}

static void failure_no_way__is_a_drop(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	small(&cfg);
	fails(&cfg, 6, 9, 0, SIM_NEVER);
	fails(&cfg, 6, 10, 0, 100 * SIM_US);
	sim = blast_new(&cfg);
	sim_run(sim, 0);
	blast_send(sim, blast_pkt(sim, 0, 2, 84, 0));
	blast_send(sim, blast_pkt(sim, 2, 0, 84, 0));
	blast_send(sim, blast_pkt(sim, 0, 1, 84, 0));
	sim_run(sim, 50 * SIM_US);
	assert_int_equal(sim->counts.pkts_dropped, 2);
	assert_int_equal(sim->counts.pkts_received, 1);
	sim_run(sim, 100 * SIM_US);
	blast_send(sim, blast_pkt(sim, 0, 2, 84, 0));
	sim_run(sim, 200 * SIM_US);
	assert_int_equal(sim->counts.pkts_received, 2);
	sim_free(sim);
}

/* What is on the link, and what waits for it, is lost; not more. */
static void failure_host__loses_what_is_on_the_link(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	/* Two senders: at 10.5 packets' time 10 are through, one is on it, some wait. */
	fails(&cfg, 0, 6, 1250 * SIM_NS + 11 * WIRE_PS + WIRE_PS / 2,
	      80 * SIM_US);
	sim = blast_new(&cfg);
	for (i = 0; i < 20; i++)
		blast_send(sim, blast_pkt(sim, 1 + i % 2, 0, 1538, 0));
	sim_run(sim, 70 * SIM_US);
	assert_int_equal(sim->counts.pkts_received, 10);
	assert_int_equal(sim->counts.pkts_dropped, 10);
	assert_int_equal(sim->counts.pkts_live, 0);
	assert_int_equal(sim->hosts[0].down->stats.lost, 10);
	assert_int_equal(sim->hosts[0].down->bytes, 0);
	/* What comes while the link is down is lost at once. */
	blast_send(sim, blast_pkt(sim, 1, 0, 84, 0));
	sim_run(sim, 79 * SIM_US);
	assert_int_equal(sim->counts.pkts_dropped, 11);
	sim_run(sim, 81 * SIM_US);
	blast_send(sim, blast_pkt(sim, 1, 0, 1538, 0));
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 11);
	sim_free(sim);
}

static void note_time(struct sim *sim, struct sim_pkt *pkt, void *arg)
{
	((u64 *)arg)[pkt->src] = sim->now;
}

/*
 * Down and up again while one packet is on the link. When it would have been
 * free two new ones arrive at once, before the port notices.
 */
static void failure_short__port_sends_one_at_a_time(void **state)
{
	const u64 arrive = WIRE_PS + 1250 * SIM_NS;
	struct sim_config cfg;
	u64 at[5] = { 0 };
	struct sim *sim;

	(void)state;
	small(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	fails(&cfg, 0, 6, arrive + 100, arrive + 200);
	sim = blast_new(&cfg);
	blast_on_rx(sim, note_time, at);
	blast_send(sim, blast_pkt(sim, 1, 0, 1538, 0));
	blast_send(sim, blast_pkt(sim, 2, 0, 1538, 0));
	blast_send_at(sim, blast_pkt(sim, 3, 0, 1538, 0), WIRE_PS);
	blast_send_at(sim, blast_pkt(sim, 4, 0, 1538, 0), WIRE_PS);
	sim_run(sim, SIM_NEVER);
	assert_int_equal(at[1], 0);
	assert_int_equal(at[2], 0);
	assert_int_equal(at[3], arrive + 2 * WIRE_PS + 500 * SIM_NS);
	assert_int_equal(at[4], arrive + 3 * WIRE_PS + 500 * SIM_NS);
	sim_free(sim);
}

/* A host whose link is down keeps its packets and goes on when it is back. */
static void failure_uplink__the_host_waits(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	fails(&cfg, 0, 6, 4 * WIRE_PS + WIRE_PS / 2, 100 * SIM_US);
	fails(&cfg, 0, 6, 90 * SIM_US, 200 * SIM_US);
	sim = blast_new(&cfg);
	for (i = 0; i < 10; i++)
		blast_send(sim, blast_pkt(sim, 0, 1, 1538, 0));
	sim_run(sim, 199 * SIM_US);
	assert_int_equal(sim->counts.pkts_sent, 5);
	assert_int_equal(sim->counts.pkts_received, 4);
	assert_int_equal(sim->counts.pkts_dropped, 1);
	assert_int_equal(blast_waiting(sim), 5);
	sim_run(sim, SIM_MS);
	assert_int_equal(sim->counts.pkts_received, 9);
	assert_int_equal(blast_waiting(sim), 0);
	sim_free(sim);
}

static void loss__as_often_as_asked_on_every_link(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	small(&cfg);
	cfg.loss_ppm = 100000;
	sim = blast_new(&cfg);
	for (i = 0; i < 10000; i++)
		blast_send(sim, blast_pkt(sim, 0, 2, 84, 0));
	sim_run(sim, SIM_NEVER);
	/* 0.9 to the fourth: 6561, six sigma are 285; 1000 on the first link, 180. */
	assert_in_range(sim->counts.pkts_received, 6276, 6846);
	assert_in_range(sim->hosts[0].up->stats.lost, 820, 1180);
	assert_int_equal(sim->counts.pkts_received + sim->counts.pkts_dropped,
			 10000);
	assert_int_equal(sim->counts.wire_received + sim->counts.wire_dropped,
			 10000 * 84);
	sim_free(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failure_spine__others_take_over),
		cmocka_unit_test(failure_meanwhile__packets_on_their_way_turn),
		cmocka_unit_test(failure_below_a_spine__only_that_rack_avoids_it),
		cmocka_unit_test(failure_valley__is_found),
		cmocka_unit_test(failure_no_way__is_a_drop),
		cmocka_unit_test(failure_host__loses_what_is_on_the_link),
		cmocka_unit_test(failure_short__port_sends_one_at_a_time),
		cmocka_unit_test(failure_uplink__the_host_waits),
		cmocka_unit_test(loss__as_often_as_asked_on_every_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
