// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* TCP whose acks say what came out of order: what is lost is found without time-outs. */
#include "window_world.h"

#define MSS 1460u

static u64 eaten, every, from, to;
static u32 times;

/* Of [@from, @to) each @every-th segment is lost @times times. */
static bool eat(struct sim *sim, const struct sim_pkt *pkt)
{
	u64 seq = pkt->x[0];

	(void)sim;
	if (pkt->type != WINDOW_DATA || seq < from || seq >= to ||
	    seq / MSS % every)
		return false;
	if (times == 1 && (pkt->flags & SIM_RETRANSMIT))
		return false;
	if (times > 1 && eaten >= times)
		return false;
	eaten++;
	return true;
}

/* Two hosts, a first message for the round trip's sake, then one of @segments. */
static struct window *lossy(u64 first, u64 end, u64 which, u32 how_often,
			    u32 segments)
{
	struct sim_config cfg;
	struct window *w;

	world_sack = true;
	world_cfg(&cfg, &sim_tcp, 2);
	cfg.host_prop_ps = 50 * SIM_US;
	cfg.option[WINDOW_INITIAL] = 100;
	cfg.option[WINDOW_RTO_MIN] = 200000;
	w = world_new(&cfg);
	world_send(0, 1, 2 * MSS);
	world_run(5 * SIM_MS);
	from = (first + 2) * MSS;
	to = (end + 2) * MSS;
	every = which;
	times = how_often;
	eaten = 0;
	world.eat = eat;
	world_send(0, 1, segments * MSS);
	world_run(5 * SIM_S);
	assert_int_equal(world.arrived, 2);
	assert_int_equal(world_flow(0, 1)->snd_una, (segments + 2ull) * MSS);
	return w;
}

static void sack__many_losses_are_repaired_together(void **state)
{
	struct window *w = lossy(10, 70, 3, 1, 100);

	(void)state;
	assert_int_equal(eaten, 20);
	assert_int_equal(w->counts.retransmits, 20);
	assert_int_equal(w->counts.duplicates, 0);
	assert_int_equal(w->counts.fast, 1);
	assert_int_equal(w->counts.timeouts + w->counts.probes, 0);
	/* Three round trips of 0.2 ms, and the time of the segments. */
	assert_true(world.done[1] - 5 * SIM_MS < 2 * SIM_MS);
	world_end();
}

static void sack__a_lost_tail_is_probed(void **state)
{
	u32 n;

	(void)state;
	for (n = 1; n <= 5; n++) {
		struct window *w = lossy(20 - n, 20, 1, 1, 20);

		assert_int_equal(eaten, n);
		assert_int_equal(w->counts.timeouts, 0);
		assert_int_equal(w->counts.probes, 1);
		assert_int_equal(w->counts.retransmits, n);
		/* The ack of one segment alone may be delayed, so the probe waits longer. */
		assert_true(world.done[1] - 5 * SIM_MS <
			    (n > 1 ? 5 : 205) * SIM_MS);
		world_end();
	}
}

/* What was sent again and lost again is sent once more when something later has come. */
static void sack__a_loss_may_be_lost_again(void **state)
{
	u32 n;

	(void)state;
	for (n = 2; n <= 4; n++) {
		struct window *w = lossy(10, 11, 1, n, 400);

		assert_int_equal(eaten, n);
		assert_int_equal(w->counts.timeouts, 0);
		assert_true(world.done[1] - 5 * SIM_MS < 20 * SIM_MS);
		world_end();
	}
}

/* A first message, of whose 20 segments the first @lost are lost; links take @prop ms, and a
 * round trip four times as long. The time-out is 200 ms. */
static struct window *late(bool undo, u32 lost, u64 prop)
{
	struct sim_config cfg;
	struct window *w;

	world_sack = true;
	world_cfg(&cfg, &sim_tcp, 2);
	cfg.host_prop_ps = prop * SIM_MS;
	cfg.option[WINDOW_INITIAL] = 100;
	cfg.option[WINDOW_RTO_MIN] = 200000;
	cfg.option[WINDOW_UNDO] = undo;
	w = world_new(&cfg);
	from = 0;
	to = lost * (u64)MSS;
	every = 1;
	times = 1;
	eaten = 0;
	world.eat = eat;
	world_send(0, 1, 20 * MSS);
	world_run(60 * SIM_S);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(world_flow(0, 1)->snd_una, 20ull * MSS);
	assert_int_equal(eaten, lost);
	return w;
}

/* Nothing was lost: what came was not sent again, but for the one segment that asked. */
static void undo__a_time_out_that_was_early(void **state)
{
	struct window *w = late(true, 0, 75);

	(void)state;
	assert_int_equal(w->counts.timeouts, 1);
	assert_int_equal(w->counts.undone, 1);
	assert_int_equal(w->counts.retransmits, 1);
	assert_true(world_flow(0, 1)->cwnd >= 100 * MSS);
	/* The round trip is known, so the next time-out is later. */
	assert_true(world_flow(0, 1)->srtt >= 300 * SIM_MS);
	world_end();
	w = late(false, 0, 75);
	assert_int_equal(w->counts.undone, 0);
	assert_true(w->counts.retransmits > 5);
	assert_true(world_flow(0, 1)->cwnd < 100 * MSS);
	world_end();
}

/* All was lost, or all but the end, which says so late. */
static void undo__what_was_lost_is_sent_again(void **state)
{
	struct window *w = late(true, 20, 25);

	(void)state;
	assert_int_equal(w->counts.undone, 0);
	assert_int_equal(w->counts.retransmits, 20);
	world_end();
	w = late(true, 5, 25);
	assert_true(w->counts.retransmits >= 5);
	world_end();
}

static void sack__all_losses_end(void **state)
{
	(void)state;
	world_sack = true;
	world_test_loss(&sim_tcp);
}

static void turns__streams_take_messages_one_after_the_other(void **state)
{
	struct sim_config cfg;
	u32 i, k;

	(void)state;
	world_sack = false;
	world_cfg(&cfg, &sim_tcp, 3);
	cfg.option[WINDOW_STREAMS] = 4;
	cfg.option[WINDOW_TURN] = 1;
	world_new(&cfg);
	for (i = 0; i < 8; i++)
		for (k = 1; k <= 2; k++)
			world_send(0, k, 100 * (i + 1));
	world_run(SIM_MS);
	for (k = 1; k <= 2; k++)
		for (i = 0; i < 4; i++) {
			struct window *w = window_of(world.sim);
			u32 slot = window_slot(w, k, false, i);

			assert_int_equal(w->hosts[0].to[slot]->snd_una,
					 100 * (i + 1) + 100 * (i + 5));
		}
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sack__many_losses_are_repaired_together),
		cmocka_unit_test(sack__a_lost_tail_is_probed),
		cmocka_unit_test(sack__a_loss_may_be_lost_again),
		cmocka_unit_test(sack__all_losses_end),
		cmocka_unit_test(undo__a_time_out_that_was_early),
		cmocka_unit_test(undo__what_was_lost_is_sent_again),
		cmocka_unit_test(turns__streams_take_messages_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
