// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What only libhoma-preload says and asks: from where a connection comes that is being opened,
 * another backlog, quick ACKs, unsent bytes. */
#include "stream_test.h"
#include "stream_fork.h"

/* A connection that homad has not answered. */
static struct homa_stream *connecting(bool named)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct homa_patience none = { 0 };
	struct homa_stream *stream;

	to.sin_addr.s_addr = htonl(0x0a010102);
	assert_int_equal(homa_stream_connect_with(ctx, &none, NULL,
						  (struct sockaddr *)&to,
						  sizeof(to), named, &stream),
			 0);
	return stream;
}

/* homad tells where the connection comes from that the first command asks for. */
static void tell(u32 slot, u32 generation)
{
	const struct homa_stream_end local = {
		.ip = { [10] = 0xff, 0xff, 10, 1, 1, 1 }, .port = 4321
	};

	f.slot[slot].local = local;
	f.slot[slot].generation = generation;
	fake_event(&f, (struct homa_stream_event){ .kind = HOMA_STREAM_BEGUN,
						   .slot = slot,
						   .generation = generation,
						   .token = f.command[0].token });
}

static void begun__says_from_where(void **state)
{
	struct sockaddr_storage from;
	struct homa_stream *stream;

	(void)state;
	open_context();
	stream = connecting(true);
	assert_true(f.command[0].value & HOMA_STREAM_OPT_BEGUN);
	assert_int_equal(homa_stream_begun(stream, &from), -ENOTCONN);
	tell(3, 7);
	assert_int_equal(homa_stream_begun(stream, &from), 0);
	assert_int_equal(from.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&from)->sin_port, htons(4321));
	assert_int_equal(((struct sockaddr_in *)&from)->sin_addr.s_addr,
			 htonl(0x0a010101));
	/* Nothing has been opened by that. */
	assert_int_equal(swallow(), 0);
	assert_int_equal(homa_stream_ready(stream), 0);
}

/* Another connection may have the slot by now. */
static void begun__of_a_slot_that_is_another_ones(void **state)
{
	struct sockaddr_storage from;
	struct homa_stream *stream;

	(void)state;
	open_context();
	stream = connecting(true);
	tell(3, 7);
	f.slot[3].generation = 8;
	assert_int_equal(homa_stream_begun(stream, &from), -ENOTCONN);
}

static void begun__of_a_stream_that_is_closed(void **state)
{
	(void)state;
	open_context();
	homa_stream_close(connecting(true));
	tell(3, 7);
	assert_int_equal(swallow(), 0);
	assert_false(homa_streams_gone(ctx));
}

/* The context has ended, and another homad is there. */
static void begin_anew(void)
{
	homa_streams_close(ctx);
	ctx = NULL;
	fake_kill(&f);
	memset(&f, 0, sizeof(f));
	fake_start(&f);
}

static void begun__is_not_asked_for_in_vain(void **state)
{
	(void)state;
	open_context();
	connecting(false);
	assert_int_equal(f.command[0].value, 0);
	begin_anew();
	f.cannot = HOMA_SHM_CAN_BEGUN;
	open_context();
	connecting(true);
	assert_int_equal(f.command[0].value, 0);
}

static void begun__of_nothing_ends_the_context(void **state)
{
	const struct homa_stream_event lies[] = {
		{ .kind = HOMA_STREAM_BEGUN, .token = 12345 },
		{ .kind = HOMA_STREAM_BEGUN, .slot = FAKE_SLOTS },
	};
	struct homa_stream_event lie;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lies); i++) {
		open_context();
		connecting(true);
		lie = lies[i];
		if (lie.slot)
			lie.token = f.command[0].token;
		fake_event(&f, lie);
		swallow();
		assert_true(homa_streams_gone(ctx));
		begin_anew();
	}
}

static void listen__again_with_another_backlog(void **state)
{
	struct homa_stream *listener;

	(void)state;
	open_context();
	listen_on(&listener);
	assert_int_equal(homa_stream_backlog(listener, 99), 0);
	fake_step(&f);
	assert_int_equal(f.backlog, 99);
	assert_int_equal(homa_stream_backlog(listener, 0), 0);
	fake_step(&f);
	assert_int_equal(f.backlog, 1);
	f.q->h.features &= ~(u32)HOMA_SHM_CAN_BACKLOG;
	assert_int_equal(homa_stream_backlog(listener, 5), -EOPNOTSUPP);
}

/* homad throws out who names a listener that has ended, and there is nothing to be said to a homad
 * that is gone, whose memory a child of fork() does not have. */
static void listen__again_when_it_has_ended(void **state)
{
	struct homa_stream *listener;

	(void)state;
	open_context();
	listen_on(&listener);
	assert_int_equal(homa_stream_backlog(listener, 99), 0);
	homa_stream_shutdown(listener);
	assert_int_equal(homa_stream_backlog(listener, 5), -EINVAL);
	fake_step(&f);
	assert_int_equal(f.backlog, 99);
	homa_streams_lose(ctx);
	assert_int_equal(homa_stream_backlog(listener, 5), -ECONNRESET);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What is set stays as it is, and homad is told each time. */
static void quick_acks__each_time(void **state)
{
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(homa_stream_options(pair[0], HOMA_STREAM_NODELAY), 0);
	assert_int_equal(homa_stream_quick_acks(pair[0], true), 0);
	assert_int_equal(homa_stream_quick_acks(pair[0], true), 0);
	fake_step(&f);
	assert_int_equal(f.commands[HOMA_STREAM_OPTIONS], 3);
	assert_int_equal(f.options,
			 HOMA_STREAM_OPT_NODELAY | HOMA_STREAM_OPT_QUICK);
	assert_int_equal(homa_stream_quick_acks(pair[0], false), 0);
	fake_step(&f);
	assert_int_equal(f.options,
			 HOMA_STREAM_OPT_NODELAY | HOMA_STREAM_OPT_SLOW);
	/* A listener has no ACKs. */
	assert_int_equal(homa_stream_quick_acks(listener, true), 0);
	assert_int_equal(f.commands[HOMA_STREAM_OPTIONS], 4);
}

/* A program may write until so many bytes were never sent, as far as homad tells. */
static void unsent__as_homad_tells(void **state)
{
	struct homa_stream *pair[2], *listener;
	struct homa_stream_slot *slot;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	f.tx_shift = 16;
	open_context();
	make_pair(pair, &listener);
	slot = &f.slot[pair[0]->index];
	f.still = true;
	assert_int_equal(put(pair[0], data, 3000), 3000);
	homa_stream_limit_unsent(pair[0], 10000);
	assert_int_equal(homa_stream_writable(pair[0]), 7000);
	slot->tx_sent = 2000;
	assert_int_equal(put(pair[0], data, 20000), 9000);
	assert_int_equal(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT, 0);
	slot->tx_sent = 11000;
	assert_int_equal(homa_stream_writable(pair[0]), 9000);
	/* Not in pieces that are very small. */
	slot->tx_sent = 3000;
	assert_int_equal(homa_stream_writable(pair[0]), 4096);
	homa_stream_limit_unsent(pair[0], 0);
	assert_int_equal(homa_stream_writable(pair[0]), 65536 - 12000);
	/* An older homad does not tell, so nothing is held back. */
	homa_stream_limit_unsent(pair[0], 10000);
	f.q->h.features &= ~(u32)HOMA_SHM_CAN_SENT;
	assert_int_equal(homa_stream_writable(pair[0]), 65536 - 12000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(begun__says_from_where),
		T(begun__of_a_slot_that_is_another_ones),
		T(begun__of_a_stream_that_is_closed),
		T(begun__is_not_asked_for_in_vain),
		T(begun__of_nothing_ends_the_context),
		T(listen__again_with_another_backlog),
		T(listen__again_when_it_has_ended),
		T(quick_acks__each_time),
		T(unsent__as_homad_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
