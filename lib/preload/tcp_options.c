// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options and names of TCP sockets. The kernel's socket behind the descriptor keeps every
 * option and tells it again; those that mean something to a stream are also seen to here.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"
#include "real.h"

static int read_int(const void *value, socklen_t len)
{
	int n = 0;

	if (len >= sizeof(n))
		memcpy(&n, value, sizeof(n));
	return n;
}

static void set_bit(struct homa_pl_sock *s, unsigned int bit, bool on)
{
	struct homa_pl_tcp *tcp = s->tcp;

	tcp->options = on ? tcp->options | bit : tcp->options & ~bit;
}

/* The time in ns; -1 means for ever. As in the kernel a negative time is over at once. */
static int64_t read_timeout(const void *value, socklen_t len)
{
	struct timeval tv = { 0 };

	if (len >= sizeof(tv))
		memcpy(&tv, value, sizeof(tv));
	if (tv.tv_sec < 0)
		return 0;
	if (tv.tv_sec > 1000000000 || (!tv.tv_sec && !tv.tv_usec))
		return -1;
	return tv.tv_sec * 1000000000ll + tv.tv_usec * 1000ll;
}

static void note_linger(struct homa_pl_sock *s, const void *value, socklen_t len)
{
	struct linger linger = { 0 };

	if (len >= sizeof(linger))
		memcpy(&linger, value, sizeof(linger));
	set_bit(s, HOMA_STREAM_RESET, linger.l_onoff && !linger.l_linger);
	s->tcp->linger = !linger.l_onoff     ? 0 :
			 linger.l_linger < 0 ? -1 :
					       linger.l_linger * 1000000000ll;
}

static void note_socket(struct homa_pl_sock *s, int name, const void *value,
			socklen_t len)
{
	int n;

	switch (name) {
	case SO_KEEPALIVE:
		set_bit(s, HOMA_STREAM_KEEPALIVE, read_int(value, len));
		break;
	case SO_OOBINLINE:
		s->tcp->inlines = read_int(value, len);
		break;
	case SO_LINGER:
		note_linger(s, value, len);
		break;
	case SO_RCVTIMEO:
		s->rcvtimeo = read_timeout(value, len);
		break;
	case SO_SNDTIMEO:
		s->sndtimeo = read_timeout(value, len);
		break;
	case SO_PEEK_OFF:
		s->tcp->peek_off = read_int(value, len);
		break;
	case SO_RCVLOWAT:
		n = read_int(value, len);
		s->tcp->least = n > 1 ? (size_t)n : 1;
		break;
	}
}

void homa_pl_tcp_change(struct homa_pl_sock *s)
{
	homa_pl_tcp_lock();
	homa_pl_tcp_fetch(s);
}

void homa_pl_tcp_changed(struct homa_pl_sock *s)
{
	if (s->tcp->common)
		homa_pl_tcp_store_common(s);
	homa_pl_tcp_unlock();
}

/* The HOMA_STREAM_* of homa_stream_patience() that is the option @name of TCP; -1 if none is. */
static int patience_of(int name)
{
	switch (name) {
	case TCP_USER_TIMEOUT:
		return HOMA_STREAM_USER_TIMEOUT;
	case TCP_KEEPIDLE:
		return HOMA_STREAM_KEEP_IDLE;
	case TCP_KEEPINTVL:
		return HOMA_STREAM_KEEP_INTERVAL;
	case TCP_KEEPCNT:
		return HOMA_STREAM_KEEP_PROBES;
	}
	return -1;
}

/* Set how long the socket waits for a silent peer. The kernel has checked the value. */
static void be_patient(struct homa_pl_sock *s, unsigned int which,
		       unsigned int value)
{
	int rc = 0;

	homa_pl_tcp_lock();
	homa_patience_set(&s->tcp->patience, which, value);
	homa_pl_tcp_unlock();
	if (s->tcp->stream)
		rc = homa_stream_patience(s->tcp->last, which, value);
	if (rc)
		homa_pl_debug("a time for silent peers has no effect: %s",
			      strerror(-rc));
}

/* Note what SO_SNDBUF is now, which is not what the program has set: the kernel doubles it. */
static void note_send_buffer(struct homa_pl_sock *s, int fd)
{
	socklen_t size = sizeof(int);
	int bytes = 0;

	if (HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size) ||
	    bytes <= 0)
		return;
	homa_pl_tcp_change(s);
	s->tcp->send_most = (uint32_t)bytes;
	homa_pl_tcp_limit(s);
	homa_pl_tcp_changed(s);
}

/* See to an option that means something to a stream. */
static void note(struct homa_pl_sock *s, int level, int name, const void *value,
		 socklen_t len)
{
	unsigned int before, options;

	homa_pl_tcp_change(s);
	before = s->tcp->options;
	if (level == SOL_SOCKET)
		note_socket(s, name, value, len);
	else if (name == TCP_NODELAY)
		set_bit(s, HOMA_STREAM_NODELAY, read_int(value, len));
	else if (name == TCP_CORK)
		set_bit(s, HOMA_STREAM_CORK, read_int(value, len));
	else if (name == TCP_NOTSENT_LOWAT)
		s->tcp->unsent_most = (uint32_t)read_int(value, len);
	options = s->tcp->options;
	homa_pl_tcp_limit(s);
	homa_pl_tcp_changed(s);
	if (!s->tcp->stream)
		return;
	if (options != before)
		homa_stream_options(s->tcp->last, options);
	if (level == IPPROTO_TCP && name == TCP_QUICKACK)
		homa_stream_quick_acks(s->tcp->last, read_int(value, len));
}

int homa_pl_tcp_setsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   const void *value, socklen_t len)
{
	int which;

	bool kernels = homa_pl_tcp_kernel_knows(level, name, value, len);

	/* homad copies all bytes and would never say that it is done with them. */
	if (s->tcp->stream &&
	    ((level == SOL_SOCKET && name == SO_ZEROCOPY) || kernels))
		return -EOPNOTSUPP;
	/* The kernel checks the option and keeps its value. */
	if (HOMA_PL_REAL(setsockopt)(fd, level, name, value, len)) {
		/* It refuses some for want of a connection, which only homad has. */
		if (!s->tcp->stream || errno != ENOTCONN)
			return -errno;
	}
	s->tcp->kernels |= kernels;
	homa_pl_tcp_heirs_change(s->tcp);
	which = level == IPPROTO_TCP ? patience_of(name) : -1;
	if (which >= 0)
		be_patient(s, (unsigned int)which,
			   (unsigned int)read_int(value, len));
	else if (level == SOL_SOCKET &&
		 (name == SO_SNDBUF || name == SO_SNDBUFFORCE))
		note_send_buffer(s, fd);
	else if (level == SOL_SOCKET || level == IPPROTO_TCP)
		note(s, level, name, value, len);
	return 0;
}

/* ---- options that are read ---- */

/* Return the error of a failed connection once (SO_ERROR), as the kernel does it; later 0. */
static int take_error(struct homa_pl_sock *s)
{
	int error;

	homa_pl_pump();
	error = homa_stream_error(s->tcp->last);
	if (!error || s->tcp->error_told)
		return 0;
	s->tcp->error_told = true;
	return error;
}

static int copy_out(void *to, socklen_t *len, const void *from, socklen_t size)
{
	if ((int)*len < 0)
		return -EINVAL;
	memcpy(to, from, *len < size ? *len : size);
	if (*len > size)
		*len = size;
	return 0;
}

/* The state of a connection of which this side has sent the end, and perhaps received one. */
static int state_of_end(unsigned int ready, bool unacked, bool peer_first)
{
	if (!(ready & HOMA_STREAM_EOF))
		return unacked ? TCP_FIN_WAIT1 : TCP_FIN_WAIT2;
	/* The kernel reports no TIME_WAIT, as a connection in that state does not belong to
	 * the socket any more. */
	if (!unacked)
		return TCP_CLOSE;
	return peer_first ? TCP_LAST_ACK : TCP_CLOSING;
}

int homa_pl_tcp_state(struct homa_pl_sock *s)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	unsigned int ready;

	if (s->tcp->listens)
		return s->tcp->stopped ? TCP_CLOSE : TCP_LISTEN;
	homa_pl_tcp_fetch(s);
	ready = homa_stream_ready(s->tcp->last);
	if (ready & HOMA_STREAM_ERROR)
		return TCP_CLOSE;
	if (homa_stream_facts(s->tcp->last, &facts))
		return TCP_SYN_SENT;
	if (!s->tcp->shut_write)
		return ready & HOMA_STREAM_EOF ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
	return state_of_end(ready, facts.unsent, s->tcp->peer_first);
}

static int give_info(struct homa_pl_sock *s, void *value, socklen_t *len)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };
	int rc;

	homa_pl_pump();
	rc = homa_stream_facts(s->tcp->last, &facts);
	if (rc && rc != -ENOTCONN)
		return rc;
	info.tcpi_state = (uint8_t)homa_pl_tcp_state(s);
	info.tcpi_snd_mss = info.tcpi_rcv_mss = facts.mss;
	info.tcpi_rtt = facts.rtt_us;
	/* A round trip within this host takes less than a microsecond, but 0 means unknown. */
	if (!rc && !facts.rtt_us)
		info.tcpi_rtt = 1;
	info.tcpi_snd_cwnd = facts.mss ? facts.cwnd / facts.mss : 0;
	info.tcpi_total_retrans = facts.retransmits;
	return copy_out(value, len, &info, sizeof(info));
}

static bool is_link_local(const struct sockaddr_in6 *name)
{
	return name->sin6_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&name->sin6_addr);
}

/* The number of the device that has the address @own, which is a link-local one; 0 if none has. */
static uint32_t device_of(const struct sockaddr_in6 *own)
{
	struct ifaddrs *all, *one;
	uint32_t index = 0;

	if (getifaddrs(&all))
		return 0;
	for (one = all; one && !index; one = one->ifa_next) {
		const struct sockaddr_in6 *its =
			(const struct sockaddr_in6 *)one->ifa_addr;

		if (its && is_link_local(its) &&
		    IN6_ARE_ADDR_EQUAL(&its->sin6_addr, &own->sin6_addr))
			index = if_nametoindex(one->ifa_name);
	}
	freeifaddrs(all);
	return index;
}

/* A link-local address means something at a device alone, which homad does not tell. Both ends are
 * at the same one. */
static void add_scope(struct homa_stream_facts *facts)
{
	struct sockaddr_in6 *local = (struct sockaddr_in6 *)&facts->local;
	struct sockaddr_in6 *remote = (struct sockaddr_in6 *)&facts->remote;

	if (HOMA_PL_LIKELY(!is_link_local(local)))
		return;
	local->sin6_scope_id = device_of(local);
	if (is_link_local(remote))
		remote->sin6_scope_id = local->sin6_scope_id;
}

/* The MTU of the connection's path; -ENOTCONN if there is no connection. */
static int mtu_of(struct homa_pl_sock *s)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	int rc;

	homa_pl_pump();
	rc = homa_stream_facts(s->tcp->last, &facts);
	if (rc || homa_pl_tcp_state(s) == TCP_CLOSE)
		return -ENOTCONN;
	add_scope(&facts);
	return homa_pl_tcp_path_mtu(&facts.local, &facts.remote);
}

/* The value of an option of a connection that the kernel's socket does not know; -ENOENT if it is
 * none of these. */
static int own_value(struct homa_pl_sock *s, int level, int name)
{
	if (level == SOL_SOCKET && name == SO_ERROR)
		return take_error(s);
	if ((level == IPPROTO_IP && name == IP_MTU) ||
	    (level == IPPROTO_IPV6 && name == IPV6_MTU && s->family == AF_INET6))
		return mtu_of(s);
	return -ENOENT;
}

int homa_pl_tcp_getsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   void *value, socklen_t *len)
{
	int n;

	if (s->tcp->stream && value && len && !s->tcp->listens) {
		if ((int)*len < 0)
			return -EINVAL;
		/* It may be negative. */
		if (level == SOL_SOCKET && name == SO_PEEK_OFF) {
			homa_pl_tcp_fetch(s);
			return copy_out(value, len, &s->tcp->peek_off,
					sizeof(s->tcp->peek_off));
		}
		n = own_value(s, level, name);
		if (n >= 0)
			return copy_out(value, len, &n, sizeof(n));
		if (n != -ENOENT)
			return n;
	}
	if (s->tcp->stream && value && len && level == IPPROTO_TCP &&
	    name == TCP_INFO)
		return give_info(s, value, len);
	return HOMA_PL_REAL(getsockopt)(fd, level, name, value, len) ? -errno : 0;
}

/* An IPv4 address of an IPv6 socket is told as ::ffff:a.b.c.d. */
static int give_name(const struct sockaddr_storage *name, int family,
		     struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)name;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	socklen_t size = name->ss_family == AF_INET ? sizeof(*four) : sizeof(six);
	const void *from = name;

	if ((int)*len < 0)
		return -EINVAL;
	if (family == AF_INET6 && name->ss_family == AF_INET) {
		six.sin6_port = four->sin_port;
		memset((uint8_t *)&six.sin6_addr + 10, 0xff, 2);
		memcpy((uint8_t *)&six.sin6_addr + 12, &four->sin_addr, 4);
		from = &six;
		size = sizeof(six);
	}
	memcpy(addr, from, *len < size ? *len : size);
	*len = size;
	return 0;
}

int homa_pl_tcp_peer(struct homa_stream *stream, int family,
		     struct sockaddr *addr, socklen_t *len)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	int rc = homa_stream_facts(stream, &facts);

	add_scope(&facts);
	return rc ? rc : give_name(&facts.remote, family, addr, len);
}

int homa_pl_tcp_name(struct homa_pl_sock *s, bool peer, struct sockaddr *addr,
		     socklen_t *len)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	int rc;

	if (!addr || !len)
		return -EFAULT;
	homa_pl_pump();
	rc = homa_stream_facts(s->tcp->last, &facts);
	if (rc == -ENOTCONN && !peer)
		rc = homa_stream_begun(s->tcp->last, &facts.local);
	if (rc)
		return rc;
	/* A connection that has ended has no peer. */
	if (peer && homa_pl_tcp_state(s) == TCP_CLOSE)
		return -ENOTCONN;
	add_scope(&facts);
	return give_name(peer ? &facts.remote : &facts.local, s->family, addr,
			 len);
}

int homa_pl_tcp_count(struct homa_pl_sock *s, unsigned long request, int *out)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	uint32_t bytes;

	if (s->tcp->listens)
		return -EINVAL;
	homa_pl_pump();
	/* There are none before the connection is open. */
	if (homa_stream_facts(s->tcp->last, &facts))
		facts.unread = facts.unsent = 0;
	/* homad does not tell which of the bytes that it needs it has sent once. */
	bytes = request == FIONREAD ?
			(uint32_t)homa_pl_tcp_unmarked(s, facts.unread) :
			facts.unsent;
	*out = (int)(bytes < INT32_MAX ? bytes : INT32_MAX);
	return 0;
}
