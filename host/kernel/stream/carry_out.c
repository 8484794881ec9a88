// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Messages that a carrier sends: requests, and answers to those that it got. */
#include "homa_stream.h"
#include "homa_sockets.h"

/* Makes a message of a header and what follows it. */
static struct homak_msg *homak_carry_msg(struct homak_sock *hsk,
					 const struct homak_stream_hdr *hdr,
					 struct iov_iter *more, u32 n)
{
	struct kvec kvec = {
		.iov_base = (void *)hdr,
		.iov_len = sizeof(*hdr),
	};
	struct homak_msg *msg = homak_msg_new(hsk, HOMAK_STREAM_HDR + n);
	struct iov_iter from;
	int err;

	if (IS_ERR(msg))
		return msg;
	iov_iter_kvec(&from, ITER_SOURCE, &kvec, 1, sizeof(*hdr));
	err = homak_msg_fill(msg, &from, HOMAK_STREAM_HDR);
	if (!err && n)
		err = homak_msg_fill(msg, more, HOMAK_STREAM_HDR + n);
	if (!err)
		return msg;
	homak_msg_free(msg);
	return ERR_PTR(err);
}

/* Gives the engine a request, as sendmsg() does (send.c). If this returns 0 the message
 * belongs to the RPC. */
static int homak_carry_send(struct homak_cpu *cpu, struct homak_sock *hsk,
			    const struct homak_ask *ask, struct homak_msg *msg)
{
	struct homa_send send = {
		.dst = ask->peer,
		.port = ask->port,
		.length = HOMAK_STREAM_HDR + ask->n,
		.available = HOMAK_STREAM_HDR + ask->n,
		.cookie = ask->cookie,
	};
	struct homak_rpc *krpc = homa_ctx_next_rpc(&cpu->ctx);
	struct homa_handle handle;
	struct homak_route *way;
	struct net_device *dev;
	struct homak_dev *hdev;
	u32 mtu = 0;
	int err;

	if (!krpc)
		return -ENOBUFS;
	hdev = homak_dev_out(cpu, hsk, &send.dst, &mtu, &krpc->local, &way);
	if (IS_ERR_OR_NULL(hdev))
		return hdev ? PTR_ERR(hdev) : -ENETUNREACH;
	if (ask->local)
		*ask->local = krpc->local;
	dev = rcu_dereference_bh(hdev->dev);
	if (dev && mtu && mtu != READ_ONCE(dev->mtu))
		homa_path_mtu(&cpu->ctx, hdev->link, &send.dst, mtu);
	krpc->msg = msg;
	err = homa_rpc_send(&cpu->ctx, hsk->engine_sock, hdev->link, &send,
			    &handle, NULL);
	if (err)
		krpc->msg = NULL; /* the memory is still a spare RPC */
	return err;
}

int homak_carry_ask(struct homak_carrier *carrier, const struct homak_ask *ask)
{
	struct homak_sock *hsk = carrier->hsk;
	struct homak_msg *msg;
	struct homak_cpu *cpu;
	int err = -ENETDOWN;

	msg = homak_carry_msg(hsk, &ask->hdr, ask->more, ask->n);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	homak_use(hsk);
	cpu = homak_enter_wait(hsk->hnet);
	if (cpu) {
		err = homak_carry_send(cpu, hsk, ask, msg);
		homak_leave(cpu);
	}
	if (err)
		homak_msg_free(msg);
	return err;
}

/* Returns the RPC of a request that came, with a hold; NULL: it is over. */
static struct homa_rpc *homak_carry_find(struct homak_cpu *cpu,
					 struct homak_carrier *carrier,
					 const struct homak_carried *m)
{
	struct homa_rpc *rpc =
		homa_rpc_hold(&cpu->ctx, m->info.id, &m->info.peer);

	if (!rpc || homa_rpc_sock(rpc) == carrier->hsk->engine_sock)
		return rpc;
	homa_rpc_release(&cpu->ctx, rpc);
	return NULL;
}

/* Gives the engine the answer; true: the message belongs to the RPC. */
static bool homak_carry_reply(struct homak_cpu *cpu, struct homa_rpc *rpc,
			      struct homak_msg *msg, u32 length)
{
	struct homak_rpc *krpc = homak_rpc(rpc);
	struct homa_rpc *alive;

	if (cmpxchg(&krpc->msg, NULL, msg))
		return false;
	if (!homa_rpc_reply(&cpu->ctx, homa_rpc_handle(rpc), length, length,
			    &alive))
		return true;
	krpc->msg = NULL;
	return false;
}

void homak_carry_answer(struct homak_carrier *carrier,
			const struct homak_carried *m,
			const struct homak_stream_hdr *hdr, const void *more,
			u32 n)
{
	struct kvec kvec = { .iov_base = (void *)more, .iov_len = n };
	struct homak_msg *msg;
	struct homak_cpu *cpu;
	struct homa_rpc *rpc;
	struct iov_iter from;
	bool ours = true;

	iov_iter_kvec(&from, ITER_SOURCE, &kvec, 1, n);
	msg = homak_carry_msg(carrier->hsk, hdr, &from, n);
	cpu = homak_enter_wait(carrier->hsk->hnet);
	if (cpu) {
		rpc = homak_carry_find(cpu, carrier, m);
		if (rpc && !IS_ERR(msg))
			ours = !homak_carry_reply(cpu, rpc, msg,
						  HOMAK_STREAM_HDR + n);
		else if (rpc)
			/* No memory: the client hears nothing, and gives up. */
			homa_rpc_forget(&cpu->ctx, homa_rpc_handle(rpc));
		if (rpc)
			homa_rpc_release(&cpu->ctx, rpc);
		homak_leave(cpu);
	}
	if (ours && !IS_ERR(msg))
		homak_msg_free(msg);
}

bool homak_carry_local(struct homak_carrier *carrier,
		       const struct homak_carried *m, struct in6_addr *local)
{
	struct homak_cpu *cpu = homak_enter_wait(carrier->hsk->hnet);
	struct homa_rpc *rpc;

	if (!cpu)
		return false;
	rpc = homak_carry_find(cpu, carrier, m);
	if (rpc) {
		*local = homak_rpc(rpc)->local;
		homa_rpc_release(&cpu->ctx, rpc);
	}
	homak_leave(cpu);
	return rpc;
}
