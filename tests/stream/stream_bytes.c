// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Bytes of streams: circular buffers, growth, doorbells. */
#include "stream_fork.h"
#include "stream_test.h"

static void write__arrives(void **state)
{
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(get(pair[1], got, 10), -EAGAIN);
	assert_int_equal(put(pair[0], data, 100), 100);
	fake_step(&f);
	assert_true(homa_stream_ready(pair[1]) & HOMA_STREAM_IN);
	assert_int_equal(get(pair[1], got, 60), 60);
	assert_int_equal(get(pair[1], got + 60, 60), 40);
	assert_memory_equal(got, data, 100);
	assert_int_equal(get(pair[1], got, 10), -EAGAIN);
	assert_int_equal(homa_stream_ready(pair[1]), HOMA_STREAM_OUT);
}

/* Bytes that were written or read, maybe none. */
static size_t some(ssize_t rc)
{
	if (rc < 0)
		assert_int_equal(rc, -EAGAIN);
	return rc < 0 ? 0 : (size_t)rc;
}

/* Pieces of odd lengths go round buffers of 4 KiB a few hundred times. */
static void write__wraps(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t sent = 0, taken = 0, all = 1 << 20, n = 1;
	ssize_t rc;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	while (taken < all) {
		struct iovec iov[3];

		n = n % 1500 + 37;
		if (n > all - sent)
			n = all - sent;
		iov[0] = (struct iovec){ data + sent, n / 3 };
		iov[1] = (struct iovec){ NULL, 0 };
		iov[2] = (struct iovec){ data + sent + n / 3, n - n / 3 };
		rc = homa_stream_write(pair[0], iov, 3);
		sent += some(rc);
		fake_step(&f);
		iov[0] = (struct iovec){ got + taken, 11 };
		iov[1] = (struct iovec){ got + taken + 11, n };
		rc = homa_stream_read(pair[1], iov, 2, 0);
		taken += some(rc);
	}
	assert_memory_equal(got, data, all);
}

/* Everything that was written arrives, and in order. */
static void drain_into(struct homa_stream *stream, size_t *taken)
{
	ssize_t rc;

	for (;;) {
		fake_step(&f);
		rc = get(stream, got + *taken, 1 << 20);
		if (rc == -EAGAIN)
			return;
		assert_true(rc > 0);
		*taken += (size_t)rc;
	}
}

/* The buffer gets larger while it is half full, at each place of its end. */
static void write__grows_and_keeps_bytes_in_place(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t ahead, sent, taken;
	u32 shift;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	open_context();
	for (ahead = 1; ahead < 8000; ahead += 333) {
		make_pair(pair, &listener);
		sent = taken = 0;
		sent += some(put(pair[0], data, ahead % 4096));
		drain_into(pair[1], &taken);
		f.still = true;
		sent += some(
			put(pair[0], data + sent, ahead > 4096 ? 4096 : 2222));
		for (shift = 13; shift < 17; shift++) {
			f.slot[pair[0]->index].tx_shift = shift;
			sent += some(put(pair[0], data + sent, 1u << (shift - 1)));
		}
		f.still = false;
		homa_stream_ring(pair[0]);
		drain_into(pair[1], &taken);
		sent += some(put(pair[0], data + sent, 1 << 17));
		drain_into(pair[1], &taken);
		assert_int_equal(pair[0]->tx_map >> 32, 16);
		assert_int_equal(taken, sent);
		assert_memory_equal(got, data, sent);
		homa_stream_abort(pair[0]);
		homa_stream_abort(pair[1]);
		homa_stream_close(listener);
		fake_step(&f);
	}
}

/* A buffer that is full grows only when its end is where it begins. */
static void write__grows_only_when_it_may(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t taken = 0;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	f.tx_shift = 13;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(put(pair[0], data, 1000), 1000);
	drain_into(pair[1], &taken);
	f.still = true;
	assert_int_equal(put(pair[0], data + 1000, 9000), 8192);
	f.slot[pair[0]->index].tx_shift = 14;
	/* Bytes lie on both sides of where it begins. */
	assert_int_equal(put(pair[0], data, 1), -EAGAIN);
	assert_int_equal(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT, 0);
	f.still = false;
	homa_stream_ring(pair[0]);
	fake_step(&f);
	/* Now it is empty. */
	assert_true(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT);
	assert_int_equal(put(pair[0], data + 9192, 20000), 16384);
	drain_into(pair[1], &taken);
	assert_int_equal(taken, 9192 + 16384);
	assert_memory_equal(got, data, taken);
}

/* From the first buffer, full or not and wherever its bytes lie, they move. homad, which
 * has not heard of that, still finds them where they were. */
static void write__moves_out_of_the_first_buffer(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t ahead, sent, taken;
	u64 old;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	open_context();
	for (ahead = 0; ahead < 4096; ahead += 777) {
		make_pair(pair, &listener);
		sent = taken = 0;
		if (ahead)
			sent += some(put(pair[0], data, ahead));
		drain_into(pair[1], &taken);
		f.still = true;
		sent += some(put(pair[0], data + sent, ahead % 2 ? 5000 : 3000));
		old = pair[0]->slot->tx_map;
		assert_int_equal(old >> 32, HOMA_STREAM_MIN_SHIFT);
		f.slot[pair[0]->index].tx_shift = 15;
		assert_true(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT);
		sent += some(put(pair[0], data + sent, 9000));
		assert_int_equal(pair[0]->slot->tx_map >> 32, 15);
		assert_memory_equal(
			f.firsts + (pair[0]->index * 2 + 1) * HOMA_STREAM_FIRST +
				homa_stream_at(old, (u32)ahead),
			data + ahead,
			homa_min_u32(homa_stream_to_end(old, (u32)ahead), 3000));
		f.still = false;
		homa_stream_ring(pair[0]);
		drain_into(pair[1], &taken);
		assert_int_equal(taken, sent);
		assert_memory_equal(got, data, sent);
		homa_stream_abort(pair[0]);
		homa_stream_abort(pair[1]);
		homa_stream_close(listener);
		fake_step(&f);
	}
}

/* Between room() and written() the buffer gets memory: the bytes are where they were put. */
static void written__is_where_room_said(void **state)
{
	struct homa_stream *pair[2], *listener;
	struct iovec piece[2];
	size_t taken = 0;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(put(pair[0], data, 4000), 4000);
	f.still = true;
	fake_step(&f);
	assert_int_equal(put(pair[0], data + 4000, 96), 96);
	f.still = false;
	homa_stream_ring(pair[0]);
	fake_step(&f);
	f.still = true;
	assert_int_equal(put(pair[0], data + 4096, 50), 50);
	assert_int_equal(homa_stream_room(pair[0], piece), 4046);
	memcpy(piece[0].iov_base, data + 4146, piece[0].iov_len);
	memcpy(piece[1].iov_base, data + 4146 + piece[0].iov_len,
	       piece[1].iov_len);
	f.slot[pair[0]->index].tx_shift = 15;
	assert_int_equal(homa_stream_written(pair[0], 4047), -EINVAL);
	assert_int_equal(homa_stream_written(pair[0], 4046), 0);
	f.still = false;
	assert_int_equal(put(pair[0], data + 8192, 10000), 10000);
	drain_into(pair[1], &taken);
	assert_int_equal(taken, 18192);
	assert_memory_equal(got, data, taken);
}

static void arrived__takes_without_copies(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t sent = 0, taken = 0;
	struct iovec piece[2];
	size_t n;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(homa_stream_arrived(pair[1], piece), 0);
	while (taken < 100000) {
		sent += some(put(pair[0], data + sent, 3001));
		fake_step(&f);
		n = homa_stream_arrived(pair[1], piece);
		assert_int_equal(n, piece[0].iov_len + piece[1].iov_len);
		memcpy(got + taken, piece[0].iov_base, piece[0].iov_len);
		if (piece[1].iov_len)
			memcpy(got + taken + piece[0].iov_len,
			       piece[1].iov_base, piece[1].iov_len);
		homa_stream_taken(pair[1], n > 7 ? n - 7 : n);
		taken += n > 7 ? n - 7 : n;
	}
	assert_memory_equal(got, data, taken);
	/* More than there is cannot be taken. */
	homa_stream_taken(pair[1], 1 << 20);
	assert_int_equal(homa_stream_arrived(pair[1], piece), 0);
}

static void read__peeks(void **state)
{
	struct homa_stream *pair[2], *listener;
	struct iovec iov = { got, 100 };

	(void)state;
	open_context();
	make_pair(pair, &listener);
	put(pair[0], data, 10);
	fake_step(&f);
	assert_int_equal(homa_stream_read(pair[1], &iov, 1, 1), 10);
	assert_int_equal(homa_stream_read(pair[1], &iov, 1, 1), 10);
	assert_int_equal(homa_stream_read(pair[1], &iov, 1, 0), 10);
	assert_int_equal(homa_stream_read(pair[1], &iov, 1, 0), -EAGAIN);
}

/* ---- doorbells ---- */

static u32 rings(void)
{
	return f.commands[HOMA_STREAM_RING];
}

static void ring__once_until_homad_looks(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 before, i;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	before = rings();
	for (i = 0; i < 50; i++)
		assert_int_equal(put(pair[0], data, 10), 10);
	fake_step(&f);
	assert_int_equal(rings(), before + 1);
	assert_int_equal(put(pair[0], data, 10), 10);
	fake_step(&f);
	assert_int_equal(rings(), before + 2);
}

/* Small reads are told an eighth of the buffer at a time. */
static void ring__of_a_reader_is_rare(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 before, i, slot;

	(void)state;
	f.rx_shift = 16;
	open_context();
	make_pair(pair, &listener);
	slot = pair[1]->index;
	before = rings();
	for (i = 0; i < 3000; i++) {
		fake_arrive(&f, slot, data, 64);
		assert_int_equal(get(pair[1], got, 64), 64);
		fake_step(&f);
		/* What homad does not know of. */
		assert_true(pair[1]->rx_read - pair[1]->rx_rung < (1u << 16) / 8);
	}
	assert_int_equal(rings() - before, 3000 * 64 / 8192);
}

/* Who answers what he reads rings for both at once. */
static void ring__of_a_writer_tells_what_was_read(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 before, i;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	before = rings();
	for (i = 0; i < 1000; i++) {
		fake_arrive(&f, pair[1]->index, data, 64);
		assert_int_equal(get(pair[1], got, 64), 64);
		assert_int_equal(put(pair[1], got, 64), 64);
		fake_step(&f);
		fake_arrive(&f, pair[0]->index, data, 0);
		while (get(pair[0], got, 4096) > 0)
			;
	}
	/* The other side reads 64 bytes each time, of 4 KiB. */
	assert_in_range(rings() - before, 1000, 1000 + 1000 * 64 / 512);
}

/* A window that was closed is opened when a segment has room, not only after an eighth. */
static void ring__when_the_buffer_was_full(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 before;

	(void)state;
	f.rx_shift = 16;
	open_context();
	make_pair(pair, &listener);
	fake_arrive(&f, pair[1]->index, data, 1 << 16);
	before = rings();
	assert_int_equal(get(pair[1], got, 1447), 1447);
	fake_step(&f);
	assert_int_equal(rings(), before);
	assert_int_equal(get(pair[1], got, 1), 1);
	fake_step(&f);
	assert_int_equal(rings(), before + 1);
	/* To the end: what is not told is less than an eighth. */
	while (get(pair[1], got, 999) > 0)
		fake_step(&f);
	assert_true(pair[1]->rx_read - pair[1]->rx_rung < 8192);
}

/* A peer that sends as much as there is room for never stands still. */
static void ring__sender_is_never_stuck(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t sent, taken, n;
	u32 i;

	(void)state;
	open_context();
	for (n = 1; n < 5000; n = n * 3 / 2 + 1) {
		make_pair(pair, &listener);
		sent = taken = 0;
		for (i = 0; taken < 50000; i++) {
			ssize_t rc;

			sent += some(put(pair[0], data + sent, 50000 - sent));
			fake_step(&f);
			while ((rc = get(pair[1], got + taken, n)) > 0)
				taken += (size_t)rc;
			assert_int_equal(rc, -EAGAIN);
			assert_true(i < 100);
		}
		assert_memory_equal(got, data, taken);
		homa_stream_close(pair[0]);
		homa_stream_close(pair[1]);
		homa_stream_close(listener);
		fake_step(&f);
	}
}

/* Commands wait for room in their ring, in order, and none is lost. */
static void command__waits_for_room(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 i;

	(void)state;
	f.entries = 8;
	open_context();
	make_pair(pair, &listener);
	fake_run(&f);
	for (i = 0; i < 2000; i++)
		assert_int_equal(homa_stream_options(pair[0], i % 8), 0);
	while (__atomic_load_n(&f.commands[HOMA_STREAM_OPTIONS],
			       __ATOMIC_RELAXED) < 1999)
		usleep(1000);
	assert_int_equal(pair[0]->told_options, 1999 % 8);
	fake_stop(&f);
	fake_step(&f);
	assert_int_equal(f.options, 1999 % 8);
}

/* homad dies while a command waits for room. */
static void *kill_soon(void *arg)
{
	(void)arg;
	usleep(20000);
	shutdown(__atomic_load_n(&f.conn, __ATOMIC_RELAXED), SHUT_RDWR);
	return NULL;
}

static void command__does_not_wait_for_the_dead(void **state)
{
	struct homa_stream *pair[2], *listener;
	pthread_t thread;
	u32 i = 0;

	(void)state;
	f.entries = 8;
	open_context();
	make_pair(pair, &listener);
	pthread_create(&thread, NULL, kill_soon, NULL);
	while (!homa_stream_options(pair[0], i % 8) && i < 100)
		i++;
	pthread_join(thread, NULL);
	assert_int_equal(i, 9); /* the first of 0 is none */
	assert_int_equal(homa_stream_error(pair[0]), ECONNRESET);
}

/* ---- kicks ---- */

static void kick__only_if_wanted(void **state)
{
	struct homa_stream *pair[2], *listener;
	u64 value;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	put(pair[0], data, 10);
	assert_int_equal(read(f.kick_fd, &value, sizeof(value)), -1);
	fake_step(&f);
	f.q->h.need_kick = HOMA_SHM_KICK_SUBMIT;
	put(pair[0], data, 10);
	assert_int_equal(read(f.kick_fd, &value, sizeof(value)), 8);
	/* It has been rung already. */
	put(pair[0], data, 10);
	assert_int_equal(read(f.kick_fd, &value, sizeof(value)), -1);
}

/* Events that found no room in the ring wait for us, and homad may sleep. */
static void kick__when_the_event_ring_was_full(void **state)
{
	struct homa_stream *listener, *stream;
	u64 value;
	u32 i;

	(void)state;
	f.entries = 8;
	open_context();
	listen_on(&listener);
	f.q->h.need_kick = HOMA_SHM_KICK_SUBMIT;
	for (i = 0; i < 7; i++)
		fake_incoming(&f, 1);
	while (!homa_stream_accept(listener, &stream))
		;
	assert_int_equal(read(f.kick_fd, &value, sizeof(value)), -1);
	for (i = 0; i < 8; i++)
		fake_incoming(&f, 1);
	assert_int_equal(homa_stream_accept(listener, &stream), 0);
	assert_int_equal(read(f.kick_fd, &value, sizeof(value)), 8);
}

/* A limit counts for the bytes that wait, whatever the buffer holds, and for readiness. */
static void write__up_to_the_limit(void **state)
{
	struct homa_stream *pair[2], *listener;
	size_t taken = 0;

	(void)state;
	f.rx_shift = HOMA_STREAM_MAX_SHIFT;
	f.tx_shift = 16;
	open_context();
	make_pair(pair, &listener);
	f.still = true;
	assert_int_equal(put(pair[0], data, 3000), 3000);
	homa_stream_limit_send(pair[0], 10000);
	assert_int_equal(homa_stream_writable(pair[0]), 7000);
	assert_int_equal(put(pair[0], data + 3000, 20000), 7000);
	assert_int_equal(put(pair[0], data, 1), -EAGAIN);
	assert_int_equal(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT, 0);
	/* A lower one than what waits already. */
	homa_stream_limit_send(pair[0], 5000);
	assert_int_equal(homa_stream_writable(pair[0]), 0);
	f.still = false;
	homa_stream_ring(pair[0]);
	drain_into(pair[1], &taken);
	assert_true(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT);
	assert_int_equal(put(pair[0], data + 10000, 20000), 5000);
	drain_into(pair[1], &taken);
	homa_stream_limit_send(pair[0], 0);
	assert_int_equal(put(pair[0], data + 15000, 60000), 60000);
	drain_into(pair[1], &taken);
	assert_int_equal(taken, 75000);
	assert_memory_equal(got, data, taken);
}

/* Who must not wait for a peer waits for the larger buffer, unless homad says that none comes, the
 * limit needs none, or it is there. */
static void write__knows_whether_it_grows(void **state)
{
	struct homa_stream *pair[2], *listener;
	struct homa_stream_slot *slot;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	slot = &f.slot[pair[0]->index];
	assert_true(homa_stream_send_grows(pair[0]));
	slot->tx_stays = 1;
	assert_false(homa_stream_send_grows(pair[0]));
	slot->tx_stays = 0;
	homa_stream_limit_send(pair[0], HOMA_STREAM_FIRST);
	assert_false(homa_stream_send_grows(pair[0]));
	homa_stream_limit_send(pair[0], HOMA_STREAM_FIRST + 1);
	assert_true(homa_stream_send_grows(pair[0]));
	slot->tx_shift = 16;
	assert_int_equal(put(pair[0], data, 1), 1);
	assert_false(homa_stream_send_grows(pair[0]));
	assert_false(homa_stream_send_grows(listener));
}

/* A look may begin behind the next byte, also where the buffer begins anew. */
static void read__peeks_from_an_offset(void **state)
{
	struct homa_stream *pair[2], *listener;
	struct iovec one = { got, 100 };
	size_t offset;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	assert_int_equal(put(pair[0], data, 4000), 4000);
	fake_step(&f);
	assert_int_equal(get(pair[1], got, 3000), 3000);
	fake_step(&f);
	assert_int_equal(put(pair[0], data + 4000, 2000), 2000);
	fake_step(&f);
	for (offset = 0; offset <= 2900; offset++) {
		assert_int_equal(homa_stream_peek_at(pair[1], &one, 1, offset),
				 100);
		assert_memory_equal(got, data + 3000 + offset, 100);
	}
	assert_int_equal(homa_stream_peek_at(pair[1], &one, 1, 2999), 1);
	assert_int_equal(homa_stream_peek_at(pair[1], &one, 1, 3000), -EAGAIN);
	assert_int_equal(homa_stream_shutdown(pair[0]), 0);
	fake_step(&f);
	assert_int_equal(homa_stream_peek_at(pair[1], &one, 1, 4000), 0);
	assert_int_equal(get(pair[1], got, 4000), 3000);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(write__arrives),
		T(write__wraps),
		T(write__grows_and_keeps_bytes_in_place),
		T(write__grows_only_when_it_may),
		T(write__up_to_the_limit),
		T(write__knows_whether_it_grows),
		T(write__moves_out_of_the_first_buffer),
		T(written__is_where_room_said),
		T(arrived__takes_without_copies),
		T(read__peeks),
		T(read__peeks_from_an_offset),
		T(ring__once_until_homad_looks),
		T(ring__of_a_reader_is_rare),
		T(ring__of_a_writer_tells_what_was_read),
		T(ring__when_the_buffer_was_full),
		T(ring__sender_is_never_stuck),
		T(command__waits_for_room),
		T(command__does_not_wait_for_the_dead),
		T(kick__only_if_wanted),
		T(kick__when_the_event_ring_was_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
