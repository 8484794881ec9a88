// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ioctl(): Homa's own, under their present numbers and those of before April
 * 2026, what every descriptor has, and questions about network interfaces,
 * which programs ask through whatever socket is at hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "libhoma_preload.h"
#include "internal.h"
#include "real.h"

/* These are the numbers that the ioctls had in earlier revisions. */
#define INFO_2025 _IOWR('h', 1, struct homa_info)
#define ABORT_2025 _IOWR('h', 2, struct homa_abort_args)
#define FREEZE_2025 _IO('h', 3)
#define ABORT_2024 _IOWR(0x89, 0xe3, struct homa_abort_args)
#define FREEZE_2024 _IO(0x89, 0xef)

/* struct listing - the list of RPCs that HOMAIOCINFO fills */
struct listing {
	/* The socket whose RPCs are listed. */
	struct homa_pl_sock *s;
	/* Where the next RPC is written. */
	struct homa_rpc_info *to;
	/* The bytes of the application's memory that are left. */
	size_t room;
	/* The number of RPCs so far, also of those for which there was no room. */
	uint32_t count;
};

static void peer_name(const struct homa_pl_sock *s,
		      const struct homa_ctl_rpc *rpc, struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (void *)to;

	if (s->family == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(rpc->port);
		memcpy(&in->sin_addr, rpc->ip + 12, 4);
	} else {
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(rpc->port);
		memcpy(&to->sin6_addr, rpc->ip, 16);
	}
}

static void put_info(struct listing *list, const struct homa_rpc_info *info)
{
	list->count++;
	if (list->room < sizeof(*info))
		return;
	*list->to++ = *info;
	list->room -= sizeof(*info);
}

static void list_rpc(void *arg, const struct homa_ctl_rpc *rpc)
{
	struct listing *list = arg;
	struct homa_rpc_info info = {
		.id = rpc->id,
		.completion_cookie = rpc->client ? rpc->cookie : 0,
		.tx_length = rpc->tx_length ? (int)rpc->tx_length : -1,
		.tx_sent = rpc->tx_sent,
		.tx_granted = rpc->tx_granted,
		.rx_length = rpc->rx_length ? (int)rpc->rx_length : -1,
		.rx_remaining = rpc->rx_remaining,
		.rx_granted = rpc->rx_granted,
		.flags = rpc->ready ? HOMA_RPC_RX_READY : 0,
	};

	peer_name(list->s, rpc, &info.peer.in6);
	if (rpc->client && homa_pl_rpc_find(list->s, rpc->id, NULL))
		info.flags |= HOMA_RPC_PRIVATE;
	put_info(list, &info);
}

/* List an RPC whose response was taken from libhoma and waits for room in the region. */
static void list_held(struct listing *list, const struct homa_message *msg,
		      bool private_rpc)
{
	struct homa_rpc_info info = {
		.id = msg->id,
		.completion_cookie = msg->cookie,
		.tx_length = -1,
		.rx_length = (int)msg->length,
		.rx_granted = (uint32_t)msg->length,
		.flags = HOMA_RPC_RX_READY | HOMA_RPC_BUF_STALL,
	};
	struct sockaddr_storage name;

	/* libhoma has listed requests without a response already. */
	if (msg->kind == HOMA_REQUEST)
		return;
	if (private_rpc)
		info.flags |= HOMA_RPC_PRIVATE;
	memcpy(&info.peer, &name, homa_pl_name(list->s, &msg->peer, &name));
	put_info(list, &info);
}

static void list_private(void *list, const struct homa_message *msg)
{
	list_held(list, msg, true);
}

static int info(struct homa_pl_sock *s, struct homa_info *arg)
{
	struct listing list = { .s = s };
	const struct homa_pl_held *held;
	int rc;

	if (!arg || (arg->rpc_info_length && !arg->rpc_info))
		return -EFAULT;
	list.to = arg->rpc_info;
	list.room = arg->rpc_info_length;
	arg->port = homa_pl_port(s);
	arg->bpool_avail_bytes = 0;
	memcpy(arg->error_msg, s->error, sizeof(arg->error_msg));
	pthread_mutex_lock(&s->lock);
	rc = homa_internal_rpcs(s->h, list_rpc, &list);
	for (held = s->held; held; held = held->next)
		list_held(&list, &held->msg, false);
	homa_pl_rpc_held(s, list_private, &list);
	if (s->region.start)
		arg->bpool_avail_bytes = homa_pl_region_avail(&s->region);
	pthread_mutex_unlock(&s->lock);
	arg->num_rpcs = list.count;
	return rc < 0 ? rc : 0;
}

static int abort_rpc(struct homa_pl_sock *s, const struct homa_abort_args *arg)
{
	int rc;

	if (!arg)
		return -EFAULT;
	if (arg->_pad1 || arg->_pad2[0] || arg->_pad2[1] || arg->error > 4095)
		return homa_pl_error(
			s, -EINVAL,
			"abort: reserved fields are not 0, or the error is not an errno");
	rc = homa_abort(s->h, arg->id, (int)arg->error);
	if (rc)
		return homa_pl_error(s, rc, homa_error(s->h));
	if (!arg->error) {
		pthread_mutex_lock(&s->lock);
		homa_pl_rpc_forget(s, arg->id);
		pthread_mutex_unlock(&s->lock);
	}
	return 0;
}

/* Do SIOCGIFADDR and its like by a UDP socket, which knows them. */
static int by_udp(unsigned long request, void *arg)
{
	int rc, fd = HOMA_PL_REAL(socket)(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	rc = HOMA_PL_REAL(ioctl)(fd, request, arg);
	rc = rc < 0 ? -errno : rc;
	HOMA_PL_REAL(close)(fd);
	return rc;
}

static int set_nonblock(struct homa_pl_sock *s, const int *on)
{
	if (!on)
		return -EFAULT;
	s->status = *on ? O_NONBLOCK : 0;
	return 0;
}

static int homa_ioctl(struct homa_pl_sock *s, unsigned long request, void *arg)
{
	int rc = homa_pl_ready(s);

	if (rc)
		return rc;
	switch (request) {
	case HOMAIOCINFO:
	case INFO_2025:
		if (__atomic_load_n(&s->shut, __ATOMIC_ACQUIRE))
			return -ESHUTDOWN;
		return info(s, arg);
	case HOMAIOCABORT:
	case ABORT_2025:
	case ABORT_2024:
		return abort_rpc(s, arg);
	default:
		return 0; /* HOMAIOCFREEZE does nothing: there are no time traces. */
	}
}

int homa_pl_ioctl(struct homa_pl_sock *s, int fd, unsigned long request, void *arg)
{
	int rc;

	switch (request) {
	case HOMAIOCINFO:
	case INFO_2025:
	case HOMAIOCABORT:
	case ABORT_2025:
	case ABORT_2024:
	case HOMAIOCFREEZE:
	case FREEZE_2025:
	case FREEZE_2024:
		rc = homa_pl_enter();
		if (rc)
			return rc;
		rc = homa_ioctl(s, request, arg);
		homa_pl_leave();
		return rc;
	case FIONBIO:
		return set_nonblock(s, arg);
	case FIOCLEX:
	case FIONCLEX:
		rc = HOMA_PL_REAL(ioctl)(fd, request);
		return rc < 0 ? -errno : rc;
	}
	/* Requests from 0x8910 to 0x897f ask about interfaces, addresses and routes. */
	if (request >= 0x8910 && request < 0x8980)
		return by_udp(request, arg);
	return homa_pl_error(s, -EINVAL, "ioctl: not known to Homa sockets");
}
