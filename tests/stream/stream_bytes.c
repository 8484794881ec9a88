// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Bytes of streams: circular buffers, growth, doorbells. */
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(write__arrives, setup, teardown),
	cmocka_unit_test_setup_teardown(write__wraps, setup, teardown),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
