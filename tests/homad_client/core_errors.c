// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * lib/core/error.c: whose failure homa_error() tells. The handles here have no host, or one of
 * the test's own that closes the handle while it is called, as another thread could.
 */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include "libhoma_impl.h"
#include "libhoma_preload.h"

/* Enough handles to use all that a thread remembers several times. */
#define MANY 16

static void error__of_a_handle_that_has_not_failed(void **state)
{
	struct homa failed, other = { .serial = 1000 };
	u32 i;

	(void)state;
	assert_string_equal(homa_error(&other), "");
	for (i = 0; i < MANY; i++) {
		failed = (struct homa){ .serial = 1001 + i };
		homa_fail(&failed, -EIO, "sentence %u", i);
		assert_string_equal(homa_error(&other), "");
	}
	/* To ask about others makes nobody forget. */
	for (i = 0; i < MANY; i++) {
		other.serial = 2000 + i;
		assert_string_equal(homa_error(&other), "");
	}
	assert_string_equal(homa_error(&failed), "sentence 15");
}

static void error__to_be_worded_is_not_anothers(void **state)
{
	struct homa other = { .serial = 3000 };
	u32 i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		homa_fail_op(3001 + i, "homa_receive", -EAGAIN);
		assert_string_equal(homa_error(&other), "");
	}
	other.serial = 3000 + MANY;
	assert_non_null(strstr(homa_error(&other), "homa_receive: "));
}

/* ---- a handle that is closed while its host is called ---- */

static struct homa handle;
static int outcome;

/* What closing leaves of the handle: nothing that may be read. */
static int end(void)
{
	memset(&handle, 0xa5, sizeof(handle));
	return outcome;
}

static int end_bind(void *host, uint16_t port)
{
	(void)host;
	(void)port;
	return end();
}

static int end_abort(void *host, uint64_t id, int error)
{
	(void)host;
	(void)id;
	(void)error;
	return end();
}

static int end_wait_send(void *host, size_t length, int64_t timeout_ns)
{
	(void)host;
	(void)length;
	(void)timeout_ns;
	return end();
}

static int end_getsockname(void *host, struct sockaddr_storage *addr)
{
	(void)host;
	(void)addr;
	return end();
}

static int end_fd(void *host)
{
	(void)host;
	return end();
}

static int keep_request(void *host, const struct sockaddr *dest,
			const struct homa_message_out *out, uint64_t cookie,
			unsigned int flags, uint64_t *id)
{
	(void)host;
	(void)dest;
	(void)out;
	(void)cookie;
	(void)flags;
	*id = 2;
	return 0;
}

/* A response that does not come in time, or the failure @outcome of the request. */
static int end_receive(void *host, struct homa_message *msg, uint64_t id,
		       unsigned int flags, int64_t timeout_ns)
{
	(void)host;
	(void)id;
	(void)flags;
	if (!timeout_ns)
		return -EAGAIN;
	memset(msg, 0, sizeof(*msg));
	msg->kind = HOMA_ERROR;
	msg->error = outcome;
	end();
	return 0;
}

static const struct homa_backend_ops ending = {
	.bind = end_bind,
	.getsockname = end_getsockname,
	.request = keep_request,
	.receive = end_receive,
	.abort = end_abort,
	.wait_send = end_wait_send,
	.send_fd = end_fd,
	.fd = end_fd,
	.poll = end_fd,
	.fd_edges = end_fd,
	.shutdown = end_fd,
};

static void open_ending(uint64_t serial, int rc)
{
	handle = (struct homa){
		.ops = &ending,
		.serial = serial,
		.fork_generation = homa_fork_generation,
	};
	outcome = rc;
}

static const char *error_of(uint64_t serial)
{
	struct homa was = { .serial = serial };

	return homa_error(&was);
}

static void error__of_a_handle_closed_meanwhile(void **state)
{
	(void)state;
	open_ending(4001, -EADDRINUSE);
	assert_int_equal(homa_bind(&handle, 99), -EADDRINUSE);
	assert_string_equal(error_of(4001),
			    "homa_bind: port 99 is taken; choose another one");
	open_ending(4002, -EINVAL);
	assert_int_equal(homa_bind(&handle, 99), -EINVAL);
	assert_string_equal(error_of(4002),
			    "homa_bind: the handle is bound to a port already");
	open_ending(4003, -EINVAL);
	assert_int_equal(homa_abort(&handle, 2, 0), -EINVAL);
	assert_non_null(strstr(error_of(4003), "homa_abort: there is no such"));
	open_ending(4004, -EAGAIN);
	assert_int_equal(homa_wait_send(&handle, 1, 0), -EAGAIN);
	assert_string_equal(error_of(4004),
			    "homa_wait_send: there is no room to send");
}

static void error__of_a_call_on_a_handle_closed_meanwhile(void **state)
{
	struct sockaddr_in dest = { .sin_family = AF_INET, .sin_port = 1 };
	struct sockaddr *to = (struct sockaddr *)&dest;
	struct homa_message msg;

	(void)state;
	open_ending(5001, 0);
	assert_int_equal(homa_call(&handle, to, sizeof(dest), "x", 1, &msg, 0),
			 -ETIMEDOUT);
	assert_non_null(strstr(error_of(5001), "homa_call: "));
	open_ending(5002, -EHOSTUNREACH);
	assert_int_equal(homa_call(&handle, to, sizeof(dest), "x", 1, &msg, 1),
			 -EHOSTUNREACH);
	assert_non_null(strstr(error_of(5002), "homa_call: "));
}

static void error__of_a_descriptor_of_a_handle_closed_meanwhile(void **state)
{
	struct sockaddr_storage addr;

	(void)state;
	open_ending(6001, -EMFILE);
	assert_int_equal(homa_fd(&handle), -EMFILE);
	assert_non_null(strstr(error_of(6001), "homa_fd: "));
	open_ending(6002, -EMFILE);
	assert_int_equal(homa_send_fd(&handle), -EMFILE);
	assert_non_null(strstr(error_of(6002), "homa_send_fd: "));
	open_ending(6003, -ECONNRESET);
	assert_int_equal(homa_poll(&handle), -ECONNRESET);
	assert_non_null(strstr(error_of(6003), "homa_poll: "));
	open_ending(6004, -ECONNRESET);
	assert_int_equal(homa_getsockname(&handle, &addr), -ECONNRESET);
	assert_non_null(strstr(error_of(6004), "homa_getsockname: "));
	open_ending(6005, -ECONNRESET);
	assert_int_equal(homa_internal_fd_edges(&handle), -ECONNRESET);
	assert_non_null(strstr(error_of(6005), "fd_edges: "));
	open_ending(6006, -ECONNRESET);
	assert_int_equal(homa_internal_shutdown(&handle), -ECONNRESET);
	assert_non_null(strstr(error_of(6006), "shutdown: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error__of_a_handle_that_has_not_failed),
		cmocka_unit_test(error__to_be_worded_is_not_anothers),
		cmocka_unit_test(error__of_a_handle_closed_meanwhile),
		cmocka_unit_test(error__of_a_call_on_a_handle_closed_meanwhile),
		cmocka_unit_test(
			error__of_a_descriptor_of_a_handle_closed_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
