// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The calls of libhoma.h: check the arguments, word what is wrong with them,
 * and hand over to the host that homa_open() chose. Nothing here knows the
 * protocol. Sizes, address families and who owns a message are checked once,
 * here, so that hosts need not.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "libhoma_impl.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)

static int bad_handle(const struct homa *h, const char *op)
{
	if (!h)
		return homa_fail(NULL, -EINVAL, "%s: no handle", op);
	return homa_fail(h, -EINVAL,
			 "%s: a handle cannot be used in the child after fork(); open a new one there",
			 op);
}

static inline int usable(const struct homa *h)
{
	return LIKELY(h && h->fork_generation == homa_fork_generation);
}

static int check_out(const struct homa *h, const char *op,
		     struct homa_message_out *out)
{
	int i;

	out->length = 0;
	if (out->iovcnt < 0 || (out->iovcnt && !out->iov))
		return homa_fail(h, -EINVAL, "%s: no message", op);
	for (i = 0; i < out->iovcnt; i++) {
		if (out->iov[i].iov_len && !out->iov[i].iov_base)
			return homa_fail(h, -EINVAL,
					 "%s: a piece of the message is NULL",
					 op);
		if (out->iov[i].iov_len > HOMA_MAX_MESSAGE - out->length) {
			size_t total = out->length;

			for (; i < out->iovcnt; i++)
				total += out->iov[i].iov_len;
			return homa_fail(h, -EMSGSIZE,
					 "%s: a message of %zu bytes is too long; the limit is %u",
					 op, total, HOMA_MAX_MESSAGE);
		}
		out->length += out->iov[i].iov_len;
	}
	if (out->length == 0)
		return homa_fail(h, -EINVAL,
				 "%s: a message has at least 1 byte, this has 0",
				 op);
	return 0;
}

static int check_dest(const struct homa *h, const char *op,
		      const struct sockaddr *dest, socklen_t len)
{
	if (!dest || len < (socklen_t)sizeof(sa_family_t))
		return homa_fail(h, -EINVAL, "%s: no destination address", op);
	if ((dest->sa_family == AF_INET &&
	     len >= (socklen_t)sizeof(struct sockaddr_in)) ||
	    (dest->sa_family == AF_INET6 &&
	     len >= (socklen_t)sizeof(struct sockaddr_in6))) {
		/* The port is in the same place in both. */
		if (((const struct sockaddr_in *)dest)->sin_port)
			return 0;
		return homa_fail(h, -EINVAL, "%s: the destination port is 0", op);
	}
	if (dest->sa_family == AF_INET || dest->sa_family == AF_INET6)
		return homa_fail(h, -EINVAL,
				 "%s: the destination address is cut off at %u bytes",
				 op, (unsigned int)len);
	return homa_fail(h, -EINVAL,
			 "%s: address family %d; destinations are AF_INET or AF_INET6",
			 op, dest->sa_family);
}

static int failed(uint64_t serial, const char *op, int rc)
{
	const char *why = homa_svc_why();

	return why ? homa_fail_text(serial, op, rc, why) :
		     homa_fail_op(serial, op, rc);
}

static inline int result(uint64_t serial, const char *op, int rc)
{
	return LIKELY(rc >= 0) ? rc : failed(serial, op, rc);
}

static int port_taken(uint64_t serial, uint16_t port)
{
	const char *why = homa_svc_why();
	char text[HOMA_TEXT];

	if (why)
		snprintf(text, sizeof(text), "%s; choose another port", why);
	else
		snprintf(text, sizeof(text),
			 "port %u is taken; choose another one", port);
	return homa_fail_text(serial, "homa_bind", -EADDRINUSE, text);
}

int homa_bind(struct homa *h, uint16_t port)
{
	uint64_t serial;
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_bind");
	if (port == 0 || port >= HOMA_MIN_CLIENT_PORT)
		return homa_fail(h, -EINVAL,
				 "homa_bind: port %u: servers use ports 1 to %d",
				 port, HOMA_MIN_CLIENT_PORT - 1);
	/* Another thread may close the handle while homad is asked. */
	serial = h->serial;
	rc = h->ops->bind(h->host, port);
	if (rc == -EADDRINUSE)
		return port_taken(serial, port);
	if (rc == -EINVAL)
		return homa_fail_text(serial, "homa_bind", rc,
				      "the handle is bound to a port already");
	return result(serial, "homa_bind", rc);
}

int homa_getsockname(struct homa *h, struct sockaddr_storage *addr)
{
	uint64_t serial;

	if (!usable(h))
		return bad_handle(h, "homa_getsockname");
	if (!addr)
		return homa_fail(h, -EINVAL,
				 "homa_getsockname: no place for the address");
	memset(addr, 0, sizeof(*addr));
	serial = h->serial;
	return result(serial, "homa_getsockname",
		      h->ops->getsockname(h->host, addr));
}

uint16_t homa_udp_port(struct homa *h)
{
	return usable(h) ? h->ops->udp_port(h->host) : 0;
}

static inline bool has_buffers(const struct homa *h)
{
	return __atomic_load_n(&h->buffers, __ATOMIC_RELAXED) != NULL;
}

/* Another thread may have closed the handle, so its serial was read before the host was called. */
static int requested(uint64_t serial, int rc)
{
	if (rc == -EAGAIN)
		return homa_fail_text(
			serial, "homa_request", rc,
			"there is no room to send now; homa_wait_send() and homa_send_fd() say when to try again");
	return result(serial, "homa_request", rc);
}

static int replied(uint64_t serial, int rc)
{
	if (rc == -EINVAL)
		return homa_fail_text(serial, "homa_reply", rc,
				      "this request was answered already");
	return result(serial, "homa_reply", rc);
}

/* homa_request() of a handle with buffers of homa_alloc(), which may be what it sends. */
static int request_from_buffer(struct homa *h, const struct sockaddr *dest,
			       struct homa_message_out *out, uint64_t cookie,
			       unsigned int flags, uint64_t *id)
{
	struct homa_claim claim = { NULL, NULL };
	uint64_t serial = h->serial;
	int rc = homa_buffer_claim(h, "homa_request", out, &claim);

	if (rc)
		return rc;
	/* A host that copies gives the buffer back at once; it cannot borrow its bytes. */
	if (claim.of)
		flags &= ~HOMA_BORROW;
	rc = h->ops->request(h->host, dest, out, cookie, flags, id);
	if (claim.of)
		homa_buffer_settle(&claim, rc);
	return requested(serial, rc);
}

static int reply_from_buffer(struct homa *h, const struct homa_message *request,
			     struct homa_message_out *out)
{
	struct homa_claim claim = { NULL, NULL };
	uint64_t serial = h->serial;
	int rc = homa_buffer_claim(h, "homa_reply", out, &claim);

	if (rc)
		return rc;
	rc = h->ops->reply(h->host, request, out);
	if (claim.of)
		homa_buffer_settle(&claim, rc);
	return replied(serial, rc);
}

int homa_alloc(struct homa *h, size_t length, void **buf)
{
	uint64_t serial;
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_alloc");
	if (!buf || !length)
		return homa_fail(h, -EINVAL,
				 "homa_alloc: no place for the memory, or no length");
	if (length > HOMA_MAX_MESSAGE)
		return homa_fail(h, -EMSGSIZE,
				 "homa_alloc: a message of %zu bytes is too long; the limit is %u",
				 length, HOMA_MAX_MESSAGE);
	/* Another thread may close the handle while homad is asked for memory. */
	serial = h->serial;
	rc = homa_buffer_alloc(h, length, buf);
	if (rc == -ENOBUFS)
		return homa_fail_text(
			serial, "homa_alloc", rc,
			"there is no memory to send from left; free or send some");
	return result(serial, "homa_alloc", rc);
}

int homa_free(struct homa *h, void *buf)
{
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_free");
	rc = homa_buffer_free(h, buf);
	return rc ? homa_fail(h, rc,
			      "homa_free: this is no memory of homa_alloc(), or it was sent or freed already") :
		    0;
}

#define REQUEST_FLAGS (HOMA_PRIVATE | HOMA_BORROW | HOMA_NONBLOCK)

int homa_send_request(struct homa *h, const struct sockaddr *dest,
		      socklen_t destlen, struct homa_message_out *out,
		      uint64_t cookie, unsigned int flags, uint64_t *id)
{
	uint64_t unused, serial;
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_request");
	rc = check_out(h, "homa_request", out);
	if (!rc)
		rc = check_dest(h, "homa_request", dest, destlen);
	if (rc)
		return rc;
	if (flags & ~REQUEST_FLAGS)
		return homa_fail(h, -EINVAL, "homa_request: unknown flags 0x%x",
				 flags & ~REQUEST_FLAGS);
	if (!LIKELY(!has_buffers(h)))
		return request_from_buffer(h, dest, out, cookie, flags,
					   id ? id : &unused);
	serial = h->serial;
	rc = h->ops->request(h->host, dest, out, cookie, flags,
			     id ? id : &unused);
	return LIKELY(!rc) ? 0 : requested(serial, rc);
}

int homa_requestv(struct homa *h, const struct sockaddr *dest,
		  socklen_t destlen, const struct iovec *iov, int iovcnt,
		  uint64_t cookie, unsigned int flags, uint64_t *id)
{
	struct homa_message_out out = { .iov = iov, .iovcnt = iovcnt };

	return homa_send_request(h, dest, destlen, &out, cookie, flags, id);
}

int homa_request(struct homa *h, const struct sockaddr *dest, socklen_t destlen,
		 const void *buf, size_t length, uint64_t cookie,
		 unsigned int flags, uint64_t *id)
{
	struct iovec iov = { (void *)(uintptr_t)buf, length };

	return homa_requestv(h, dest, destlen, &iov, 1, cookie, flags, id);
}

/* Is @request a request that this handle has received? */
static int check_request(const struct homa *h, const char *op,
			 const struct homa_message *request)
{
	if (!usable(h))
		return bad_handle(h, op);
	if (!request || request->kind != HOMA_REQUEST ||
	    request->priv[HOMA_PRIV_HANDLE] != h->serial)
		return homa_fail(h, -EINVAL,
				 "%s: this is not a request received on this handle",
				 op);
	return 0;
}

int homa_replyv(struct homa *h, const struct homa_message *request,
		const struct iovec *iov, int iovcnt)
{
	struct homa_message_out out = { .iov = iov, .iovcnt = iovcnt };
	uint64_t serial;
	int rc;

	rc = check_request(h, "homa_reply", request);
	if (rc)
		return rc;
	rc = check_out(h, "homa_reply", &out);
	if (rc)
		return rc;
	if (!LIKELY(!has_buffers(h)))
		return reply_from_buffer(h, request, &out);
	serial = h->serial;
	rc = h->ops->reply(h->host, request, &out);
	return LIKELY(!rc) ? 0 : replied(serial, rc);
}

int homa_reply(struct homa *h, const struct homa_message *request,
	       const void *buf, size_t length)
{
	struct iovec iov = { (void *)(uintptr_t)buf, length };

	return homa_replyv(h, request, &iov, 1);
}

int homa_reject(struct homa *h, const struct homa_message *request, int error)
{
	uint64_t serial;
	int rc;

	rc = check_request(h, "homa_reject", request);
	if (rc)
		return rc;
	if (error < 1 || error > HOMA_MAX_REJECT)
		return homa_fail(h, -EINVAL,
				 "homa_reject: error %d; give an errno from 1 to %d",
				 error, HOMA_MAX_REJECT);
	/* Another thread may close the handle meanwhile. */
	serial = h->serial;
	rc = h->ops->reject(h->host, request, error);
	if (rc == -EINVAL)
		return homa_fail_text(serial, "homa_reject", rc,
				      "this request was answered already");
	return result(serial, "homa_reject", rc);
}

int homa_discard(struct homa *h, const struct homa_message *request)
{
	return homa_reject(h, request, ECANCELED);
}

int homa_alive(struct homa *h, const struct homa_message *request)
{
	uint64_t serial;
	int rc = check_request(h, "homa_alive", request);

	if (rc)
		return rc;
	/* Another thread may close the handle while the host answers. */
	serial = h->serial;
	return result(serial, "homa_alive", h->ops->alive(h->host, request));
}

static int64_t ns(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : timeout_ms * 1000000ll;
}

static void received(struct homa_message *msg, uint64_t serial)
{
	msg->priv[HOMA_PRIV_HANDLE] = serial;
	msg->priv[HOMA_PRIV_HELD] = 1;
}

static int receive(struct homa *h, struct homa_message *msg, uint64_t id,
		   unsigned int flags, int64_t timeout_ns, const char *op)
{
	uint64_t serial = h->serial;
	int rc;

	homa_slice_shorten();
	/* When this returns -ESHUTDOWN, @h has been freed. */
	rc = h->ops->receive(h->host, msg, id, flags, timeout_ns);
	if (rc)
		return homa_fail_op(serial, op, rc);
	received(msg, serial);
	return 0;
}

#define KINDS (HOMA_RECV_REQUEST | HOMA_RECV_RESPONSE)

/* Check the flags of a call that receives any message; no kind means both kinds. */
static int check_kinds(const struct homa *h, const char *op, unsigned int *flags)
{
	if (*flags & ~(KINDS | HOMA_RECV_NONBLOCK))
		return homa_fail(h, -EINVAL, "%s: unknown flags 0x%x", op,
				 *flags & ~(KINDS | HOMA_RECV_NONBLOCK));
	if (!(*flags & KINDS))
		*flags |= KINDS;
	return 0;
}

int homa_wait_send(struct homa *h, size_t length, int timeout_ms)
{
	uint64_t serial;
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_wait_send");
	/* Another thread may close the handle while we wait. */
	serial = h->serial;
	if (length > HOMA_MAX_MESSAGE)
		return homa_fail(h, -EMSGSIZE,
				 "homa_wait_send: a message of %zu bytes is too long; the limit is %u",
				 length, HOMA_MAX_MESSAGE);
	rc = h->ops->wait_send(h->host, length, ns(timeout_ms));
	if (rc == -EAGAIN)
		return homa_fail_text(serial, "homa_wait_send", rc,
				      "there is no room to send");
	return result(serial, "homa_wait_send", rc);
}

int homa_receive_ns(struct homa *h, struct homa_message *msg,
		    unsigned int flags, int64_t timeout_ns)
{
	if (!usable(h))
		return bad_handle(h, "homa_receive");
	if (!msg)
		return homa_fail(h, -EINVAL,
				 "homa_receive: no place for the message");
	if (check_kinds(h, "homa_receive", &flags))
		return -EINVAL;
	return receive(h, msg, 0, flags, timeout_ns, "homa_receive");
}

int homa_receive_batch(struct homa *h, struct homa_message *msgs,
		       unsigned int n, unsigned int flags, int timeout_ms)
{
	static const char op[] = "homa_receive_batch";
	uint64_t serial;
	int i, rc;

	if (!usable(h))
		return bad_handle(h, op);
	if (!msgs || !n)
		return homa_fail(h, -EINVAL, "%s: no place for a message", op);
	if (check_kinds(h, op, &flags))
		return -EINVAL;
	/* The count of messages is returned as an int, so it is limited. */
	if (n > HOMA_MAX_BATCH)
		n = HOMA_MAX_BATCH;
	serial = h->serial;
	homa_slice_shorten();
	rc = h->ops->receive_batch(h->host, msgs, n, flags, ns(timeout_ms));
	if (rc < 0)
		return homa_fail_op(serial, op, rc);
	for (i = 0; i < rc; i++)
		received(&msgs[i], serial);
	return rc;
}

int homa_receive(struct homa *h, struct homa_message *msg, unsigned int flags,
		 int timeout_ms)
{
	return homa_receive_ns(h, msg, flags, ns(timeout_ms));
}

int homa_receive_id(struct homa *h, struct homa_message *msg, uint64_t id,
		    int timeout_ms)
{
	if (!usable(h))
		return bad_handle(h, "homa_receive_id");
	if (!msg)
		return homa_fail(h, -EINVAL,
				 "homa_receive_id: no place for the message");
	if (id == 0)
		return homa_fail(h, -ENOENT,
				 "homa_receive_id: 0 is not the id of an RPC");
	return receive(h, msg, id, 0, ns(timeout_ms), "homa_receive_id");
}

void homa_release(struct homa *h, struct homa_message *msg)
{
	if (!usable(h) || !msg || !msg->priv[HOMA_PRIV_HELD] ||
	    msg->priv[HOMA_PRIV_HANDLE] != h->serial)
		return;
	msg->priv[HOMA_PRIV_HELD] = 0;
	if (msg->iovcnt)
		h->ops->release(h->host, msg);
	msg->iovcnt = 0;
}

int homa_call(struct homa *h, const struct sockaddr *dest, socklen_t destlen,
	      const void *buf, size_t length, struct homa_message *msg,
	      int timeout_ms)
{
	struct iovec iov = { (void *)(uintptr_t)buf, length };
	struct homa_message_out out = { .iov = &iov,
					.iovcnt = 1,
					.deadline = homa_until(ns(timeout_ms)) };
	uint64_t id, serial;
	int rc;

	if (!msg)
		return usable(h) ?
			       homa_fail(h, -EINVAL,
					 "homa_call: no place for the response") :
			       bad_handle(h, "homa_call");
	rc = homa_send_request(h, dest, destlen, &out, 0, HOMA_PRIVATE, &id);
	if (rc)
		return rc;
	/* Another thread may close the handle while the host is called. */
	serial = h->serial;
	rc = receive(h, msg, id, 0, ns(timeout_ms), "homa_call");
	if (rc == -ESHUTDOWN)
		return rc;
	if (rc) {
		/* After -EAGAIN and -EINTR nobody else will fetch this private response. */
		h->ops->abort(h->host, id, 0);
		return rc == -EAGAIN ?
			       homa_fail_op(serial, "homa_call", -ETIMEDOUT) :
			       rc;
	}
	if (msg->kind != HOMA_ERROR)
		return 0;
	rc = msg->error;
	/* A failure has no bytes to give back. */
	msg->priv[HOMA_PRIV_HELD] = 0;
	return homa_fail_op(serial, "homa_call", rc);
}

int homa_abort(struct homa *h, uint64_t id, int error)
{
	uint64_t serial;
	int rc;

	if (!usable(h))
		return bad_handle(h, "homa_abort");
	if (error < 0 || error > 4095)
		return homa_fail(h, -EINVAL,
				 "homa_abort: error %d; give 0 or a positive errno",
				 error);
	/* Another thread may close the handle meanwhile. */
	serial = h->serial;
	rc = h->ops->abort(h->host, id, error);
	if (rc == -EINVAL)
		return homa_fail_text(
			serial, "homa_abort", rc,
			"there is no such RPC: it was received or aborted already");
	return result(serial, "homa_abort", rc);
}

int homa_send_fd(struct homa *h)
{
	uint64_t serial;

	if (!usable(h))
		return bad_handle(h, "homa_send_fd");
	serial = h->serial;
	return result(serial, "homa_send_fd", h->ops->send_fd(h->host));
}

int homa_fd(struct homa *h)
{
	uint64_t serial;

	if (!usable(h))
		return bad_handle(h, "homa_fd");
	serial = h->serial;
	return result(serial, "homa_fd", h->ops->fd(h->host));
}

int homa_poll(struct homa *h)
{
	uint64_t serial;

	if (!usable(h))
		return bad_handle(h, "homa_poll");
	serial = h->serial;
	homa_slice_shorten();
	return result(serial, "homa_poll", h->ops->poll(h->host));
}

void homa_metrics(struct homa *h,
		  void (*visit)(void *arg, const char *name,
				const char *description, uint64_t value),
		  void *arg)
{
	if (usable(h) && visit)
		h->ops->metrics(h->host, visit, arg);
}
