/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the bed share. */
#ifndef HOMA_PKT_BED_IMPL_H
#define HOMA_PKT_BED_IMPL_H

#include <stdbool.h>
#include "bed.h"
#include "tas_call.h"

#define BED_SOCKETS 256
#define BED_FIRST_FD 3
/* connections in TIME_WAIT that are remembered in less memory */
#define BED_ENDED 16
#define BED_QUEUE 1024	 /* packets sent that nobody has asked for yet */
#define BED_PACKET 65600 /* bytes of the longest packet */
/* bytes that may be written and not acknowledged */
#define BED_SNDBUF (4u << 20)
#define BED_PATTERN 251u /* a byte of a stream is its position modulo this */

/**
 * struct bed_socket - a descriptor
 * @used: it is open.
 * @bound, @listening: as the calls made it.
 * @conn: its connection, NULL: none (any more). @error: how that ended, 0 or negative.
 * @buffer: received bytes, as the engine said where.
 * @wrote, @read: bytes so far.
 * @options: TAS_F_* set before there was a connection.
 * @oob_inline: SO_OOBINLINE.
 * @urgent_read: MSG_OOB has given the urgent byte at position @urgent_read_at.
 * @keep_idle, @keep_interval, @keep_most, @user_timeout: as in struct tas_conn; 0: not set.
 */
struct bed_socket {
	bool used, bound, listening, connected, linger_reset;
	bool oob_inline, urgent_read;
	u32 urgent_read_at;
	u8 ip[16];
	u16 port;
	struct tas_listener listener;
	struct tas_conn *conn;
	int error;
	u8 *buffer;
	u32 wrote, read;
	u32 options;
	u32 keep_idle, keep_interval;
	u8 keep_most;
	u64 user_timeout;
	u32 rcvbuf;
};

struct bed_packet {
	u32 length;
	u8 *bytes;
};

struct pkt_bed {
	struct tas_engine engine;
	u64 now;
	u32 mtu;
	u32 rcvbuf, rcvbuf_max; /* of new sockets; it may grow to */
	bool v6;
	u8 ip[16];
	u16 next_port;
	struct bed_socket socket[BED_SOCKETS];
	struct tas_ended ended[BED_ENDED];
	struct bed_packet queue[BED_QUEUE];
	u32 head, tail;
};

struct bed_socket *bed_socket_of(struct pkt_bed *bed, int fd);
/* The buffer that @conn's bytes go to. */
u8 *bed_buffer_of(struct tas_conn *conn);
/* The byte at position @at of what has come, which was not taken. */
u8 bed_byte(struct bed_socket *s, u32 at);
/* How many of @length bytes read() may give before it stops at an urgent byte; @skip: how many
 * it leaves out before them. */
u32 bed_urgent_stops(const struct bed_socket *s, u32 length, u32 *skip);
/* recv() with MSG_OOB: 1 or an error. */
int bed_urgent_read(struct bed_socket *s, bool peek);
/* Of poll(): POLLIN and POLLPRI. */
int bed_urgent_poll(const struct bed_socket *s);
/* SIOCATMARK. */
bool bed_urgent_mark(const struct bed_socket *s);
/* Give the engine memory, hear its events, take its segments. */
void bed_settle(struct pkt_bed *bed);
void bed_send(struct pkt_bed *bed, const struct tas_out *out);

#endif
