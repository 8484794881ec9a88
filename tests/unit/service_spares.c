// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp.c: the two engines of an instance, for connections with other hosts and
 * within this one, share memory. What one of them has had is the other's when that needs it.
 */
#include "streams_bed.h"

#define ALL 256u /* connections of the bed's instance */

/* Opens connections by @engine until it has no memory for more; returns how many. */
static u32 open_all(struct bed *bed, struct tas_engine *engine,
		    struct tas_conn *conns[ALL])
{
	struct homad_tcp *tcp = bed->t->tcp;
	struct tas_pair pair = { .remote_port = PORT };
	u32 n = 0;

	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	homad_now(bed->t);
	homad_tcp_round(bed->t);
	for (;; n++) {
		homad_tcp_refill(tcp, engine);
		pair.local_port = (u16)(5000 + n);
		if (n == ALL || tas_connect(engine, &pair, HOMAD_STREAM_SHIFT,
					    1u << HOMAD_STREAM_SHIFT, &conns[n]))
			return n;
	}
}

static void close_all(struct bed *bed, struct tas_engine *engine,
		      struct tas_conn *conns[ALL], u32 num)
{
	while (num--)
		tas_abort(engine, conns[num]);
	homad_stream_events(bed->t);
}

/* Each has nearly all of them in turn. */
static void spares__of_the_other_engine(void **state)
{
	struct bed *bed = bed_new();
	struct tas_conn *conns[ALL];
	struct homad_tcp *tcp;
	u32 i, num;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	for (i = 0; i < 4; i++) {
		struct tas_engine *engine = i % 2 ? &tcp->engine : &tcp->local;

		num = open_all(bed, engine, conns);
		assert_in_range(num, ALL - 64, ALL);
		close_all(bed, engine, conns, num);
	}
	end_all(bed);
}

/* Connections that wait only for their peers to close are dropped for those of the other engine. */
static void spares__of_orphans_of_the_other_engine(void **state)
{
	struct bed *bed = bed_new();
	struct tas_conn *conns[ALL];
	struct homad_tcp *tcp;
	u32 i, num;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	num = open_all(bed, &tcp->engine, conns);
	for (i = 0; i < num; i++) {
		conns[i]->f.state = TAS_FIN_WAIT_2;
		tas_close(&tcp->engine, conns[i]);
	}
	for (i = 0; i < 4; i++) {
		homad_tcp_refill(tcp, &tcp->local);
		homad_stream_events(bed->t);
	}
	assert_true(tcp->engine.metrics.orphans_dropped > 0);
	assert_true(tcp->local.num_spare > 0);
	end_all(bed);
}

/* Memory for connections in TIME_WAIT goes the same way. */
static void spares__of_connections_that_have_ended(void **state)
{
	struct bed *bed = bed_new();
	struct tas_ended *ended;
	struct homad_tcp *tcp;
	u32 i;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	while ((ended = homa_slab_get(&tcp->ended)))
		tas_add_ended(&tcp->local, ended);
	for (i = 0; i < ALL; i++) {
		homad_tcp_refill(tcp, &tcp->engine);
		assert_non_null(tas_take_ended(&tcp->engine));
	}
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spares__of_the_other_engine),
		cmocka_unit_test(spares__of_orphans_of_the_other_engine),
		cmocka_unit_test(spares__of_connections_that_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
