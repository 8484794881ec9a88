// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hostile packets: more than the machine has room for, and what a socket does not want. */
#include <linux/filter.h>
#include "cgroup.h"
#include "hostile_vm.h"

#define CRUMB 10u
#define CRUMBS 900u

/* A packet takes much more room than its few bytes of payload. */
static void crumb(uint64_t id, uint32_t i)
{
	make_data(&frame, 2, PEER_PORT, PORT, id, CRUMB * CRUMBS, CRUMB * i,
		  CRUMB);
	send_packet(&frame);
}

/* All of its crumbs once; nobody reads. */
static void crumble(uint64_t id)
{
	uint32_t i;

	for (i = 0; i < CRUMBS; i++)
		crumb(id, i);
	barrier(-1);
}

/* Somebody reads, what was lost is asked for, and the request is answered. */
static void gather(uint64_t id)
{
	uint32_t i, first, last;
	ssize_t n;

	CHECK(rpcs_of(sv.fd) == 1, "%u RPCs", rpcs_of(sv.fd));
	while ((n = receive(&sv, 0, MSG_DONTWAIT)) < 0) {
		CHECK(errno == EAGAIN, "receive");
		if (!await(&seen, HOMA_RESEND, id ^ 1, 100))
			continue;
		first = get32(seen.homa + 28);
		last = first + get32(seen.homa + 32);
		CHECK(first < last && last <= CRUMB * CRUMBS,
		      "bytes %u to %u are wanted", first, last);
		for (i = first / CRUMB; i * CRUMB < last; i++)
			crumb(id, i);
	}
	CHECK(sv.args.id == (id ^ 1) && n == CRUMB * CRUMBS, "%zd bytes", n);
	for (i = 0; i < (uint32_t)n; i++)
		CHECK(sv.region[sv.args.bpage_offsets[0] + i] == byte_at(i),
		      "byte %u", i);
	answer(2, id, "pong", 4);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE), "no response");
}

void hostile_rcvbuf_full(void)
{
	long long before;
	int room = 65536;
	uint64_t id = new_id();

	begin();
	CHECK(!setsockopt(sv.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)),
	      "SO_RCVBUF");
	before = metric("drop_no_buffer");
	crumble(id);
	CHECK(metric("drop_no_buffer") > before, "nothing was refused");
	gather(id);
	alive();
}

/* Limit the memory of the sockets' cgroup to what it has and @more bytes. */
static void limit_cgroup(long more)
{
	FILE *f = fopen(OURS "/memory.current", "r");
	char text[32];
	long has;

	CHECK(f && fscanf(f, "%ld", &has) == 1, "memory.current");
	fclose(f);
	snprintf(text, sizeof(text), "%ld", has + more);
	CHECK(!write_file(OURS "/memory.max", text), "memory.max");
}

/* Linux lets what packets take pass a cgroup's limit, and has its programs pay for it. */
void hostile_cgroup_full(void)
{
	const long more = 200000;
	uint64_t id = new_id();
	long long before;

	cgroup_join();
	begin();
	/* This program's own memory is another's: its sockets alone are in the cgroup. */
	cgroup_enter(CGROUP);
	before = cgroup_charged("sock");
	limit_cgroup(more);
	crumble(id);
	/* What else the cgroup has does not shrink, so that the limit was passed. */
	cgroup_becomes_charged("sock", before + more, 1 << 30);
	gather(id);
	alive();
	close_socks();
	cgroup_becomes_charged("sock", 0, 0);
	cgroup_leave();
}

/* So many that they come within the silence after which an RPC ends. */
#define GAPS (patience() > 1 ? 200u : 500u)
#define TORN 20u

/* Messages of which every second crumb is missing; what has come is read at once. */
void hostile_gaps_paid(void)
{
	const uint32_t gaps = GAPS;
	uint32_t i, k;

	cgroup_join();
	begin();
	/* An RPC ends after that silence: not before a slow machine has counted them all. */
	CHECK(!sysctl_set("timeout_ticks", 60000), "timeout_ticks");
	for (i = 0; i < TORN; i++) {
		uint64_t id = new_id();

		for (k = 0; k < gaps; k++) {
			make_data(&frame, 2, PEER_PORT, PORT, id,
				  2 * CRUMB * gaps, 2 * CRUMB * k + CRUMB, CRUMB);
			send_packet(&frame);
		}
		barrier(-1);
		FAILS(receive(&sv, 0, MSG_DONTWAIT), EAGAIN);
	}
	/* A record is 64 bytes; without them 20 RPCs, and 64 KB that may stay charged. */
	cgroup_becomes_charged("sock", (long long)TORN * gaps * 64 - 100000,
			       4000000);
	CHECK(!sysctl_set("timeout_ticks", patient_timeout()), "timeout_ticks");
	close_socks();
	cgroup_becomes_charged("sock", 0, 0);
	cgroup_leave();
	open_socks();
	alive();
}

#define UNWANTED 6000

/* A filter of the server's socket sees the Homa header, and refuses one port. */
void hostile_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UNWANTED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };
	long long before;
	uint64_t id = new_id();

	begin();
	CHECK(!setsockopt(sv.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)),
	      "SO_ATTACH_FILTER");
	before = metric("host_rx_refused");
	make_data(&frame, 2, UNWANTED, PORT, id, 100, 0, 100);
	send_packet(&frame);
	make_data(&frame, 2, UNWANTED, PORT, new_id(), 3000, 0, 1000);
	send_packet(&frame);
	barrier(-1);
	CHECK(!rpcs_of(sv.fd) && !readable(sv.fd, 0), "%u RPCs", rpcs_of(sv.fd));
	counted("host_rx_refused", before, 2);
	/* It was never seen: the same may come by another port. */
	make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
	send_packet(&frame);
	ping(2, 100);
	/* Naming another socket's port does not get round the filter. */
	id = new_id();
	before = metric("drop_ports");
	make_data(&frame, 2, PEER_PORT, PORT, id, 2000, 0, 1000);
	send_packet(&frame);
	make_data(&frame, 2, UNWANTED, client_port(), id, 2000, 1000, 1000);
	send_packet(&frame);
	barrier(-1);
	CHECK(!readable(sv.fd, 0), "the rest was taken");
	counted("drop_ports", before, 1);
	make_data(&frame, 2, PEER_PORT, PORT, id, 2000, 1000, 1000);
	send_packet(&frame);
	serve(id, 2000);
	answer(2, id, "pong", 4);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE), "no response");
	alive();
}

#define OLD_PORT 4001
#define NEW_PORT 4002

static void refuse_all(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &code };

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)),
	      "SO_ATTACH_FILTER");
}

/* Our response, in one packet, to what the machine's client asked from its old port. */
static void respond_to_old(uint64_t id)
{
	make_data(&frame, 2, PEER_PORT, OLD_PORT, id ^ 1, 50, 0, 50);
	send_packet(&frame);
}

/* The client moves on while it waits for a response; another socket takes its port. */
void hostile_moved(void)
{
	struct sock other;
	long long before;
	uint64_t first, second;

	begin();
	bind_sock(&cl, OLD_PORT);
	first = ask(2, 100);
	second = ask(2, 100);
	bind_sock(&cl, NEW_PORT);
	other = open_sock(version == 4 ? AF_INET : AF_INET6, 0);
	bind_sock(&other, OLD_PORT);
	refuse_all(other.fd);
	before = metric("host_rx_refused");
	respond_to_old(first);
	CHECK(readable(cl.fd, PATIENCE), "no response");
	CHECK(receive(&cl, 0, 0) == 50 && cl.args.id == first,
	      "another response");
	CHECK(metric("host_rx_refused") == before,
	      "the other's filter was asked");
	/* What is for the port's new owner is his. */
	make_data(&frame, 2, PEER_PORT, OLD_PORT, new_id(), 100, 0, 100);
	send_packet(&frame);
	barrier(-1);
	counted("host_rx_refused", before, 1);
	CHECK(!readable(other.fd, 0), "his filter was passed over");
	/* And its own filter is not escaped by having moved. */
	before = metric("host_rx_refused");
	refuse_all(cl.fd);
	respond_to_old(second);
	barrier(-1);
	counted("host_rx_refused", before, 1);
	CHECK(!readable(cl.fd, 0), "its own filter was passed over");
	close_sock(&other);
	close_sock(&cl);
	cl = open_sock(version == 4 ? AF_INET : AF_INET6, 0);
	alive();
}
