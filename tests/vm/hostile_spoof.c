// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hostile packets: well formed, from somebody who has no business to send them. */
#include "hostile_vm.h"

static void cutoffs(int peer, uint64_t id, const uint32_t *values,
		    int version_field)
{
	uint8_t *homa = make(&frame, peer, HOMA_CUTOFFS, PEER_PORT,
			     client_port(), id ^ 1, HOMA_CUTOFFS_LEN);
	int i;

	for (i = 0; i < HOMA_PRIORITIES; i++)
		put32(homa + 28 + 4 * i, values[i]);
	put16(homa + 60, (uint32_t)version_field);
	send_packet(&frame);
}

/* Levels stay levels whatever the cutoffs are, and other peers keep theirs. */
void hostile_spoofed_cutoffs(void)
{
	static const uint32_t sets[][HOMA_PRIORITIES] = {
		{ 0 },
		{ ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u },
		{ 1u << 31, 1u << 31, 1, 2, 3, 4, 5, 6 },
		{ 0, 0, 0, 0, 0, 0, 0, 1000000 },
		{ 8, 7, 6, 5, 4, 3, 2, 1 },
	};
	uint64_t id;
	size_t i;

	begin();
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		/* To begin with, from somebody whom the machine has never heard of. */
		cutoffs(4, 0, sets[i], (int)i + 7);
		id = ask(3, 3000);
		data_until(id, 3000);
		cutoffs(3, id, sets[i], (int)i + 7);
		finish(3, id, 50);
		barrier(-1);
		id = ask(3, 3000);
		data_until(id, 3000);
		CHECK(get16(seen.homa + 46) == i + 7,
		      "version %u is echoed, not %zu", get16(seen.homa + 46),
		      i + 7);
		finish(3, id, 50);
		id = ask(2, 3000);
		data_until(id, 3000);
		CHECK(get16(seen.homa + 46) != i + 7, "another peer's version");
		finish(2, id, 50);
	}
	alive();
}

/* .3 acknowledges what .2 has asked; both while it is served and after the response. */
void hostile_spoofed_ack(void)
{
	uint64_t id = new_id();
	uint8_t *homa;
	int i, k;

	begin();
	make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
	send_packet(&frame);
	serve(id, 100);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 4; i++) {
			homa = make(&frame, 3, HOMA_ACK, PEER_PORT, PORT,
				    i & 1 ? id : new_id(), HOMA_ACK_LEN);
			put16(homa + 28, 5);
			put64(homa + 30, id);
			put16(homa + 38, PORT);
			put64(homa + 70, id);
			put16(homa + 78, PORT);
			send_packet(&frame);
			/* The same ride on DATA. */
			homa = make_data(&frame, 3, PEER_PORT, PORT, new_id(),
					 10, 0, 10);
			put64(homa + 36, id);
			put16(homa + 44, PORT);
			send_packet(&frame);
		}
		barrier(-1);
		if (!k) {
			answer(2, id, "pong", 4);
			CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE),
			      "no response");
		}
	}
	/* Still there: it can be sent again. */
	homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, id, HOMA_RESEND_LEN);
	put32(homa + 32, 0xffffffff);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE),
	      "the response was forgotten");
	/* Garbage in all places of an ACK. */
	for (i = 0; i < 50; i++) {
		homa = make(&frame, 2, HOMA_ACK, PEER_PORT, PORT, new_id(),
			    HOMA_ACK_LEN);
		put16(homa + 28, (uint32_t)i % 6);
		for (k = 30; k < HOMA_ACK_LEN; k++)
			homa[k] = (uint8_t)(i * 37 + k * 11);
		send_packet(&frame);
	}
	alive();
}

void hostile_spoofed_unknown(void)
{
	uint64_t id, other = new_id();
	int i;

	begin();
	id = ask(2, 500);
	data_until(id, 500);
	make_data(&frame, 2, PEER_PORT, PORT, other, 100, 0, 100);
	send_packet(&frame);
	serve(other, 100);
	for (i = 0; i < 10; i++) {
		make(&frame, 3, HOMA_RPC_UNKNOWN, PEER_PORT, client_port(),
		     id ^ 1, 28);
		send_packet(&frame);
		make(&frame, 3, HOMA_RPC_UNKNOWN, PEER_PORT, PORT, other, 28);
		send_packet(&frame);
		/* From the right address by somebody else's port. */
		make(&frame, 2, HOMA_RPC_UNKNOWN, 1234, PORT, new_id(), 28);
		send_packet(&frame);
	}
	barrier(-1);
	CHECK(rpcs_of(cl.fd) == 1 && rpcs_of(sv.fd) == 1, "RPCs %u, %u",
	      rpcs_of(cl.fd), rpcs_of(sv.fd));
	answer(2, other, "pong", 4);
	CHECK(await(&seen, HOMA_DATA, other ^ 1, PATIENCE), "no response");
	finish(2, id, 50);
	alive();
}

void hostile_spoofed_freeze(void)
{
	long long before;
	int i;

	begin();
	before = metric("rx_freeze");
	for (i = 0; i < 20; i++) {
		make(&frame, 2 + i % 3, HOMA_FREEZE, i & 1 ? 0 : PEER_PORT,
		     i & 1 ? 0 : PORT, i & 1 ? 0 : new_id(), 28);
		send_packet(&frame);
	}
	barrier(-1);
	counted("rx_freeze", before, 10);
	alive();
}

void hostile_spoofed_response(void)
{
	uint64_t id;

	begin();
	id = ask(2, 500);
	data_until(id, 500);
	/* Another port, of the server or of ours. */
	make_data(&frame, 2, PEER_PORT + 1, client_port(), id ^ 1, 60, 0, 60);
	send_packet(&frame);
	make_data(&frame, 3, PEER_PORT + 1, client_port(), id ^ 1, 60, 0, 60);
	send_packet(&frame);
	make_data(&frame, 2, PEER_PORT, PORT, id ^ 1, 60, 0, 60);
	send_packet(&frame);
	/* A neighbouring id. */
	make_data(&frame, 2, PEER_PORT, client_port(), (id + 2) ^ 1, 60, 0, 60);
	send_packet(&frame);
	barrier(-1);
	CHECK(!readable(cl.fd, 0), "taken for the response");
	finish(2, id, 50);
	/* A server may have several addresses. */
	id = ask(2, 500);
	data_until(id, 500);
	finish(3, id, 50);
	alive();
}

/* struct odd - what is different in the next ICMP errors. Written by: the check. */
static struct odd {
	/* The IP protocol of the packet that they quote. */
	int proto;
	/* The MTU of "too big". */
	uint32_t mtu;
	/* The bits of the checksum that are wrong. */
	uint32_t damage;
} odd = { .proto = HOMA_IPPROTO };

/* An ICMP error of @quoted bytes of a packet of the machine to .@peer. */
static void icmp_error(int peer, int from, int type, int code, uint64_t id,
		       int dport, size_t quoted)
{
	uint8_t inner[128], *icmp, *q;
	size_t ip = IP_HEADER, i;
	uint32_t sum = 0;

	/* What the machine has sent: addresses the other way round. */
	make(&frame, peer, HOMA_DATA, client_port(), dport, id, HOMA_DATA_HDR);
	seal(&frame);
	memcpy(inner, frame.bytes + ETH, ip + HOMA_DATA_HDR);
	inner[version == 4 ? 9 : 6] = (uint8_t)odd.proto;
	q = inner + (version == 4 ? 12 : 8);
	for (i = 0; i < (version == 4 ? 4u : 16u); i++) {
		uint8_t *other = q + (version == 4 ? 4 : 16), b = q[i];

		q[i] = other[i];
		other[i] = b;
	}
	icmp = make(&frame, from, 0, 0, 0, 0, 8 + quoted);
	memset(icmp, 0, 8 + quoted);
	frame.bytes[ETH + (version == 4 ? 9 : 6)] =
		version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	icmp[0] = (uint8_t)type;
	icmp[1] = (uint8_t)code;
	put32(icmp + 4, odd.mtu);
	memcpy(icmp + 8, inner, quoted);
	if (version == 6) {
		for (i = 0; i < 32; i += 2)
			sum += get16(frame.bytes + ETH + 8 + i);
		sum += (uint32_t)(8 + quoted) + IPPROTO_ICMPV6;
	}
	for (i = 0; i < 8 + quoted; i += 2)
		sum += i + 1 < 8 + quoted ? get16(icmp + i) :
					    (uint32_t)icmp[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(icmp + 2, ~sum ^ odd.damage);
	send_packet(&frame);
}

void hostile_spoofed_icmp(void)
{
	const int unreachable = version == 4 ? 3 : 1,
		  too_big = version == 4 ? 3 : 2;
	const int port = version == 4 ? 3 : 4, needs = version == 4 ? 4 : 0;
	const size_t whole = IP_HEADER + HOMA_DATA_HDR;
	uint64_t id;
	size_t n;

	begin();
	/* As small as can be. */
	odd.mtu = version == 4 ? 68 : 1280;
	id = ask(2, 500);
	data_until(id, 500);
	for (n = 0; n <= whole; n++) {
		/* Cut off anywhere, about an RPC with somebody else. */
		icmp_error(3, 3, unreachable, port, id, PEER_PORT, n);
		/* About an RPC that does not exist. */
		icmp_error(2, 2, unreachable, port, id + 1000, PEER_PORT + 1, n);
		/* What does not end an RPC. */
		icmp_error(2, 2, too_big, needs, id, PEER_PORT, n);
	}
	barrier(-1);
	CHECK(rpcs_of(cl.fd) == 1, "%u RPCs", rpcs_of(cl.fd));
	CHECK(!readable(cl.fd, 0), "failed by a lie");
	finish(2, id, 50);
	/* The true one does. */
	id = ask(2, 500);
	data_until(id, 500);
	icmp_error(2, 2, unreachable, port, id, PEER_PORT, whole);
	FAILS(receive(&cl, 0, 0), ENOTCONN);
	CHECK(cl.args.id == id, "another RPC");
	alive();
}

/* Errors about packets in TCP's disguise, which TCP knows nothing of: they are no more believed
 * than those about native ones, above all not if they were damaged on their way. */
void hostile_disguised_icmp(void)
{
	const int unreachable = version == 4 ? 3 : 1,
		  too_big = version == 4 ? 3 : 2;
	const int port = version == 4 ? 3 : 4, needs = version == 4 ? 4 : 0;
	const size_t whole = IP_HEADER + HOMA_DATA_HDR;
	uint64_t id;

	if (sysctl_set("hijack_tcp", 1))
		skip("no disguises");
	begin();
	odd.proto = IPPROTO_TCP;
	id = ask(2, 500);
	data_until(id, 500);
	odd.damage = 0x100;
	icmp_error(2, 2, unreachable, port, id, PEER_PORT, whole);
	icmp_error(2, 2, too_big, needs, id, PEER_PORT, whole);
	odd.damage = 0;
	/* Routers of old do not say how much is not too big. */
	odd.mtu = 0;
	icmp_error(2, 2, too_big, needs, id, PEER_PORT, whole);
	icmp_error(3, 3, unreachable, port, id, PEER_PORT, whole);
	icmp_error(2, 2, unreachable, port, id + 1000, PEER_PORT, whole);
	barrier(-1);
	CHECK(rpcs_of(cl.fd) == 1, "%u RPCs", rpcs_of(cl.fd));
	CHECK(!readable(cl.fd, 0), "failed by a lie");
	icmp_error(2, 2, unreachable, port, id, PEER_PORT, whole);
	FAILS(receive(&cl, 0, 0), ENOTCONN);
	CHECK(cl.args.id == id, "another RPC");
	/* Packets are as long as before. */
	id = ask(2, 2 * MTU);
	CHECK(await(&seen, HOMA_DATA, id, PATIENCE), "no DATA");
	CHECK(seen.proto == IPPROTO_TCP && seen.bytes > MTU / 2,
	      "%zu bytes of protocol %d", seen.bytes, seen.proto);
	/* A true one about their length. */
	odd.mtu = 1300;
	icmp_error(2, 2, too_big, needs, id, PEER_PORT, whole);
	barrier(-1);
	id = ask(2, 2 * MTU);
	CHECK(await(&seen, HOMA_DATA, id, PATIENCE), "no DATA");
	CHECK(seen.bytes <= odd.mtu - IP_HEADER && seen.bytes > odd.mtu / 2,
	      "%zu bytes", seen.bytes);
	close_socks();
	sysctl_set("hijack_tcp", 0);
	open_socks();
	alive();
}

/* The next packet of @type for RPC @id; it comes from the machine's address .@from. */
static void comes_from(int type, uint64_t id, int from)
{
	CHECK(await(&seen, type, id, PATIENCE), "no packet of type %02x", type);
	CHECK(seen.from == from, "type %02x comes from .%d, not from .%d", type,
	      seen.from, from);
}

/* Requests of one peer to both addresses by turns, all open at once: each is granted,
 * asked for and answered from its own. */
static void sources_of_requests(void)
{
	uint64_t ids[4], long_ids[2];
	uint8_t *homa;
	int i;

	for (i = 0; i < 2; i++) {
		machine = i ? 1 : 200;
		long_ids[i] = new_id();
		make_data(&frame, 2, PEER_PORT, PORT, long_ids[i], 100000, 0,
			  1000);
		send_packet(&frame);
		comes_from(HOMA_GRANT, long_ids[i] ^ 1, i ? 1 : 200);
	}
	for (i = 0; i < 4; i++) {
		machine = i & 1 ? 1 : 200;
		ids[i] = new_id();
		make_data(&frame, 2, PEER_PORT, PORT, ids[i], 100, 0, 100);
		send_packet(&frame);
		serve(ids[i], 100);
	}
	for (i = 0; i < 4; i++) {
		answer(2, ids[i], "pong", 4);
		comes_from(HOMA_DATA, ids[i] ^ 1, i & 1 ? 1 : 200);
	}
	/* Again, asked for at the other address. */
	machine = 1;
	homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, ids[0],
		    HOMA_RESEND_LEN);
	put32(homa + 32, 0xffffffff);
	send_packet(&frame);
	comes_from(HOMA_DATA, ids[0] ^ 1, 200);
	/* A timer asks for what is missing, and no packet came just before. */
	machine = 1;
	CHECK(await(&seen, HOMA_RESEND, 0, PATIENCE), "no RESEND");
	CHECK(seen.from == (seen.id == (long_ids[0] ^ 1) ? 200 : 1),
	      "RESEND comes from .%d", seen.from);
}

void hostile_sources(void)
{
	uint64_t id;
	uint8_t *homa;

	begin();
	sources_of_requests();
	/* What is about no RPC is answered from where it was sent to. */
	machine = 200;
	id = new_id();
	homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, id | 1,
		    HOMA_RESEND_LEN);
	put32(homa + 32, 100);
	send_packet(&frame);
	comes_from(HOMA_RPC_UNKNOWN, id, 200);
	make(&frame, 2, HOMA_NEED_ACK, PEER_PORT, PORT, id | 1, HOMA_COMMON_HDR);
	send_packet(&frame);
	comes_from(HOMA_RPC_UNKNOWN, id, 200);
	/* The machine's own requests are not concerned. */
	id = ask(2, 100);
	comes_from(HOMA_DATA, id, 1);
	machine = 1;
	finish(2, id, 50);
	alive();
}

/* What is to leave from .200 by itself, from now on; false: .1 again. */
static void sends_from_200(bool yes)
{
	if (version == 4)
		device_shell(
			yes ? "ip route replace 10.9.0.0/24 dev %s src 10.9.0.200" :
			      "ip route replace 10.9.0.0/24 dev %s src 10.9.0.1");
	else
		device_shell(
			yes ? "ip -6 route replace fd09::/64 dev %s metric 256 src fd09::c8" :
			      "ip -6 route replace fd09::/64 dev %s metric 256 src fd09::1");
}

/* Packets that leave later, when nothing tells any more where they should leave from but
 * what was noted before: the device had no room, or the RPC is over. */
void hostile_sources_later(void)
{
	struct homa_abort_args abort = { 0 };
	uint64_t id, kept;
	uint8_t *homa;

	begin();
	sysctl_set("link_mbps", 100);
	device_shell("tc qdisc replace dev %s root pfifo limit 0");
	machine = 200;
	id = new_id();
	homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, id | 1,
		    HOMA_RESEND_LEN);
	put32(homa + 32, 100);
	send_packet(&frame);
	kept = new_id();
	make_data(&frame, 2, PEER_PORT, PORT, kept, 100, 0, 100);
	send_packet(&frame);
	serve(kept, 100);
	answer(2, kept, "pong", 4);
	device_shell("tc qdisc replace dev %s root pfifo limit 1000");
	comes_from(HOMA_RPC_UNKNOWN, id, 200);
	comes_from(HOMA_DATA, kept ^ 1, 200);
	/* The machine's own: one is aborted, and of one the response is there, and acks are
	 * owed until the socket closes. */
	sends_from_200(true);
	id = ask(2, 100);
	comes_from(HOMA_DATA, id, 200);
	kept = ask(2, 100);
	comes_from(HOMA_DATA, kept, 200);
	machine = 200;
	finish(2, kept, 50);
	sends_from_200(false);
	abort.id = id;
	CHECK(!ioctl(cl.fd, HOMAIOCABORT, &abort), "abort");
	comes_from(HOMA_RPC_UNKNOWN, id, 200);
	close_sock(&cl);
	comes_from(HOMA_ACK, 0, 200);
	cl = open_sock(sv.family, 0);
	sysctl_set("link_mbps", 0);
	machine = 1;
	alive();
}

/* Source and destination addresses that nobody has: no RPC, no answer. */
void hostile_martians(void)
{
	static const uint8_t v4[][4] = {
		{ 255, 255, 255, 255 }, { 10, 9, 0, 255 }, { 224, 0, 0, 1 },
		{ 0, 0, 0, 0 },		{ 127, 0, 0, 1 },  { 10, 9, 0, 1 }
	};
	static const uint8_t v6[][16] = { { 0xff, 2, [15] = 1 },
					  { 0xff, 0x0e, [15] = 5 },
					  { 0 },
					  { [15] = 1 },
					  { 0xfd, 9, [15] = 1 },
					  { [10] = 0xff, 0xff, 10, 9, 0, 2 } };
	size_t i, at, n = version == 4 ? 4 : 16,
		      base = ETH + (version == 4 ? 12 : 8);
	int type;

	begin();
	for (i = 0; i < 6; i++) {
		for (at = 0; at < 2; at++) {
			const uint8_t *address = version == 4 ? v4[i] : v6[i];

			/* The machine's own address as destination is no lie; as source
			 * it is IPv6's affair, a broadcast address IPv4's. */
			if (at == 1 && i == (version == 4 ? 5 : 4))
				continue;
			if (at == 0 && i == (version == 4 ? 1 : 4))
				continue;
			for (type = HOMA_TYPE_FIRST; type <= HOMA_TYPE_LAST;
			     type++) {
				uint8_t *homa =
					make_data(&frame, 2, PEER_PORT, PORT,
						  new_id(), 100, 0, 100);

				homa[11] = (uint8_t)type;
				memcpy(frame.bytes + base + at * n, address, n);
				if (address[0] == 255 || address[0] == 224)
					memset(frame.bytes, 255, 6);
				send_packet(&frame);
			}
			barrier(-1);
			CHECK(!readable(sv.fd, 0) && rpcs_of(sv.fd) == 0,
			      "a request %s address %zu", at ? "to" : "from", i);
		}
	}
	alive();
}

static void flood(int peers, int rpcs, uint32_t length)
{
	int i;

	for (i = 0; i < rpcs; i++) {
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), length, 0, 500);
		frame.bytes[ETH + (version == 4 ? 15 : 23)] =
			(uint8_t)(10 + i % peers);
		if (version == 6)
			frame.bytes[ETH + 22] = (uint8_t)(i % peers >> 8);
		/* Not to be found: the machine may ask for them as long as it likes. */
		send_packet(&frame);
		if (i % 64 == 63)
			while (next_seen(&seen, 0))
				;
	}
}

/* Ticks after which the RPCs of a flood end: soon, but a machine that is slow by what it
 * checks needs some of that for the RPC of the good one. */
#define FLOOD_TIMEOUT (patience() > 1 ? 30000 : 3000)

/* They end when their clients are silent; meanwhile others are served. */
void hostile_flood(void)
{
	begin();
	sysctl_set("timeout_ticks", FLOOD_TIMEOUT);
	flood(1, 1500, 1600);
	alive();
	CHECK(rpcs_become(sv.fd, 0, 60000) <= 1, "%u RPCs stay", rpcs_of(sv.fd));
	alive();
}

void hostile_peers_flood(void)
{
	begin();
	sysctl_set("timeout_ticks", FLOOD_TIMEOUT);
	flood(version == 4 ? 240 : 1200, 1500, 1600);
	alive();
	CHECK(rpcs_become(sv.fd, 0, 60000) <= 1, "%u RPCs stay", rpcs_of(sv.fd));
	alive();
}

/* Nothing can be received until some of them have ended; then all is well again. */
void hostile_buffers_flood(void)
{
	begin();
	sysctl_set("timeout_ticks", 1000);
	/* Eight at a time find room, and time out. */
	flood(3, 40, 1000000);
	CHECK(rpcs_become(sv.fd, 0, 60000) == 0, "%u RPCs stay", rpcs_of(sv.fd));
	sysctl_set("timeout_ticks", patient_timeout());
	alive();
}

void hostile_storms(void)
{
	static const int types[] = { HOMA_BUSY, HOMA_NEED_ACK, HOMA_ACK,
				     HOMA_GRANT, HOMA_RPC_UNKNOWN };
	uint64_t id;
	unsigned int n;
	size_t i;
	int k;

	begin();
	id = ask(2, 500);
	data_until(id, 500);
	quiet();
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (k = 0; k < 200; k++) {
			make(&frame, 3, types[i], PEER_PORT, client_port(),
			     k & 1 ? id ^ 1 : new_id() | 1, HOMA_ACK_LEN);
			send_packet(&frame);
		}
		n = barrier(-1);
		CHECK(n <= 210, "%u packets for 200 of type %02x", n, types[i]);
	}
	finish(2, id, 50);
	alive();
}
