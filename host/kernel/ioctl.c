// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ioctl(): what goes on at a socket, and the end of requests that are not
 * wanted any more; under their present numbers and those of earlier revisions
 * of the API, whose arguments are the same.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "homa_sockets.h"

#define HOMAK_INFO_2025 _IOWR('h', 1, struct homa_info)
#define HOMAK_ABORT_2025 _IOWR('h', 2, struct homa_abort_args)
#define HOMAK_FREEZE_2025 _IO('h', 3)
#define HOMAK_ABORT_2024 _IOWR(0x89, 0xe3, struct homa_abort_args)
#define HOMAK_FREEZE_2024 _IO(0x89, 0xef)

#define HOMAK_LOOKS 32u /* RPCs that one turn looks at */
#define HOMAK_ERRNO_MAX 4095u

/*
 * struct homak_listing - RPCs of a socket, some at a time
 * @at: position from which the next ones are listed.
 * @n: number of entries of @looks that are used.
 * @looks: the RPCs.
 * @flags: bits HOMA_RPC_* of each of them.
 */
struct homak_listing {
	struct homa_look_cursor at;
	u32 n;
	struct homa_rpc_look looks[HOMAK_LOOKS];
	u16 flags[HOMAK_LOOKS];
};

/* ---- HOMAIOCINFO ---- */

static u16 homak_look_flags(struct homak_cpu *cpu,
			    const struct homa_rpc_look *look)
{
	struct homak_rpc *krpc;
	struct homa_rpc *rpc;
	u16 flags = 0;

	if (look->phase == HOMA_LOOK_NO_BUFFER)
		flags |= HOMA_RPC_BUF_STALL;
	if (look->phase == HOMA_LOOK_READY || look->phase == HOMA_LOOK_FAILED)
		flags |= HOMA_RPC_RX_READY;
	if (look->is_private)
		flags |= HOMA_RPC_PRIVATE;
	rpc = homa_rpc_hold(&cpu->ctx, look->handle.id,
			    look->client ? NULL : &look->peer);
	if (!rpc)
		return flags;
	krpc = homak_rpc(rpc);
	if (READ_ONCE(krpc->rx_bytes))
		flags |= HOMA_RPC_RX_COPY;
	if (READ_ONCE(krpc->rx_bytes) && READ_ONCE(krpc->whole))
		flags |= HOMA_RPC_RX_READY;
	homa_rpc_release(&cpu->ctx, rpc);
	return flags;
}

static int homak_list_some(struct homak_sock *hsk, struct homak_listing *list)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	u32 i;

	if (!cpu)
		return -ENETDOWN;
	list->n = homa_rpcs_look(&cpu->ctx, &list->at, hsk->engine_sock,
				 list->looks, HOMAK_LOOKS);
	for (i = 0; i < list->n; i++)
		list->flags[i] = homak_look_flags(cpu, &list->looks[i]);
	homak_leave(cpu);
	cond_resched();
	return 0;
}

static void homak_record(const struct homak_sock *hsk,
			 const struct homa_rpc_look *look, u16 flags,
			 struct homa_rpc_info *info)
{
	memset(info, 0, sizeof(*info));
	info->id = look->handle.id;
	homak_name_put(hsk, &look->peer, look->peer_port,
		       (struct sockaddr_storage *)&info->peer);
	info->completion_cookie = look->client ? look->cookie : 0;
	info->tx_length = look->tx_length ? (s32)look->tx_length : -1;
	info->tx_sent = look->tx_sent;
	info->tx_granted = look->tx_granted;
	info->tx_prio = look->tx_length ? look->tx_prio : 0;
	info->rx_length = look->rx_length ? (s32)look->rx_length : -1;
	info->rx_remaining =
		look->rx_length - min(look->rx_received, look->rx_length);
	info->rx_gaps = look->rx_gaps;
	info->rx_gap_bytes = look->rx_gap_bytes;
	info->rx_granted = look->rx_granted;
	info->flags = flags;
}

/* Writes records to @to as long as there is room, and counts all RPCs. */
static int homak_records(struct homak_sock *hsk, struct homak_listing *list,
			 struct homa_rpc_info __user *to, size_t room, u32 *count)
{
	struct homa_rpc_info info;
	u32 i;
	int err;

	memset(&list->at, 0, sizeof(list->at));
	*count = 0;
	while (!list->at.end) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = homak_list_some(hsk, list);
		if (err)
			return err;
		*count += list->n;
		for (i = 0; i < list->n && room >= sizeof(info); i++) {
			homak_record(hsk, &list->looks[i], list->flags[i], &info);
			if (copy_to_user(to++, &info, sizeof(info)))
				return -EFAULT;
			room -= sizeof(info);
		}
	}
	return 0;
}

static u64 homak_avail(struct homak_sock *hsk)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	u64 bytes = 0;

	if (cpu) {
		bytes = homa_pool_avail(hsk->engine_sock);
		homak_leave(cpu);
	}
	return bytes;
}

int homak_sock_info(struct homak_sock *hsk, struct homa_info *info)
{
	struct homak_listing *list;
	int err;

	if (READ_ONCE(hsk->shutdown))
		return -ESHUTDOWN;
	list = kmalloc(sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	err = homak_records(hsk, list,
			    (struct homa_rpc_info __user *)info->rpc_info,
			    info->rpc_info_length, &info->num_rpcs);
	kfree(list);
	if (err)
		return err;
	info->bpool_avail_bytes = homak_avail(hsk);
	info->port = homa_sock_port(hsk->engine_sock);
	memcpy(info->error_msg, hsk->error, sizeof(info->error_msg));
	info->error_msg[sizeof(info->error_msg) - 1] = 0;
	return 0;
}

static int homak_info_ioctl(struct homak_sock *hsk, struct homa_info __user *arg)
{
	struct homa_info info;
	int err;

	if (copy_from_user(&info, arg, sizeof(info)))
		return -EFAULT;
	err = homak_sock_info(hsk, &info);
	if (err)
		return err;
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* ---- HOMAIOCABORT ---- */

/* Aborts an RPC; the caller has entered the engine. */
static int homak_abort(struct homak_cpu *cpu, struct homak_sock *hsk, u64 id,
		       int error)
{
	struct homa_rpc *rpc = homa_rpc_hold(&cpu->ctx, id, NULL);
	int err = -EINVAL;

	if (!rpc)
		return homak_whole_abort(cpu, hsk, id, !error) ? 0 : err;
	if (homa_rpc_sock(rpc) == hsk->engine_sock)
		err = homa_rpc_abort(&cpu->ctx, homa_rpc_handle(rpc), error);
	if (!err && !error)
		homak_inbox_forget(cpu, hsk, homak_rpc(rpc));
	homa_rpc_release(&cpu->ctx, rpc);
	return err;
}

static int homak_abort_one(struct homak_sock *hsk, u64 id, int error)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	int err;

	if (!cpu)
		return -ENETDOWN;
	err = homak_abort(cpu, hsk, id, error);
	homak_leave(cpu);
	return err;
}

/* Aborts the RPCs that there are now; those that begin or end meanwhile may be missed. */
static int homak_abort_all(struct homak_sock *hsk, int error)
{
	struct homak_listing *list = kzalloc(sizeof(*list), GFP_KERNEL);
	struct homak_cpu *cpu;
	bool more = true;
	int err = 0;
	u32 i;

	if (!list)
		return -ENOMEM;
	while (!err && !list->at.end && !fatal_signal_pending(current)) {
		err = homak_list_some(hsk, list);
		for (i = 0; !err && i < list->n; i++)
			if (list->looks[i].client)
				homak_abort_one(hsk, list->looks[i].handle.id,
						error);
	}
	kfree(list);
	if (err || error)
		return err;
	while (more && !fatal_signal_pending(current)) {
		cpu = homak_enter_wait(hsk->hnet);
		if (!cpu)
			return -ENETDOWN;
		more = homak_whole_abort(cpu, hsk, 0, true);
		homak_leave(cpu);
		cond_resched();
	}
	return 0;
}

static int homak_abort_ioctl(struct homak_sock *hsk, void __user *arg)
{
	struct homa_abort_args args;
	int err;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (args._pad1 || args._pad2[0] || args._pad2[1] ||
	    args.error > HOMAK_ERRNO_MAX)
		return homak_error_text(
			hsk, -EINVAL,
			"abort: reserved fields are not 0, or the error is not an errno");
	if (READ_ONCE(hsk->shutdown))
		return -ESHUTDOWN;
	if (!args.id)
		return homak_abort_all(hsk, (int)args.error);
	err = homak_abort_one(hsk, args.id, (int)args.error);
	/* Perhaps the response was on its way from the engine to the socket just then, in a
	 * bottom half that ends with a grace period. */
	if (err == -EINVAL && !(args.id & 1)) {
		synchronize_rcu();
		err = homak_abort_one(hsk, args.id, (int)args.error);
	}
	if (err == -EINVAL)
		homak_error_text(
			hsk, err,
			"abort: the id is not that of an open request of this socket");
	return err;
}

int homak_ioctl_common(struct sock *sk, unsigned int cmd, void __user *arg)
{
	struct homak_sock *hsk = homak_sk(sk);

	switch (cmd) {
	case HOMAIOCINFO:
	case HOMAK_INFO_2025:
		return homak_info_ioctl(hsk, arg);
	case HOMAIOCABORT:
	case HOMAK_ABORT_2025:
	case HOMAK_ABORT_2024:
		return homak_abort_ioctl(hsk, arg);
	case HOMAIOCFREEZE:
	case HOMAK_FREEZE_2025:
	case HOMAK_FREEZE_2024:
		/* Freezing time traces is not needed for tracepoints. */
		return 0;
	}
	return -ENOIOCTLCMD;
}
