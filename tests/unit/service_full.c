// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/txpath.c: a nic that takes fewer packets than it is offered, as a socket does
 * whose buffer is full. Rounds are run by hand.
 */
#include "nic_backend.h"
#include "service_bed.h"
#include "unit.h"

#define PEER 3u

/* The packets that the nic takes still, and what it is like besides. */
static int room;
static const struct nic_ops *beneath;

static int narrow_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	int taken = n < room ? n : room;

	room -= taken;
	return taken ? beneath->tx(nic, pkts, taken) : 0;
}

/* A bed whose nic is narrow, with a peer that says nothing, and an application. */
struct narrow {
	struct bed *bed;
	struct nic *peer;
	struct nic_ops ops;
	struct side *side;
};

static void begin(struct narrow *w)
{
	struct homa_addr addr = number(PEER);

	w->bed = bed_new();
	assert_int_equal(nic_memory_attach(w->bed->wire, &addr, &w->peer), 0);
	beneath = w->bed->nic->ops;
	w->ops = *beneath;
	w->ops.tx = narrow_tx;
	w->bed->nic->ops = &w->ops;
	w->side = attach(&w->bed->d);
	room = 0;
}

static void end(struct narrow *w)
{
	u32 i;

	room = 1000;
	homad_session_close(w->bed->t, &w->side->app);
	for (i = 0; i < 100 && w->side->app.phase != HOMAD_APP_DEAD; i++)
		homad_round(w->bed->t);
	w->bed->d.dead = NULL;
	detach_closed(w->side);
	w->bed->nic->ops = beneath;
	nic_close(w->peer);
	bed_free(w->bed);
}

/* The application sends @n requests, each of one packet. */
static void ask(struct narrow *w, u32 n)
{
	struct homa_addr addr = number(PEER);
	u32 i;

	for (i = 0; i < n; i++) {
		struct homa_sqe sqe = {
			.op = HOMA_SQE_REQUEST,
			.flags = HOMA_SQE_COPY,
			.port = 99,
			.length = 100,
			.token = 1u << 16 | i,
		};

		memcpy(sqe.ip, addr.ip, sizeof(sqe.ip));
		submit(w->side, &sqe);
	}
	homad_poll_app(w->bed->t, &w->side->app);
}

static u64 sent(const struct narrow *w)
{
	struct nic_stats stats;

	nic_stats(w->bed->nic, &stats);
	return stats.tx_packets;
}

/* What cannot be sent is no work: the thread finds nothing to do, and may sleep until there is room
 * or for a while, whichever is shorter. */
static void full__lets_the_thread_sleep(void **state)
{
	struct narrow w;

	(void)state;
	begin(&w);
	ask(&w, 1);
	assert_int_not_equal(homad_round(w.bed->t), 0);
	assert_true(w.bed->d.ports[0].tx_blocked);
	assert_int_equal(homad_round(w.bed->t), 0);
	assert_true(homad_next_deadline(w.bed->t) > w.bed->t->ctx.now);
	assert_true(w.bed->d.ports[0].tx_blocked);
	assert_int_equal(sent(&w), 0);
	room = 1;
	assert_int_equal(homad_round(w.bed->t), 1);
	assert_int_equal(sent(&w), 1);
	assert_false(w.bed->d.ports[0].tx_blocked);
	assert_int_equal(homad_round(w.bed->t), 0);
	end(&w);
}

/* What a nic takes of a batch is work, and the rest is not lost. */
static void full__counts_what_was_taken(void **state)
{
	struct narrow w;

	(void)state;
	begin(&w);
	ask(&w, 10);
	homad_round(w.bed->t);
	assert_int_equal(homad_round(w.bed->t), 0);
	room = 4;
	assert_int_equal(homad_round(w.bed->t), 4);
	assert_int_equal(homad_round(w.bed->t), 0);
	assert_int_equal(sent(&w), 4);
	room = 100;
	assert_int_equal(homad_round(w.bed->t), 6);
	assert_int_equal(sent(&w), 10);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full__lets_the_thread_sleep),
		cmocka_unit_test(full__counts_what_was_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
