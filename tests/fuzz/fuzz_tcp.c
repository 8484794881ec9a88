/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A TCP engine with sockets (tests/pkt/bed.h) at the mercy of the input, which is read as a
 * script: segments of four peers, most of them near what the connection expects, ICMP
 * errors, calls of applications, time. After each step the invariants of tcp_check.h hold.
 * In the end the applications close what they have and no peer says anything: every
 * connection must go away by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "bed_impl.h"
#include "tcp_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MTU 1500u
#define PORT 80
#define PEERS 4u
#define FIRST_PORT 1000u
#define SOCKETS 12
#define LONGEST 1400u
#define PATTERN 251u
/* Segments that one step may make the engine send: buffers and windows are small. */
#define MOST_SENT 4000u
/* of virtual time, by then all connections have gone */
#define ENDS (3600 * TAS_SEC)

enum op {
	OP_SEGMENT,
	OP_SEGMENT_AGAIN,
	OP_ACCEPT,
	OP_CONNECT,
	OP_WRITE,
	OP_READ,
	OP_SHUTDOWN,
	OP_CLOSE,
	OP_TIME,
	OP_ICMP,
	OP_OPTION,
	OP_LISTEN,
	OPS,
};

struct script {
	const u8 *at, *end;
	struct pkt_bed *bed;
	u64 now;
	int fd[SOCKETS];
	int listener;
	u8 packet[MTU];
	u32 length;
};

static const u8 here[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
static const u8 there[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };
static u64 packets, inputs;

static void report(void)
{
	double seconds = (double)clock() / CLOCKS_PER_SEC;

	fprintf(stderr,
		"%llu inputs, %llu packets, %.0f packets per second of processor time\n",
		(unsigned long long)inputs, (unsigned long long)packets,
		(double)packets / (seconds > 0 ? seconds : 1));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	atexit(report);
	return 0;
}

static u8 next(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static u32 next16(struct script *s)
{
	u32 high = next(s);

	return high << 8 | next(s);
}

static u32 next32(struct script *s)
{
	u32 high = next16(s);

	return high << 16 | next16(s);
}

/* The connection with a peer's port; NULL: none. */
static struct tas_conn *find(const struct script *s, u16 port)
{
	struct homa_table *table = &s->bed->engine.table;
	struct homa_list *node;
	u32 i;

	for (i = 0; i < table->size; i++) {
		homa_list_for_each(node, homa_table_bucket(table, i)) {
			struct tas_conn *conn =
				homa_container_of(node, struct tas_conn, f.hash);

			if (conn->f.pair.remote_port == port)
				return conn;
		}
	}
	return NULL;
}

/* A number near @known, or any. */
static u32 near(struct script *s, u32 known)
{
	u8 how = next(s);

	switch (how & 7) {
	case 0:
	case 1:
	case 2:
		return known;
	case 3:
		return known + (u32)(s8)next(s);
	case 4:
		return known + (u32)(s16)next16(s);
	case 5:
		return known - 1;
	case 6:
		return known + 1;
	default:
		return next32(s);
	}
}

static void options(struct script *s, struct tas_segment *seg,
		    const struct tas_conn *conn)
{
	u8 what = next(s);
	u32 i;

	if (what & 1) {
		seg->options |= TAS_OPT_MSS;
		seg->mss = (u16)next16(s);
	}
	if (what & 2) {
		seg->options |= TAS_OPT_WSCALE;
		seg->wscale = next(s);
	}
	if (what & 4)
		seg->options |= TAS_OPT_SACK_OK;
	if (what & 8) {
		seg->options |= TAS_OPT_TS;
		seg->ts = near(s, conn ? conn->f.ts_recent : 1000);
		seg->ts_echo = near(s, s->bed->engine.clock_ms +
					       (conn ? conn->ts_offset : 0));
	}
	if (!(what & 16))
		return;
	seg->options |= TAS_OPT_SACK;
	seg->num_sacks = 1 + next(s) % TAS_SACKS;
	for (i = 0; i < seg->num_sacks; i++) {
		seg->sack[i].start = near(s, conn ? conn->f.snd_una : 0);
		seg->sack[i].end = near(s, conn ? conn->f.snd_nxt : 0);
	}
}

static void ip_header(struct script *s, u32 length, u8 ecn)
{
	u8 *p = s->packet;

	memset(p, 0, 20);
	p[0] = 0x45;
	p[1] = ecn & 3;
	homa_put_be16(p + 2, (u16)(20 + length));
	p[8] = 64;
	p[9] = 6;
	memcpy(p + 12, there + 12, 4);
	memcpy(p + 16, here + 12, 4);
	s->length = 20 + length;
}

/* What the application would read at that place, so that it does. */
static void payload(u8 *p, u32 length, u32 position)
{
	u32 i;

	for (i = 0; i < length; i++)
		p[i] = (u8)((position + i) % PATTERN);
}

static void segment(struct script *s)
{
	u16 port = (u16)(FIRST_PORT + next(s) % PEERS);
	struct tas_conn *conn = find(s, port);
	struct tas_segment seg = { .sport = port, .dport = PORT, .flags = next(s) };
	u8 flags = next(s);
	u32 header;

	/* Mostly what belongs there. */
	if (conn && (flags & 3))
		seg.flags = conn->f.state == TAS_SYN_SENT ? TAS_SYN | TAS_ACK :
			    flags & 4 ? TAS_ACK | TAS_PSH :
					TAS_ACK | (seg.flags & TAS_FIN);
	if (conn)
		seg.dport = conn->f.pair.local_port;
	seg.seq = near(s, conn ? conn->f.rcv_nxt : 0);
	seg.ack = near(s, conn ? conn->f.snd_nxt : 0);
	seg.window = (u16)next16(s);
	seg.length = flags & 8 ? 0 : next16(s) % LONGEST;
	options(s, &seg, conn);
	header = tas_encode(&seg, s->packet + 20);
	payload(s->packet + 20 + header, seg.length,
		conn ? seg.seq - conn->irs - 1 : 0);
	ip_header(s, header + seg.length, flags >> 4);
	pkt_bed_in(s->bed, s->packet, s->length);
}

static void icmp(struct script *s)
{
	u16 port = (u16)(FIRST_PORT + next(s) % PEERS);
	struct tas_conn *conn = find(s, port);
	u8 quoted[20 + 20] = { 0 };

	quoted[0] = 0x45;
	homa_put_be16(quoted + 2, 1000);
	quoted[9] = 6;
	memcpy(quoted + 12, here + 12, 4);
	memcpy(quoted + 16, there + 12, 4);
	homa_put_be16(quoted + 20, conn ? conn->f.pair.local_port : PORT);
	homa_put_be16(quoted + 22, port);
	homa_put_be32(quoted + 24, near(s, conn ? conn->f.snd_una : 0));
	ip_header(s, 8 + sizeof(quoted), 0);
	s->packet[9] = 1;
	memset(s->packet + 20, 0, 8);
	s->packet[20] = 3;
	s->packet[21] = next(s) % 6;
	homa_put_be16(s->packet + 26, (u16)next16(s));
	memcpy(s->packet + 28, quoted, sizeof(quoted));
	pkt_bed_in(s->bed, s->packet, s->length);
}

static int *slot(struct script *s, bool used)
{
	int i = next(s) % SOCKETS, n;

	for (n = 0; n < SOCKETS; n++, i = (i + 1) % SOCKETS)
		if ((s->fd[i] >= 0) == used)
			return &s->fd[i];
	return NULL;
}

static void open_or_accept(struct script *s, bool connects)
{
	int *fd = slot(s, false);
	u16 port = (u16)(FIRST_PORT + next(s) % PEERS);

	if (!fd)
		return;
	if (!connects) {
		*fd = s->listener < 0 ? -1 : pkt_bed_accept(s->bed, s->listener);
		return;
	}
	*fd = pkt_bed_socket(s->bed);
	pkt_bed_connect(s->bed, *fd, there, port);
}

static void use(struct script *s, enum op op)
{
	int *fd = slot(s, true), rc;
	int value;

	if (!fd)
		return;
	switch (op) {
	case OP_WRITE:
		pkt_bed_write(s->bed, *fd, next16(s), next(s) & 1 ? MSG_MORE : 0);
		return;
	case OP_READ:
		rc = pkt_bed_read(s->bed, *fd, next16(s),
				  next(s) & 1 ? MSG_PEEK : 0);
		if (rc == -EBADMSG)
			abort();
		return;
	case OP_SHUTDOWN:
		pkt_bed_shutdown(s->bed, *fd, next(s) % 3);
		return;
	case OP_OPTION:
		value = next(s);
		pkt_bed_setsockopt(s->bed, *fd, 6, next(s) % 20, &value,
				   sizeof(value));
		return;
	default:
		pkt_bed_close(s->bed, *fd);
		*fd = -1;
	}
}

static void listen_or_not(struct script *s)
{
	if (s->listener >= 0) {
		pkt_bed_close(s->bed, s->listener);
		s->listener = -1;
		return;
	}
	s->listener = pkt_bed_socket(s->bed);
	pkt_bed_bind(s->bed, s->listener, here, PORT);
	pkt_bed_listen(s->bed, s->listener, next(s) % 3);
}

static void drain(struct script *s)
{
	u8 packet[BED_PACKET];
	u32 n = 0;

	while (pkt_bed_out(s->bed, packet, sizeof(packet))) {
		packets++;
		if (++n > MOST_SENT)
			abort();
	}
}

static void pass(struct script *s, u64 time)
{
	s->now += time;
	pkt_bed_run(s->bed, s->now);
}

static void step(struct script *s)
{
	enum op op = next(s) % OPS;
	const char *wrong;

	switch (op) {
	case OP_SEGMENT:
		segment(s);
		break;
	case OP_SEGMENT_AGAIN:
		if (s->length)
			pkt_bed_in(s->bed, s->packet, s->length);
		break;
	case OP_ACCEPT:
	case OP_CONNECT:
		open_or_accept(s, op == OP_CONNECT);
		break;
	case OP_TIME:
		pass(s, 1000ull << next(s) % 26);
		break;
	case OP_ICMP:
		icmp(s);
		break;
	case OP_LISTEN:
		listen_or_not(s);
		break;
	default:
		use(s, op);
	}
	packets++;
	drain(s);
	wrong = tcp_check(&s->bed->engine);
	if (wrong) {
		fprintf(stderr, "not true: %s\n", wrong);
		abort();
	}
}

/* All is closed and nobody answers: what is left of connections ends by itself. */
static void end(struct script *s)
{
	u64 last = s->now + ENDS, due;
	int i;

	for (i = 0; i < SOCKETS; i++)
		if (s->fd[i] >= 0)
			pkt_bed_close(s->bed, s->fd[i]);
	if (s->listener >= 0)
		pkt_bed_close(s->bed, s->listener);
	while (s->bed->engine.table.count) {
		due = pkt_bed_next(s->bed);
		if (due == UINT64_MAX || due > last) {
			fprintf(stderr, "%u connections are left\n",
				s->bed->engine.table.count);
			abort();
		}
		pass(s, due > s->now ? due - s->now : 1);
		drain(s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct script s = { .at = bytes, .end = bytes + len, .listener = -1 };
	u8 how;
	int i;

	inputs++;
	for (i = 0; i < SOCKETS; i++)
		s.fd[i] = -1;
	s.bed = pkt_bed_new(MTU, 4, here, 7);
	if (!s.bed)
		return 0;
	how = next(&s);
	pkt_bed_set(s.bed, "rcvbuf", 4096 << (how & 3));
	pkt_bed_set(s.bed, "ecn", how >> 2 & 1);
	pkt_bed_set(s.bed, "dctcp", how >> 3 & 1);
	pkt_bed_set(s.bed, "syn_cookies", (how >> 4 & 3) % 3);
	pkt_bed_set(s.bed, "max_intervals", 1 + (how >> 6));
	/* Whom nobody answers gives up within the hour. */
	pkt_bed_set(s.bed, "rto_max_ms", 60000);
	pkt_bed_set(s.bed, "keepalive_ms", 60000);
	pkt_bed_run(s.bed, 0);
	listen_or_not(&s);
	while (s.at < s.end)
		step(&s);
	end(&s);
	drain(&s);
	pkt_bed_free(s.bed);
	return 0;
}
