// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pFabric on its own, by what its paper says of it: a short message passes long
 * ones at every hop; what is dropped is never the most urgent; an incast with
 * heavy loss is served in the best order; one message fills a link; a message
 * that gets nothing through only probes.
 */
#include "packets_world.h"

enum { DATA = 1, ACK, PROBE, PROBE_ACK };
enum { WINDOW, MAX_WINDOW, RTO, PROBE_AFTER };

static void pfabric_one_message__fills_the_link(void **state)
{
	const u32 length = 2000000;
	struct sim_config cfg;
	struct sim_msg *msg;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 0);
	world_new(&cfg);
	msg = world_send(1, 143, length);
	world_finish();
	assert_in_range(world_took(msg), world_data_ps(length),
			world_data_ps(length) + 6 * SIM_US);
	assert_int_equal(world_metric("timeouts"), 0);
	assert_int_equal(world.sent[1], (length + 1459) / 1460);
	world_end();
}

static void pfabric_one_packet__takes_its_time_alone(void **state)
{
	const u32 lengths[] = { 1, 100, 1460 };
	struct sim_config cfg;
	struct sim_msg *msg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 0);
	world_new(&cfg);
	for (i = 0; i < 3; i++) {
		msg = world_send(0, 100, lengths[i]);
		world_run(SIM_MS);
		assert_int_equal(world_took(msg),
				 world_alone_ps(0, 100, lengths[i]));
	}
	world_finish();
	world_end();
}

/*
 * All links on the way are busy with long messages: the sender's, the one link
 * between the racks, the receiver's. A packet waits on each for at most the
 * one that is being sent.
 */
static void pfabric_short__passes_long_at_every_hop(void **state)
{
	struct sim_msg *shorts[20];
	struct sim_config cfg;
	u64 alone;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 0);
	cfg.hosts = 16;
	cfg.racks = 2;
	cfg.spines = 1;
	cfg.fabric_mbps = 10000;
	world_new(&cfg);
	for (i = 0; i < 4; i++) {
		world_send(0, 12 + i, 3000000);	    /* own port */
		world_send(1 + i, 12 + i, 3000000); /* the racks' */
		world_send(9 + i % 2, 8, 3000000);  /* the receiver's */
	}
	world_run(100 * SIM_US);
	alone = world_alone_ps(0, 8, 1460);
	for (i = 0; i < 20; i++) {
		shorts[i] = world_send(0, 8, 1460);
		world_run(50 * SIM_US + i * 100 * SIM_NS);
	}
	for (i = 0; i < 20; i++) {
		assert_in_range(world_took(shorts[i]), alone,
				alone + 4 * WORLD_PKT_PS);
		assert_int_equal(world.sent[shorts[i]->serial], 1);
	}
	for (i = 0; i < 12; i++)
		assert_false(world.msg[i]->delivered);
	assert_true(world.sim->counts.pkts_dropped > 0);
	world_finish();
	world_end();
}

/* At one's own port the shorter message goes first, though it came later. */
static void pfabric_sender__shortest_first(void **state)
{
	struct sim_msg *length30, *length20, *length40;
	struct sim_config cfg;
	const u32 k = 1460;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 4);
	world_new(&cfg);
	length30 = world_send(0, 1, 30 * k);
	length20 = world_send(0, 2, 20 * k);
	length40 = world_send(0, 3, 40 * k);
	world_finish();
	assert_in_range(length20->done, world_data_ps(20 * k),
			world_data_ps(20 * k) + 6 * SIM_US);
	assert_true(length20->done < length30->done);
	assert_true(length30->done < length40->done);
	assert_in_range(length40->done, world_data_ps(90 * k),
			world_data_ps(90 * k) + 6 * SIM_US);
	world_end();
}

/* What is left counts, not the length: 20 of 100 packets are fewer than 50. */
static void pfabric_sender__least_left_first(void **state)
{
	struct sim_msg *longer, *shorter;
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 3);
	world_new(&cfg);
	longer = world_send(0, 1, 100 * 1460);
	world_run(80 * WORLD_PKT_PS);
	shorter = world_send(0, 2, 50 * 1460);
	world_finish();
	assert_in_range(longer->done, world_data_ps(longer->length),
			world_data_ps(longer->length) + 6 * SIM_US);
	assert_true(shorter->done > longer->done);
	world_end();
}

static void pfabric_drops__never_the_most_urgent(void **state)
{
	struct sim_config cfg;
	u32 i, dropped = 0;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 31);
	world_new(&cfg);
	for (i = 1; i <= 30; i++)
		world_send(i, 0, 1460 * (5 + 10 * i));
	world_finish();
	/* 24 packets fit a port: of the first, with 15 packets, none can go. */
	assert_int_equal(world.dropped[1], 0);
	for (i = 2; i <= 30; i++)
		dropped += world.dropped[i];
	assert_true(dropped > 300);
	assert_true(world.dropped[30] > world.dropped[2]);
	for (i = 1; i < 30; i++)
		assert_true(world.msg[i - 1]->done < world.msg[i]->done);
	world_end();
}

static void pfabric_incast__heavy_loss_best_order(void **state)
{
	const u32 senders = 100, length = 73000;
	u64 best = senders * world_data_ps(length), last = 0;
	struct sim_config cfg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, senders + 1);
	world_new(&cfg);
	for (i = 1; i <= senders; i++)
		world_send(i, 0, length);
	world_finish();
	for (i = 0; i < senders; i++)
		if (world.msg[i]->done > last)
			last = world.msg[i]->done;
	/* What is missing is probing: time-outs between one message and the next. */
	assert_in_range(last, best, best + best / 7);
	assert_true(world.sim->counts.pkts_dropped > senders * 10);
	assert_true(world_metric("probes") > 0);
	world_end();
}

/* ---- silence ---- */

static u64 eat_until, eaten_data, eaten_probes, first_probe, last_probe;

static bool eat_all(struct sim *sim, const struct sim_pkt *pkt)
{
	if (sim->now >= eat_until)
		return false;
	if (pkt->type == PROBE) {
		assert_int_equal(pkt->wire, SIM_MIN_WIRE);
		if (!eaten_probes++)
			first_probe = pkt->sent_at;
		else
			assert_int_equal(pkt->sent_at - last_probe, 45 * SIM_US);
		last_probe = pkt->sent_at;
	} else if (pkt->type == DATA) {
		eaten_data++;
	}
	return true;
}

/* A window, one packet after each of four time-outs, then a probe per time-out. */
static void pfabric_silence__only_probes(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 2);
	world_new(&cfg);
	world.eat = eat_all;
	eat_until = 10 * SIM_MS;
	eaten_data = 0;
	eaten_probes = 0;
	msg = world_send(1, 0, 1460000);
	world_run(eat_until);
	assert_int_equal(eaten_data, 12 + 4);
	assert_int_equal(first_probe, 5 * 45 * SIM_US);
	assert_in_range(eaten_probes, 215, 218);
	assert_int_equal(world_metric("probe_modes"), 1);
	assert_int_equal(world_metric("timeouts"), 5);
	world_finish();
	assert_in_range(msg->done, eat_until + world_data_ps(msg->length),
			eat_until + world_data_ps(msg->length) + 100 * SIM_US);
	assert_int_equal(world_metric("timeouts"), 5);
	assert_int_equal(world_metric("retransmits"), 4 + 12);
	assert_int_equal(world.sent[1], 1000 + 4 + 12);
	world_end();
}

/* @seq is lost the first @times[seq] times; @again: what was sent again, in order. */
static u32 times[64], again[64], num_again;
static u64 window_until;
static u32 window_sent;

static bool eat_some(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	if (pkt->type != DATA || pkt->x[0] >= 64 || !times[pkt->x[0]])
		return false;
	times[pkt->x[0]]--;
	return true;
}

static void watch_again(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type != DATA)
		return;
	if (pkt->flags & SIM_RETRANSMIT && num_again < 64)
		again[num_again++] = (u32)pkt->x[0];
	if (num_again && sim->now < window_until)
		window_sent++;
}

static void loss_new(const struct sim_config *cfg)
{
	world_new(cfg);
	world.eat = eat_some;
	world.watch = watch_again;
	memset(times, 0, sizeof(times));
	num_again = 0;
	window_until = 0;
	window_sent = 0;
}

/* Two packets lost: seen by the time-out alone, and only they come again, in order. */
static void pfabric_loss__repaired_after_the_timeout(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	u64 trip;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 2);
	loss_new(&cfg);
	times[3] = 1;
	times[9] = 1;
	msg = world_send(1, 0, 12 * 1460);
	world_finish();
	assert_int_equal(num_again, 2);
	assert_int_equal(again[0], 3);
	assert_int_equal(again[1], 9);
	assert_int_equal(world_metric("retransmits"), 2);
	assert_int_equal(world_metric("timeouts"), 1);
	assert_int_equal(world_metric("duplicates"), 0);
	/* The window is one packet: the other waits for the acknowledgement of the first. */
	trip = world_alone_ps(1, 0, 1460);
	assert_int_equal(msg->done, 3 * WORLD_PKT_PS + 45 * SIM_US + 2 * trip +
					    world_alone_ps(0, 1, 0));
	world_end();
}

/* Four time-outs and again four are not eight in a row. */
static void pfabric_probes__only_after_timeouts_in_a_row(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 2);
	loss_new(&cfg);
	times[3] = 4;
	times[40] = 4;
	world_send(1, 0, 60 * 1460);
	world_finish();
	assert_true(world_metric("timeouts") > 5);
	assert_int_equal(world_metric("probe_modes"), 0);
	world_end();
}

/*
 * On a link so long that the window limits: after a time-out it is 1, 2, 4
 * packets per round trip, then, beyond half of what it was, 6, 7, 8.
 */
static void pfabric_window__starts_over(void **state)
{
	struct sim_config cfg;
	u64 trip;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 2);
	cfg.switch_ps = 20 * SIM_US;
	cfg.option[RTO] = 100;
	loss_new(&cfg);
	for (i = 0; i < 12; i++)
		times[i] = 1;
	trip = world_alone_ps(1, 0, 1460) + world_alone_ps(0, 1, 0);
	world_send(1, 0, 200 * 1460);
	window_until = 100 * SIM_US + 5 * trip - SIM_US;
	world_finish();
	assert_in_range(window_sent, 1 + 2 + 4 + 6 + 7, 1 + 2 + 4 + 6 + 8);
	world_end();
}

/* The setting that is for comparison with the paper's own simulations. */
static void pfabric_ns2_sizes__as_simulated_by_its_authors(void **state)
{
	struct sim_config cfg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pfabric, 2);
	for (i = 0; sim_pfabric.options[i].name; i++)
		if (!strcmp(sim_pfabric.options[i].name, "ns2-sizes"))
			cfg.option[i] = 1;
	world_new(&cfg);
	world_send(1, 0, 1460 * 100);
	world_send(1, 0, 1);
	world_finish();
	assert_int_equal(world.sim->counts.wire_sent, 100 * 1500 + 41 + 101 * 40);
	world_end();
}

/* ---- always ---- */

static void pfabric_storms__all_arrives(void **state)
{
	(void)state;
	world_test_storms(&sim_pfabric);
}

static void pfabric_failure__all_arrives(void **state)
{
	(void)state;
	world_test_failure(&sim_pfabric);
}

static void pfabric_stop__in_the_middle(void **state)
{
	(void)state;
	world_test_stop(&sim_pfabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pfabric_one_message__fills_the_link),
		cmocka_unit_test(pfabric_one_packet__takes_its_time_alone),
		cmocka_unit_test(pfabric_short__passes_long_at_every_hop),
		cmocka_unit_test(pfabric_sender__shortest_first),
		cmocka_unit_test(pfabric_sender__least_left_first),
		cmocka_unit_test(pfabric_drops__never_the_most_urgent),
		cmocka_unit_test(pfabric_incast__heavy_loss_best_order),
		cmocka_unit_test(pfabric_silence__only_probes),
		cmocka_unit_test(pfabric_loss__repaired_after_the_timeout),
		cmocka_unit_test(pfabric_probes__only_after_timeouts_in_a_row),
		cmocka_unit_test(pfabric_window__starts_over),
		cmocka_unit_test(pfabric_ns2_sizes__as_simulated_by_its_authors),
		cmocka_unit_test(pfabric_storms__all_arrives),
		cmocka_unit_test(pfabric_failure__all_arrives),
		cmocka_unit_test(pfabric_stop__in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
