/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/link/homa_turns.c: sendables and others on one link, in virtual time: what each
 * kind gets of it, that whoever is alone has it all, and how many bytes of others a brief
 * one lets go first. Bytes are counted, and time is what the link's clock makes of them.
 */
#include "unit.h"

#include "homa_rng.h"
#include "homa_sched.h"

#define PACKET 1500u
#define UNIT (16u * PACKET) /* of others: it is not cut */
#define PS_PER_BYTE 8000u   /* 1 Gbit/s */
#define BACKLOG_NS 24000u   /* two packets */
#define BACKLOG_BYTES (BACKLOG_NS * 1000u / PS_PER_BYTE)

/* A link with one sendable, whose packets follow each other while @left says so. */
struct world {
	struct homa_sched sched;
	struct homa_sendable own;
	u64 now;
	u64 left;
	/* Bytes of others that there are to send. */
	u64 others;
	/* Sent by each kind. */
	u64 sent[2];
	/* Bytes of others that were sent since the own one came. */
	u64 passed;
};

static void begin(struct world *w, u32 percent)
{
	memset(w, 0, sizeof(*w));
	homa_sched_init(&w->sched);
	homa_sendable_init(&w->own);
	w->own.packet = PACKET;
	w->sched.ps_per_byte = PS_PER_BYTE;
	w->sched.backlog_ns = BACKLOG_NS;
	homa_turns_set(&w->sched.turns, percent);
}

static void come(struct world *w, u64 bytes, bool brief)
{
	w->own.brief = brief;
	w->left = bytes;
	w->passed = 0;
	homa_sched_enter(&w->sched, &w->own, bytes, w->now, 1);
}

static void send_own(struct world *w)
{
	u32 n = (u32)homa_min_u64(w->left, PACKET);

	homa_sched_charge(&w->sched, w->now, n);
	w->sent[HOMA_TURN_OWN] += n;
	w->left -= n;
	if (w->left)
		homa_sched_again(&w->sched, &w->own, w->left);
	else
		homa_sched_leave(&w->sched, &w->own);
}

/* One packet or unit, as hosts do it; false: nobody has anything. */
static bool step(struct world *w)
{
	struct homa_sendable *first = homa_sched_first(&w->sched);
	enum homa_sender turn =
		homa_turns_next(&w->sched.turns, first, w->others > 0,
				first && first->brief);
	u64 later = w->now;
	u32 n;

	if (turn == HOMA_TURN_IDLE)
		return false;
	if (turn == HOMA_TURN_OWN ?
		    !homa_sched_ready(&w->sched, first, w->left, 0, w->now,
				      &later) :
		    !homa_sched_open(&w->sched, PACKET, w->now, &later)) {
		assert_true(later > w->now);
		w->now = later;
		return true;
	}
	if (turn == HOMA_TURN_OWN) {
		send_own(w);
		return true;
	}
	n = (u32)homa_min_u64(w->others, UNIT);
	homa_sched_charge_others(&w->sched, w->now, n);
	w->sent[HOMA_TURN_OTHERS] += n;
	w->others -= n;
	w->passed += n;
	return true;
}

static void share__is_kept_when_both_wait(void **state)
{
	static const u32 percents[] = { 1, 10, 25, 50, 75, 90, 99 };
	struct world w;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(percents); i++) {
		u64 both;

		begin(&w, percents[i]);
		come(&w, 1ull << 40, false);
		w.others = 1ull << 40;
		while (w.now < 1000000000)
			step(&w);
		both = w.sent[0] + w.sent[1];
		/* The link is never idle: a second at 125 MB/s. */
		assert_in_range(both, 124900000, 125100000);
		assert_in_range(w.sent[HOMA_TURN_OTHERS] * 1000 / both,
				percents[i] * 10 - 2, percents[i] * 10 + 2);
	}
}

static void share__who_is_alone_has_all(void **state)
{
	struct world w;
	u64 before;

	(void)state;
	begin(&w, 50);
	w.others = 10000000;
	while (w.others)
		step(&w);
	assert_in_range(w.now, 79000000, 81000000);
	/* And owes nothing for it: the next two get the same. */
	come(&w, 10000000, false);
	w.others = 10000000;
	before = w.sent[HOMA_TURN_OTHERS];
	while (w.left > 5000000)
		step(&w);
	assert_in_range(w.sent[HOMA_TURN_OTHERS] - before, 4900000, 5100000);
}

/* A brief one comes while others fill the link: what the device has, and one unit. */
static void share__brief_ones_pass_others(void **state)
{
	u64 seed, base = unit_seed(), most = 0;
	struct homa_rng rng;
	struct world w;
	u32 i, j;

	(void)state;
	for (seed = base; seed < base + 20; seed++) {
		homa_rng_init(&rng, seed);
		begin(&w, 50);
		w.others = 1ull << 40;
		for (i = 0; i < 500; i++) {
			u64 ahead;

			for (j = homa_rng_below(&rng, 60); j || w.left; j -= !!j)
				step(&w);
			come(&w, 1 + homa_rng_below(&rng, 2 * PACKET), true);
			ahead = w.sched.idle_at > w.now ?
					(w.sched.idle_at - w.now) * 1000 /
						PS_PER_BYTE :
					0;
			while (w.left)
				step(&w);
			most = homa_max_u64(most, ahead + w.passed);
		}
		/* They are few here, so none is made to wait for its turn. */
		unit_assert(seed, most <= BACKLOG_BYTES + UNIT);
	}
	assert_true(most >= UNIT); /* the test saw such a moment */
}

/* Brief ones without end have the share of their kind, after they have used up the bound. */
static void share__brief_ones_do_not_starve_others(void **state)
{
	u64 first_of_others = 0, both;
	struct world w;

	(void)state;
	begin(&w, 25);
	w.others = 1ull << 40;
	while (w.now < 1000000000) {
		if (!w.left)
			come(&w, PACKET, true);
		step(&w);
		if (w.sent[HOMA_TURN_OTHERS] && !first_of_others)
			first_of_others = w.sent[HOMA_TURN_OWN];
	}
	assert_in_range(first_of_others, HOMA_TURNS_BOUND,
			HOMA_TURNS_BOUND + 2 * HOMA_TURNS_BYTES);
	both = w.sent[0] + w.sent[1];
	assert_in_range(w.sent[HOMA_TURN_OTHERS] * 1000 / both, 248, 252);
}

/* Debts are paid while the other kind is alone: nobody who was quiet waits for old ones. */
static void share__debts_are_paid_in_absence(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 50);
	w.others = 1ull << 40;
	while (w.sched.turns.deficit[HOMA_TURN_OWN] > -(s64)HOMA_TURNS_BOUND) {
		if (!w.left)
			come(&w, PACKET, true);
		step(&w);
	}
	while (w.left)
		step(&w);
	w.sent[HOMA_TURN_OTHERS] = 0;
	while (w.sent[HOMA_TURN_OTHERS] < 2 * HOMA_TURNS_BOUND)
		step(&w);
	come(&w, PACKET, true);
	while (w.left)
		step(&w);
	assert_in_range(w.passed, 0, UNIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__is_kept_when_both_wait),
		cmocka_unit_test(share__who_is_alone_has_all),
		cmocka_unit_test(share__brief_ones_pass_others),
		cmocka_unit_test(share__brief_ones_do_not_starve_others),
		cmocka_unit_test(share__debts_are_paid_in_absence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
