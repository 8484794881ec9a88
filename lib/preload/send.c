// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What sendmsg() sends: a request if the id is 0, else the response to one that was
 * received. libhoma says -ENOBUFS when it has no room for more; a socket that
 * may block then waits for it, as long as SO_SNDTIMEO lets it, by trying again:
 * room comes from elsewhere within microseconds or not for a long time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

/* The first and the longest pause between two tries to send, in ns. */
#define RETRY_MIN 20000
#define RETRY_MAX 2000000

static int check_name(struct homa_pl_sock *s, const struct msghdr *msg)
{
	const struct sockaddr *name = msg->msg_name;
	socklen_t len = s->family == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);

	if (!name)
		return homa_pl_error(
			s, -EINVAL,
			"sendmsg: no peer is named, and connect() has named none");
	if (msg->msg_namelen < sizeof(sa_family_t))
		return homa_pl_error(s, -EINVAL,
				     "sendmsg: the address is cut off");
	if (name->sa_family != s->family)
		return homa_pl_error(
			s, -EAFNOSUPPORT,
			"sendmsg: the address is of another family than the socket");
	if (msg->msg_namelen < len)
		return homa_pl_error(s, -EINVAL,
				     "sendmsg: the address is cut off");
	return 0;
}

/* The length of the message in bytes, or an error. If it is longer than a message may be, the
 * greatest length and 1 more. */
static int64_t check_pieces(const struct msghdr *msg)
{
	size_t i, length = 0;

	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	if (msg->msg_iovlen && !msg->msg_iov)
		return -EFAULT;
	for (i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *iov = &msg->msg_iov[i];

		if (iov->iov_len && !iov->iov_base)
			return -EFAULT;
		if (iov->iov_len > HOMA_MAX_MESSAGE_LENGTH - length)
			return HOMA_MAX_MESSAGE_LENGTH + 1;
		length += iov->iov_len;
	}
	return (int64_t)length;
}

/* Checks the message's length. As the kernel does, it lets a response of a wrong length pass if
 * the request is unknown, because such a response is dropped anyway. */
static int check_length(struct homa_pl_sock *s, const struct msghdr *msg,
			uint64_t id)
{
	int64_t length = check_pieces(msg);
	bool known = true;

	if (length < 0)
		return (int)length;
	if (length && length <= HOMA_MAX_MESSAGE_LENGTH)
		return 0;
	if (id) {
		pthread_mutex_lock(&s->lock);
		known = homa_pl_rpc_find(s, id, msg->msg_name);
		pthread_mutex_unlock(&s->lock);
	}
	return !known ?
		       0 :
		       homa_pl_error(s, -EINVAL,
				     "sendmsg: a message has 1 to 1000000 bytes");
}

#define OURS (HOMA_SENDMSG_REJECT | HOMA_SENDMSG_ASK)

/* Check a call that rejects a request or asks about it, instead of answering. */
static int check_said(struct homa_pl_sock *s, const struct msghdr *msg,
		      const struct homa_sendmsg_args *args)
{
	bool reject = args->flags == HOMA_SENDMSG_REJECT;
	uint64_t error = args->completion_cookie;

	if ((reject || args->flags == HOMA_SENDMSG_ASK) && (args->id & 1) &&
	    !args->reserved && check_pieces(msg) == 0 &&
	    (reject ? error && error <= HOMA_MAX_REJECT : !error))
		return 0;
	return homa_pl_error(
		s, -EINVAL,
		"sendmsg: to reject or ask about a request wants its id, no bytes, and an errno or 0 as cookie");
}

static int check(struct homa_pl_sock *s, const struct msghdr *msg)
{
	const struct homa_sendmsg_args *args;
	int rc;

	if (!msg)
		return -EFAULT;
	rc = check_name(s, msg);
	if (rc)
		return rc;
	/* The kernel would take it for control messages. */
	if (msg->msg_controllen)
		return homa_pl_error(
			s, -EINVAL,
			"sendmsg: msg_controllen is not 0; only msg_control is used");
	args = msg->msg_control;
	if (!args)
		return homa_pl_error(
			s, -EFAULT,
			"sendmsg: msg_control is NULL; it is a struct homa_sendmsg_args");
	if (args->flags & OURS)
		return check_said(s, msg, args);
	if (args->flags & ~HOMA_SENDMSG_VALID_FLAGS || args->reserved)
		return homa_pl_error(
			s, -EINVAL,
			"sendmsg: unknown flags, or the reserved field is not 0");
	if (args->id && args->completion_cookie)
		return homa_pl_error(s, -EINVAL,
				     "sendmsg: a response has no completion_cookie");
	return check_length(s, msg, args->id);
}

static int request(struct homa_pl_sock *s, const struct msghdr *msg,
		   struct homa_sendmsg_args *args)
{
	bool private_rpc = args->flags & HOMA_SENDMSG_PRIVATE;
	uint64_t id;
	int rc;

	rc = homa_requestv(s->h, msg->msg_name, msg->msg_namelen, msg->msg_iov,
			   (int)msg->msg_iovlen, args->completion_cookie,
			   private_rpc ? HOMA_PRIVATE : 0, &id);
	if (rc)
		return rc;
	if (private_rpc) {
		pthread_mutex_lock(&s->lock);
		rc = homa_pl_rpc_private(s, id, args->completion_cookie);
		pthread_mutex_unlock(&s->lock);
		if (rc) {
			homa_abort(s->h, id, 0);
			return rc;
		}
	}
	args->id = id;
	return 0;
}

/* Return 0 if the client of that request still waits, -ENOENT if not, or an error. */
static int ask(struct homa_pl_sock *s, const struct msghdr *msg,
	       const struct homa_sendmsg_args *args)
{
	struct homa_pl_rpc *rpc;
	struct homa_message request;
	int rc;

	pthread_mutex_lock(&s->lock);
	rpc = homa_pl_rpc_find(s, args->id, msg->msg_name);
	if (rpc)
		request = rpc->msg;
	pthread_mutex_unlock(&s->lock);
	rc = rpc ? homa_alive(s->h, &request) : 0;
	return rc > 0 ? 0 : rc ? rc : -ENOENT;
}

static int respond(struct homa_pl_sock *s, const struct msghdr *msg,
		   const struct homa_sendmsg_args *args)
{
	struct homa_pl_rpc *rpc;
	int rc;

	if (args->flags & HOMA_SENDMSG_ASK)
		return ask(s, msg, args);

	pthread_mutex_lock(&s->lock);
	rpc = homa_pl_rpc_find(s, args->id, msg->msg_name);
	if (rpc)
		homa_pl_rpc_take(s, rpc);
	pthread_mutex_unlock(&s->lock);
	if (!rpc)
		return 0; /* The request has ended or was answered, so nobody waits. */
	rc = args->flags & HOMA_SENDMSG_REJECT ?
		     homa_reject(s->h, &rpc->msg, (int)args->completion_cookie) :
		     homa_replyv(s->h, &rpc->msg, msg->msg_iov,
				 (int)msg->msg_iovlen);
	if (rc == -ENOBUFS || rc == -ENOMEM || rc == -EAGAIN ||
	    rc == -EOPNOTSUPP) {
		/* The response can be sent later, so the request is remembered again. */
		pthread_mutex_lock(&s->lock);
		homa_pl_rpc_request(s, &rpc->msg);
		pthread_mutex_unlock(&s->lock);
	}
	free(rpc);
	return rc;
}

/* Does this error mean that there is no room now? Then a socket that may wait tries again. */
static bool full(int rc)
{
	return rc == -ENOBUFS || rc == -ENOMEM || rc == -EAGAIN;
}

static int pause_ns(int64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	return nanosleep(&ts, NULL) ? -EINTR : 0;
}

int64_t homa_pl_send(struct homa_pl_sock *s, const struct msghdr *msg, int flags)
{
	bool wait = !(flags & MSG_DONTWAIT) && !(s->status & O_NONBLOCK);
	int64_t until = -1, delay = RETRY_MIN;
	struct homa_sendmsg_args *args;
	int rc;

	rc = check(s, msg);
	if (rc)
		return rc;
	args = msg->msg_control;
	for (;;) {
		if (__atomic_load_n(&s->shut, __ATOMIC_ACQUIRE))
			return -ESHUTDOWN;
		rc = args->id ? respond(s, msg, args) : request(s, msg, args);
		if (HOMA_PL_LIKELY(!full(rc)))
			break;
		if (!wait)
			return -EAGAIN;
		if (until < 0 && s->sndtimeo >= 0)
			until = homa_pl_now() + s->sndtimeo;
		if (until >= 0 && homa_pl_now() >= until)
			return -EAGAIN;
		rc = pause_ns(delay);
		if (rc)
			return rc;
		delay = delay < RETRY_MAX ? 2 * delay : delay;
	}
	return rc ? homa_pl_error(s, rc, homa_error(s->h)) : 0;
}
