// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * IPPROTO_HOMA sockets of AF_INET and AF_INET6: their life. A socket has an engine
 * socket and a port from the start. When it ends - by shutdown() or the last
 * close() - its RPCs end too, some at a time with bottom halves on between; its
 * memory goes when the engine has let go of the last of them, which waits for
 * packets that other CPUs are working on, so for microseconds.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/slab.h>
#include <net/inet_common.h>
#include <net/ipv6.h>
#include <net/protocol.h>

#include "homa_sockets.h"

#define HOMA_CLOSE_BUDGET 64	/* RPCs ended in a turn */
#define HOMA_CLOSE_TICKS (10 * HZ)

int homa_error_text(struct homa_ksock *hsk, int err, const char *text)
{
	strscpy(hsk->error, text, sizeof(hsk->error));
	return err;
}

/* ---- begin ---- */

static u16 homa_encap_new(const struct homa_settings *settings)
{
	if (READ_ONCE(settings->hijack_tcp))
		return HOMA_ENCAP_TCP;
	return READ_ONCE(settings->hijack_udp) ? HOMA_UDP_PORT : 0;
}

/* The engine looks sockets up without a lock: memory stays for a grace period. */
struct homa_sock_mem {
	struct rcu_head rcu;
	u8 sock[] __aligned(sizeof(u64));
};

static void homa_sock_mem_free(struct homa_sock *engine_sock)
{
	struct homa_sock_mem *mem =
		container_of((void *)engine_sock, struct homa_sock_mem, sock);

	kfree_rcu(mem, rcu);
}

static int homa_engine_open(struct homa_ksock *hsk)
{
	struct homa_sock *engine_sock;
	struct homa_sock_mem *mem;
	struct homa_cpu *cpu;
	int err = -ENETDOWN;

	mem = kzalloc(sizeof(*mem) + homa_sock_size(&homa_limits),
		      GFP_KERNEL_ACCOUNT);
	if (!mem)
		return -ENOMEM;
	engine_sock = (struct homa_sock *)mem->sock;
	*(struct homa_ksock **)homa_sock_priv(engine_sock) = hsk;
	cpu = homa_enter_wait(hsk->hnet);
	if (cpu) {
		err = homa_sock_open(&cpu->ctx, engine_sock);
		/* It is no server yet, so that it has no RPCs. */
		if (!err)
			homa_sock_charge(engine_sock, homa_user_owner(hsk->user));
		homa_leave(cpu);
	}
	if (err)
		kfree(mem);
	else
		hsk->engine_sock = engine_sock;
	return err;
}

static int homa_init_sock(struct sock *sk)
{
	struct homa_net *hnet = homa_net(sock_net(sk));
	struct homa_ksock *hsk = homa_ksk(sk);
	int err;

	hsk->hnet = hnet;
	spin_lock_init(&hsk->lock);
	__skb_queue_head_init(&hsk->messages);
	INIT_LIST_HEAD(&hsk->ready);
	INIT_LIST_HEAD(&hsk->partial);
	INIT_LIST_HEAD(&hsk->privates);
	INIT_LIST_HEAD(&hsk->waiters);
	INIT_LIST_HEAD(&hsk->private_waiters);
	atomic64_set(&hsk->tx_bytes, 0);
	hsk->encap = homa_encap_new(&hnet->settings);
	hsk->destruct = sk->sk_destruct;
	sk->sk_destruct = homa_pay_end;
	sk->sk_write_space = homa_write_space;
	/* Packets on their way look at it without a reference. */
	sock_set_flag(sk, SOCK_RCU_FREE);
	/* Room to send is tx_bytes, not what packets of ours are on their way. */
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	err = homa_net_start(hnet);
	if (!err)
		err = homa_user_get(hsk);
	if (err)
		return err;
	err = homa_engine_open(hsk);
	if (err) {
		homa_user_put(hsk);
		return err;
	}
	spin_lock_bh(&hnet->sock_lock);
	list_add_tail_rcu(&hsk->all, &hnet->socks);
	spin_unlock_bh(&hnet->sock_lock);
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	local_bh_enable();
	return 0;
}

/* ---- end ---- */

/* Nothing begins from now on, and nobody waits any more. */
static void homa_stop(struct homa_ksock *hsk)
{
	struct sock *sk = &hsk->inet.sk;

	spin_lock_bh(&hsk->lock);
	WRITE_ONCE(hsk->shutdown, true);
	spin_unlock_bh(&hsk->lock);
	homa_inbox_wake_all(hsk);
	local_bh_disable();
	sk->sk_data_ready(sk);
	rcu_read_lock();
	if (skwq_has_sleeper(rcu_dereference(sk->sk_wq)))
		wake_up_interruptible_all(&rcu_dereference(sk->sk_wq)->wait);
	rcu_read_unlock();
	local_bh_enable();
}

/* A turn of ending RPCs. 0: all are gone; -EAGAIN: somebody has some; 1: go on. */
static int homa_end_some(struct homa_ksock *hsk)
{
	struct homa_cpu *cpu = homa_enter_wait(hsk->hnet);
	bool more, idle;
	int err;

	more = homa_given_purge(hsk);
	more |= homa_inbox_purge(cpu, hsk);
	err = homa_sock_close(&cpu->ctx, hsk->engine_sock, HOMA_CLOSE_BUDGET);
	idle = homa_sock_idle(hsk->engine_sock);
	homa_leave(cpu);
	cond_resched();
	return more || !idle ? 1 : err;
}

static void homa_destroy_sock(struct sock *sk)
{
	struct homa_ksock *hsk = homa_ksk(sk);
	unsigned long until = jiffies + HOMA_CLOSE_TICKS;
	struct homa_sock *engine_sock;
	int rc;

	if (!hsk->engine_sock)
		return;
	spin_lock_bh(&hsk->hnet->sock_lock);
	list_del_rcu(&hsk->all);
	spin_unlock_bh(&hsk->hnet->sock_lock);
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	local_bh_enable();
	homa_stop(hsk);
	while ((rc = homa_end_some(hsk))) {
		if (rc < 0)
			schedule_timeout_uninterruptible(1);
		if (WARN_ONCE(time_after(jiffies, until),
			      "homa: a socket's RPCs do not end; its memory is left\n"))
			return;
	}
	if (hsk->moved)
		atomic_dec(&hsk->hnet->moved);
	homa_user_put(hsk);
	engine_sock = hsk->engine_sock;
	WRITE_ONCE(hsk->engine_sock, NULL);
	homa_sock_mem_free(engine_sock);
	homa_pool_delete(hsk->pool);
	hsk->pool = NULL;
	if (hsk->mm)
		mmdrop(hsk->mm);
}

static void homa_close_sock(struct sock *sk, long timeout)
{
	sk_common_release(sk);
}

/* sk_common_release() wants one; the engine's table has our ports. */
static void homa_unhash(struct sock *sk)
{
}

static int homa_shutdown(struct socket *sock, int how)
{
	struct homa_ksock *hsk = homa_ksk(sock->sk);

	/* Both directions end, whatever @how says, as in the existing module. */
	lock_sock(sock->sk);
	if (!hsk->shutdown) {
		homa_stop(hsk);
		/* Who still reads one lets go of it soon. */
		while (homa_end_some(hsk) > 0)
			;
	}
	release_sock(sock->sk);
	return 0;
}

/* ---- calls ---- */

static __poll_t homa_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct homa_ksock *hsk = homa_ksk(sock->sk);
	__poll_t mask = 0;

	sock_poll_wait(file, sock, wait);
	if (READ_ONCE(hsk->shutdown))
		return EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM;
	if (!skb_queue_empty_lockless(&hsk->messages) ||
	    !list_empty_careful(&hsk->ready) ||
	    READ_ONCE(hsk->partial_bytes) >= HOMA_POLL_BYTES)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!homa_sock_room(hsk)) {
		WRITE_ONCE(hsk->tx_full, true);
		smp_mb();
	}
	if (homa_sock_room(hsk))
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}

static int homa_send_op(struct socket *sock, struct msghdr *msg, size_t len)
{
	return homa_sendmsg(sock->sk, msg, len);
}

static int homa_recv_op(struct socket *sock, struct msghdr *msg, size_t len,
			int flags)
{
	return homa_recvmsg_common(sock->sk, msg, len, flags);
}

static int homa_ioctl_op(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	int err = homa_ioctl_common(sock->sk, cmd, (void __user *)arg);

	if (err != -ENOIOCTLCMD)
		return err;
	/* Interfaces, addresses, routes: every socket answers these. */
	if (_IOC_TYPE(cmd) != SOCK_IOC_TYPE)
		return homa_error_text(homa_ksk(sock->sk), -EINVAL,
				       "ioctl: not known to Homa sockets");
	return sock->sk->sk_family == AF_INET ? inet_ioctl(sock, cmd, arg) :
						inet6_ioctl(sock, cmd, arg);
}

static const struct proto_ops homa_ops = {
	.family = PF_INET,
	.owner = THIS_MODULE,
	.release = inet_release,
	.bind = homa_bind,
	.connect = homa_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = homa_getname,
	.poll = homa_poll,
	.ioctl = homa_ioctl_op,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = homa_shutdown,
	.setsockopt = homa_setsockopt,
	.getsockopt = homa_getsockopt,
	.sendmsg = homa_send_op,
	.recvmsg = homa_recv_op,
	.mmap = sock_no_mmap,
};

static const struct proto_ops homa6_ops = {
	.family = PF_INET6,
	.owner = THIS_MODULE,
	.release = inet6_release,
	.bind = homa_bind,
	.connect = homa_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = homa_getname,
	.poll = homa_poll,
	.ioctl = homa_ioctl_op,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = homa_shutdown,
	.setsockopt = homa_setsockopt,
	.getsockopt = homa_getsockopt,
	.sendmsg = homa_send_op,
	.recvmsg = homa_recv_op,
	.mmap = sock_no_mmap,
};

/*
 * Memory of all Homa sockets, in pages, and a limit for it: as for UDP, a part of the
 * machine's. Memory cgroups have limits of their own.
 */
static atomic_long_t homa_memory;
static DEFINE_PER_CPU(int, homa_memory_ahead);
static long homa_memory_limits[3];
static int homa_memory_least[3] = { PAGE_SIZE, PAGE_SIZE, PAGE_SIZE };

static void homa_memory_limit(void)
{
	long pages = (long)max(nr_free_buffer_pages() / 8, 128ul);

	homa_memory_limits[0] = pages / 4 * 3;
	homa_memory_limits[1] = pages;
	homa_memory_limits[2] = pages / 4 * 6;
}

#define HOMA_MEMORY_ACCOUNT				\
	.memory_allocated = &homa_memory,		\
	.per_cpu_fw_alloc = &homa_memory_ahead,		\
	.sysctl_mem = homa_memory_limits,		\
	.sysctl_rmem = homa_memory_least,		\
	.sysctl_wmem = homa_memory_least,

static struct proto homa_prot = {
	.name = "HOMA",
	.owner = THIS_MODULE,
	.init = homa_init_sock,
	.destroy = homa_destroy_sock,
	.close = homa_close_sock,
	.unhash = homa_unhash,
	.obj_size = sizeof(struct homa_ksock),
	HOMA_MEMORY_ACCOUNT
	.no_autobind = true,
};

static struct proto homa6_prot = {
	.name = "HOMAv6",
	.owner = THIS_MODULE,
	.init = homa_init_sock,
	.destroy = homa_destroy_sock,
	.close = homa_close_sock,
	.unhash = homa_unhash,
	.obj_size = sizeof(struct homa6_ksock),
	HOMA_PROTO_INET6(struct homa6_ksock, inet6)
	HOMA_MEMORY_ACCOUNT
	.no_autobind = true,
};

static struct inet_protosw homa_protosw = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homa_prot,
	.ops = &homa_ops,
	.flags = INET_PROTOSW_REUSE,
};

static struct inet_protosw homa6_protosw = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homa6_prot,
	.ops = &homa6_ops,
	.flags = INET_PROTOSW_REUSE,
};

int homa_sockets_init(void)
{
	int err;

	/* Kernels before 6.6 look for it at the end. */
	BUILD_BUG_ON(offsetof(struct homa6_ksock, inet6) +
			     sizeof(struct ipv6_pinfo) !=
		     sizeof(struct homa6_ksock));
	homa_memory_limit();
	err = proto_register(&homa_prot, 1);
	if (err)
		return err;
	err = proto_register(&homa6_prot, 1);
	if (err)
		goto v4;
	err = inet6_register_protosw(&homa6_protosw);
	if (err)
		goto v6;
	inet_register_protosw(&homa_protosw);
	return 0;
v6:
	proto_unregister(&homa6_prot);
v4:
	proto_unregister(&homa_prot);
	return err;
}

void homa_sockets_exit(void)
{
	inet_unregister_protosw(&homa_protosw);
	inet6_unregister_protosw(&homa6_protosw);
	proto_unregister(&homa6_prot);
	proto_unregister(&homa_prot);
}

/* socket() loads the module: IPPROTO_HOMA and SOCK_DGRAM as numbers. */
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET, 146, 2);
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET6, 146, 2);
