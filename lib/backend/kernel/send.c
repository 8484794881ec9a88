// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the application sends. Nothing here waits: a socket that has too much to
 * send says so, and the caller hears -ENOBUFS. An IPv6 socket speaks IPv4, too,
 * so one is enough for a handle.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "homa_sockaddr.h"
#include "backend_kernel.h"

static bool is_any(const struct homa_addr *addr)
{
	static const u8 zero[16];

	return !memcmp(addr->ip, zero, 16) ||
	       (homa_addr_is_v4(addr) && !memcmp(addr->ip + 12, zero, 4));
}

/* Write @sa as an address of the socket's family; returns its size in bytes, or an error. */
static int name_of(const struct homa_ksock *c, const struct sockaddr *sa,
		   struct sockaddr_in6 *name)
{
	struct sockaddr_in *in = (struct sockaddr_in *)name;
	struct homa_addr addr;
	u16 port;

	if (homa_sockaddr_to_addr(sa, false, &addr, &port))
		return -EAFNOSUPPORT;
	/* The kernel's Homa cannot reach a peer that uses UDP encapsulation. */
	if (homa_sockaddr_encap(sa))
		return -EPROTONOSUPPORT;
	memset(name, 0, sizeof(*name));
	if (is_any(&addr)) {
		memset(addr.ip, 0, 10);
		addr.ip[10] = addr.ip[11] = 0xff;
		addr.ip[12] = 127;
		addr.ip[15] = 1;
	}
	if (c->family == AF_INET) {
		if (!homa_addr_is_v4(&addr))
			return -EAFNOSUPPORT;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr.ip + 12, 4);
		return sizeof(*in);
	}
	name->sin6_family = AF_INET6;
	name->sin6_port = htons(port);
	memcpy(&name->sin6_addr, addr.ip, 16);
	if (sa->sa_family == AF_INET6)
		name->sin6_scope_id =
			((const struct sockaddr_in6 *)sa)->sin6_scope_id;
	return sizeof(*name);
}

static int code(int error)
{
	return error == EAGAIN ? -ENOBUFS : -error;
}

/* Send a message of more pieces than a system call takes, joined to one. */
static int send_joined(struct homa_ksock *c, struct msghdr *hdr,
		       const struct homa_message_out *out)
{
	struct iovec joined = { malloc(out->length), 0 };
	int i, rc;

	if (!joined.iov_base)
		return -ENOMEM;
	for (i = 0; i < out->iovcnt; i++) {
		if (!out->iov[i].iov_len)
			continue;
		memcpy((u8 *)joined.iov_base + joined.iov_len,
		       out->iov[i].iov_base, out->iov[i].iov_len);
		joined.iov_len += out->iov[i].iov_len;
	}
	hdr->msg_iov = &joined;
	hdr->msg_iovlen = 1;
	rc = sendmsg(c->fd, hdr, MSG_DONTWAIT) < 0 ? code(errno) : 0;
	free(joined.iov_base);
	return rc;
}

static int send_out(struct homa_ksock *c, struct sockaddr_in6 *to, int tolen,
		    const struct homa_message_out *out,
		    struct homa_sendmsg_args *args)
{
	struct msghdr hdr = {
		.msg_name = to,
		.msg_namelen = (socklen_t)tolen,
		.msg_iov = (struct iovec *)(uintptr_t)out->iov,
		.msg_iovlen = (size_t)out->iovcnt,
		.msg_control = args,
	};
	int rc;

	if (unlikely(out->iovcnt > IOV_MAX))
		return send_joined(c, &hdr, out);
	do
		rc = sendmsg(c->fd, &hdr, MSG_DONTWAIT) < 0 ? code(errno) : 0;
	while (unlikely(rc == -EINTR));
	return rc;
}

int homa_ksock_request(void *host, const struct sockaddr *dest,
		       const struct homa_message_out *out, uint64_t cookie,
		       unsigned int flags, uint64_t *id)
{
	struct homa_sendmsg_args args = { 0 };
	struct homa_ksock *c = host;
	struct homa_ksock_slot *slot;
	struct sockaddr_in6 to;
	u64 token;
	int rc, tolen = name_of(c, dest, &to);

	if (tolen < 0)
		return tolen;
	if (flags & HOMA_PRIVATE)
		args.flags = HOMA_SENDMSG_PRIVATE;
	homa_gate_lock(&c->lock);
	slot = homa_ksock_slot_get(c);
	if (!slot) {
		homa_gate_unlock(&c->lock);
		return -ENOBUFS;
	}
	slot->is_private = (flags & HOMA_PRIVATE) != 0;
	slot->cookie = cookie;
	memcpy(&slot->peer, dest,
	       dest->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6));
	c->asked_shared |= !slot->is_private;
	token = slot->token;
	homa_gate_unlock(&c->lock);

	args.completion_cookie = token;
	rc = send_out(c, &to, tolen, out, &args);

	homa_gate_lock(&c->lock);
	/* The request may be answered, and the answer taken, by now. */
	if (unlikely(rc))
		homa_ksock_slot_put(c, slot);
	else if (slot->token == token)
		slot->id = args.id;
	homa_gate_unlock(&c->lock);
	*id = token << 1;
	return rc == -ENOBUFS && (flags & HOMA_NONBLOCK) ? -EAGAIN : rc;
}

int homa_ksock_wait_send(void *host, size_t length, int64_t timeout_ns)
{
	struct homa_ksock *c = host;
	struct pollfd fd = { .fd = c->fd, .events = POLLOUT };
	struct timespec ts = { .tv_sec = (time_t)(timeout_ns / 1000000000),
			       .tv_nsec = (long)(timeout_ns % 1000000000) };
	int n = 0, rc;

	(void)length;
	/* A thread that closes the handle ends this wait, and waits until we have left. */
	rc = homa_ksock_enter(c);
	if (!rc) {
		n = ppoll(&fd, 1, timeout_ns < 0 ? NULL : &ts, NULL);
		rc = n < 0 ? -errno : homa_ksock_error(c);
	}
	homa_ksock_leave(c);
	return rc ? rc : n ? 0 : -EAGAIN;
}

int homa_ksock_reply(void *host, const struct homa_message *request,
		     const struct homa_message_out *out)
{
	struct homa_sendmsg_args args = { .id = request->id };
	u64 token = request->priv[HOMA_PRIV_HOST];
	struct homa_ksock *c = host;
	struct sockaddr_in6 to;
	int rc, tolen;
	bool first;

	tolen = name_of(c, (const struct sockaddr *)&request->peer, &to);
	if (tolen < 0)
		return tolen;
	homa_gate_lock(&c->lock);
	first = homa_ksock_answer(c, token);
	homa_gate_unlock(&c->lock);
	if (!first)
		return -EINVAL;
	rc = send_out(c, &to, tolen, out, &args);
	homa_gate_lock(&c->lock);
	homa_ksock_answered(c, token, rc == -ENOBUFS || rc == -ENOMEM);
	homa_gate_unlock(&c->lock);
	/* These mean that the client is gone or cannot be reached any more. */
	if (rc == -EINVAL || rc == -EHOSTUNREACH || rc == -ENETUNREACH)
		return 0;
	return rc;
}

/* Send a message without bytes about @request, whose meaning is in @args. An older module says
 * -EINVAL to that. */
static int say_of(struct homa_ksock *c, const struct homa_message *request,
		  struct homa_sendmsg_args *args)
{
	const struct homa_message_out nothing = { 0 };
	struct sockaddr_in6 to;
	int rc, tolen;

	args->id = request->id;
	tolen = name_of(c, (const struct sockaddr *)&request->peer, &to);
	if (tolen < 0)
		return tolen;
	rc = send_out(c, &to, tolen, &nothing, args);
	return rc == -EINVAL ? -EOPNOTSUPP : rc;
}

int homa_ksock_reject(void *host, const struct homa_message *request, int error)
{
	struct homa_sendmsg_args args = { .completion_cookie = (u64)error,
					  .flags = HOMA_SENDMSG_REJECT };
	u64 token = request->priv[HOMA_PRIV_HOST];
	struct homa_ksock *c = host;
	bool first;
	int rc;

	homa_gate_lock(&c->lock);
	first = homa_ksock_answer(c, token);
	homa_gate_unlock(&c->lock);
	if (!first)
		return -EINVAL;
	rc = say_of(c, request, &args);
	homa_gate_lock(&c->lock);
	homa_ksock_answered(c, token,
			    rc == -ENOBUFS || rc == -ENOMEM || rc == -EOPNOTSUPP);
	homa_gate_unlock(&c->lock);
	/* These mean that the client cannot be reached any more. */
	return rc == -EHOSTUNREACH || rc == -ENETUNREACH ? 0 : rc;
}

int homa_ksock_alive(void *host, const struct homa_message *request)
{
	struct homa_sendmsg_args args = { .flags = HOMA_SENDMSG_ASK };
	u64 token = request->priv[HOMA_PRIV_HOST];
	struct homa_ksock *c = host;
	int rc = homa_ksock_error(c);
	bool open;

	if (rc)
		return rc;
	homa_gate_lock(&c->lock);
	open = homa_ksock_asked_open(c, token);
	homa_gate_unlock(&c->lock);
	if (!open)
		return 0;
	rc = say_of(c, request, &args);
	return rc == -ENOENT || rc == -EHOSTUNREACH || rc == -ENETUNREACH ? 0 :
	       rc							  ? rc :
									    1;
}

/* ---- aborts ---- */

/* The kernel's id of a request to be aborted; 0 if the kernel need not be told, and then @rc is
 * what the call returns. The caller has the lock. */
static u64 to_abort(struct homa_ksock *c, u64 token, int error, int *rc)
{
	struct homa_ksock_slot *slot = homa_ksock_slot(c, token);

	*rc = !slot || slot->gone ? -EINVAL : 0;
	if (*rc)
		return 0;
	if (slot->done) {
		/* Its outcome has come, so it cannot fail any more, but it can be forgotten. */
		if (!error)
			homa_ksock_forget(c, slot);
		return 0;
	}
	/* If another thread is just sending the request, it has no id and cannot be aborted. */
	if (slot->id && !error)
		slot->gone = true;
	return slot->id;
}

static int abort_one(struct homa_ksock *c, u64 token, int error)
{
	struct homa_abort_args args = { .error = (u32)error };
	struct homa_ksock_slot *slot;
	int rc;

	homa_gate_lock(&c->lock);
	homa_ksock_drain(c);
	args.id = to_abort(c, token, error, &rc);
	homa_gate_unlock(&c->lock);
	if (!args.id)
		return rc;
	rc = ioctl(c->fd, HOMAIOCABORT, &args) ? -errno : 0;
	/* -EINVAL means that another thread is just receiving it, and will find it gone. */
	if (rc == -EINVAL)
		return 0;
	if (rc || error)
		return rc;
	homa_gate_lock(&c->lock);
	slot = homa_ksock_slot(c, token);
	if (slot)
		homa_ksock_forget(c, slot);
	homa_gate_unlock(&c->lock);
	return 0;
}

/* All requests are aborted one by one: a command for all could end another thread's next one. */
int homa_ksock_abort(void *host, uint64_t id, int error)
{
	struct homa_ksock *c = host;
	int rc = homa_ksock_error(c);
	u32 i, top;

	if (rc)
		return rc;
	if (id)
		return id & 1 ? -EINVAL : abort_one(c, id >> 1, error);
	homa_gate_lock(&c->lock);
	top = c->fresh;
	homa_gate_unlock(&c->lock);
	for (i = 0; i < top && !rc; i++) {
		u64 token;

		homa_gate_lock(&c->lock);
		token = c->slots[i].token;
		homa_gate_unlock(&c->lock);
		if (token)
			rc = abort_one(c, token, error);
		/* -EINVAL means that the request came to its end by itself. */
		if (rc == -EINVAL)
			rc = 0;
	}
	return rc;
}
