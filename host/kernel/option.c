// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Socket options. SO_HOMA_RCVBUF gives the socket a region of the application's
 * memory where received messages will be. Nothing of it is pinned: a reader
 * copies there as the thread it is, so pages may be swapped or unmapped, and what
 * cannot be written is that application's -EFAULT. Only threads of the address space
 * that the region was given from may read: in another process, which got the socket by
 * fork() or over a Unix socket, the same addresses are other memory. The checks here are
 * for programs that have it wrong, not for safety.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <net/ipv6.h>

#include "homa_bind.h"
#include "homa_bits32.h"
#include "homa_sockets.h"

/* the least bytes of a region; a page for each CPU comes on top */
#define HOMAK_REGION_MIN 2000000u
#define HOMAK_REGION_MAX ((u64)4 << 30)

/* ---- the receive region ---- */

/* Can all of this memory be written? */
static bool homak_region_mapped(unsigned long start, unsigned long length)
{
	unsigned long at = start, end = start + length;
	struct mm_struct *mm = current->mm;
	bool ok = true;

	if (!access_ok((void __user *)start, length))
		return false;
	if (mmap_read_lock_killable(mm))
		return false;
	while (ok && at < end) {
		struct vm_area_struct *vma = find_vma(mm, at);

		ok = vma && vma->vm_start <= at && (vma->vm_flags & VM_WRITE);
		if (ok)
			at = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ok;
}

static int homak_region_check(struct homak_sock *hsk,
			      const struct homa_rcvbuf_args *args)
{
	u64 min =
		(u64)HOMAK_REGION_MIN + num_online_cpus() * (u64)HOMA_BPAGE_SIZE;

	if (hsk->pool)
		return homak_error_text(
			hsk, -EINVAL,
			"SO_HOMA_RCVBUF: the socket has a receive region already");
	if (args->start & ~PAGE_MASK)
		return homak_error_text(
			hsk, -EINVAL,
			"SO_HOMA_RCVBUF: the region does not begin on a page boundary");
	if (args->length < min || args->length > HOMAK_REGION_MAX)
		return homak_error_text(
			hsk, -EINVAL,
			"SO_HOMA_RCVBUF: a region has 2,000,000 bytes and 64 KiB for each CPU, at most 4 GiB");
	/* On 32-bit processors an address has fewer bits than the field. */
	if (!args->start || args->start != (unsigned long)args->start ||
	    !homak_region_mapped(args->start, args->length))
		return homak_error_text(
			hsk, -EFAULT,
			"SO_HOMA_RCVBUF: there is no memory at that address");
	return 0;
}

/* struct homak_pool_mem - the pool; packets on their way use it without a reference, as
 * they do the socket */
struct homak_pool_mem {
	/* By it the memory is freed after a grace period. */
	struct rcu_head rcu;
	/* The engine's pool, homa_pool_size() bytes. */
	u8 pool[] __aligned(sizeof(u64));
};

static void *homak_pool_new(u32 pages)
{
	struct homak_pool_mem *mem =
		kvzalloc(sizeof(*mem) + homa_pool_size(pages),
			 GFP_KERNEL_ACCOUNT);

	return mem ? mem->pool : NULL;
}

void homak_pool_delete(void *pool)
{
	struct homak_pool_mem *mem =
		container_of(pool, struct homak_pool_mem, pool);

	if (pool)
		kvfree_rcu(mem, rcu);
}

int homak_region_give(struct homak_sock *hsk, unsigned long start, u32 pages)
{
	struct homak_cpu *cpu;
	void *pool;
	int err;

	pool = homak_pool_new(pages);
	if (!pool)
		return -ENOMEM;
	/* The place of the region is set before the engine puts anything there. */
	hsk->region = start;
	hsk->region_size = (size_t)pages << HOMA_BPAGE_SHIFT;
	hsk->region_pages = pages;
	cpu = homak_enter_wait(hsk->hnet);
	if (!cpu) {
		homak_pool_delete(pool);
		return -ENETDOWN;
	}
	err = homa_sock_set_pool(&cpu->ctx, hsk->engine_sock, pool, pages);
	homak_leave(cpu);
	if (err) {
		homak_pool_delete(pool);
		return err;
	}
	hsk->pool = pool;
	homak_room_open(hsk);
	return 0;
}

static int homak_region_set(struct homak_sock *hsk,
			    const struct homa_rcvbuf_args *args)
{
	int err = homak_region_give(hsk, args->start,
				    (u32)(args->length >> HOMA_BPAGE_SHIFT));

	if (err)
		return err;
	mmgrab(current->mm);
	/* From now on messages can be received into the region. */
	smp_store_release(&hsk->mm, current->mm);
	return 0;
}

static int homak_set_region(struct homak_sock *hsk, sockptr_t value,
			    unsigned int len)
{
	struct homa_rcvbuf_args args;
	int err;

	if (!homak_compat_region(value, len, &args, &err)) {
		if (len != sizeof(args))
			return homak_error_text(
				hsk, -EINVAL,
				"SO_HOMA_RCVBUF: the value is not a struct homa_rcvbuf_args");
		err = copy_from_sockptr(&args, value, sizeof(args)) ? -EFAULT : 0;
	}
	if (err)
		return err;
	lock_sock(&hsk->inet.sk);
	err = READ_ONCE(hsk->shutdown) ? -ESHUTDOWN :
					 homak_region_check(hsk, &args);
	if (!err)
		err = homak_region_set(hsk, &args);
	release_sock(&hsk->inet.sk);
	return err;
}

/* ---- the others ---- */

static int homak_get_int(sockptr_t value, unsigned int len, int *to)
{
	if (len != sizeof(*to))
		return -EINVAL;
	return copy_from_sockptr(to, value, sizeof(*to)) ? -EFAULT : 0;
}

void homak_serve(struct homak_sock *hsk, bool on)
{
	homak_use(hsk);
	WRITE_ONCE(hsk->server, on);
	homa_sock_serve(hsk->engine_sock, on);
}

static int homak_set_server(struct homak_sock *hsk, sockptr_t value,
			    unsigned int len)
{
	int on, err = homak_get_int(value, len, &on);

	if (err)
		return homak_error_text(hsk, err,
					"SO_HOMA_SERVER: the value is not an int");
	lock_sock(&hsk->inet.sk);
	homak_serve(hsk, on != 0);
	release_sock(&hsk->inet.sk);
	return 0;
}

static int homak_set_v6only(struct sock *sk, sockptr_t value, unsigned int len)
{
	struct homak_sock *hsk = homak_sk(sk);
	int on, err = homak_get_int(value, len, &on);

	if (err)
		return err;
	lock_sock(sk);
	/* As with other protocols, it cannot be changed once the socket has a port of its
	 * own, or an address. */
	if (homa_sock_port(hsk->engine_sock) < HOMA_MIN_DEFAULT_PORT ||
	    !ipv6_addr_any(&hsk->bound)) {
		err = -EINVAL;
	} else {
		hsk->only_v6 = on != 0;
		sk->sk_ipv6only = hsk->only_v6;
	}
	release_sock(sk);
	return err;
}

/* Is this one of IP's options for sockets that are bound to an address that is not, or not
 * yet, of this host? */
static bool homak_is_foreign(int level, int name)
{
	if (level == SOL_IP)
		return name == IP_FREEBIND || name == IP_TRANSPARENT;
	return level == SOL_IPV6 &&
	       (name == IPV6_FREEBIND || name == IPV6_TRANSPARENT);
}

static int homak_set_foreign(struct sock *sk, int level, int name,
			     sockptr_t value, unsigned int len)
{
	int err = -ENOPROTOOPT;

	if (level == SOL_IP)
		err = ip_setsockopt(sk, level, name, value, len);
	else if (sk->sk_family == AF_INET6)
		err = ipv6_setsockopt(sk, level, name, value, len);
	lock_sock(sk);
	homak_way_update(homak_sk(sk));
	release_sock(sk);
	return err;
}

static int homak_get_foreign(struct sock *sk, int level, int name,
			     char __user *value, int __user *len)
{
	if (level == SOL_IP)
		return ip_getsockopt(sk, level, name, value, len);
	if (sk->sk_family != AF_INET6)
		return -ENOPROTOOPT;
	return ipv6_getsockopt(sk, level, name, value, len);
}

int homak_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		     unsigned int len)
{
	struct homak_sock *hsk = homak_sk(sock->sk);

	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY &&
	    sock->sk->sk_family == AF_INET6)
		return homak_set_v6only(sock->sk, value, len);
	if (homak_is_foreign(level, name))
		return homak_set_foreign(sock->sk, level, name, value, len);
	if (level != IPPROTO_HOMA)
		return -ENOPROTOOPT;
	if (name == SO_HOMA_RCVBUF)
		return homak_set_region(hsk, value, len);
	if (name == SO_HOMA_SERVER)
		return homak_set_server(hsk, value, len);
	return homak_error_text(hsk, -ENOPROTOOPT,
				"setsockopt: Homa has no such option");
}

static int homak_copy_option(const void *from, int size, char __user *value,
			     int __user *len)
{
	int room;

	if (get_user(room, len))
		return -EFAULT;
	if (room < size)
		return -EINVAL;
	if (put_user(size, len) || copy_to_user(value, from, size))
		return -EFAULT;
	return 0;
}

int homak_getsockopt(struct socket *sock, int level, int name,
		     char __user *value, int __user *len)
{
	struct homak_sock *hsk = homak_sk(sock->sk);
	struct homa_rcvbuf_args args;
	int number;

	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY &&
	    sock->sk->sk_family == AF_INET6) {
		number = ipv6_only_sock(sock->sk);
		return homak_copy_option(&number, sizeof(number), value, len);
	}
	if (homak_is_foreign(level, name))
		return homak_get_foreign(sock->sk, level, name, value, len);
	if (level != IPPROTO_HOMA)
		return -ENOPROTOOPT;
	switch (name) {
	case SO_HOMA_RCVBUF:
		memset(&args, 0, sizeof(args));
		lock_sock(sock->sk);
		if (hsk->pool) {
			args.start = hsk->region;
			args.length = hsk->region_size;
		}
		release_sock(sock->sk);
		number = homak_compat_region_size(&args);
		return homak_copy_option(&args, number, value, len);
	case SO_HOMA_SERVER:
		number = READ_ONCE(hsk->server);
		return homak_copy_option(&number, sizeof(number), value, len);
	}
	return homak_error_text(hsk, -ENOPROTOOPT,
				"getsockopt: Homa has no such option");
}
