// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The oracle against a reference that sorts all messages anew at every event,
 * and against what must hold for it: alone a message takes exactly its ideal
 * time, never less; on one link no order has a smaller mean.
 */
#include "unit.h"

#include "sim_transport.h"

#define MESSAGES 400
#define HOSTS 64

struct run {
	struct sim *sim;
	struct sim_msg *msg[MESSAGES];
	u32 num;
};

static void run_init(struct run *run, u32 hosts)
{
	struct sim_config cfg;
	char err[256] = "";

	memset(run, 0, sizeof(*run));
	sim_config_default(&cfg);
	cfg.transport = &sim_oracle;
	if (hosts) {
		cfg.topology = SIM_ONE_SWITCH;
		cfg.hosts = hosts;
	}
	run->sim = sim_new(&cfg, err, sizeof(err));
	if (!run->sim)
		fail_msg("%s", err);
}

static struct sim_msg *run_send(struct run *run, u32 src, u32 dst, u32 length)
{
	struct sim_msg *msg = sim_msg_new(run->sim);

	assert_non_null(msg);
	assert_true(run->num < MESSAGES);
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	run->msg[run->num++] = msg;
	sim_send(run->sim, msg);
	return msg;
}

static void run_finish(struct run *run)
{
	u32 i;

	sim_run(run->sim, SIM_NEVER);
	for (i = 0; i < run->num; i++) {
		assert_true(run->msg[i]->delivered);
		assert_int_equal(run->msg[i]->refs, 1);
	}
	sim_free(run->sim);
}

static u64 ideal(const struct run *run, const struct sim_msg *msg)
{
	return sim_ideal_ps(run->sim, msg->src, msg->dst, msg->length);
}

/* Time on a 10 Gbit/s link. */
static u64 wire_ps(const struct run *run, u32 length)
{
	const struct sim_config *cfg = &run->sim->cfg;
	u32 segment = sim_homa_segment(cfg);
	u64 wire = 0;

	for (; length > segment; length -= segment)
		wire += sim_wire(sim_homa_data_ip(cfg, segment));
	return (wire + sim_wire(sim_homa_data_ip(cfg, length))) * 800;
}

static void oracle_idle__slowdown_is_exactly_one(void **state)
{
	static const u32 length[] = { 1,    10,	  64,	 1441,	 1442,
				      1443, 2884, 10000, 9999999 };
	struct run run;
	u32 i;

	(void)state;
	run_init(&run, 0);
	for (i = 0; i < sizeof(length) / sizeof(*length); i++) {
		struct sim_msg *near = run_send(&run, 1, 2, length[i]);
		struct sim_msg *far = run_send(&run, 20, 140, length[i]);

		sim_run(run.sim, run.sim->now + SIM_S);
		assert_int_equal(near->done - near->created, ideal(&run, near));
		assert_int_equal(far->done - far->created, ideal(&run, far));
	}
	run_finish(&run);
}

/* ---- one link ---- */

static u64 least_sum(u64 *size, u32 n, u64 before)
{
	u64 least = SIM_NEVER, sum, tmp;
	u32 i;

	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		tmp = size[i], size[i] = size[0], size[0] = tmp;
		sum = before + size[0] +
		      least_sum(size + 1, n - 1, before + size[0]);
		if (sum < least)
			least = sum;
		tmp = size[i], size[i] = size[0], size[0] = tmp;
	}
	return least;
}

/* At one receiver: no order of 7 messages has a smaller mean. */
static void oracle_one_link__least_mean_of_all_orders(void **state)
{
	u64 size[7], sum = 0, seed = unit_seed();
	struct homa_prng rng;
	struct run run;
	u32 i;

	(void)state;
	homa_prng_seed(&rng, seed, 1);
	run_init(&run, 8);
	for (i = 0; i < 7; i++) {
		struct sim_msg *msg = run_send(&run, i + 1, 0,
					       1 + homa_prng_below(&rng, 50000));

		size[i] = wire_ps(&run, msg->length);
	}
	sim_run(run.sim, SIM_S);
	for (i = 0; i < 7; i++)
		sum += run.msg[i]->done - (ideal(&run, run.msg[i]) - size[i]);
	unit_assert(seed, sum == least_sum(size, 7, 0));
	run_finish(&run);
}

/* A short message preempts a long one, which goes on where it was. */
static void oracle_preemption__costs_nothing(void **state)
{
	struct sim_msg *big, *small;
	struct run run;

	(void)state;
	run_init(&run, 3);
	big = run_send(&run, 1, 0, 1000000);
	sim_run(run.sim, 100 * SIM_US);
	small = run_send(&run, 2, 0, 5000);
	sim_run(run.sim, SIM_S);
	assert_int_equal(small->done - small->created, ideal(&run, small));
	assert_int_equal(big->done,
			 ideal(&run, big) + wire_ps(&run, small->length));
	run_finish(&run);
}

/* ---- the reference ---- */

struct ref {
	u64 left, end;
	bool here;
};

/* Time from now until something ends; matched ones in @on. */
static u64 ref_match(const struct run *run, const struct ref *ref, bool *on)
{
	bool tx[HOSTS] = { 0 }, rx[HOSTS] = { 0 };
	u64 next = SIM_NEVER;
	u32 i;

	memset(on, 0, run->num * sizeof(*on));
	for (;;) {
		u32 best = UINT32_MAX;

		for (i = 0; i < run->num; i++) {
			const struct sim_msg *msg = run->msg[i];

			if (!ref[i].here || tx[msg->src] || rx[msg->dst])
				continue;
			if (best == UINT32_MAX || ref[i].left < ref[best].left)
				best = i;
		}
		if (best == UINT32_MAX)
			return next;
		tx[run->msg[best]->src] = true;
		rx[run->msg[best]->dst] = true;
		on[best] = true;
		if (ref[best].left < next)
			next = ref[best].left;
	}
}

static void ref_run(const struct run *run, struct ref *ref)
{
	u64 now = 0, step;
	bool on[MESSAGES];
	u32 i, over = 0;

	for (i = 0; i < run->num; i++)
		ref[i].left = wire_ps(run, run->msg[i]->length);
	while (over < run->num) {
		for (i = 0; i < run->num; i++)
			if (run->msg[i]->created == now)
				ref[i].here = true;
		step = ref_match(run, ref, on);
		for (i = 0; i < run->num; i++)
			if (run->msg[i]->created > now &&
			    run->msg[i]->created - now < step)
				step = run->msg[i]->created - now;
		now += step;
		for (i = 0; i < run->num; i++) {
			if (!on[i])
				continue;
			ref[i].left -= step;
			if (!ref[i].left) {
				ref[i].here = false;
				ref[i].end = now;
				over++;
			}
		}
	}
}

static void against_reference(u64 seed, u32 hosts, u32 messages, u32 longest,
			      u32 gap_ns)
{
	struct ref ref[MESSAGES];
	struct homa_prng rng;
	struct run run;
	u32 i;

	memset(ref, 0, sizeof(ref));
	homa_prng_seed(&rng, seed, 2);
	run_init(&run, hosts);
	for (i = 0; i < messages; i++) {
		u32 src = homa_prng_below(&rng, hosts),
		    dst = homa_prng_below(&rng, hosts - 1);

		run_send(&run, src, dst + (dst >= src),
			 1 + homa_prng_below(&rng, longest));
		sim_run(run.sim, run.sim->now + homa_prng_below(&rng, gap_ns + 1) *
							SIM_NS);
	}
	sim_run(run.sim, SIM_S);
	ref_run(&run, ref);
	for (i = 0; i < messages; i++) {
		u64 least = ideal(&run, run.msg[i]);
		u64 due = ref[i].end + least - wire_ps(&run, run.msg[i]->length);

		if (run.msg[i]->done != due)
			fail_msg("message %u of %u, done at %llu instead of %llu, with HOMA_TEST_SEED=%llu",
				 i, messages,
				 (unsigned long long)run.msg[i]->done,
				 (unsigned long long)due,
				 (unsigned long long)seed);
		unit_assert(seed,
			    run.msg[i]->done - run.msg[i]->created >= least);
	}
	run_finish(&run);
}

static void oracle_reference__same_times(void **state)
{
	u64 seed = unit_seed();
	u32 i;

	(void)state;
	for (i = 0; i < 40; i++) {
		against_reference(seed + i, 2 + i % 5, 60, 20000, 3000);
		against_reference(seed + i, 3 + i % 8, 60, 40,
				  100); /* many equals */
		against_reference(seed + i, 10, 60, 1000000, 0); /* all at once */
	}
	against_reference(seed, HOSTS, MESSAGES, 100000, 1000);
}

static void oracle_stop__in_the_middle(void **state)
{
	struct run run;

	(void)state;
	run_init(&run, 4);
	run_send(&run, 0, 1, 100000);
	run_send(&run, 2, 1, 200000);
	sim_run(run.sim, 10 * SIM_US);
	assert_false(run.msg[0]->delivered);
	sim_free(run.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(oracle_idle__slowdown_is_exactly_one),
		cmocka_unit_test(oracle_one_link__least_mean_of_all_orders),
		cmocka_unit_test(oracle_preemption__costs_nothing),
		cmocka_unit_test(oracle_reference__same_times),
		cmocka_unit_test(oracle_stop__in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
