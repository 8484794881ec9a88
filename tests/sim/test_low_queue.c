// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The preset low-queue: many senders that all get grants fill the switch not
 * half as much and are done as soon, and a silent one does not keep its receiver
 * from the others.
 */
#include "sim_homa.h"

/* The switch's queue toward a host. */
static u64 peak_toward(u32 host)
{
	return homa_world.sim->hosts[host].down->stats.peak;
}

/* Twelve long messages to one host; what they were granted comes together. */
static u64 many_senders(const char *preset, u64 *peak)
{
	struct sim_config cfg = world_one_switch(preset, 13);
	u64 end;
	u32 i;

	world_new(&cfg);
	for (i = 1; i <= 12; i++) {
		world_send(i, 0, 300000 + i);
		sim_run(homa_world.sim, homa_world.sim->now + 15 * SIM_US);
	}
	sim_run(homa_world.sim, SIM_S);
	assert_int_equal(homa_world.delivered, 12);
	end = 0;
	for (i = 0; i < 12; i++)
		end = homa_max_u64(end, homa_world.msg[i]->done);
	*peak = peak_toward(0);
	world_empty();
	sim_free(homa_world.sim);
	return end;
}

static void low_queue__half_the_peak_in_the_same_time(void **state)
{
	u64 peak, low_peak, end, low_end;

	(void)state;
	end = many_senders("sigcomm18", &peak);
	low_end = many_senders("low-queue", &low_peak);
	assert_in_range(2 * low_peak, 0, peak);
	assert_in_range(low_end, 0, end + end / 100);
}

/*
 * Host 1 was granted something by 0 when a shorter message to another took its
 * link. Time until host 2's message, longer than its, is there.
 */
static u64 silent_sender(u64 quiet_us)
{
	struct sim_config cfg = world_one_switch("low-queue", 4);
	struct sim_msg *msg;
	u64 took;

	if (quiet_us != UINT64_MAX)
		assert_int_equal(sim_homa.set(&cfg, "quiet_us", quiet_us), 0);
	world_new(&cfg);
	world_send(1, 0, 500000);
	sim_run(homa_world.sim, homa_world.sim->now + 10 * SIM_US);
	world_send(1, 3, 400000);
	sim_run(homa_world.sim, homa_world.sim->now + 10 * SIM_US);
	msg = world_send(2, 0, 600000);
	sim_run(homa_world.sim, SIM_S);
	assert_int_equal(homa_world.delivered, 3);
	took = msg->done - msg->created;
	world_empty();
	sim_free(homa_world.sim);
	return took;
}

static void low_queue__a_silent_sender_makes_room(void **state)
{
	u64 without = silent_sender(0), with = silent_sender(UINT64_MAX);

	(void)state;
	assert_in_range(with, 0, without - 100 * SIM_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(low_queue__half_the_peak_in_the_same_time),
		cmocka_unit_test(low_queue__a_silent_sender_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
