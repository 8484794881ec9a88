// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options of stream sockets. Programs written for TCP set some that have no meaning here:
 * each write goes at once, and a silent peer is found by Homa's own timeout. They are
 * accepted, so that these programs go on; what would change bytes is not.
 */
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <net/ipv6.h>

#include "homa_stream.h"

static int homak_option_int(sockptr_t value, unsigned int len, int *to)
{
	if (len < sizeof(*to))
		return -EINVAL;
	return copy_from_sockptr(to, value, sizeof(*to)) ? -EFAULT : 0;
}

static bool homak_option_ignored(int name)
{
	switch (name) {
	case TCP_NODELAY:
	case TCP_CORK:
	case TCP_QUICKACK:
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
	case TCP_USER_TIMEOUT:
	case TCP_DEFER_ACCEPT:
	case TCP_LINGER2:
		return true;
	}
	return false;
}

int homak_stream_setsockopt(struct socket *sock, int level, int name,
			    sockptr_t value, unsigned int len)
{
	struct sock *sk = sock->sk;
	int on, err;

	if (level == IPPROTO_TCP && homak_option_ignored(name))
		return homak_option_int(value, len, &on);
	if (level != IPPROTO_IPV6 || name != IPV6_V6ONLY ||
	    sk->sk_family != AF_INET6)
		return -ENOPROTOOPT;
	err = homak_option_int(value, len, &on);
	if (err)
		return err;
	lock_sock(sk);
	if (homak_stream(sk)->carrier)
		err = -EINVAL;
	else
		sk->sk_ipv6only = on != 0;
	release_sock(sk);
	return err;
}

int homak_stream_getsockopt(struct socket *sock, int level, int name,
			    char __user *value, int __user *len)
{
	struct sock *sk = sock->sk;
	int number, room;

	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY &&
	    sk->sk_family == AF_INET6)
		number = sk->sk_ipv6only;
	else if (level == IPPROTO_TCP && homak_option_ignored(name))
		number = name == TCP_NODELAY || name == TCP_QUICKACK;
	else
		return -ENOPROTOOPT;
	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min_t(int, room, sizeof(number));
	if (put_user(room, len) || copy_to_user(value, &number, room))
		return -EFAULT;
	return 0;
}
