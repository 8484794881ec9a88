// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * recvmsg(): give back pages, read an RPC, say where its message is. Reading is
 * copying the packets that wait at an RPC to its pages in the application's
 * region, which is done while the rest of the message is on its way; when all of
 * it is in place the engine is told and gives the message away, in one section.
 *
 * The region is memory of the process that gave it, and only its threads may call. If
 * it cannot be written, the
 * message is lost for the application: our request fails with -EFAULT, a
 * client's is forgotten as if it had never come. Both are the end of the RPC, so
 * a bad region costs its owner and nobody else.
 */
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "homa_sockets.h"
#include "homa_trace.h"

/* ---- copying ---- */

static int homak_copy_packet(struct homak_sock *hsk, struct sk_buff *skb)
{
	const struct homak_rx_cb *cb = homak_rx_cb(skb);
	u32 done = 0;
	int err = 0;

	while (!err && done < cb->length) {
		u32 room;
		u32 place = homa_rx_place(cb->rpc, cb->offset + done, &room);
		u32 n = min(room, cb->length - done);

		err = homak_copy_long(skb, cb->at + done,
				      (void __user *)(hsk->region + place), n);
		done += n;
	}
	return err;
}

static int homak_copy_batch(struct homak_sock *hsk,
			    const struct homak_batch *batch)
{
	struct sk_buff *skb;
	int err = 0;

	/* The message began before there was a region, so it has no pages. */
	if (batch->skbs && !homa_rx_placed(homak_rx_cb(batch->skbs)->rpc))
		return -ENOMEM;
	for (skb = batch->skbs; skb && !err; skb = skb->next)
		err = homak_copy_packet(hsk, skb);
	return err;
}

/* ---- the engine's part ---- */

/* Tells the engine of all packets at once, which takes a lock for the batch instead of one
 * for each. Returns 1 if the message is complete with them and @info has it. */
static int homak_copied(struct homak_cpu *cpu, const struct homak_batch *batch,
			bool lost, struct homa_msg_info *info)
{
	struct homa_rx_pkt pkt HOMA_NOINIT;
	struct sk_buff *skb;
	u32 bytes = 0;

	pkt.rpc = NULL;
	pkt.fresh = 0;
	for (skb = batch->skbs; skb; skb = skb->next) {
		const struct homak_rx_cb *cb = homak_rx_cb(skb);

		pkt.fresh += cb->fresh;
		bytes += cb->length;
		if (pkt.rpc || lost)
			homa_rpc_release(&cpu->ctx, cb->rpc);
		else
			pkt.rpc = cb->rpc;
	}
	if (!pkt.rpc)
		return 0;
	homak_host_count(cpu, HOMAK_H_host_copied_bytes, bytes);
	if (batch->whole)
		return homa_rx_finish(&cpu->ctx, &pkt, info);
	homa_rx_copied(&cpu->ctx, &pkt);
	return 0;
}

/* Drops a request from a peer whose address the socket's family cannot tell. */
static bool homak_unwanted(struct homak_cpu *cpu, struct homak_sock *hsk,
			   struct homa_handle handle,
			   const struct homa_msg_info *info)
{
	if (info->kind != HOMA_EV_REQUEST || homak_name_fits(hsk, &info->peer))
		return false;
	if (info->num_pages)
		homa_pool_release(&cpu->ctx, hsk->engine_sock, info->pages,
				  info->num_pages);
	homa_rpc_forget(&cpu->ctx, handle);
	return true;
}

/*
 * Takes the message or failure if there is one. Returns 1 if @info has it, 0 if it is not
 * there yet, -EINVAL if the RPC has gone, or another error of the call.
 */
static int homak_take(struct homak_cpu *cpu, struct homak_sock *hsk,
		      struct homa_rpc *rpc, const struct homak_batch *batch,
		      int lost, struct homa_msg_info *info)
{
	struct homa_handle handle = homa_rpc_handle(rpc);
	int rc = homak_copied(cpu, batch, lost, info);

	if (lost && homa_rpc_abort(&cpu->ctx, handle, -lost)) {
		homa_rpc_forget(&cpu->ctx, handle);
		return lost;
	}
	/* An event has said that the RPC failed or is complete. A message that is whole but
	 * not complete waits for a packet on its way here. */
	if (!rc && (lost || batch->over))
		rc = homa_rx_take(&cpu->ctx, handle, info) ? -EINVAL : 1;
	if (rc <= 0)
		return rc;
	if (homak_unwanted(cpu, hsk, handle, info))
		return -EINVAL;
	trace_homa_rpc_take(info);
	return 1;
}

/* Reads an RPC that this thread was given. Returns 1 if the application has its message, 0
 * if there is nothing for it. */
static int homak_read(struct homak_sock *hsk, struct homak_rpc *krpc,
		      struct homak_batch *batch, struct homak_receipt *r)
{
	struct homa_rpc *rpc = krpc->rpc;
	struct homak_cpu *cpu;
	bool again;
	int lost, rc;

	do {
		lost = homak_copy_batch(hsk, batch);
		cpu = homak_enter_wait(hsk->hnet);
		if (r->how != HOMAK_H_COUNT)
			homak_host_count(cpu, r->how, 1);
		r->how = HOMAK_H_COUNT;
		rc = homak_take(cpu, hsk, rpc, batch, lost, &r->info);
		homak_batch_free(hsk, batch);
		again = homak_inbox_back(cpu, hsk, krpc, batch, rc != 0);
		if (r->held)
			homa_rpc_release(&cpu->ctx, r->held);
		r->held = NULL;
		homak_leave(cpu);
	} while (again);
	return rc == -EINVAL ? 0 : rc;
}

/* ---- pages and messages back ---- */

/* Does what follows when homa_pool_return() has returned @rc: an error, or 1 because messages wait
 * for pages. */
static noinline int homak_returned(struct homak_sock *hsk, int rc)
{
	struct homak_cpu *cpu;

	if (rc < 0)
		return homak_error_text(
			hsk, -EINVAL,
			"recvmsg: an entry of bpage_offsets was not given to the application");
	cpu = homak_enter_wait(hsk->hnet);
	homa_pool_feed(&cpu->ctx, hsk->engine_sock);
	homak_leave(cpu);
	return 0;
}

static int homak_return_pages(struct homak_sock *hsk, const u32 *pages, u32 num)
{
	int rc;

	if (!num)
		return 0;
	local_bh_disable();
	rc = homa_pool_return(hsk->engine_sock, pages, num);
	local_bh_enable();
	return rc ? homak_returned(hsk, rc) : 0;
}

/* Gives the pages of a message back that the application has not learned of. */
void homak_receipt_undo(struct homak_sock *hsk, const struct homak_receipt *r)
{
	const struct homa_msg_info *info = &r->info;
	struct homa_handle handle;
	struct homa_rpc *rpc;
	struct homak_cpu *cpu;

	homak_return_pages(hsk, info->pages, info->num_pages);
	if (info->kind != HOMA_EV_REQUEST)
		return;
	cpu = homak_enter_wait(hsk->hnet);
	rpc = homa_rpc_hold(&cpu->ctx, info->id, &info->peer);
	if (rpc) {
		handle = homa_rpc_handle(rpc);
		homa_rpc_forget(&cpu->ctx, handle);
		homa_rpc_release(&cpu->ctx, rpc);
	}
	homak_leave(cpu);
}

/* ---- messages that came whole ---- */

/* Is called when a message could not be copied. Returns 1 if the application is to hear that
 * its RPC failed. */
static int homak_lost(struct homak_sock *hsk, struct homak_receipt *r, int err)
{
	homak_receipt_undo(hsk, r);
	if (r->info.kind == HOMA_EV_REQUEST)
		return err;
	r->info.kind = HOMA_EV_FAILED;
	r->info.error = -err;
	r->info.length = 0;
	r->info.num_pages = 0;
	return 1;
}

HOMAK_HOT void homak_whole_read(struct homak_sock *hsk, struct homak_receipt *r)
{
	const struct homak_whole_cb *cb = homak_whole_cb(r->skb);

	if (cb->id & 1)
		homa_sock_taken(hsk->engine_sock, 1);
	if (r->how != HOMAK_H_COUNT)
		homak_host_count_at(hsk->hnet, r->how, 1);
	homak_host_count_at(hsk->hnet, HOMAK_H_host_copied_bytes, cb->length);
	local_bh_disable();
	homak_whole_free(hsk, r->skb);
	local_bh_enable();
}

HOMAK_HOT int homak_whole_copy(struct homak_sock *hsk,
			       const struct homak_receipt *r)
{
	const struct homak_whole_cb *cb = homak_whole_cb(r->skb);

	return homak_copy_piece(r->skb, cb->at,
				(void __user *)(hsk->region + cb->page),
				cb->length);
}

int homak_receive_whole(struct homak_sock *hsk, struct homak_receipt *r)
{
	int err;

	homak_whole_info(homak_whole_cb(r->skb), &r->info);
	err = homak_whole_copy(hsk, r);
	homak_whole_read(hsk, r);
	if (unlikely(err))
		return homak_lost(hsk, r, err);
	trace_homa_rpc_take(&r->info);
	return 1;
}

/* There is nothing, and the call must not wait: has its network card polled, once. True: the
 * caller looks again. */
static noinline bool homak_receive_polls(struct homak_sock *hsk,
					 struct homak_receipt *r)
{
	if (r->polled || !homak_busy_poll(hsk, NULL))
		return false;
	r->polled = true;
	return true;
}

/* ---- shared RPCs ---- */

/* Bottom halves are off, and on again when it returns. */
static HOMAK_HOT int homak_receive_shared(struct homak_sock *hsk,
					  struct homak_receipt *r)
{
	struct homak_waiter waiter HOMA_NOINIT;
	int rc;

	for (;; local_bh_disable()) {
		homak_waiter_init(&waiter, 0);
		homak_inbox_next(hsk, &waiter, r->timeo);
		local_bh_enable();
		if (waiter.what == HOMAK_WAITS) {
			if (unlikely(!r->timeo)) {
				if (homak_receive_polls(hsk, r))
					continue;
				return -EAGAIN;
			}
			rc = homak_wait(hsk, NULL, &waiter, &r->timeo, &r->how);
			if (rc)
				return rc;
		}
		if (likely(waiter.what == HOMAK_WAITED_MESSAGE)) {
			r->skb = waiter.skb;
			return HOMAK_RECEIVED_WHOLE;
		}
		if (unlikely(waiter.what != HOMAK_WAITED_RPC)) {
			if (READ_ONCE(hsk->shutdown))
				return -ESHUTDOWN;
			continue;
		}
		rc = homak_read(hsk, waiter.handed, &waiter.batch, r);
		if (rc)
			return rc;
	}
}

/* ---- private RPCs ---- */

/* Finds the private RPC and takes it to read, or waits for it. Returns 1 if *@krpc is to be
 * read, 0 if @r holds it and it is waited for. */
static int homak_find_private(struct homak_sock *hsk, struct homak_receipt *r,
			      struct homak_waiter *waiter,
			      struct homak_rpc **krpc)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	struct homa_rpc *rpc;
	int rc = -EINVAL;

	rpc = homa_rpc_hold(&cpu->ctx, r->args.id, NULL);
	if (rpc && homa_rpc_sock(rpc) == hsk->engine_sock &&
	    homak_rpc(rpc)->is_private) {
		*krpc = homak_rpc(rpc);
		rc = homak_inbox_private(hsk, *krpc, waiter, r->timeo);
	}
	/* An RPC that is read is held by the hold of its list, so this one is released. */
	if (rpc && rc)
		homa_rpc_release(&cpu->ctx, rpc);
	else
		r->held = rpc;
	homak_leave(cpu);
	return rc;
}

static void homak_let_go(struct homak_sock *hsk, struct homak_receipt *r)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);

	homa_rpc_release(&cpu->ctx, r->held);
	homak_leave(cpu);
	r->held = NULL;
}

static int homak_receive_private(struct homak_sock *hsk, struct homak_receipt *r)
{
	struct homak_waiter waiter HOMA_NOINIT;
	struct homak_rpc *krpc;
	bool again;
	int rc, err;

	for (;;) {
		if (READ_ONCE(hsk->shutdown))
			return -ESHUTDOWN;
		homak_waiter_init(&waiter, r->args.id);
		rc = homak_find_private(hsk, r, &waiter, &krpc);
		if (rc < 0)
			return homak_error_text(
				hsk, rc,
				"recvmsg: the id is not that of an open private RPC");
		again = !rc && !r->timeo && homak_receive_polls(hsk, r);
		err = rc || r->timeo || again ? 0 : -EAGAIN;
		if (!rc && !err && !again) {
			err = homak_wait(hsk, krpc, &waiter, &r->timeo, &r->how);
			rc = waiter.what == HOMAK_WAITED_RPC;
		}
		if (rc)
			rc = homak_read(hsk, krpc, &waiter.batch, r);
		else
			homak_let_go(hsk, r);
		if (rc || err)
			return rc ? rc : err;
	}
}

/* ---- the call ---- */

static int homak_receipt_args(struct homak_sock *hsk, const struct msghdr *msg,
			      struct homak_receipt *r)
{
	if (!msg->msg_control || !msg->msg_control_is_user ||
	    msg->msg_controllen != sizeof(r->args))
		return homak_error_text(
			hsk, -EINVAL,
			"recvmsg: msg_control is not a struct homa_recvmsg_args with its size in msg_controllen");
	return homak_args_read(msg->msg_control_user, &r->args);
}

int homak_receipt_check(struct homak_sock *hsk, const struct homak_receipt *r)
{
	/* If the address space is set, the other fields of the region are, too; see
	 * homak_region_set(). */
	const struct mm_struct *mm = smp_load_acquire(&hsk->mm);

	if (r->args.reserved)
		return homak_error_text(hsk, -EINVAL,
					"recvmsg: the reserved field is not 0");
	if (unlikely(!mm))
		return homak_error_text(
			hsk, -EINVAL,
			"recvmsg: the socket has no receive region; set SO_HOMA_RCVBUF first");
	if (unlikely(mm != current->mm))
		return homak_error_text(
			hsk, -EFAULT,
			"recvmsg: another process gave the receive region, which is no memory of this one");
	if (r->args.num_bpages > HOMA_MAX_BPAGES)
		return homak_error_text(hsk, -EINVAL,
					"recvmsg: num_bpages is larger than 16");
	return 0;
}

/* As in the existing module, only MSG_DONTWAIT counts of @flags. */
int homak_receive(struct homak_sock *hsk, struct homak_receipt *r, int flags)
{
	u32 num = r->args.num_bpages;
	int rc = 0;

	r->args.num_bpages = 0;
	r->held = NULL;
	r->how = HOMAK_H_COUNT;
	r->polled = false;
	r->timeo = sock_rcvtimeo(&hsk->inet.sk, flags & MSG_DONTWAIT);
	/* Pages are given back and messages looked for with bottom halves turned off once. */
	local_bh_disable();
	if (num)
		rc = homa_pool_return(hsk->engine_sock, r->args.bpage_offsets,
				      num);
	if (unlikely(rc) || r->args.id) {
		local_bh_enable();
		rc = rc ? homak_returned(hsk, rc) : 0;
		if (rc)
			return rc;
		if (r->args.id)
			return homak_receive_private(hsk, r);
		local_bh_disable();
	}
	return homak_receive_shared(hsk, r);
}

void homak_receipt_put(struct homak_receipt *r)
{
	const struct homa_msg_info *info = &r->info;

	r->args.id = info->id;
	r->args.completion_cookie =
		info->kind == HOMA_EV_REQUEST ? 0 : info->cookie;
	r->args.num_bpages = info->num_pages;
	if (likely(info->num_pages == 1)) {
		r->args.bpage_offsets[0] = info->pages[0];
		return;
	}
	memcpy(r->args.bpage_offsets, info->pages,
	       info->num_pages * sizeof(info->pages[0]));
}

/*
 * Ends a call that received nothing: it names no RPC, and says that no pages are left to
 * give back. The kernel would start a call again that ends with -ERESTARTSYS, but one for a
 * private RPC could not be, with the id gone.
 */
static int homak_receipt_none(struct msghdr *msg, struct homak_receipt *r, int rc)
{
	if (rc == -ERESTARTSYS && r->args.id)
		rc = -EINTR;
	r->args.id = 0;
	r->args.completion_cookie = 0;
	if (copy_to_user(msg->msg_control_user, &r->args,
			 offsetof(struct homa_recvmsg_args, bpage_offsets)))
		return -EFAULT;
	return rc;
}

/* Writes what recvmsg() says of a message or a failure: @r->args. */
static int homak_receipt_say(const struct msghdr *msg,
			     const struct homak_receipt *r)
{
	/* The places of pages that are not there stay what they were. */
	size_t size = offsetof(struct homa_recvmsg_args, bpage_offsets) +
		      r->args.num_bpages * sizeof(r->args.bpage_offsets[0]);

	return copy_to_user(msg->msg_control_user, &r->args, size) ? -EFAULT : 0;
}

static int homak_receipt_end(struct homak_sock *hsk, struct msghdr *msg,
			     struct homak_receipt *r)
{
	const struct homa_msg_info *info = &r->info;

	homak_receipt_put(r);
	if (homak_receipt_say(msg, r)) {
		homak_receipt_undo(hsk, r);
		return -EFAULT;
	}
	if (msg->msg_name)
		msg->msg_namelen = homak_name_put(hsk, &info->peer,
						  info->peer_port, msg->msg_name);
	/* msg_control stays where it was, so that the system call says msg_controllen 0. */
	msg->msg_controllen = 0;
	if (info->kind == HOMA_EV_FAILED)
		return homak_error_text(hsk, -info->error, "the RPC failed");
	return (int)info->length;
}

/* Does the same for the message r->skb after an error, or while it is traced. */
static noinline int homak_whole_end_slow(struct homak_sock *hsk,
					 struct msghdr *msg,
					 struct homak_receipt *r)
{
	int rc = homak_receive_whole(hsk, r);

	return rc > 0 ? homak_receipt_end(hsk, msg, r) :
			homak_receipt_none(msg, r, rc);
}

static noinline int homak_whole_name_any(const struct homak_sock *hsk,
					 const struct homak_whole_cb *cb,
					 struct sockaddr_storage *to)
{
	struct homa_addr peer HOMA_NOINIT;

	homak_whole_peer(cb, &peer);
	return homak_name_put(hsk, &peer, cb->port, to);
}

HOMAK_HOT int homak_whole_name(const struct homak_sock *hsk,
			       const struct homak_whole_cb *cb, void *to)
{
	struct sockaddr_in *in = to;

	if (unlikely(hsk->inet.sk.sk_family != AF_INET || cb->encap))
		return homak_whole_name_any(hsk, cb, to);
	in->sin_family = AF_INET;
	in->sin_port = htons(cb->port);
	memcpy(&in->sin_addr, cb->ip + 12, sizeof(in->sin_addr));
	memset(in->sin_zero, 0, sizeof(in->sin_zero));
	return sizeof(*in);
}

/* Ends a call that has received the message r->skb, of which all is said from its cb. */
static HOMAK_HOT int homak_whole_end(struct homak_sock *hsk, struct msghdr *msg,
				     struct homak_receipt *r)
{
	const struct homak_whole_cb *cb = homak_whole_cb(r->skb);
	int length = (int)cb->length;

	if (trace_homa_rpc_take_enabled() || unlikely(homak_whole_copy(hsk, r)))
		return homak_whole_end_slow(hsk, msg, r);
	/* It may be that this cannot be written, and then all is taken back. */
	if (unlikely(homak_args_write_whole(cb, msg->msg_control_user)))
		return homak_whole_end_slow(hsk, msg, r);
	if (msg->msg_name)
		msg->msg_namelen = homak_whole_name(hsk, cb, msg->msg_name);
	msg->msg_controllen = 0;
	homak_whole_read(hsk, r);
	return length;
}

int homak_recvmsg_common(struct sock *sk, struct msghdr *msg, size_t len,
			 int flags)
{
	struct homak_sock *hsk = homak_sk(sk);
	struct homak_receipt r HOMA_NOINIT;
	int rc;

	rc = homak_receipt_args(hsk, msg, &r);
	if (rc)
		return rc;
	rc = homak_receipt_check(hsk, &r);
	if (!rc)
		rc = homak_receive(hsk, &r, flags);
	if (likely(rc == HOMAK_RECEIVED_WHOLE))
		return homak_whole_end(hsk, msg, &r);
	return rc > 0 ? homak_receipt_end(hsk, msg, &r) :
			homak_receipt_none(msg, &r, rc);
}
