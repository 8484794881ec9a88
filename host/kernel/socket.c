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

#include "homa_bind.h"
#include "homa_bits32.h"
#include "homa_sockets.h"

#define HOMAK_CLOSE_BUDGET 64 /* RPCs that one turn ends */
/* The time for which other threads may keep an RPC of a socket that ends, in jiffies. */
#define HOMAK_CLOSE_TICKS (10 * HZ)

/* ---- begin ---- */

static u16 homak_encap_new(const struct homak_settings *settings)
{
	if (READ_ONCE(settings->hijack_tcp))
		return HOMAK_DISGUISE_TCP;
	return READ_ONCE(settings->hijack_udp) ? HOMA_UDP_PORT : 0;
}

/* struct homak_sock_mem - the engine's socket; as the engine looks sockets up without a
 * lock, the memory stays for a grace period */
struct homak_sock_mem {
	/* By it the memory is freed after a grace period. */
	struct rcu_head rcu;
	/* The engine's socket, homa_sock_size() bytes. */
	u8 sock[] __aligned(sizeof(u64));
};

static void homak_sock_mem_free(struct homa_sock *engine_sock)
{
	struct homak_sock_mem *mem =
		container_of((void *)engine_sock, struct homak_sock_mem, sock);

	kfree_rcu(mem, rcu);
}

static int homak_engine_open(struct homak_sock *hsk)
{
	struct homa_sock *engine_sock;
	struct homak_sock_mem *mem;
	struct homak_cpu *cpu;
	int err = -ENETDOWN;

	mem = kzalloc(sizeof(*mem) + homa_sock_size(&homak_limits),
		      GFP_KERNEL_ACCOUNT);
	if (!mem)
		return -ENOMEM;
	engine_sock = (struct homa_sock *)mem->sock;
	*(struct homak_sock **)homa_sock_priv(engine_sock) = hsk;
	cpu = homak_enter_wait(hsk->hnet);
	if (cpu) {
		err = homa_sock_open(&cpu->ctx, engine_sock);
		/* The socket is no server yet, so it has no RPCs. */
		if (!err)
			homa_sock_charge(engine_sock,
					 homak_user_owner(hsk->user));
		homak_leave(cpu);
	}
	if (err)
		kfree(mem);
	else
		hsk->engine_sock = engine_sock;
	return err;
}

static int homak_init_sock(struct sock *sk)
{
	struct homak_net *hnet = homak_net(sock_net(sk));
	struct homak_sock *hsk = homak_sk(sk);
	int err;

	hsk->hnet = hnet;
	spin_lock_init(&hsk->lock);
	__skb_queue_head_init(&hsk->messages);
	INIT_LIST_HEAD(&hsk->ready);
	INIT_LIST_HEAD(&hsk->partial);
	INIT_LIST_HEAD(&hsk->privates);
	INIT_HLIST_HEAD(&hsk->waiters);
	INIT_HLIST_HEAD(&hsk->private_waiters);
	atomic64_set(&hsk->tx_bytes, 0);
	atomic64_set(&hsk->ring_bytes, 0);
	hsk->encap = homak_encap_new(&hnet->settings);
	hsk->destruct = sk->sk_destruct;
	sk->sk_destruct = homak_pay_end;
	sk->sk_write_space = homak_write_space;
	timer_setup(&sk->sk_timer, homak_short_over, 0);
	hsk->only_v6 = sk->sk_ipv6only;
	/* Packets on their way use the socket without a reference. */
	sock_set_flag(sk, SOCK_RCU_FREE);
	/* Room to send follows from tx_bytes, not from packets of ours that are on their
	 * way. */
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	err = homak_net_start(hnet);
	if (!err)
		err = homak_user_get(hsk);
	if (err)
		return err;
	err = homak_engine_open(hsk);
	if (err) {
		homak_user_put(hsk);
		return err;
	}
	homak_port_note(hsk, homa_sock_port(hsk->engine_sock));
	spin_lock_bh(&hnet->sock_lock);
	list_add_tail_rcu(&hsk->all, &hnet->socks);
	spin_unlock_bh(&hnet->sock_lock);
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	local_bh_enable();
	return 0;
}

/* ---- end ---- */

/* Ends what a socket does: no call begins from now on, and no thread waits any more. */
static void homak_stop(struct homak_sock *hsk)
{
	struct sock *sk = &hsk->inet.sk;

	spin_lock_bh(&hsk->lock);
	WRITE_ONCE(hsk->shutdown, true);
	spin_unlock_bh(&hsk->lock);
	homak_inbox_wake_all(hsk);
	local_bh_disable();
	sk->sk_data_ready(sk);
	rcu_read_lock();
	if (skwq_has_sleeper(rcu_dereference(sk->sk_wq)))
		wake_up_interruptible_all(&rcu_dereference(sk->sk_wq)->wait);
	rcu_read_unlock();
	local_bh_enable();
}

/* Ends some RPCs. Returns 0 if all are gone, -EAGAIN if other threads still hold some, 1 if
 * there are more. */
static int homak_end_some(struct homak_sock *hsk)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);
	bool more, idle;
	int err;

	more = homak_whole_purge(hsk);
	more |= homak_inbox_purge(cpu, hsk);
	err = homa_sock_close(&cpu->ctx, hsk->engine_sock, HOMAK_CLOSE_BUDGET);
	idle = homa_sock_idle(hsk->engine_sock);
	homak_leave(cpu);
	cond_resched();
	return more || !idle ? 1 : err;
}

static void homak_destroy_sock(struct sock *sk)
{
	struct homak_sock *hsk = homak_sk(sk);
	unsigned long until = jiffies + HOMAK_CLOSE_TICKS;
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
	homak_stop(hsk);
	/* Nobody sends any more, so that it is not started again. */
	sk_stop_timer_sync(sk, &sk->sk_timer);
	while ((rc = homak_end_some(hsk))) {
		/* There may be many RPCs, and little time of a processor for this thread. */
		if (rc > 0) {
			until = jiffies + HOMAK_CLOSE_TICKS;
			continue;
		}
		schedule_timeout_uninterruptible(1);
		if (WARN_ONCE(time_after(jiffies, until),
			      "homa: a socket's RPCs do not end; its memory is left\n")) {
			/* Who has them will look there. Its namespace and the module stay, too. */
			sock_hold(sk);
			return;
		}
	}
	if (hsk->moved)
		atomic_dec(&hsk->hnet->moved);
	homak_user_put(hsk);
	engine_sock = hsk->engine_sock;
	WRITE_ONCE(hsk->engine_sock, NULL);
	homak_sock_mem_free(engine_sock);
	homak_pool_delete(hsk->pool);
	hsk->pool = NULL;
	homak_disconnect(hsk);
	if (hsk->mm)
		mmdrop(hsk->mm);
}

static void homak_close_sock(struct sock *sk, long timeout)
{
	sk_common_release(sk);
}

/* sk_common_release() calls this, but the ports are in the engine's table. */
static void homak_unhash(struct sock *sk)
{
}

static int homak_shutdown(struct socket *sock, int how)
{
	struct homak_sock *hsk = homak_sk(sock->sk);

	/* Both directions end, whatever @how says, as in the existing module. */
	lock_sock(sock->sk);
	if (!hsk->shutdown) {
		homak_stop(hsk);
		/* A thread that still reads an RPC releases it soon. */
		while (homak_end_some(hsk) > 0)
			;
	}
	release_sock(sock->sk);
	return 0;
}

/* ---- calls ---- */

static __poll_t homak_poll(struct file *file, struct socket *sock,
			   poll_table *wait)
{
	struct homak_sock *hsk = homak_sk(sock->sk);
	__poll_t mask = 0;

	sock_poll_wait(file, sock, wait);
	if (READ_ONCE(hsk->shutdown))
		return EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM;
	if (!skb_queue_empty_lockless(&hsk->messages) ||
	    !list_empty_careful(&hsk->ready) ||
	    READ_ONCE(hsk->partial_bytes) >= HOMAK_POLL_BYTES)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!homak_sock_room(hsk)) {
		WRITE_ONCE(hsk->tx_full, true);
		smp_mb();
	}
	if (homak_sock_room(hsk) && !READ_ONCE(hsk->tx_short))
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}

static int homak_send_op(struct socket *sock, struct msghdr *msg, size_t len)
{
	return homak_sendmsg(sock->sk, msg, len);
}

static int homak_recv_op(struct socket *sock, struct msghdr *msg, size_t len,
			 int flags)
{
	return homak_recvmsg_common(sock->sk, msg, len, flags);
}

static int homak_ioctl_op(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	int err = homak_ioctl_common(sock->sk, cmd, (void __user *)arg);

	if (err != -ENOIOCTLCMD)
		return err;
	/* Requests about interfaces, addresses and routes are answered by every socket. */
	if (_IOC_TYPE(cmd) != SOCK_IOC_TYPE)
		return homak_error_text(homak_sk(sock->sk), -EINVAL,
					"ioctl: not known to Homa sockets");
	return sock->sk->sk_family == AF_INET ? inet_ioctl(sock, cmd, arg) :
						inet6_ioctl(sock, cmd, arg);
}

static const struct proto_ops homak_ops = {
	.family = PF_INET,
	.owner = THIS_MODULE,
	.release = inet_release,
	.bind = homak_bind,
	.connect = homak_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = homak_getname,
	.poll = homak_poll,
	.ioctl = homak_ioctl_op,
#ifdef CONFIG_COMPAT
	.compat_ioctl = homak_compat_ioctl,
#endif
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = homak_shutdown,
	.setsockopt = homak_setsockopt,
	.getsockopt = homak_getsockopt,
	.sendmsg = homak_send_op,
	.recvmsg = homak_recv_op,
	.mmap = sock_no_mmap,
};

static const struct proto_ops homak6_ops = {
	.family = PF_INET6,
	.owner = THIS_MODULE,
	.release = inet6_release,
	.bind = homak_bind,
	.connect = homak_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = homak_getname,
	.poll = homak_poll,
	.ioctl = homak_ioctl_op,
#ifdef CONFIG_COMPAT
	.compat_ioctl = homak_compat_ioctl,
#endif
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = homak_shutdown,
	.setsockopt = homak_setsockopt,
	.getsockopt = homak_getsockopt,
	.sendmsg = homak_send_op,
	.recvmsg = homak_recv_op,
	.mmap = sock_no_mmap,
};

/*
 * Memory of all Homa sockets, in pages, and its limit, which is a part of the machine's
 * memory as for UDP. Memory cgroups have limits of their own.
 */
static atomic_long_t homak_memory;
static DEFINE_PER_CPU(int, homak_memory_ahead);
static long homak_memory_limits[3];
static int homak_memory_least[3] = { PAGE_SIZE, PAGE_SIZE, PAGE_SIZE };

static void homak_memory_limit(void)
{
	long pages = (long)max(nr_free_buffer_pages() / 8, 128ul);

	homak_memory_limits[0] = pages / 4 * 3;
	homak_memory_limits[1] = pages;
	homak_memory_limits[2] = pages / 4 * 6;
}

#define HOMAK_MEMORY_ACCOUNT                                                  \
	.memory_allocated = &homak_memory,                                    \
	.per_cpu_fw_alloc = &homak_memory_ahead,                              \
	.sysctl_mem = homak_memory_limits, .sysctl_rmem = homak_memory_least, \
	.sysctl_wmem = homak_memory_least,

static struct proto homak_prot = {
	.name = "HOMA",
	.owner = THIS_MODULE,
	.init = homak_init_sock,
	.destroy = homak_destroy_sock,
	.close = homak_close_sock,
	.unhash = homak_unhash,
	.rehash = homak_rehash,
	.obj_size = sizeof(struct homak_sock),
	HOMAK_MEMORY_ACCOUNT.no_autobind = true,
};

static struct proto homak6_prot = {
	.name = "HOMAv6",
	.owner = THIS_MODULE,
	.init = homak_init_sock,
	.destroy = homak_destroy_sock,
	.close = homak_close_sock,
	.unhash = homak_unhash,
	.rehash = homak_rehash,
	.obj_size = sizeof(struct homak6_sock),
	HOMAK_PROTO_INET6(struct homak6_sock, inet6)
		HOMAK_MEMORY_ACCOUNT.no_autobind = true,
};

static struct inet_protosw homak_protosw = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homak_prot,
	.ops = &homak_ops,
};

static struct inet_protosw homak6_protosw = {
	.type = SOCK_DGRAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homak6_prot,
	.ops = &homak6_ops,
};

int homak_sockets_init(void)
{
	int err;

	/* Kernels before 6.6 expect it at the end. */
	BUILD_BUG_ON(offsetof(struct homak6_sock, inet6) +
			     sizeof(struct ipv6_pinfo) !=
		     sizeof(struct homak6_sock));
	homak_memory_limit();
	homak_wait_init();
	err = proto_register(&homak_prot, 1);
	if (err)
		return err;
	err = proto_register(&homak6_prot, 1);
	if (err)
		goto v4;
	err = inet6_register_protosw(&homak6_protosw);
	if (err)
		goto v6;
	inet_register_protosw(&homak_protosw);
	return 0;
v6:
	proto_unregister(&homak6_prot);
v4:
	proto_unregister(&homak_prot);
	return err;
}

void homak_sockets_exit(void)
{
	inet_unregister_protosw(&homak_protosw);
	inet6_unregister_protosw(&homak6_protosw);
	proto_unregister(&homak6_prot);
	proto_unregister(&homak_prot);
}

/* socket() loads the module by these names, with IPPROTO_HOMA and SOCK_DGRAM as numbers. */
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET, 146, 2);
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET6, 146, 2);
