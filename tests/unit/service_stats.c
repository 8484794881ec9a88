/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/homad/observe/stats.c, apps.c and snapshot_metrics.c over a daemon that is only a
 * structure: sums over threads, latencies in the buckets where they belong, attachments
 * and users copied in pieces.
 */
#include "unit.h"

#include "apps.h"
#include "attachment.h"
#include "monitor.h"
#include "streams.h"

#define THREADS 3

struct bed {
	struct homad d;
	struct homad_slow slow;
	struct homad_attach attach;
	struct homad_thread *threads[THREADS];
	struct homad_stats s;
};

static struct bed *bed_new(void)
{
	const struct homa_limits limits = { .shards = 1, .buckets = 16 };
	struct bed *bed = calloc(1, sizeof(*bed));
	struct homa_params params;
	struct homa_seeds seeds;
	u32 i;

	assert_non_null(bed);
	homa_seeds_fixed(&seeds, 1);
	homa_params_default(&params);
	bed->d.engine =
		aligned_alloc(64, (homa_engine_size(&limits) + 63) & ~63ul);
	assert_non_null(bed->d.engine);
	assert_int_equal(homa_engine_init(bed->d.engine, &limits, &params,
					  &seeds, 1),
			 0);
	homa_list_init(&bed->slow.apps);
	for (i = 0; i < HOMAD_USER_BUCKETS; i++)
		homa_list_init(&bed->attach.users[i]);
	bed->slow.d = &bed->d;
	bed->slow.attach = &bed->attach;
	bed->d.slow = &bed->slow;
	bed->d.num_threads = THREADS;
	for (i = 0; i < THREADS; i++) {
		bed->threads[i] = calloc(1, sizeof(*bed->threads[i]));
		assert_non_null(bed->threads[i]);
		assert_int_equal(homa_hist_init(&bed->threads[i]->rtt), 0);
		bed->threads[i]->index = i;
		bed->d.threads[i] = bed->threads[i];
	}
	return bed;
}

static void bed_free(struct bed *bed)
{
	u32 i;

	for (i = 0; i < THREADS; i++) {
		homa_hist_free(&bed->threads[i]->rtt);
		free(bed->threads[i]);
	}
	free(bed->d.engine);
	free(bed);
}

static void bounds__ascend_from_1us_to_10s(void **state)
{
	u32 i;

	(void)state;
	assert_true(homad_latency_bound(0) == 1000);
	assert_true(homad_latency_bound(1) == 2000);
	assert_true(homad_latency_bound(2) == 5000);
	assert_true(homad_latency_bound(3) == 10000);
	assert_true(homad_latency_bound(HOMAD_LATENCY_BOUNDS - 1) ==
		    10000000000ull);
	for (i = 1; i < HOMAD_LATENCY_BOUNDS; i++)
		assert_true(homad_latency_bound(i) > homad_latency_bound(i - 1));
}

static void collect__sums_over_threads(void **state)
{
	struct bed *bed = bed_new();
	u32 i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		bed->threads[i]->ctx.metrics[HOMA_M_rx_packets] = 10 + i;
		bed->threads[i]->counters.commands = 100 + i;
	}
	homad_stats_collect(&bed->d, &bed->s);
	assert_int_equal(bed->s.num_threads, THREADS);
	assert_true(bed->s.engine[HOMA_M_rx_packets] == 33);
	assert_true(bed->s.counters.commands == 303);
	assert_true(bed->s.threads[2].engine[HOMA_M_rx_packets] == 12);
	assert_int_equal(bed->s.counts.rpcs, 0);
	bed_free(bed);
}

/* Against counting one by one; buckets are exact to their 0.1 %. */
static void collect__latencies_in_their_buckets(void **state)
{
	static const u64 values[] = { 0,     500,     999,	1500,
				      30000, 1234567, 99000000, 20000000000ull };
	struct bed *bed = bed_new();
	u64 expected, fine = 0;
	u32 i, k;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(values); i++)
		homa_hist_record_n(&bed->threads[i % THREADS]->rtt, values[i],
				   i + 1);
	homad_stats_collect(&bed->d, &bed->s);
	assert_true(bed->s.latency.count == 36);
	for (k = 0; k < HOMAD_LATENCY_BOUNDS; k++) {
		expected = 0;
		for (i = 0; i < HOMA_ARRAY_SIZE(values); i++)
			if (values[i] <= homad_latency_bound(k))
				expected += i + 1;
		assert_true(bed->s.latency.below[k] == expected);
	}
	for (k = 0; k < HOMAD_LATENCY_BUCKETS; k++)
		fine += bed->s.latency.counts[k];
	assert_true(fine == 36);
	bed_free(bed);
}

static void metrics__say_what_was_counted(void **state)
{
	struct bed *bed = bed_new();
	size_t length = 0;
	char *text;

	(void)state;
	bed->slow.evicted = 4;
	bed->attach.memory_grown = 9;
	bed->threads[1]->ctx.metrics[HOMA_M_tx_grant] = 77;
	bed->threads[1]->counters.busy_ns = 1500000000;
	homa_hist_record_n(&bed->threads[0]->rtt, 3000, 5);
	text = homad_metrics_text(&bed->d, &length);
	assert_non_null(text);
	assert_int_equal(strlen(text), length);
	assert_non_null(strstr(text, "\nhoma_tx_grant_total{thread=\"1\"} 77\n"));
	assert_non_null(strstr(text, "\nhoma_evicted_total 4\n"));
	assert_non_null(strstr(text, "\nhoma_memory_grown_total 9\n"));
	assert_non_null(strstr(
		text,
		"\nhoma_thread_busy_seconds_total{thread=\"1\"} 1.500000000\n"));
	assert_non_null(
		strstr(text,
		       "\nhoma_rpc_latency_seconds_bucket{le=\"2e-06\"} 0\n"));
	assert_non_null(
		strstr(text,
		       "\nhoma_rpc_latency_seconds_bucket{le=\"5e-06\"} 5\n"));
	assert_non_null(
		strstr(text, "\nhoma_rpc_latency_seconds_sum 0.000015000\n"));
	free(text);
	bed_free(bed);
}

#define APPS 150u /* several pieces of either */

/* Attachment i has the number 2 i + 1 and is user i / 3's. */
static void apps__are_copied_piece_by_piece(void **state)
{
	struct homad_attachment *a = calloc(APPS, sizeof(*a));
	struct homad_streams *streams = calloc(APPS, sizeof(*streams));
	struct homad_user *users = calloc(APPS, sizeof(*users));
	struct bed *bed = bed_new();
	struct homad_apps apps;
	u32 i;

	(void)state;
	for (i = 0; i < APPS; i++) {
		users[i].uid = i;
		users[i].records = 1;
		users[i].tcp_tx_bytes = 1000;
		/* Two of three in one bucket. */
		homa_list_init(&users[i].list);
		homa_list_add_tail(&bed->attach.users[i % 3 ? 7 : i],
				   &users[i].list);
		a[i].app.id = 2 * i + 1;
		a[i].app.uid = i / 3;
		a[i].app.thread = bed->threads[i % 2];
		a[i].app.is_polled = true;
		a[i].app.streams = &streams[i];
		a[i].attached.app = &a[i].app;
		a[i].memory = i;
		streams[i].num_open = 1;
		streams[i].tx_bytes = 5;
		homa_list_init(&a[i].attached.list);
		homa_list_add_tail(&bed->slow.apps, &a[i].attached.list);
	}
	assert_int_equal(homad_apps_look(&bed->d, &apps), 0);
	assert_int_equal(apps.num_apps, APPS);
	for (i = 0; i < APPS; i++) {
		assert_int_equal(apps.app[i].id, 2 * i + 1);
		assert_int_equal(apps.app[i].memory, i);
	}
	assert_int_equal(homad_apps_polled(&apps, 0), APPS / 2);
	assert_int_equal(homad_apps_polled(&apps, 2), 0);
	assert_int_equal(apps.num_users, APPS);
	for (i = 0; i < APPS; i++) {
		assert_int_equal(apps.user[i].uid, i);
		assert_int_equal(apps.user[i].streams, i < APPS / 3 ? 3 : 0);
		assert_int_equal(apps.user[i].stream_tx,
				 i < APPS / 3 ? 1015 : 1000);
	}
	homad_apps_free(&apps);
	free(users);
	free(streams);
	free(a);
	bed_free(bed);
}

/* Whoever has left is forgotten when his last peer is, of which nobody hears. */
static void apps__users_who_have_left_are_forgotten(void **state)
{
	struct bed *bed = bed_new();
	struct homad_user *user = calloc(1, sizeof(*user));
	struct homad_apps apps;
	u32 peers;

	(void)state;
	user->owner.peers = 1;
	homa_list_init(&user->list);
	homa_list_add_tail(&bed->attach.users[7], &user->list);
	for (peers = 1; peers + 1; peers--) {
		if (!peers)
			user->owner.peers = 0;
		assert_int_equal(homad_apps_look(&bed->d, &apps), 0);
		assert_int_equal(apps.num_users, peers);
		homad_apps_free(&apps);
	}
	assert_true(homa_list_empty(&bed->attach.users[7]));
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds__ascend_from_1us_to_10s),
		cmocka_unit_test(collect__sums_over_threads),
		cmocka_unit_test(collect__latencies_in_their_buckets),
		cmocka_unit_test(metrics__say_what_was_counted),
		cmocka_unit_test(apps__are_copied_piece_by_piece),
		cmocka_unit_test(apps__users_who_have_left_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
