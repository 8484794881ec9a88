// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp_steer.c: a listener ends while segments for it lie in the ring to its
 * instance.
 */
#include "steering_bed.h"

/* A listener ends while a SYN for it waits in the ring to its instance. Who shares the port with
 * it, or listens at all addresses, gets the connection, as if the SYN came now. */
static void missed__syn_goes_to_who_listens_still(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[2];
	u16 i;

	(void)state;
	for (i = 0; i < SYNS; i++) {
		listens(s, 1, &l[0], 5, true);
		is_handed(s, 0, TAS_SYN, 1000 + i, 5);
		listens(s, 2, &l[1], i & 1 ? 5 : 0, true);
		ends(s, &l[0]);
		rounds(s);
		rounds(s);
		assert_int_equal(l[1].l.num_half, 1);
		ends(s, &l[1]);
		homad_steering_set(s->bed->d.steering, PORT, 2, false);
	}
	assert_int_equal(all_resets(s), 0);
	several_free(s);
}

/* It is handed on to each instance once at most: who begins to listen again where the SYN was is
 * too late. What begins no connection is not handed on. */
static void missed__syn_goes_to_each_instance_once(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[3];
	u64 handed;

	(void)state;
	listens(s, 1, &l[0], 5, true);
	is_handed(s, 0, TAS_SYN, 1000, 5);
	listens(s, 2, &l[1], 5, true);
	ends(s, &l[0]);
	homad_round(s->bed->d.threads[1]);
	ends(s, &l[1]);
	listens(s, 1, &l[2], 5, true);
	homad_round(s->bed->d.threads[2]);
	handed = s->bed->d.threads[2]->counters.tcp_handed;
	assert_int_equal(resets(s, 2), 1);
	for (u32 i = 0; i < 2 * THREADS; i++)
		rounds(s);
	assert_int_equal(all_resets(s), 1);
	assert_int_equal(s->bed->d.threads[2]->counters.tcp_handed, handed);
	assert_int_equal(l[2].l.num_half, 0);
	ends(s, &l[2]);
	/* Nobody listens any more. */
	listens(s, 1, &l[0], 5, true);
	homad_steering_set(s->bed->d.steering, PORT, 2, false);
	is_handed(s, 0, TAS_SYN, 1001, 5);
	ends(s, &l[0]);
	rounds(s);
	assert_int_equal(resets(s, 1), 1);
	/* An ACK begins no connection. */
	listens(s, 1, &l[0], 5, true);
	is_handed(s, 0, TAS_ACK, 1002, 5);
	listens(s, 2, &l[1], 5, true);
	ends(s, &l[0]);
	rounds(s);
	assert_int_equal(resets(s, 1), 2);
	ends(s, &l[1]);
	several_free(s);
}

/* Within this host, too. */
static void missed__syn_of_this_host(void **state)
{
	struct several *s = spread_new();
	struct homad_thread *t = s->bed->d.threads[0];
	struct tas_pair pair = { .local_port = PORT, .remote_port = 1000 };
	struct tas_segment seg = { .sport = 1000, .dport = PORT, .flags = TAS_SYN };
	struct homa_addr me = number(5);
	struct homad_tcp_listener l[2];
	u8 bytes[HEADER];
	struct nic_rx pkt = segment(bytes, 1000);
	u32 i;

	(void)state;
	assert_int_equal(tas_encode(&seg, bytes), HEADER);
	memcpy(pair.local, me.ip, sizeof(me.ip));
	memcpy(pair.remote, me.ip, sizeof(me.ip));
	memcpy(pkt.dst.ip, me.ip, sizeof(me.ip));
	memcpy(pkt.src.ip, me.ip, sizeof(me.ip));
	for (i = 0; i < 2; i++) {
		listens(s, i + 1, &l[i], 5, true);
		l[i].here = l[i].l;
		assert_int_equal(tas_listen(&instance(s, i + 1)->local,
					    &l[i].here),
				 0);
		if (!i)
			homad_tcp_steer_local(t, &pkt, &pair, NULL);
	}
	ends(s, &l[0]);
	tas_unlisten(&instance(s, 1)->local, &l[0].here);
	homad_round(s->bed->d.threads[1]);
	homad_now(s->bed->d.threads[2]);
	homad_tcp_round(s->bed->d.threads[2]);
	assert_int_equal(homad_tcp_handed(s->bed->d.threads[2]), 1);
	assert_int_equal(l[1].here.num_half, 1);
	assert_int_equal(instance(s, 1)->local.metrics.resets_sent, 0);
	several_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missed__syn_goes_to_who_listens_still),
		cmocka_unit_test(missed__syn_goes_to_each_instance_once),
		cmocka_unit_test(missed__syn_of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
