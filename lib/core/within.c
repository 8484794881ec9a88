// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How long a client waits for a response. The client says so with its request, and the server's
 * application sees it. The hosts hand it over as a moment of this machine's clock. A received
 * request has no cookie, so it keeps that moment in the cookie's field. What comes from a client
 * may be any number.
 */
#include "libhoma_impl.h"

int homa_request_within(struct homa *h, const struct sockaddr *dest,
			socklen_t destlen, const void *buf, size_t length,
			uint64_t cookie, unsigned int flags, int64_t within_ns,
			uint64_t *id)
{
	struct iovec iov = { (void *)(uintptr_t)buf, length };
	struct homa_message_out out = { .iov = &iov,
					.iovcnt = 1,
					.deadline = homa_until(within_ns) };

	return homa_send_request(h, dest, destlen, &out, cookie, flags, id);
}

int64_t homa_time_left(const struct homa_message *request)
{
	uint64_t now;

	if (!request || request->kind != HOMA_REQUEST || !request->cookie ||
	    request->cookie > INT64_MAX)
		return INT64_MAX;
	now = homa_clock_ns();
	return (int64_t)request->cookie - (int64_t)now;
}
