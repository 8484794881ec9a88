// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options of stream sockets. Programs written for TCP set some that have no meaning here:
 * each write goes at once, and a silent peer is found by Homa's own timeout. Such an option is
 * accepted in TCP's bounds and read back as it was set, so that these programs go on; accepted
 * connections have the listener's. What would change bytes, or a program's safety, is refused.
 */
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>

#include "homa_stream.h"

#define HOMAK_CONGESTION "homa"
/* The bytes of a name, as TCP has it. */
#define HOMAK_CONGESTION_MAX 16

/* What TCP makes of a value before it keeps it. */
enum homak_option_kind {
	HOMAK_NUMBER,  /* it keeps it */
	HOMAK_FLAG,    /* what is not 0 becomes 1 */
	HOMAK_CLASS,   /* the two bits of ECN are the protocol's; -1 is 0 */
	HOMAK_SEGMENT, /* 0 is what a new socket has */
};

/*
 * struct homak_option - an option whose value is a number. Constant.
 * @level: what setsockopt() calls the level.
 * @name: the number of the option there.
 * @least: the smallest value that is accepted.
 * @most: the largest one.
 * @begins: the value of a new socket.
 * @kind: an enum homak_option_kind.
 */
struct homak_option {
	int level;
	int name;
	int least;
	int most;
	int begins;
	int kind;
};

/* Only the value of the first has an effect, HOMAK_OPTION_IDLE. */
static const struct homak_option homak_options[] = {
	{ SOL_TCP, TCP_KEEPIDLE, 1, 32767, HOMAK_KEEPALIVE },
	{ SOL_TCP, TCP_KEEPINTVL, 1, 32767, HOMAK_KEEPALIVE },
	{ SOL_TCP, TCP_KEEPCNT, 1, 127, 1 },
	{ SOL_TCP, TCP_NODELAY, INT_MIN, INT_MAX, 1, HOMAK_FLAG },
	{ SOL_TCP, TCP_CORK, INT_MIN, INT_MAX, 0, HOMAK_FLAG },
	{ SOL_TCP, TCP_QUICKACK, INT_MIN, INT_MAX, 1, HOMAK_FLAG },
	{ SOL_TCP, TCP_USER_TIMEOUT, 0, INT_MAX, 0 },
	{ SOL_TCP, TCP_DEFER_ACCEPT, 0, INT_MAX, 0 },
	{ SOL_TCP, TCP_LINGER2, INT_MIN, INT_MAX, 60 },
	{ SOL_TCP, TCP_SYNCNT, 1, 127, 6 },
	{ SOL_TCP, TCP_MAXSEG, 88, 32767, 32767, HOMAK_SEGMENT },
	{ SOL_TCP, TCP_WINDOW_CLAMP, 0, INT_MAX, 0 },
	{ SOL_TCP, TCP_NOTSENT_LOWAT, INT_MIN, INT_MAX, -1 },
	{ SOL_TCP, TCP_FASTOPEN, 0, INT_MAX, 0 },
	{ SOL_TCP, TCP_FASTOPEN_CONNECT, 0, 1, 0 },
	{ SOL_IP, IP_TOS, INT_MIN, INT_MAX, 0, HOMAK_CLASS },
	{ SOL_IP, IP_BIND_ADDRESS_NO_PORT, INT_MIN, INT_MAX, 0, HOMAK_FLAG },
	{ SOL_IPV6, IPV6_TCLASS, -1, 255, 0, HOMAK_CLASS },
};
static_assert(ARRAY_SIZE(homak_options) == HOMAK_STREAM_OPTIONS);

void homak_stream_options_init(struct homak_stream *stream)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(homak_options); i++)
		stream->options[i] = homak_options[i].begins;
}

/* Returns the place of an option, or -1 if it is none of them. */
static int homak_option_place(int level, int name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(homak_options); i++)
		if (homak_options[i].level == level &&
		    homak_options[i].name == name)
			return (int)i;
	return -1;
}

/* ---- set ---- */

static int homak_option_int(sockptr_t value, unsigned int len, int *to)
{
	if (len < sizeof(*to))
		return -EINVAL;
	return copy_from_sockptr(to, value, sizeof(*to)) ? -EFAULT : 0;
}

/* IP's own options may be a single byte. */
static int homak_option_byte(sockptr_t value, unsigned int len, int *to)
{
	u8 byte;

	if (!len)
		return -EINVAL;
	if (copy_from_sockptr(&byte, value, sizeof(byte)))
		return -EFAULT;
	*to = byte;
	return 0;
}

/* Returns what becomes of a value that is accepted. */
static int homak_option_kept(const struct homak_option *option, int number)
{
	switch (option->kind) {
	case HOMAK_FLAG:
		return number != 0;
	case HOMAK_CLASS:
		return option->least == -1 && number == -1 ?
			       0 :
			       (u8)number & ~INET_ECN_MASK;
	default:
		return number;
	}
}

static int homak_option_set(struct sock *sk, int place, sockptr_t value,
			    unsigned int len)
{
	const struct homak_option *option = &homak_options[place];
	struct homak_stream *stream = homak_stream(sk);
	int number, err;

	if (option->level == SOL_IP && len < sizeof(number))
		err = homak_option_byte(value, len, &number);
	else
		err = homak_option_int(value, len, &number);
	if (err)
		return err;
	if (option->kind == HOMAK_SEGMENT && !number)
		number = option->begins;
	if (number < option->least || number > option->most)
		return -EINVAL;
	number = homak_option_kept(option, number);
	lock_sock(sk);
	WRITE_ONCE(stream->options[place], number);
	if (place == HOMAK_OPTION_IDLE && stream->conn) {
		WRITE_ONCE(stream->conn->idle, (u32)number);
		homak_stream_keepalive(sk, sock_flag(sk, SOCK_KEEPOPEN));
	}
	release_sock(sk);
	return 0;
}

/* There is one way to avoid congestion, Homa's. */
static int homak_option_congestion(sockptr_t value, unsigned int len)
{
	char name[HOMAK_CONGESTION_MAX] = "";

	if (!len)
		return -EINVAL;
	if (copy_from_sockptr(name, value, min_t(size_t, len, sizeof(name))))
		return -EFAULT;
	name[sizeof(name) - 1] = '\0';
	return strcmp(name, HOMAK_CONGESTION) ? -ENOENT : 0;
}

static int homak_option_v6only(struct sock *sk, sockptr_t value, unsigned int len)
{
	int on, err = homak_option_int(value, len, &on);

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

/* Is the level one of the socket's family? */
static bool homak_option_level(const struct sock *sk, int level)
{
	return level != SOL_IPV6 || sk->sk_family == AF_INET6;
}

int homak_stream_setsockopt(struct socket *sock, int level, int name,
			    sockptr_t value, unsigned int len)
{
	int place = homak_option_place(level, name);
	struct sock *sk = sock->sk;

	if (!homak_option_level(sk, level))
		return -ENOPROTOOPT;
	if (place >= 0)
		return homak_option_set(sk, place, value, len);
	if (level == SOL_TCP && name == TCP_CONGESTION)
		return homak_option_congestion(value, len);
	if (level == SOL_IPV6 && name == IPV6_V6ONLY)
		return homak_option_v6only(sk, value, len);
	return -ENOPROTOOPT;
}

/* ---- get ---- */

/* Copies as much of @from as the program has room for. */
static int homak_option_copy(const void *from, int size, char __user *value,
			     int __user *len)
{
	int room;

	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min(room, size);
	if (put_user(room, len) || copy_to_user(value, from, (size_t)room))
		return -EFAULT;
	return 0;
}

/* IP's own options are a single byte for programs that have room for no more. */
static int homak_option_copy_ip(int number, char __user *value, int __user *len)
{
	u8 byte = (u8)number;
	int room;

	if (get_user(room, len))
		return -EFAULT;
	if (room > 0 && room < (int)sizeof(number))
		return homak_option_copy(&byte, sizeof(byte), value, len);
	return homak_option_copy(&number, sizeof(number), value, len);
}

/* Returns the state of a connection in TCP's words; locked. */
static u8 homak_info_state(const struct homak_conn *conn)
{
	if (conn->state != HOMAK_CONN_LIVE)
		return conn->state == HOMAK_CONN_DEAD ? TCP_CLOSE : TCP_SYN_SENT;
	if (homak_conn_at_end(conn))
		return conn->fin_sent ? TCP_LAST_ACK : TCP_CLOSE_WAIT;
	return conn->fin_sent ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

/* What of TCP_INFO there is here; the rest is 0. Segments are requests. */
static void homak_info(struct sock *sk, struct tcp_info *info)
{
	struct homak_conn *conn = homak_stream(sk)->conn;

	memset(info, 0, sizeof(*info));
	info->tcpi_state = sk->sk_state;
	if (!conn)
		return;
	spin_lock(&conn->lock);
	info->tcpi_state = homak_info_state(conn);
	info->tcpi_snd_mss = HOMAK_STREAM_CHUNK;
	info->tcpi_rcv_mss = HOMAK_STREAM_CHUNK;
	info->tcpi_advmss = HOMAK_STREAM_CHUNK;
	info->tcpi_unacked = conn->out;
	info->tcpi_snd_cwnd = HOMAK_STREAM_OUT;
	info->tcpi_rcv_space = conn->ring.window;
	info->tcpi_bytes_sent = conn->sent;
	info->tcpi_bytes_acked = conn->sent - conn->out_bytes;
	info->tcpi_bytes_received = conn->ring.next;
	info->tcpi_snd_wnd = (u32)(conn->edge - conn->sent);
	spin_unlock(&conn->lock);
}

static int homak_info_get(struct sock *sk, char __user *value, int __user *len)
{
	struct tcp_info info;

	lock_sock(sk);
	homak_info(sk, &info);
	release_sock(sk);
	return homak_option_copy(&info, sizeof(info), value, len);
}

int homak_stream_getsockopt(struct socket *sock, int level, int name,
			    char __user *value, int __user *len)
{
	char congestion[HOMAK_CONGESTION_MAX] = HOMAK_CONGESTION;
	int place = homak_option_place(level, name), number;
	struct sock *sk = sock->sk;

	if (!homak_option_level(sk, level))
		return -ENOPROTOOPT;
	if (level == SOL_TCP && name == TCP_INFO)
		return homak_info_get(sk, value, len);
	if (level == SOL_TCP && name == TCP_CONGESTION)
		return homak_option_copy(congestion, sizeof(congestion), value,
					 len);
	if (level == SOL_IPV6 && name == IPV6_V6ONLY)
		number = sk->sk_ipv6only;
	else if (place >= 0)
		number = READ_ONCE(homak_stream(sk)->options[place]);
	else
		return -ENOPROTOOPT;
	if (level == SOL_IP)
		return homak_option_copy_ip(number, value, len);
	return homak_option_copy(&number, sizeof(number), value, len);
}
