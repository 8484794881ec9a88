// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The bed's sockets: what the calls of a script do to the engine. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "bed_impl.h"

#define SPARE 64u
#define BACKLOG_MAX 4096
#define FIRST_PORT 32768

struct bed_socket *bed_socket_of(struct pkt_bed *bed, int fd)
{
	int at = fd - BED_FIRST_FD;

	return at >= 0 && at < BED_SOCKETS && bed->socket[at].used ?
		       &bed->socket[at] :
		       NULL;
}

static u8 shift_of(u32 bytes)
{
	u8 shift = 0;

	while (shift < 30 && 1u << shift < bytes)
		shift++;
	return shift;
}

/* Bytes may come before accept(): the buffer hangs at the connection until then. */
u8 *bed_buffer_of(struct tas_conn *conn)
{
	if (!conn->host)
		conn->host = malloc(1u << conn->f.rx_shift);
	return conn->host;
}

static void free_conn(struct tas_conn *conn)
{
	free(conn->host);
	free(conn);
}

/* A timer of freed memory would fire later, and nobody would see why. */
static void check_unused(const struct tas_conn *conn)
{
	if (!homa_wheel_linked(&conn->wheel) &&
	    !homa_wheel_linked(&conn->rate.node) &&
	    !homa_list_linked(&conn->f.tx))
		return;
	fprintf(stderr, "the engine freed a connection that it still uses\n");
	abort();
}

static void hear(struct pkt_bed *bed)
{
	struct tas_conn *conn;
	u32 events, i;

	while (tas_next_ready(&bed->engine))
		;
	while ((conn = tas_next_event(&bed->engine, &events))) {
		if (events & TAS_EV_FREE) {
			check_unused(conn);
			free_conn(conn);
			continue;
		}
		for (i = 0; i < BED_SOCKETS; i++) {
			struct bed_socket *s = &bed->socket[i];

			if (!s->used || s->conn != conn)
				continue;
			if (events & TAS_EV_OPEN)
				s->connected = true;
			if (events & TAS_EV_ERROR)
				s->error = conn->error;
		}
	}
}

static void give_memory(struct pkt_bed *bed)
{
	while (bed->engine.num_spare < SPARE) {
		struct tas_conn *conn =
			aligned_alloc(64, (sizeof(*conn) + 63) / 64 * 64);

		if (!conn)
			return;
		conn->host = NULL;
		tas_add_spare(&bed->engine, conn);
	}
}

void bed_settle(struct pkt_bed *bed)
{
	struct tas_out out;

	give_memory(bed);
	hear(bed);
	while (tas_next_out(&bed->engine, &out))
		bed_send(bed, &out);
	hear(bed);
}

struct pkt_bed *pkt_bed_new(uint32_t mtu, int family, const void *local_ip,
			    uint64_t seed)
{
	struct pkt_bed *bed = calloc(1, sizeof(*bed));
	u64 seeds[6];
	u32 i;

	if (!bed)
		return NULL;
	bed->mtu = mtu;
	bed->v6 = family == 6;
	bed->rcvbuf = 1 << 18;
	bed->rcvbuf_max = 6 << 20;
	bed->next_port = FIRST_PORT;
	memcpy(bed->ip, local_ip, sizeof(bed->ip));
	for (i = 0; i < 6; i++)
		seeds[i] = homa_hash_mix(seed + i);
	/* A host that has run for an hour. */
	bed->now = 3600 * TAS_SEC;
	tas_engine_init(&bed->engine, seeds, bed->now, mtu);
	for (i = 0; i < BED_ENDED; i++)
		tas_add_ended(&bed->engine, &bed->ended[i]);
	return bed;
}

void pkt_bed_free(struct pkt_bed *bed)
{
	struct homa_list *node;
	u8 packet[BED_PACKET];
	u32 i;

	for (i = 0; i < BED_SOCKETS; i++)
		if (bed->socket[i].used)
			pkt_bed_close(bed, (int)i + BED_FIRST_FD);
	for (i = 0; i < bed->engine.table.size; i++)
		while ((node = homa_list_first(
				homa_table_bucket(&bed->engine.table, i))))
			tas_abort(&bed->engine,
				  homa_container_of(node, struct tas_conn,
						    f.hash));
	bed_settle(bed);
	while ((node = homa_list_pop(&bed->engine.spare)))
		free_conn(homa_container_of(node, struct tas_conn, f.hash));
	while (pkt_bed_out(bed, packet, sizeof(packet)))
		;
	free(bed);
}

int pkt_bed_set(struct pkt_bed *bed, const char *parameter, int64_t value)
{
	if (!strcmp(parameter, "ended")) {
		while (bed->engine.num_spare_ended > (uint64_t)value)
			tas_take_ended(&bed->engine);
		return 0;
	}
	if (!strcmp(parameter, "rcvbuf")) {
		bed->rcvbuf = (u32)value;
		return 0;
	}
	if (!strcmp(parameter, "rcvbuf_max")) {
		bed->rcvbuf_max = (u32)value;
		return 0;
	}
	return tas_set(&bed->engine, parameter, (u64)value) ? -ENOENT : 0;
}

void pkt_bed_run(struct pkt_bed *bed, uint64_t now)
{
	bed->now = 3600 * TAS_SEC + now;
	tas_set_now(&bed->engine, bed->now, 64);
	tas_timers(&bed->engine, BED_SOCKETS);
	bed_settle(bed);
}

uint64_t pkt_bed_next(struct pkt_bed *bed)
{
	u64 next = homa_wheel_next(&bed->engine.wheel);

	return next == TAS_NEVER ? UINT64_MAX : next - 3600 * TAS_SEC;
}

int pkt_bed_socket(struct pkt_bed *bed)
{
	int i;

	for (i = 0; i < BED_SOCKETS; i++) {
		struct bed_socket *s = &bed->socket[i];

		if (s->used)
			continue;
		memset(s, 0, sizeof(*s));
		s->used = true;
		s->rcvbuf = bed->rcvbuf;
		return i + BED_FIRST_FD;
	}
	return -EMFILE;
}

int pkt_bed_bind(struct pkt_bed *bed, int fd, const void *ip, uint16_t port)
{
	struct bed_socket *s = bed_socket_of(bed, fd);

	if (!s)
		return -EBADF;
	if (s->bound)
		return -EINVAL;
	memcpy(s->ip, ip, 16);
	s->port = port ? port : bed->next_port++;
	s->bound = true;
	return 0;
}

static bool is_any(const u8 *ip)
{
	static const u8 any[16], any4[16] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(ip, any, 16) || !memcmp(ip, any4, 16);
}

int pkt_bed_listen(struct pkt_bed *bed, int fd, int backlog)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	int rc;

	if (!s)
		return -EBADF;
	if (s->conn)
		return -EINVAL;
	s->listener.backlog =
		(u32)(backlog < 0 || backlog > BACKLOG_MAX ? BACKLOG_MAX :
							     backlog);
	if (s->listening)
		return 0;
	if (is_any(s->ip))
		memset(s->listener.local, 0, 16);
	else
		memcpy(s->listener.local, s->ip, 16);
	s->listener.port = s->port;
	s->listener.rx_shift = shift_of(s->rcvbuf);
	s->listener.rx_max = homa_max_u32(s->rcvbuf, bed->rcvbuf_max);
	s->listener.host = s;
	rc = tas_listen(&bed->engine, &s->listener);
	s->listening = !rc;
	return rc;
}

static void begin(struct pkt_bed *bed, struct bed_socket *s)
{
	s->conn->f.flags |= s->options;
	if (s->keep_idle)
		s->conn->keep_idle_ms = s->keep_idle;
	if (s->keep_interval)
		s->conn->keep_interval_ms = s->keep_interval;
	if (s->keep_most)
		s->conn->keep_most = s->keep_most;
	s->conn->user_timeout = s->user_timeout;
	tas_options(&bed->engine, s->conn);
}

int pkt_bed_connect(struct pkt_bed *bed, int fd, const void *ip, uint16_t port)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	struct tas_pair pair = { .remote_port = port };
	int rc;

	if (!s)
		return -EBADF;
	if (s->error) {
		rc = s->error;
		s->error = 0;
		return rc;
	}
	if (s->conn)
		return s->connected ? 0 : -EALREADY;
	if (!s->bound)
		s->port = bed->next_port++;
	s->bound = true;
	memcpy(pair.local, is_any(s->ip) ? bed->ip : s->ip, 16);
	memcpy(pair.remote, ip, 16);
	pair.local_port = s->port;
	give_memory(bed);
	tas_set_now(&bed->engine, bed->now, 64);
	rc = tas_connect(&bed->engine, &pair, shift_of(s->rcvbuf),
			 homa_max_u32(s->rcvbuf, bed->rcvbuf_max), &s->conn);
	if (rc)
		return rc;
	s->conn->host = NULL;
	begin(bed, s);
	bed_settle(bed);
	return s->connected ? 0 : -EINPROGRESS;
}

int pkt_bed_accept(struct pkt_bed *bed, int fd)
{
	struct bed_socket *s = bed_socket_of(bed, fd), *new;
	struct tas_conn *conn;
	int to;

	if (!s)
		return -EBADF;
	if (!s->listening)
		return -EINVAL;
	conn = tas_accept(&bed->engine, &s->listener);
	if (!conn)
		return -EAGAIN;
	to = pkt_bed_socket(bed);
	if (to < 0) {
		tas_abort(&bed->engine, conn);
		return to;
	}
	new = bed_socket_of(bed, to);
	new->conn = conn;
	new->connected = new->bound = true;
	new->options = s->options;
	new->keep_idle = s->keep_idle;
	new->keep_interval = s->keep_interval;
	new->keep_most = s->keep_most;
	new->user_timeout = s->user_timeout;
	begin(bed, new);
	bed_settle(bed);
	return to;
}

static int error_of(struct bed_socket *s)
{
	int error = s->error;

	s->error = 0;
	return error;
}

int pkt_bed_write(struct pkt_bed *bed, int fd, uint32_t length, int flags)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	u32 room, cork;
	int rc;

	if (!s)
		return -EBADF;
	if (s->error)
		return error_of(s);
	if (!s->conn || !s->connected)
		return s->conn ? -EAGAIN : -EPIPE;
	room = BED_SNDBUF - homa_min_u32(tas_unacked(s->conn), BED_SNDBUF);
	if (!room)
		return -EAGAIN;
	length = homa_min_u32(length, room);
	tas_set_now(&bed->engine, bed->now, 64);
	cork = s->conn->f.flags & TAS_F_CORK;
	if (flags & MSG_MORE)
		s->conn->f.flags |= TAS_F_CORK;
	if (flags & MSG_OOB)
		tas_urge(&bed->engine, s->conn, s->wrote + length);
	rc = tas_written(&bed->engine, s->conn, length);
	bed_settle(bed);
	if ((flags & MSG_MORE) && !cork)
		s->conn->f.flags &= ~TAS_F_CORK;
	s->wrote += rc ? 0 : length;
	return rc ? rc : (int)length;
}

u8 bed_byte(struct bed_socket *s, u32 at)
{
	return bed_buffer_of(s->conn)[at & ((1u << s->conn->f.rx_shift) - 1)];
}

int pkt_bed_read(struct pkt_bed *bed, int fd, uint32_t length, int flags)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	u32 i, n, skip;

	if (!s)
		return -EBADF;
	if (!s->conn)
		return -ENOTCONN;
	if (flags & MSG_OOB)
		return bed_urgent_read(s, flags & MSG_PEEK);
	length = bed_urgent_stops(s, length, &skip);
	if (skip && !(flags & MSG_PEEK)) {
		s->read += skip;
		tas_taken(&bed->engine, s->conn, skip);
		skip = 0;
	}
	n = homa_min_u32(tas_readable(s->conn) - skip, length);
	if (!n && s->error)
		return error_of(s);
	if (!n)
		return s->conn->f.flags & TAS_F_FIN_IN ||
				       s->conn->f.state == TAS_CLOSED ?
			       0 :
			       -EAGAIN;
	for (i = skip; i < n + skip; i++)
		if (bed_byte(s, s->read + i) != (u8)((s->read + i) % BED_PATTERN))
			return -EBADMSG;
	if (flags & MSG_PEEK)
		return (int)n;
	s->read += n;
	tas_set_now(&bed->engine, bed->now, 64);
	tas_taken(&bed->engine, s->conn, n);
	bed_settle(bed);
	return (int)n;
}

int pkt_bed_close(struct pkt_bed *bed, int fd)
{
	struct bed_socket *s = bed_socket_of(bed, fd);

	if (!s)
		return -EBADF;
	tas_set_now(&bed->engine, bed->now, 64);
	if (s->listening)
		tas_unlisten(&bed->engine, &s->listener);
	if (s->conn && s->linger_reset)
		tas_abort(&bed->engine, s->conn);
	else if (s->conn)
		tas_close(&bed->engine, s->conn);
	s->conn = NULL;
	s->used = false;
	bed_settle(bed);
	return 0;
}

int pkt_bed_shutdown(struct pkt_bed *bed, int fd, int how)
{
	struct bed_socket *s = bed_socket_of(bed, fd);
	int rc = 0;

	if (!s)
		return -EBADF;
	if (!s->conn || !s->connected)
		return -ENOTCONN;
	tas_set_now(&bed->engine, bed->now, 64);
	if (how != SHUT_RD)
		rc = tas_shut_send(&bed->engine, s->conn);
	bed_settle(bed);
	return rc;
}
