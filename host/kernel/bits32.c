// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * 32-bit programs on 64-bit kernels. Most of the API has the same layout for them: only struct
 * homa_info and struct homa_rcvbuf_args have a pointer or a size_t, and are translated here.
 * The arguments of sendmsg() and recvmsg() and struct homa_rpc_info have fields of fixed sizes,
 * so they need nothing. Programs for x32, which 64-bit kernels hardly have, are not served.
 */
#include <linux/compat.h>
#include <linux/uaccess.h>

#include "homa_bits32.h"
#include "homa_sockets.h"

#ifdef CONFIG_COMPAT

/* struct homak_info_compat - struct homa_info of a 32-bit program, field by field */
struct homak_info_compat {
	/* Where records go. */
	compat_uptr_t rpc_info;
	/* How many bytes may be written there. */
	compat_size_t rpc_info_length;
	/* Free bytes of the receive region. */
	compat_u64 bpool_avail_bytes;
	/* The socket's port. */
	__u32 port;
	/* Number of open RPCs. */
	__u32 num_rpcs;
	/* A sentence on the last error. */
	char error_msg[HOMA_ERROR_MSG_SIZE];
};

/* struct homak_rcvbuf_compat - struct homa_rcvbuf_args of a 32-bit program */
struct homak_rcvbuf_compat {
	/* Where the region begins. */
	compat_u64 start;
	/* Its bytes. */
	compat_size_t length;
};

#ifdef CONFIG_X86_64
static_assert(sizeof(struct homak_info_compat) == 124 &&
	      sizeof(struct homak_rcvbuf_compat) == 12);
#endif

#define HOMAK_INFO_COMPAT _IOWR('h', 0x90, struct homak_info_compat)
#define HOMAK_INFO_COMPAT_2025 _IOWR('h', 1, struct homak_info_compat)

static int homak_info_compat(struct homak_sock *hsk,
			     struct homak_info_compat __user *arg)
{
	struct homak_info_compat compat;
	struct homa_info info = { 0 };
	int err;

	if (copy_from_user(&compat, arg, sizeof(compat)))
		return -EFAULT;
	info.rpc_info =
		(__force struct homa_rpc_info *)compat_ptr(compat.rpc_info);
	info.rpc_info_length = compat.rpc_info_length;
	err = homak_sock_info(hsk, &info);
	if (err)
		return err;
	compat.bpool_avail_bytes = info.bpool_avail_bytes;
	compat.port = info.port;
	compat.num_rpcs = info.num_rpcs;
	memcpy(compat.error_msg, info.error_msg, sizeof(compat.error_msg));
	return copy_to_user(arg, &compat, sizeof(compat)) ? -EFAULT : 0;
}

int homak_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	void __user *to = compat_ptr((compat_uptr_t)arg);

	if (cmd == HOMAK_INFO_COMPAT || cmd == HOMAK_INFO_COMPAT_2025)
		return homak_info_compat(homak_sk(sock->sk), to);
	/* The kernel knows how 32-bit programs ask what every socket answers. */
	return homak_ioctl_common(sock->sk, cmd, to);
}

bool homak_compat_region(sockptr_t value, unsigned int len,
			 struct homa_rcvbuf_args *args, int *err)
{
	struct homak_rcvbuf_compat compat;

	if (!in_compat_syscall() || len != sizeof(compat))
		return false;
	*err = copy_from_sockptr(&compat, value, sizeof(compat)) ? -EFAULT : 0;
	if (!*err) {
		args->start = compat.start;
		args->length = compat.length;
	}
	return true;
}

int homak_compat_region_size(struct homa_rcvbuf_args *args)
{
	struct homak_rcvbuf_compat compat = { 0 };

	if (!in_compat_syscall())
		return sizeof(*args);
	compat.start = args->start;
	compat.length = (compat_size_t)args->length;
	memset(args, 0, sizeof(*args));
	memcpy(args, &compat, sizeof(compat));
	return sizeof(compat);
}

#endif
