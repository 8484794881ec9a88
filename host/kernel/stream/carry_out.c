// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Messages that a carrier sends: requests, and answers to those that it got. */
#include "homa_bind.h"
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

int homak_carry_ask(struct homak_carrier *carrier, const struct homak_ask *ask)
{
	struct homak_sock *hsk = carrier->hsk;
	struct homak_sending s = {
		.args.completion_cookie = ask->cookie,
		.name.addr = ask->peer,
		.name.port = ask->port,
		.length = HOMAK_STREAM_HDR + ask->n,
		.filled = HOMAK_STREAM_HDR + ask->n,
		.local = ask->local,
	};
	struct homak_cpu *cpu;
	int err = -ENETDOWN;

	s.msg = homak_carry_msg(hsk, &ask->hdr, ask->more, ask->n);
	if (IS_ERR(s.msg))
		return PTR_ERR(s.msg);
	homak_use(hsk);
	cpu = homak_enter_wait(hsk->hnet);
	if (cpu) {
		err = homak_send_rpc(cpu, hsk, &s);
		homak_leave(cpu);
	}
	if (err)
		homak_msg_free(s.msg);
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

/* Leaves a request without an answer: the client hears nothing, and gives up. */
static void homak_carry_forget(struct homak_cpu *cpu,
			       struct homak_carrier *carrier,
			       const struct homak_carried *m)
{
	struct homa_rpc *rpc = homak_carry_find(cpu, carrier, m);

	if (!rpc)
		return;
	homa_rpc_forget(&cpu->ctx, homa_rpc_handle(rpc));
	homa_rpc_release(&cpu->ctx, rpc);
}

void homak_carry_answer(struct homak_carrier *carrier,
			const struct homak_carried *m,
			const struct homak_stream_hdr *hdr, const void *more,
			u32 n)
{
	struct kvec kvec = { .iov_base = (void *)more, .iov_len = n };
	struct homak_sending s = {
		.args.id = m->info.id,
		.name.addr = m->info.peer,
		.name.marked = true, /* this is how the request came */
		.length = HOMAK_STREAM_HDR + n,
		.filled = HOMAK_STREAM_HDR + n,
	};
	struct homak_cpu *cpu;
	struct iov_iter from;
	bool ours = true;

	iov_iter_kvec(&from, ITER_SOURCE, &kvec, 1, n);
	s.msg = homak_carry_msg(carrier->hsk, hdr, &from, n);
	cpu = homak_enter_wait(carrier->hsk->hnet);
	if (cpu) {
		if (IS_ERR(s.msg))
			homak_carry_forget(cpu, carrier, m);
		else
			homak_send_reply(cpu, carrier->hsk, &s, &ours);
		homak_leave(cpu);
	}
	if (ours && !IS_ERR(s.msg))
		homak_msg_free(s.msg);
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
