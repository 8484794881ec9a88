// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * sendmsg(), and the flag with which it receives, too: a server answers one request and waits
 * for the next in one call, a client sends a request and waits for a response. That saves a
 * system call for each message, and the kernel's copies of names and headers.
 */
#include <linux/uaccess.h>

#include "homa_sockets.h"
#include "homa_trace.h"

/*
 * struct homak_exchange - what the two halves of such a call have in common. It begins like
 * struct homa_exchange_args from its peer on, so that one copy reads that and one writes it.
 */
struct homak_exchange {
	/* The peer, as the application names it. */
	union {
		/* The family is in the same place in both addresses. */
		struct sockaddr sa;
		/* It is the address if the socket is of AF_INET. */
		struct sockaddr_in in4;
		/* It is the address if the socket is of AF_INET6. */
		struct sockaddr_in6 in6;
	} peer;
	/* The field of that name. */
	u32 reserved;
	/* The half that receives; it begins with the caller's arguments. */
	struct homak_receipt r;
};

#define HOMAK_EXCHANGE_AT offsetof(struct homa_exchange_args, peer)

static_assert(offsetof(struct homak_exchange, reserved) ==
	      offsetof(struct homa_exchange_args, reserved) - HOMAK_EXCHANGE_AT);
static_assert(offsetof(struct homak_exchange, r.args) ==
	      offsetof(struct homa_exchange_args, recv) - HOMAK_EXCHANGE_AT);

/* Does the call wait for the response to the request that it sends? */
static bool homak_exchange_private(const struct homak_sending *s)
{
	return !s->args.id && (s->args.flags & HOMA_SENDMSG_PRIVATE);
}

/*
 * Reads and checks all that is not @s->args. A peer to whom a request goes is one that security
 * modules were shown, by this call's msg_name or by connect(); a response goes to whom the
 * request came from.
 */
static int homak_exchange_args(struct homak_sock *hsk, const struct msghdr *msg,
			       struct homak_sending *s, struct homak_exchange *x)
{
	const struct homa_exchange_args __user *args = msg->msg_control_user;
	int len = sizeof(x->peer);
	const struct sockaddr *to;
	int err;

	if (copy_from_user(x, &args->peer, sizeof(*args) - HOMAK_EXCHANGE_AT))
		return -EFAULT;
	s->args.flags &= ~HOMA_SENDMSG_RECEIVE;
	if (x->reserved || (s->args.flags & HOMA_SENDMSG_ASK) ||
	    (homak_exchange_private(s) && x->r.args.id))
		return homak_error_text(
			hsk, -EINVAL,
			"sendmsg: with HOMA_SENDMSG_RECEIVE reserved is 0, ASK is wrong, and so is an id beside PRIVATE");
	err = homak_receipt_check(hsk, &x->r);
	if (err)
		return err;
	to = msg->msg_name;
	if (to)
		len = msg->msg_namelen;
	else if (s->args.id)
		to = &x->peer.sa;
	return homak_name_get(hsk, to, len, &s->name);
}

/* Writes what was received; returns what sendmsg() returns. */
static int homak_exchange_end(struct homak_sock *hsk, const struct msghdr *msg,
			      struct homak_exchange *x)
{
	struct homa_exchange_args __user *args = msg->msg_control_user;
	const struct homa_msg_info *info = &x->r.info;
	struct sockaddr_storage from HOMA_NOINIT;
	int size;

	size = homak_name_put(hsk, &info->peer, info->peer_port, &from);
	memcpy(&x->peer, &from, min_t(size_t, size, sizeof(x->peer)));
	homak_receipt_put(&x->r);
	size = offsetof(struct homak_exchange, r.args.bpage_offsets) +
	       info->num_pages * sizeof(info->pages[0]);
	if (copy_to_user(&args->peer, x, size)) {
		homak_receipt_undo(hsk, &x->r);
		return -EFAULT;
	}
	if (info->kind == HOMA_EV_FAILED)
		return homak_error_text(hsk, -info->error, "the RPC failed");
	return (int)info->length;
}

/* Ends a call that sent its message and received nothing, as recvmsg() would have ended. */
static int homak_exchange_none(const struct msghdr *msg,
			       struct homak_exchange *x, int rc)
{
	struct homa_exchange_args __user *args = msg->msg_control_user;

	x->r.args.id = 0;
	x->r.args.completion_cookie = 0;
	if (copy_to_user(&args->recv, &x->r.args,
			 offsetof(struct homa_recvmsg_args, bpage_offsets)))
		return -EFAULT;
	/* If the kernel began the call again, or io_uring did, the message would be sent twice. */
	if (rc == -ERESTARTSYS)
		return -EINTR;
	return rc == -EAGAIN ? -ENOMSG : rc;
}

/* Does what homak_exchange_end() says for the message r.skb, of which all is said from its cb. It
 * is done again, in the way for all messages, after an error or while it is traced. */
static HOMAK_HOT int homak_exchange_whole(struct homak_sock *hsk,
					  const struct msghdr *msg,
					  struct homak_exchange *x)
{
	struct homa_exchange_args __user *args = msg->msg_control_user;
	const struct homak_whole_cb *cb = homak_whole_cb(x->r.skb);
	int length = (int)cb->length, rc;

	if (!trace_homa_rpc_take_enabled() &&
	    likely(!homak_whole_copy(hsk, &x->r))) {
		homak_whole_name(hsk, cb, &x->peer);
		homak_whole_args(cb, &x->r.args);
		if (likely(!copy_to_user(&args->peer, x,
					 offsetof(struct homak_exchange,
						  r.args.bpage_offsets[1])))) {
			homak_whole_read(hsk, &x->r);
			return length;
		}
	}
	rc = homak_receive_whole(hsk, &x->r);
	return rc > 0 ? homak_exchange_end(hsk, msg, x) :
			homak_exchange_none(msg, x, rc);
}

static noinline int homak_exchange(struct homak_sock *hsk, struct msghdr *msg,
				   size_t len, struct homak_sending *s)
{
	struct homa_sendmsg_args __user *args = msg->msg_control_user;
	struct homak_exchange x HOMA_NOINIT;
	int rc;

	rc = homak_exchange_args(hsk, msg, s, &x);
	if (rc)
		return rc;
	rc = homak_send(hsk, msg, len, s);
	if (rc)
		return rc;
	if (s->args.id && put_user(0, &args->id))
		return -EFAULT;
	if (homak_exchange_private(s))
		x.r.args.id = s->handle.id;
	rc = homak_receive(hsk, &x.r, msg->msg_flags);
	if (likely(rc == HOMAK_RECEIVED_WHOLE))
		return homak_exchange_whole(hsk, msg, &x);
	return rc > 0 ? homak_exchange_end(hsk, msg, &x) :
			homak_exchange_none(msg, &x, rc);
}

int homak_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	struct homak_sock *hsk = homak_sk(sk);
	struct homak_sending s HOMA_NOINIT;
	int err;

	err = homak_send_args(hsk, msg, &s);
	if (err)
		return err;
	if (s.args.flags & HOMA_SENDMSG_RECEIVE)
		return homak_exchange(hsk, msg, len, &s);
	err = homak_name_get(hsk, msg->msg_name, msg->msg_namelen, &s.name);
	return err ? err : homak_send(hsk, msg, len, &s);
}
