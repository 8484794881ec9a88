/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where Linux 6.1, 6.12 and 7.2 differ. Nowhere else in the module stands a
 * version number.
 */
#ifndef HOMA_COMPAT_H
#define HOMA_COMPAT_H

#include <linux/version.h>
#include <linux/hrtimer.h>
#include <linux/inet_diag.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>

/* 6.13: hrtimer_setup() sets the function; hrtimer_init() is removed later. */
static inline void homak_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*fn)(struct hrtimer *),
				       enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = fn;
#endif
}

/* 6.11: handlers of sysctls may not change the table. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define HOMAK_CTL_CONST const
#else
#define HOMAK_CTL_CONST
#endif

/* 6.6: registering a table needs its size; before, an entry of zeros ends it. */
static inline struct ctl_table_header *
homak_register_sysctl(struct net *net, const char *path,
		      struct ctl_table *table, size_t count)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return register_net_sysctl_sz(net, path, table, count);
#else
	return register_net_sysctl(net, path, table);
#endif
}

/* 6.10: a tracepoint's string has its source stored already. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define HOMAK_ASSIGN_STR(dst, src) __assign_str(dst)
#else
#define HOMAK_ASSIGN_STR(dst, src) __assign_str(dst, src)
#endif

/* 6.19: addresses of any length have a type of their own. */
static inline int homak_kernel_bind(struct socket *sock, void *addr, int len)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	return kernel_bind(sock, (struct sockaddr_unsized *)addr, len);
#else
	return kernel_bind(sock, (struct sockaddr *)addr, len);
#endif
}

/* 6.6: the protocol says where a socket's IPv6 part is; before, it is at the end. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define HOMAK_PROTO_INET6(type, member) \
	.ipv6_pinfo_offset = offsetof(type, member),
#else
#define HOMAK_PROTO_INET6(type, member)
#endif

/* 6.19: bind() gets an address whose size the compiler does not guess. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
typedef struct sockaddr_unsized homak_bind_addr;
#else
typedef struct sockaddr homak_bind_addr;
#endif

/* 6.7: packets that are asked for and those that leave are counted apart. */
static inline void homak_ip_count_out(struct net *net, u32 bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	IP_INC_STATS(net, IPSTATS_MIB_OUTREQUESTS);
#endif
	IP_UPD_PO_STATS(net, IPSTATS_MIB_OUT, bytes);
}

static inline void homak_ip6_count_out(struct net *net, struct inet6_dev *idev,
				       u32 bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	IP6_INC_STATS(net, idev, IPSTATS_MIB_OUTREQUESTS);
#endif
	IP6_UPD_PO_STATS(net, idev, IPSTATS_MIB_OUT, bytes);
}

/* 6.4: memory of a program in one piece is described without an array. Returns where the next @n
 * bytes are, the last of @i, if they are in one piece of a program's memory; else NULL. */
static inline const void __user *homak_iter_last(const struct iov_iter *i,
						 size_t n)
{
	if (i->count != n)
		return NULL;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	if (iter_is_ubuf(i))
		return i->ubuf + i->iov_offset;
	if (iter_is_iovec(i) && iter_iov_len(i) >= n)
		return iter_iov_addr(i);
#else
	if (iter_is_iovec(i) && i->iov->iov_len - i->iov_offset >= n)
		return i->iov->iov_base + i->iov_offset;
#endif
	return NULL;
}

/* 6.10: arguments of accept() are in a struct. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define HOMAK_ACCEPT_ARGS \
	struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg
#define HOMAK_ACCEPT_FLAGS (arg->flags)
#else
#define HOMAK_ACCEPT_ARGS \
	struct socket *sock, struct socket *newsock, int flags, bool kern
#define HOMAK_ACCEPT_FLAGS flags
#endif

/* 6.9: the kernel holds the module while its handler is in use; before, it has a lock. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define HOMAK_INET_DIAG_OWNER .owner = THIS_MODULE,
#else
#define HOMAK_INET_DIAG_OWNER
#endif

/* 6.18: a dump's program stands with what it needs to know of sockets. */
static inline int homak_inet_diag_filter(const struct inet_diag_dump_data *data,
					 struct sock *sk)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return inet_diag_bc_sk(data, sk);
#else
	return inet_diag_bc_sk(data->inet_diag_nla_bc, sk);
#endif
}

/* 6.10: a device that exists for its NAPI contexts alone is allocated as one. */
static inline struct net_device *homak_dummy_netdev_alloc(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	return alloc_netdev_dummy(0);
#else
	struct net_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (dev)
		init_dummy_netdev(dev);
	return dev;
#endif
}

static inline void homak_dummy_netdev_free(struct net_device *dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	free_netdev(dev);
#else
	kfree(dev);
#endif
}

/*
 * copy_from_user() without the question whether the kernel's memory is a whole object, for memory
 * that the caller has just made. Since 6.12 some architectures have it under another name.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0) && \
	defined(INLINE_COPY_FROM_USER)
#define homak_copy_from_user _inline_copy_from_user
#else
#define homak_copy_from_user _copy_from_user
#endif

/*
 * Does a task that turns bottom halves off have the processor's data for itself? Without
 * PREEMPT_RT it does. With it a task can be stopped anywhere, and since 6.18 nothing keeps
 * the next one of the same processor from turning them off, too. From 6.11 on there are
 * locks for such data, homa_own.h.
 */
#if defined(CONFIG_PREEMPT_RT) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define HOMAK_OWN_LOCK 1
#else
#define HOMAK_OWN_LOCK 0
#endif

#endif
