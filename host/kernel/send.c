// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What sendmsg() sends: a request if the id is 0, else the response to one that was
 * received. The beginning of a message is copied and handed to the engine, which
 * sends it; a long one is copied on in pieces while packets of the first ones
 * leave. Whoever copies holds the RPC meanwhile, for it may be over at any
 * time; a message that cannot be read to its end ends its RPC. With flags that the
 * existing module does not have a request is rejected, or asked about.
 */
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "homa_bind.h"
#include "homa_sockets.h"
#include "homa_trace.h"

/* bytes copied between two turns of the engine */
#define HOMAK_SEND_STEP 65536u
#define HOMAK_SENDMSG_OURS (HOMA_SENDMSG_REJECT | HOMA_SENDMSG_ASK)

/* ---- checks ---- */

#define HOMAK_BAD_LENGTH "sendmsg: a message has 1 to 1000000 bytes"
#define HOMAK_NOT_TO_ANSWER \
	"sendmsg: the request was not received yet, or was answered already"

static bool homak_length_fits(u32 length)
{
	return length && length <= HOMA_MAX_MESSAGE_LENGTH;
}

/* Checks the arguments of a rejection or a question about a request. */
static int homak_say_check(struct homak_sock *hsk,
			   const struct homa_sendmsg_args *args, size_t len)
{
	bool reject = args->flags == HOMA_SENDMSG_REJECT;
	u64 error = args->completion_cookie;

	if ((reject || args->flags == HOMA_SENDMSG_ASK) && (args->id & 1) &&
	    !len && !args->reserved &&
	    (reject ? error && error <= HOMA_MAX_ERRNO : !error))
		return 0;
	return homak_error_text(
		hsk, -EINVAL,
		"sendmsg: to reject or ask about a request wants its id, no bytes, and an errno or 0 as cookie");
}

int homak_send_args(struct homak_sock *hsk, const struct msghdr *msg,
		    struct homak_sending *s)
{
	if (!msg->msg_control_is_user || msg->msg_controllen)
		return homak_error_text(
			hsk, -EINVAL,
			"sendmsg: msg_control is not a struct homa_sendmsg_args with msg_controllen 0");
	return homak_args_read_send(msg->msg_control_user, &s->args);
}

static HOMAK_HOT int homak_send_check(struct homak_sock *hsk, size_t len,
				      struct homak_sending *s)
{
	if (s->args.flags & HOMAK_SENDMSG_OURS)
		return homak_say_check(hsk, &s->args, len);
	if ((s->args.flags & ~HOMA_SENDMSG_VALID_FLAGS) || s->args.reserved)
		return homak_error_text(
			hsk, -EINVAL,
			"sendmsg: unknown flags, or the reserved field is not 0");
	if (s->args.id && s->args.completion_cookie)
		return homak_error_text(hsk, -EINVAL,
					"sendmsg: a response has no completion_cookie");
	/* The length of a response is only checked if there is an RPC. */
	s->length = (u32)min_t(size_t, len, HOMA_MAX_MESSAGE_LENGTH + 1);
	if (s->args.id)
		return 0;
	if (!homak_length_fits(s->length))
		return homak_error_text(hsk, -EINVAL, HOMAK_BAD_LENGTH);
	if (!s->name.port)
		return homak_error_text(hsk, -EINVAL,
					"sendmsg: the peer's port is 0");
	return 0;
}

/* Makes the message and copies its first bytes. */
static HOMAK_HOT int homak_send_begin(struct homak_sock *hsk, struct msghdr *msg,
				      struct homak_sending *s)
{
	int err;

	s->rpc = NULL;
	s->filled = min(s->length, HOMAK_SEND_STEP);
	s->msg = homak_msg_new(hsk, s->length);
	if (IS_ERR(s->msg))
		return PTR_ERR(s->msg);
	err = homak_msg_fill(s->msg, &msg->msg_iter, s->filled);
	if (err)
		homak_msg_free(s->msg);
	return err;
}

/* ---- the rest of a long message ---- */

static void homak_send_abort(struct homak_cpu *cpu, struct homa_handle handle)
{
	if (homa_rpc_abort(&cpu->ctx, handle, 0))
		homa_rpc_forget(&cpu->ctx, handle);
}

/* Copies the rest of the message and gives it to the engine. The caller holds the RPC, so the
 * message stays. */
static HOMAK_HOT int homak_send_rest(struct homak_sock *hsk, struct msghdr *msg,
				     struct homak_sending *s)
{
	struct homak_cpu *cpu;
	int err = 0;

	while (s->rpc) {
		u32 upto = min(s->length, s->filled + HOMAK_SEND_STEP);

		err = homak_msg_fill(s->msg, &msg->msg_iter, upto);
		cpu = homak_enter_wait(hsk->hnet);
		if (err) {
			homak_send_abort(cpu, s->handle);
			homak_inbox_forget(cpu, hsk, homak_rpc(s->rpc));
		} else {
			s->filled = upto;
			homa_msg_supply(&cpu->ctx, s->handle, upto);
		}
		if (err || upto == s->length) {
			homa_rpc_release(&cpu->ctx, s->rpc);
			s->rpc = NULL;
		}
		homak_leave(cpu);
	}
	return err;
}

/* Does what homak_enter_wait() says, for the calls that send. */
static HOMAK_HOT struct homak_cpu *homak_send_enter(struct homak_net *hnet)
{
	struct homak_cpu *cpu = homak_enter_here(hnet);

	return likely(cpu) ? cpu : homak_enter_paused(hnet);
}

/* ---- requests ---- */

static HOMA_RARE void homak_request_trace(struct homak_sock *hsk,
					  const struct homak_sending *s)
{
	const struct homa_send send = {
		.dst = s->name.addr,
		.port = s->name.port,
		.length = s->length,
		.cookie = s->args.completion_cookie,
	};

	trace_homa_rpc_begin(hsk, s->handle.id, &send);
}

/* Does what homak_send_rpc() says; sendmsg() has it inlined. */
static HOMAK_HOT int homak_request_out(struct homak_cpu *cpu,
				       struct homak_sock *hsk,
				       struct homak_sending *s)
{
	struct homa_send send = {
		.port = s->name.port,
		.length = s->length,
		.available = s->filled,
		.cookie = s->args.completion_cookie,
	};
	struct homak_rpc *krpc = homa_ctx_next_rpc(&cpu->ctx);
	struct homa_tx_desc desc HOMA_NOINIT;
	struct homak_route *way;
	struct net_device *dev;
	struct homak_dev *hdev;
	struct homa_link *link;
	u32 mtu = 0;
	bool sent;
	int err;

	if (!krpc)
		return -ENOBUFS;
	hdev = homak_dev_out(cpu, hsk, &s->name.addr, &mtu, &krpc->local, &way);
	if (IS_ERR_OR_NULL(hdev))
		return hdev ? PTR_ERR(hdev) : -ENETUNREACH;
	if (unlikely(s->local))
		*s->local = krpc->local;
	link = homak_dev_link(hdev);
	dev = rcu_dereference_bh(homak_dev_of(link)->dev);
	if (dev && mtu && mtu != READ_ONCE(dev->mtu))
		homa_path_mtu(&cpu->ctx, link, &s->name.addr, mtu);
	if (s->args.flags & HOMA_SENDMSG_PRIVATE)
		send.flags = HOMA_SEND_PRIVATE;
	krpc->msg = s->msg;
	krpc->is_private = send.flags & HOMA_SEND_PRIVATE;
	err = homa_rpc_send_now(&cpu->ctx, hsk->engine_sock, link, &s->name.addr,
				&send, &s->handle, NULL, &desc, &sent);
	if (err) {
		/* The memory is still a spare RPC. */
		krpc->msg = NULL;
		krpc->is_private = false;
		return err;
	}
	if (trace_homa_rpc_begin_enabled())
		homak_request_trace(hsk, s);
	if (likely(sent))
		homak_xmit_now(cpu, &desc, way);
	/* The RPC may have ended since, so it is looked up again. */
	if (s->filled < s->length)
		s->rpc = homa_rpc_hold(&cpu->ctx, s->handle.id, NULL);
	return 0;
}

int homak_send_rpc(struct homak_cpu *cpu, struct homak_sock *hsk,
		   struct homak_sending *s)
{
	return homak_request_out(cpu, hsk, s);
}

/* Takes a request back whose id the application cannot be told. */
static int homak_send_untold(struct homak_sock *hsk, struct homak_sending *s)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	struct homa_rpc *rpc = homa_rpc_hold(&cpu->ctx, s->handle.id, NULL);

	homa_rpc_abort(&cpu->ctx, s->handle, 0);
	if (rpc) {
		homak_inbox_forget(cpu, hsk, homak_rpc(rpc));
		homa_rpc_release(&cpu->ctx, rpc);
	}
	if (s->rpc)
		homa_rpc_release(&cpu->ctx, s->rpc);
	s->rpc = NULL;
	homak_leave(cpu);
	return -EFAULT;
}

static HOMAK_HOT int homak_send_request(struct homak_sock *hsk,
					struct msghdr *msg,
					struct homak_sending *s)
{
	struct homa_sendmsg_args __user *args = msg->msg_control_user;
	struct homak_cpu *cpu;
	int err;

	s->local = NULL;
	err = homak_send_begin(hsk, msg, s);
	if (err)
		return err;
	cpu = homak_send_enter(hsk->hnet);
	err = cpu ? homak_request_out(cpu, hsk, s) : -ENETDOWN;
	if (cpu)
		homak_leave(cpu);
	if (err) {
		homak_msg_free(s->msg);
		return err;
	}
	if (put_user(s->handle.id, &args->id))
		return homak_send_untold(hsk, s);
	return homak_send_rest(hsk, msg, s);
}

/* ---- responses ---- */

/* Tries several ways to the peer, because its name does not say by which one the request
 * came. Returns the RPC with a hold. */
static noinline struct homa_rpc *
homak_find_other_way(struct homak_cpu *cpu, const struct homak_sending *s,
		     struct homa_addr *peer)
{
	const u16 ways[] = { 0, HOMA_UDP_PORT, HOMAK_DISGUISE_TCP };
	struct homa_rpc *rpc = NULL;
	size_t i;

	*peer = s->name.addr;
	for (i = 0; !rpc && i < ARRAY_SIZE(ways); i++) {
		peer->encap = ways[i];
		rpc = homa_rpc_hold(&cpu->ctx, s->args.id, peer);
	}
	return rpc;
}

/* Returns the RPC that @s answers, with a hold. */
static struct homa_rpc *homak_find_served(struct homak_cpu *cpu,
					  struct homak_sock *hsk,
					  const struct homak_sending *s)
{
	struct homa_rpc *rpc =
		homa_rpc_hold(&cpu->ctx, s->args.id, &s->name.addr);
	struct homa_addr peer HOMA_NOINIT;

	if (!rpc && !s->name.marked)
		rpc = homak_find_other_way(cpu, s, &peer);
	if (rpc && homa_rpc_sock(rpc) != hsk->engine_sock) {
		homa_rpc_release(&cpu->ctx, rpc);
		rpc = NULL;
	}
	return rpc;
}

/* Does what homak_answer_begin() says, if the RPC was not found. */
static noinline struct homa_rpc *
homak_answer_other_way(struct homak_cpu *cpu, struct homak_sock *hsk,
		       const struct homak_sending *s)
{
	struct homa_addr peer HOMA_NOINIT;
	struct homa_rpc *rpc = homak_find_other_way(cpu, s, &peer);

	if (!rpc)
		return NULL;
	homa_rpc_release(&cpu->ctx, rpc);
	return homa_answer_begin(&cpu->ctx, s->args.id, &peer, hsk->engine_sock);
}

/* Finds the RPC that @s answers, and returns it for homa_answer_end(). */
static HOMAK_HOT struct homa_rpc *
homak_answer_begin(struct homak_cpu *cpu, struct homak_sock *hsk,
		   const struct homak_sending *s)
{
	struct homa_rpc *rpc = homa_answer_begin(&cpu->ctx, s->args.id,
						 &s->name.addr, hsk->engine_sock);

	if (unlikely(!rpc && !s->name.marked))
		rpc = homak_answer_other_way(cpu, hsk, s);
	return rpc;
}

/* Gives the RPC its answer, so that it is to be sent. -EINVAL: it was not received yet, or has an
 * answer, or there is none to give. */
static HOMAK_HOT int homak_answer_take(struct homa_rpc *rpc,
				       struct homak_sending *s, bool *ours)
{
	struct homak_rpc *krpc = homak_rpc(rpc);

	/* The shard is locked, as it is for each other thread that answers. */
	if (unlikely(!s->msg || krpc->msg || !homa_answer_awaited(rpc)))
		return -EINVAL;
	krpc->msg = s->msg;
	*ours = false;
	if (s->filled < s->length) {
		homa_rpc_hold_more(rpc);
		s->handle = homa_rpc_handle(rpc);
		s->rpc = rpc;
	}
	return 0;
}

/* Sends an answer; what homak_send_reply() says holds but for rejections. sendmsg() has it
 * inlined. */
static HOMAK_HOT int homak_reply_out(struct homak_cpu *cpu,
				     struct homak_sock *hsk,
				     struct homak_sending *s, bool *ours)
{
	struct homa_rpc *rpc = homak_answer_begin(cpu, hsk, s);
	struct homa_tx_desc desc HOMA_NOINIT;
	bool sent;
	int err;

	/* The RPC has ended meanwhile, so nobody waits for the response. */
	if (!rpc)
		return 0;
	err = homak_answer_take(rpc, s, ours);
	sent = homa_answer_end(&cpu->ctx, rpc, *ours ? 0 : s->length, s->filled,
			       &desc);
	if (likely(!*ours))
		trace_homa_rpc_reply(s->args.id, s->length);
	if (likely(sent))
		homak_xmit_now(cpu, &desc, NULL);
	return err;
}

/* Does what homak_send_reply() says, for a rejection. */
static int homak_reject_out(struct homak_cpu *cpu, struct homak_sock *hsk,
			    struct homak_sending *s, bool *ours)
{
	struct homa_rpc *rpc = homak_answer_begin(cpu, hsk, s), *alive;
	struct homa_tx_desc desc HOMA_NOINIT;
	int err;

	if (!rpc)
		return 0;
	s->handle = homa_rpc_handle(rpc);
	err = homak_answer_take(rpc, s, ours);
	homa_answer_end(&cpu->ctx, rpc, 0, 0, NULL);
	if (err)
		return err;
	/* Nobody else can answer it now. If it ends first, its message ends with it. */
	cpu->ctx.tx_now = &desc;
	err = homa_rpc_reject(&cpu->ctx, s->handle,
			      (u32)s->args.completion_cookie, 1, &alive);
	if (alive)
		trace_homa_rpc_reply(s->handle.id, s->length);
	if (!cpu->ctx.tx_now)
		homak_xmit_now(cpu, &desc, NULL);
	cpu->ctx.tx_now = NULL;
	return err;
}

int homak_send_reply(struct homak_cpu *cpu, struct homak_sock *hsk,
		     struct homak_sending *s, bool *ours)
{
	return s->args.flags & HOMA_SENDMSG_REJECT ?
		       homak_reject_out(cpu, hsk, s, ours) :
		       homak_reply_out(cpu, hsk, s, ours);
}

static HOMAK_HOT int homak_send_response(struct homak_sock *hsk,
					 struct msghdr *msg,
					 struct homak_sending *s)
{
	struct homak_cpu *cpu;
	bool fits = homak_length_fits(s->length);
	bool ours = true;
	int err;

	s->msg = NULL;
	s->rpc = NULL;
	if (likely(fits)) {
		err = homak_send_begin(hsk, msg, s);
		if (err)
			return err;
	}
	cpu = homak_send_enter(hsk->hnet);
	err = cpu ? homak_reply_out(cpu, hsk, s, &ours) : -ENETDOWN;
	if (cpu)
		homak_leave(cpu);
	if (ours && fits)
		homak_msg_free(s->msg);
	if (err == -EINVAL)
		homak_error_text(hsk, err,
				 fits ? HOMAK_NOT_TO_ANSWER : HOMAK_BAD_LENGTH);
	return err ? err : homak_send_rest(hsk, msg, s);
}

/* Rejects a request. The response that tells the client carries one byte without meaning. */
static int homak_send_rejection(struct homak_sock *hsk, struct homak_sending *s)
{
	struct kvec nothing = { .iov_base = "", .iov_len = 1 };
	struct homak_cpu *cpu;
	struct iov_iter from;
	bool ours = true;
	int err;

	s->rpc = NULL;
	s->length = 1;
	s->filled = 1;
	s->msg = homak_msg_new(hsk, 1);
	if (IS_ERR(s->msg))
		return PTR_ERR(s->msg);
	iov_iter_kvec(&from, ITER_SOURCE, &nothing, 1, 1);
	err = homak_msg_fill(s->msg, &from, 1);
	if (err)
		goto out;
	cpu = homak_enter_wait(hsk->hnet);
	err = cpu ? homak_send_reply(cpu, hsk, s, &ours) : -ENETDOWN;
	if (cpu)
		homak_leave(cpu);
	if (err == -EINVAL)
		homak_error_text(hsk, err, HOMAK_NOT_TO_ANSWER);
out:
	if (ours)
		homak_msg_free(s->msg);
	return err;
}

/* Says whether the client still waits for the answer to this request. */
static int homak_send_ask(struct homak_sock *hsk, const struct homak_sending *s)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	struct homa_rpc *rpc;
	int err = -ENOENT;

	if (!cpu)
		return -ENETDOWN;
	rpc = homak_find_served(cpu, hsk, s);
	if (rpc && homa_rpc_awaited(&cpu->ctx, homa_rpc_handle(rpc)))
		err = 0;
	if (rpc)
		homa_rpc_release(&cpu->ctx, rpc);
	homak_leave(cpu);
	return err;
}

/* ---- the call ---- */

static HOMAK_HOT int homak_send_one(struct homak_sock *hsk, struct msghdr *msg,
				    struct homak_sending *s)
{
	if (!s->args.id)
		return homak_send_request(hsk, msg, s);
	if (likely(!(s->args.flags & HOMAK_SENDMSG_OURS)))
		return homak_send_response(hsk, msg, s);
	if (s->args.flags & HOMA_SENDMSG_ASK)
		return homak_send_ask(hsk, s);
	return homak_send_rejection(hsk, s);
}

/* Waits for room, or if @err is -ENOBUFS for spare objects, which are short, or because there
 * are too many RPCs. *@timeo, -1 at first, is what is left of the socket's timeout. Returns 0 if
 * the caller is to try again. */
static noinline int homak_send_wait(struct homak_sock *hsk, struct msghdr *msg,
				    size_t len, int err, long *timeo)
{
	if (*timeo < 0)
		*timeo = sock_sndtimeo(&hsk->inet.sk,
				       msg->msg_flags & MSG_DONTWAIT);
	if (err != -ENOBUFS)
		return homak_wait_room(hsk, timeo);
	/* Also after an error: io_uring makes the same call again after EAGAIN, with what is left
	 * of the message. */
	iov_iter_revert(&msg->msg_iter, len - iov_iter_count(&msg->msg_iter));
	if (!*timeo)
		homak_short(hsk);
	return homak_wait_tick(hsk, timeo);
}

int homak_send(struct homak_sock *hsk, struct msghdr *msg, size_t len,
	       struct homak_sending *s)
{
	long timeo = -1;
	int err;

	err = homak_send_check(hsk, len, s);
	if (err)
		return err;
	homak_use(hsk);
	for (;;) {
		if (READ_ONCE(hsk->shutdown))
			return -ESHUTDOWN;
		err = 0;
		if (likely(homak_sock_room(hsk))) {
			err = homak_send_one(hsk, msg, s);
			if (likely(err != -ENOBUFS))
				break;
		}
		err = homak_send_wait(hsk, msg, len, err, &timeo);
		if (err)
			return err;
	}
	switch (err) {
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		homak_error_text(hsk, err,
				 "sendmsg: there is no route to the peer");
		break;
	}
	return err;
}
