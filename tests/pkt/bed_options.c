// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The bed's socket options, poll() and what a script may ask about a connection. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include "bed_impl.h"
#include "tas_impl.h"

static void flag(struct pkt_bed *bed, struct bed_socket *s, u32 bit, int on)
{
	s->options = on ? s->options | bit : s->options & ~bit;
	if (!s->conn)
		return;
	s->conn->f.flags = on ? s->conn->f.flags | bit : s->conn->f.flags & ~bit;
	tas_options(&bed->engine, s->conn);
}

static int of_socket(struct pkt_bed *bed, struct bed_socket *s, int name,
		     int value, const void *all, uint32_t length)
{
	struct linger linger;

	switch (name) {
	case SO_REUSEADDR:
	case SO_SNDBUF:
		return 0;
	case SO_RCVBUF:
		s->rcvbuf = (u32)value * 2;
		return 0;
	case SO_OOBINLINE:
		s->oob_inline = value;
		return 0;
	case SO_KEEPALIVE:
		flag(bed, s, TAS_F_KEEPALIVE, value);
		return 0;
	case SO_LINGER:
		if (length < sizeof(linger))
			return -EINVAL;
		memcpy(&linger, all, sizeof(linger));
		s->linger_reset = linger.l_onoff && !linger.l_linger;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int of_tcp(struct pkt_bed *bed, struct bed_socket *s, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		flag(bed, s, TAS_F_NODELAY, value);
		return 0;
	case TCP_CORK:
		flag(bed, s, TAS_F_CORK, value);
		return 0;
	case TCP_QUICKACK:
		if (s->conn)
			tas_quick_acks(&bed->engine, s->conn, value);
		return 0;
	case TCP_KEEPIDLE:
		s->keep_idle = (u32)value * 1000;
		if (s->conn)
			s->conn->keep_idle_ms = s->keep_idle;
		break;
	case TCP_KEEPINTVL:
		s->keep_interval = (u32)value * 1000;
		if (s->conn)
			s->conn->keep_interval_ms = s->keep_interval;
		break;
	case TCP_KEEPCNT:
		s->keep_most = (u8)value;
		if (s->conn)
			s->conn->keep_most = s->keep_most;
		break;
	case TCP_USER_TIMEOUT:
		s->user_timeout = (u64)value * TAS_MSEC;
		if (s->conn)
			s->conn->user_timeout = s->user_timeout;
		break;
	default:
		return -ENOPROTOOPT;
	}
	if (s->conn)
		tas_options(&bed->engine, s->conn);
	return 0;
}

int pkt_bed_setsockopt(struct pkt_bed *bed, int fd, int level, int name,
		       const void *value, uint32_t length)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	int number, rc;

	if (!s)
		return -EBADF;
	if (length < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	tas_set_now(&bed->engine, bed->now, 64);
	rc = level == SOL_SOCKET ?
		     of_socket(bed, s, name, number, value, length) :
	     level == IPPROTO_TCP ? of_tcp(bed, s, name, number) :
				    -ENOPROTOOPT;
	bed_settle(bed);
	return rc;
}

int pkt_bed_getsockopt(struct pkt_bed *bed, int fd, int level, int name,
		       void *value, uint32_t room)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	int number;

	if (!s)
		return -EBADF;
	if (room < sizeof(number))
		return -EINVAL;
	if (level == SOL_SOCKET && name == SO_ERROR) {
		number = -s->error;
		s->error = 0;
	} else if (level == IPPROTO_TCP && name == TCP_MAXSEG && s->conn) {
		number = s->conn->f.mss;
	} else if (level == IPPROTO_TCP && name == TCP_NODELAY) {
		number = !!(s->options & TAS_F_NODELAY);
	} else {
		return -ENOPROTOOPT;
	}
	memcpy(value, &number, sizeof(number));
	return sizeof(number);
}

int pkt_bed_poll(struct pkt_bed *bed, int fd)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	int events = 0;

	if (!s)
		return POLLNVAL;
	if (s->listening)
		return s->listener.num_ready ? POLLIN | POLLRDNORM : 0;
	if (s->error)
		events |= POLLERR;
	if (!s->conn)
		return events | POLLOUT | POLLHUP;
	events |= bed_urgent_poll(s);
	if (s->conn->f.flags & TAS_F_FIN_IN)
		events |= POLLIN | POLLRDNORM;
	if (s->conn->f.flags & TAS_F_FIN_IN)
		events |= POLLRDHUP;
	if (s->connected && tas_unacked(s->conn) < BED_SNDBUF)
		events |= POLLOUT | POLLWRNORM;
	if (s->conn->f.state == TAS_CLOSED)
		events |= POLLIN | POLLOUT | POLLHUP | POLLRDHUP;
	return events;
}

static const u8 linux_state[] = {
	[TAS_CLOSED] = TCP_CLOSE,	   [TAS_SYN_SENT] = TCP_SYN_SENT,
	[TAS_SYN_RECEIVED] = TCP_SYN_RECV, [TAS_ESTABLISHED] = TCP_ESTABLISHED,
	[TAS_FIN_WAIT_1] = TCP_FIN_WAIT1,  [TAS_FIN_WAIT_2] = TCP_FIN_WAIT2,
	[TAS_CLOSE_WAIT] = TCP_CLOSE_WAIT, [TAS_CLOSING] = TCP_CLOSING,
	[TAS_LAST_ACK] = TCP_LAST_ACK,	   [TAS_TIME_WAIT] = TCP_TIME_WAIT,
};

static u32 ca_state(const struct tas_conn *conn)
{
	if (conn->f.flags & TAS_F_LOSS)
		return 4;
	if (conn->f.flags & TAS_F_RECOVERY)
		return 3;
	return conn->f.sacks || conn->f.dupacks;
}

static u32 options_of(const struct tas_conn *conn)
{
	u32 options = 0;

	if (conn->f.flags & TAS_F_TS)
		options |= TCPI_OPT_TIMESTAMPS;
	if (conn->f.flags & TAS_F_SACK)
		options |= TCPI_OPT_SACK;
	if (conn->wscale_ok)
		options |= TCPI_OPT_WSCALE;
	if (conn->f.flags & TAS_F_ECN)
		options |= TCPI_OPT_ECN;
	return options;
}

int pkt_bed_info(struct pkt_bed *bed, int fd, const char *field, uint64_t *value)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	const struct tas_conn *c;
	u32 mss, i;

	if (!s)
		return -EBADF;
	c = s->conn;
	if (!c)
		return -ENOTCONN;
	mss = c->f.mss ? c->f.mss : 536;
	const struct {
		const char *name;
		uint64_t value;
	} fields[] = {
		{ "state", linux_state[c->f.state] },
		{ "ca_state", ca_state(c) },
		{ "options", options_of(c) },
		{ "retransmits", c->backoff },
		{ "probes", c->probes },
		{ "backoff", c->backoff },
		{ "snd_wscale", c->f.snd_wscale },
		{ "rcv_wscale", c->f.rcv_wscale },
		{ "rto", c->rto / 1000 },
		{ "snd_mss", mss },
		{ "rcv_mss", c->rcv_mss },
		{ "advmss", tas_mss_of(&bed->engine, c) },
		{ "unacked", (tas_in_flight(c) + mss - 1) / mss },
		{ "sacked", (tas_sacked_bytes(c) + mss - 1) / mss },
		{ "rtt", c->srtt / 1000 },
		{ "rttvar", c->rttvar / 1000 },
		{ "snd_ssthresh",
		  c->ssthresh >= 1u << 30 ? 0x7fffffff : c->ssthresh / mss },
		{ "snd_cwnd", c->f.cwnd / mss },
		{ "bytes_acked", c->f.snd_una - c->iss - 1 },
		{ "bytes_received", c->f.rcv_nxt - c->irs - 1 },
		{ "notsent_bytes", c->f.snd_end - c->f.snd_nxt },
		{ "total_retrans", bed->engine.metrics.retransmits },
		{ "atmark", bed_urgent_mark(s) },
		{ "pmtu", c->path_mtu ? c->path_mtu : bed->engine.mtu },
	};

	for (i = 0; i < HOMA_ARRAY_SIZE(fields); i++) {
		if (strcmp(fields[i].name, field))
			continue;
		*value = fields[i].value;
		return 0;
	}
	return -ENOENT;
}

int pkt_bed_metric(struct pkt_bed *bed, const char *name, uint64_t *value)
{
#define X(metric, text)                              \
	if (!strcmp(name, #metric)) {                \
		*value = bed->engine.metrics.metric; \
		return 0;                            \
	}
#include "tas_metrics.def"
#undef X
	return -ENOENT;
}
