// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * sendmsg(): to the peer that connect() named if the message names none, and with
 * HOMA_SENDMSG_RECEIVE a call that receives, too. homa.ko saves a system call by that; here it is
 * one call after the other, so that programs behave the same.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include "internal.h"

/* Write whom @msg goes to into it, unless it says so itself. */
static void name_peer(struct homa_pl_sock *s, struct msghdr *msg,
		      struct sockaddr_storage *peer)
{
	socklen_t size = msg->msg_name ? 0 : homa_pl_peer(s, peer);

	if (!size)
		return;
	msg->msg_name = peer;
	msg->msg_namelen = size;
}

/* Does the call wait for the response to the request that it sends? */
static bool is_private(const struct homa_sendmsg_args *args)
{
	return !args->id && (args->flags & HOMA_SENDMSG_PRIVATE);
}

static int check(struct homa_pl_sock *s, const struct homa_exchange_args *args)
{
	if (args->reserved || (args->send.flags & HOMA_SENDMSG_ASK) ||
	    (is_private(&args->send) && args->recv.id))
		return homa_pl_error(
			s, -EINVAL,
			"sendmsg: with HOMA_SENDMSG_RECEIVE reserved is 0, ASK is wrong, and so is an id beside PRIVATE");
	return homa_pl_check_receive(s, &args->recv);
}

static int64_t receive(struct homa_pl_sock *s, struct homa_exchange_args *args,
		       int flags)
{
	struct msghdr msg = {
		.msg_name = &args->peer,
		.msg_namelen = sizeof(args->peer),
		.msg_control = &args->recv,
		.msg_controllen = sizeof(args->recv),
	};
	int64_t rc = homa_pl_recvmsg(s, &msg, flags);

	/* An RPC that failed, and with which error, is told as recvmsg() tells it. */
	return rc == -EAGAIN && !args->recv.id ? -ENOMSG : rc;
}

static int64_t exchange(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags)
{
	struct homa_exchange_args *args = msg->msg_control;
	struct homa_sendmsg_args sends = args->send;
	bool waits_for_it = is_private(&sends);
	struct sockaddr_storage peer;
	struct msghdr out = *msg;
	int64_t rc = check(s, args);

	if (rc)
		return rc;
	sends.flags &= ~(uint32_t)HOMA_SENDMSG_RECEIVE;
	out.msg_control = &sends;
	if (!out.msg_name && sends.id) {
		out.msg_name = &args->peer;
		out.msg_namelen = sizeof(args->peer);
	}
	name_peer(s, &out, &peer);
	rc = homa_pl_send(s, &out, flags);
	if (rc)
		return rc;
	/* A response is told by 0, a request by its id. */
	args->send.id = args->send.id ? 0 : sends.id;
	if (waits_for_it)
		args->recv.id = sends.id;
	return receive(s, args, flags);
}

int64_t homa_pl_sendmsg(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags)
{
	const struct homa_sendmsg_args *args;
	struct sockaddr_storage peer;
	struct msghdr out;

	if (!msg)
		return -EFAULT;
	args = msg->msg_controllen ? NULL : msg->msg_control;
	if (args && (args->flags & HOMA_SENDMSG_RECEIVE))
		return exchange(s, msg, flags);
	out = *msg;
	name_peer(s, &out, &peer);
	return homa_pl_send(s, &out, flags);
}
