// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options of a socket that is homad's. The TCP socket that the program had keeps them, checks them
 * and tells them again; those that mean something to a stream are its, too. A connection that has
 * come to a listener gets such a socket when the program sets or asks for the first option.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>
#include "supervisor.h"

/* The longest value that is copied, in bytes. */
#define LONGEST 1024

static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
	/* What it is for a stream. */
	unsigned int bit;
} bits[] = {
	{ IPPROTO_TCP, TCP_NODELAY, HOMA_STREAM_NODELAY },
	{ IPPROTO_TCP, TCP_CORK, HOMA_STREAM_CORK },
	{ SOL_SOCKET, SO_KEEPALIVE, HOMA_STREAM_KEEPALIVE },
};

static const struct {
	/* The option of level IPPROTO_TCP, and what it is for a stream. */
	int name, which;
} patience[] = {
	{ TCP_USER_TIMEOUT, HOMA_STREAM_USER_TIMEOUT },
	{ TCP_KEEPIDLE, HOMA_STREAM_KEEP_IDLE },
	{ TCP_KEEPINTVL, HOMA_STREAM_KEEP_INTERVAL },
	{ TCP_KEEPCNT, HOMA_STREAM_KEEP_PROBES },
};

/* Options with a number that a connection has from its listener. */
static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
} inherited[] = {
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_OOBINLINE },
	{ SOL_SOCKET, SO_PRIORITY },
	{ SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_REUSEPORT },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_CORK },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_SYNCNT },
	{ IPPROTO_TCP, TCP_LINGER2 },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_TTL },
	{ IPPROTO_IPV6, IPV6_TCLASS },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS },
	{ SOL_SOCKET, SO_RCVBUF },
	{ SOL_SOCKET, SO_SNDBUF },
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void read_bits(struct homa_sv_sock *s, int fd)
{
	struct linger linger = { 0 };
	socklen_t size = sizeof(linger);
	size_t i;

	s->options = 0;
	for (i = 0; i < COUNT(bits); i++)
		if (homa_sv_number(fd, bits[i].level, bits[i].name, 0))
			s->options |= bits[i].bit;
	s->resets = !getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size) &&
		    linger.l_onoff && !linger.l_linger;
}

static void set_patience(const struct homa_sv_sock *s, int fd, size_t i)
{
	int value = homa_sv_number(fd, IPPROTO_TCP, patience[i].name, 0);

	if (value > 0 || patience[i].name == TCP_USER_TIMEOUT)
		homa_stream_patience(s->stream, (unsigned int)patience[i].which,
				     (unsigned int)value);
}

void homa_sv_read_options(struct homa_sv_sock *s, int fd)
{
	size_t i;

	read_bits(s, fd);
	homa_stream_options(s->stream, s->options);
	/* The times of keepalive count with the option alone. */
	for (i = 0; i < COUNT(patience); i++)
		if (patience[i].name == TCP_USER_TIMEOUT ?
			    homa_sv_number(fd, IPPROTO_TCP, patience[i].name, 0) :
			    !!(s->options & HOMA_STREAM_KEEPALIVE))
			set_patience(s, fd, i);
}

/* The socket that keeps the options, with those that a connection has from its listener. */
static int keeper(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct homa_sv_sock *from;
	struct linger linger;
	socklen_t size = sizeof(linger);
	int value, before;
	size_t i;

	if (s->kernel >= 0)
		return s->kernel;
	s->kernel = socket(s->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			   IPPROTO_TCP);
	if (s->kernel < 0)
		return -errno;
	from = homa_sv_find(sv, s->listener);
	if (!from)
		return s->kernel;
	for (i = 0; i < COUNT(inherited); i++) {
		value = homa_sv_number(from->kernel, inherited[i].level,
				       inherited[i].name, -1);
		before = homa_sv_number(s->kernel, inherited[i].level,
					inherited[i].name, -1);
		/* The kernel tells twice what was set. */
		if (inherited[i].level == SOL_SOCKET &&
		    (inherited[i].name == SO_RCVBUF ||
		     inherited[i].name == SO_SNDBUF)) {
			value /= 2;
			before /= 2;
		}
		if (value != before)
			setsockopt(s->kernel, inherited[i].level,
				   inherited[i].name, &value, sizeof(value));
	}
	if (!getsockopt(from->kernel, SOL_SOCKET, SO_LINGER, &linger, &size))
		setsockopt(s->kernel, SOL_SOCKET, SO_LINGER, &linger, size);
	return s->kernel;
}

static int set(struct homa_supervisor *sv, struct homa_sv_sock *s, int level,
	       int name, const void *value, socklen_t len)
{
	int fd = keeper(sv, s);
	size_t i;

	if (fd < 0)
		return fd;
	if (homa_sv_option_is_special(level, name, value, len))
		return -EOPNOTSUPP;
	if (setsockopt(fd, level, name, value, len))
		return -errno;
	read_bits(s, fd);
	if (!s->stream)
		return 0;
	homa_stream_options(s->stream, s->options);
	for (i = 0; i < COUNT(patience); i++)
		if (level == IPPROTO_TCP && name == patience[i].name)
			set_patience(s, fd, i);
	return 0;
}

void homa_sv_setsockopt(struct homa_supervisor *sv, struct homa_sv_call *call,
			struct homa_sv_sock *s)
{
	int level = (int)call->args[1], name = (int)call->args[2];
	u64 len = (u32)call->args[4];
	u8 value[LONGEST];

	if (len > sizeof(value) ||
	    (len && !homa_sv_load(call, value, call->args[3], len))) {
		if (s)
			homa_sv_answer(sv, call,
				       len > sizeof(value) ? -EINVAL : -EFAULT);
		else
			homa_sv_pass(sv, call);
		return;
	}
	if (s) {
		homa_sv_answer(sv, call,
			       set(sv, s, level, name, value, (u32)len));
		return;
	}
	if (homa_sv_option_is_special(level, name, value, (u32)len) &&
	    homa_sv_is_tcp(call->fd)) {
		sv->kernels[sv->next_kernels++ % COUNT(sv->kernels)] =
			homa_sv_cookie(call->fd);
	}
	homa_sv_pass(sv, call);
}

/* ---- asking ---- */

/* Why the connection failed. It is told once. */
static int failure(struct homa_sv_sock *s, int fd)
{
	int error = s->error;

	s->error = 0;
	/* The pair's own, which the program shall not see, is told once, too. */
	if (error || s->kind == HOMA_SV_FAILED_TO_CONNECT)
		homa_sv_number(fd, SOL_SOCKET, SO_ERROR, 0);
	else if (s->kind == HOMA_SV_OPEN)
		error = homa_sv_number(fd, SOL_SOCKET, SO_ERROR, 0);
	return error;
}

/* What homad knows of the connection goes into what the kernel says of its own socket. */
static void tell_info(const struct homa_sv_sock *s, struct tcp_info *info)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };

	if (s->kind == HOMA_SV_LISTENER) {
		info->tcpi_state = TCP_LISTEN;
	} else if (s->stream && !homa_stream_facts(s->stream, &facts)) {
		info->tcpi_state = s->wrote_all ? TCP_FIN_WAIT2 :
				   s->told_end	? TCP_CLOSE_WAIT :
						  TCP_ESTABLISHED;
		info->tcpi_snd_mss = info->tcpi_rcv_mss = facts.mss;
		info->tcpi_rtt = facts.rtt_us;
		info->tcpi_snd_cwnd = facts.mss ? facts.cwnd / facts.mss : 0;
		info->tcpi_total_retrans = facts.retransmits;
	} else if (s->kind == HOMA_SV_CONNECTING) {
		info->tcpi_state = TCP_SYN_SENT;
	}
}

static int ask(struct homa_supervisor *sv, struct homa_sv_sock *s, int fd,
	       int level, int name, void *value, socklen_t *len)
{
	int number, from;

	if (level != SOL_SOCKET || (name != SO_ERROR && name != SO_ACCEPTCONN)) {
		from = keeper(sv, s);
		if (from < 0)
			return from;
		if (getsockopt(from, level, name, value, len))
			return -errno;
		if (level == IPPROTO_TCP && name == TCP_INFO &&
		    *len >= offsetof(struct tcp_info, tcpi_total_retrans) + 4)
			tell_info(s, value);
		return 0;
	}
	number = name == SO_ERROR ? failure(s, fd) :
				    s->kind == HOMA_SV_LISTENER && !s->stopped;
	if (*len > sizeof(number))
		*len = sizeof(number);
	memcpy(value, &number, *len);
	return 0;
}

void homa_sv_getsockopt(struct homa_supervisor *sv, struct homa_sv_call *call,
			struct homa_sv_sock *s)
{
	u64 value[LONGEST / 8] = { 0 };
	socklen_t len = 0;
	int rc;

	if (!homa_sv_load(call, &len, call->args[4], sizeof(len)) ||
	    (s32)len < 0) {
		homa_sv_answer(sv, call, (s32)len < 0 ? -EINVAL : -EFAULT);
		return;
	}
	if (len > sizeof(value))
		len = sizeof(value);
	rc = ask(sv, s, call->fd, (int)call->args[1], (int)call->args[2], value,
		 &len);
	if (!rc && ((len && !homa_sv_store(call, call->args[3], value, len)) ||
		    !homa_sv_store(call, call->args[4], &len, sizeof(len))))
		rc = -EFAULT;
	homa_sv_answer(sv, call, rc);
}
