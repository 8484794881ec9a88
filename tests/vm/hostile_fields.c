// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hostile packets: fields that lie. */
#include "hostile_vm.h"

static const uint32_t sore[] = { 0,	     1,		 2,	     0x7ffffffe,
				 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
				 0xffffffff, 1000000,	 1000001,    0x00ffffff };

/* The machine clamps the level, sends what was granted and indexes nothing with it. */
/* The level at which the socket's only RPC sends. */
static unsigned int info_prio(int fd)
{
	struct homa_rpc_info rpc = { .tx_prio = 99 };
	struct homa_info info = { .rpc_info = &rpc,
				  .rpc_info_length = sizeof(rpc) };

	CHECK(!ioctl(fd, HOMAIOCINFO, &info), "HOMAIOCINFO");
	return rpc.tx_prio;
}

void hostile_grant_priority(void)
{
	static const int levels[] = { 8, 9, 15, 127, 128, 200, 255 };
	uint64_t id;
	size_t i;

	begin();
	id = ask(2, 200000);
	data_until(id, UNSCHED);
	for (i = 0; i < ARRAY_SIZE(levels); i++) {
		uint32_t upto = UNSCHED + 20000 * (uint32_t)(i + 1);

		grant(2, id, upto, levels[i]);
		data_until(id, upto); /* checks every packet's TOS */
	}
	grant(2, id, 180000, 3);
	data_until(id, 180000);
	CHECK(info_prio(cl.fd) == 3, "HOMAIOCINFO says level %u",
	      info_prio(cl.fd));
	grant(2, id, 200000, 0);
	data_until(id, 200000);
	finish(2, id, 50);
	alive();
}

void hostile_resend_priority(void)
{
	static const int levels[] = { 8, 100, 128, 255 };
	uint64_t id;
	size_t i;

	begin();
	id = ask(2, 10000);
	data_until(id, 10000);
	for (i = 0; i < ARRAY_SIZE(levels); i++) {
		forget();
		resend(2, id, 0, 10000, levels[i]);
		data_until(id, 10000);
	}
	finish(2, id, 50);
	alive();
}

static void dropped_data(uint32_t length, uint32_t offset, uint32_t payload,
			 const char *counter)
{
	long long before = metric(counter);
	uint64_t id = new_id();
	uint8_t *homa = make_data(&frame, 2, PEER_PORT, PORT, id, length,
				  offset, payload);

	/* Both ways to say an offset. */
	send_packet(&frame);
	put32(homa + 52, 0xffffffff);
	send_packet(&frame);
	barrier(-1);
	counted(counter, before, 2);
	CHECK(!readable(sv.fd, 0), "a request of length %u came out of it",
	      length);
	CHECK(rpcs_of(sv.fd) == 0, "an RPC is left of length %u, offset %u",
	      length, offset);
}

void hostile_zero_length(void)
{
	begin();
	dropped_data(0, 0, 100, "drop_length");
	alive();
}

void hostile_negative_length(void)
{
	begin();
	dropped_data(0x80000000, 0, 1000, "drop_length");
	dropped_data(0x80000001, 0, 1, "drop_length");
	dropped_data(0xffffffff, 0, 100, "drop_length");
	dropped_data(0xfffffff0, 0xffffff00, 100, "drop_length");
	alive();
}

void hostile_long_message(void)
{
	uint64_t id = new_id();

	begin();
	dropped_data(1000001, 0, 1000, "drop_length");
	dropped_data(0x7fffffff, 0, 1000, "drop_length");
	dropped_data(0x40000000, 0x3fffff00, 200, "drop_length");
	/* The longest one is taken. */
	make_data(&frame, 2, PEER_PORT, PORT, id, 1000000, 0, 1000);
	send_packet(&frame);
	barrier(-1);
	CHECK(rpcs_become(sv.fd, 1, PATIENCE) == 1, "%u RPCs", rpcs_of(sv.fd));
	alive();
}

/* The first one counts. */
void hostile_contradiction(void)
{
	uint64_t id = new_id();
	size_t i;

	begin();
	make_data(&frame, 2, PEER_PORT, PORT, id, 3000, 0, 1000);
	send_packet(&frame);
	for (i = 0; i < ARRAY_SIZE(sore); i++) {
		make_data(&frame, 2, PEER_PORT, PORT, id, sore[i], 1000, 500);
		send_packet(&frame);
		make_data(&frame, 2, PEER_PORT, PORT, id, sore[i],
			  sore[i] - 100, 100);
		send_packet(&frame);
	}
	make_data(&frame, 2, PEER_PORT, PORT, id, 3000, 2000, 1000);
	send_packet(&frame);
	make_data(&frame, 2, PEER_PORT, PORT, id, 3000, 1000, 1000);
	send_packet(&frame);
	ping(2, 3000);
	alive();
}

void hostile_num_acks(void)
{
	static const uint32_t counts[] = { 6,	   7,	   255,	  256,
					   0x7fff, 0x8000, 0xffff };
	long long before;
	uint8_t *homa;
	size_t i, n;

	begin();
	before = metric("drop_count");
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		homa = make(&frame, 2, HOMA_ACK, PEER_PORT, PORT, new_id(),
			    HOMA_ACK_LEN);
		put16(homa + 28, counts[i]);
		send_packet(&frame);
		/* As long as it says, and not a bit longer than a frame. */
		n = counts[i] < 140 ? counts[i] : 140;
		homa = make(&frame, 2, HOMA_ACK, PEER_PORT, PORT, new_id(),
			    30 + 10 * n);
		put16(homa + 28, counts[i]);
		send_packet(&frame);
	}
	barrier(-1);
	counted("drop_count", before, 2 * (long long)ARRAY_SIZE(counts));
	alive();
}

void hostile_grant_high_bit(void)
{
	static const uint32_t offsets[] = { 0x80000000, 0xffffffff, 0x7fffffff,
					    100001 };
	uint64_t id;
	size_t i;

	begin();
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		id = ask(2, 100000);
		data_until(id, UNSCHED);
		grant(2, id, offsets[i], 1);
		data_until(id, 100000);
		finish(2, id, 50);
	}
	/* And for nothing at all. */
	id = ask(2, 100);
	data_until(id, 100);
	grant(2, id, 0xffffffff, 1);
	grant(2, id, 0, 1);
	finish(2, id, 50);
	grant(2, id, 0xffffffff, 1);
	alive();
}

void hostile_data_beyond(void)
{
	uint64_t id = new_id();
	size_t i;

	begin();
	dropped_data(1000, 1000, 1, "drop_offset");
	dropped_data(1000, 999, 2, "drop_offset");
	dropped_data(1000, 0, 1001, "drop_offset");
	dropped_data(1000, 0x80000000, 100, "drop_offset");
	dropped_data(1000, 0xffffff00, 0x100, "drop_offset"); /* the sum is 0 */
	dropped_data(1000, 0xffffff00, 0x200, "drop_offset");
	/* Into a message that has begun. */
	make_data(&frame, 2, PEER_PORT, PORT, id, 5000, 0, 1000);
	send_packet(&frame);
	for (i = 0; i < ARRAY_SIZE(sore); i++) {
		if (sore[i] < 5000)
			continue;
		make_data(&frame, 2, PEER_PORT, PORT, id, 5000, sore[i], 700);
		send_packet(&frame);
	}
	/* Overlaps: what is new in them is taken, once. */
	for (i = 0; i < 4; i++) {
		make_data(&frame, 2, PEER_PORT, PORT, id, 5000,
			  800 * (uint32_t)i + 500, 1300);
		send_packet(&frame);
	}
	make_data(&frame, 2, PEER_PORT, PORT, id, 5000, 3700, 1300);
	send_packet(&frame);
	ping(2, 5000);
	alive();
}

void hostile_empty_data(void)
{
	begin();
	make_data(&frame, 2, PEER_PORT, PORT, new_id(), 0, 0, 0);
	send_packet(&frame);
	dropped_data(100, 0, 0, "drop_empty");
	dropped_data(100, 50, 0, "drop_empty");
	dropped_data(100, 100, 0, "drop_empty");
	alive();
}

/* Nothing that `incoming` says lets the machine grant less than is there or more than there is. */
void hostile_incoming_lies(void)
{
	uint8_t *homa;
	uint64_t id;
	size_t i;

	begin();
	for (i = 0; i < ARRAY_SIZE(sore); i++) {
		id = new_id();
		homa = make_data(&frame, 2, PEER_PORT, PORT, id, 2000, 0, 1000);
		put32(homa + 32, sore[i]);
		send_packet(&frame);
		homa = make_data(&frame, 2, PEER_PORT, PORT, id, 2000, 1000,
				 1000);
		put32(homa + 32, sore[ARRAY_SIZE(sore) - 1 - i]);
		send_packet(&frame);
		ping(2, 2000);
	}
	alive();
}

void hostile_resend_ranges(void)
{
	uint64_t id;
	size_t i, k;

	begin();
	id = ask(2, 100000);
	data_until(id, UNSCHED);
	for (i = 0; i < ARRAY_SIZE(sore); i++)
		for (k = 0; k < ARRAY_SIZE(sore); k++)
			resend(2, id, sore[i], sore[k], (int)(i + k));
	/* Whatever is sent lies in the message and has its bytes: data_until() looks. */
	forget();
	grant(2, id, 100000, 2);
	resend(2, id, 0, 0xffffffff, 7);
	data_until(id, 100000);
	finish(2, id, 50);
	/* For the response that does not exist yet, and for one that is over. */
	id = new_id();
	make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
	send_packet(&frame);
	serve(id, 100);
	for (i = 0; i < ARRAY_SIZE(sore); i++) {
		uint8_t *homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT,
				     id, HOMA_RESEND_LEN);

		put32(homa + 28, sore[i]);
		put32(homa + 32, sore[ARRAY_SIZE(sore) - 1 - i]);
		homa[36] = 255;
		send_packet(&frame);
		CHECK(await(&seen, HOMA_BUSY, id ^ 1, PATIENCE),
		      "not BUSY but silent");
	}
	answer(2, id, "r", 1);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE), "no response");
	alive();
}

void hostile_bad_ids(void)
{
	static const int types[] = { HOMA_DATA,	       HOMA_GRANT, HOMA_RESEND,
				     HOMA_RPC_UNKNOWN, HOMA_BUSY,  HOMA_CUTOFFS,
				     HOMA_NEED_ACK,    HOMA_ACK };
	static const size_t bytes[] = { 156, 33, 37, 28, 28, 62, 28, 80 };
	static const uint64_t ids[] = { 0, 1, ~0ull, ~1ull, 1ull << 63, 77777 };
	size_t i, k;
	uint8_t *homa;

	begin();
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (k = 0; k < 4 * ARRAY_SIZE(ids); k++) {
			homa = make(&frame, 2, types[i], k & 1 ? PEER_PORT : 0,
				    k & 2 ? PORT : 0, ids[k / 4], bytes[i]);
			if (types[i] == HOMA_DATA)
				put32(homa + 28, 100);
			send_packet(&frame);
		}
	}
	barrier(-1);
	/* Requests with odd ids are responses to nothing. */
	make_data(&frame, 2, PEER_PORT, PORT, new_id() | 1, 100, 0, 100);
	send_packet(&frame);
	barrier(-1);
	/* Those of a client that says it does not know them have ended meanwhile. */
	while (receive(&sv, 0, MSG_DONTWAIT) > 0) {
		CHECK(sv.args.id & 1 && sv.args.id != 1 && sv.from.in4.sin_port,
		      "RPC %llx", (unsigned long long)sv.args.id);
	}
	alive();
}

void hostile_unknown_types(void)
{
	long long before;
	int type;

	begin();
	before = metric("drop_type");
	for (type = 0; type < 256; type++) {
		if (type >= HOMA_TYPE_FIRST && type <= HOMA_TYPE_LAST)
			continue;
		make(&frame, 2, type, PEER_PORT, PORT, new_id(), 100);
		send_packet(&frame);
	}
	CHECK(barrier(-1) == 0, "some were answered");
	counted("drop_type", before, 256 - HOMA_TYPES);
	alive();
}

/* All that carries no information is 0, in everything the machine can be made to say. */
static void clean(size_t bytes)
{
	size_t i;

	CHECK(seen.bytes == bytes, "type %02x has %zu bytes, not %zu",
	      seen.type, seen.bytes, bytes);
	for (i = 8; i < 11; i++)
		CHECK(!seen.homa[i], "type %02x: byte %zu is %02x", seen.type,
		      i, seen.homa[i]);
	CHECK(!get16(seen.homa + 14), "type %02x: window %04x", seen.type,
	      get16(seen.homa + 14));
	/* Nothing hangs on behind: the frame ends with the packet. */
	CHECK(seen.homa + seen.bytes == seen.frame + seen.size || seen.size <= 60,
	      "trailing bytes");
}

void hostile_stack_leak(void)
{
	uint64_t id = new_id(), done;
	int i;

	begin();
	/* RPC_UNKNOWN */
	for (i = 0; i < 5; i++) {
		uint8_t *homa = make(&frame, 3, HOMA_RESEND, PEER_PORT, PORT,
				     new_id(), 37);

		put32(homa + 32, 1000);
		send_packet(&frame);
		CHECK(await(&seen, HOMA_RPC_UNKNOWN, 0, PATIENCE),
		      "no RPC_UNKNOWN");
		clean(HOMA_COMMON_HDR);
	}
	make(&frame, 3, HOMA_NEED_ACK, PEER_PORT, client_port(), new_id() | 1,
	     28);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_RPC_UNKNOWN, 0, PATIENCE), "no RPC_UNKNOWN");
	clean(HOMA_COMMON_HDR);
	/* ACK, as one is owed */
	done = ask(2, 100);
	finish(2, done, 50);
	make(&frame, 2, HOMA_NEED_ACK, PEER_PORT, client_port(), done ^ 1, 28);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_ACK, 0, PATIENCE), "no ACK");
	clean(HOMA_ACK_LEN);
	for (i = 30 + 10 * (int)get16(seen.homa + 28); i < HOMA_ACK_LEN; i++)
		CHECK(!seen.homa[i], "byte %d of an ACK with %u acks is %02x",
		      i, get16(seen.homa + 28), seen.homa[i]);
	/* GRANT and RESEND, for a request of which much is missing */
	make_data(&frame, 2, PEER_PORT, PORT, id, 500000, 0, 1000);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_GRANT, id ^ 1, PATIENCE), "no GRANT");
	clean(HOMA_GRANT_LEN);
	CHECK(await(&seen, HOMA_RESEND, id ^ 1, PATIENCE), "no RESEND");
	clean(HOMA_RESEND_LEN);
	/* BUSY, DATA */
	id = new_id();
	make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
	send_packet(&frame);
	serve(id, 100);
	make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, id, 37);
	put32(frame.bytes + frame.l4 + 32, 0xffffffff);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_BUSY, id ^ 1, PATIENCE), "no BUSY");
	clean(HOMA_COMMON_HDR);
	answer(2, id, "pong", 4);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, PATIENCE), "no DATA");
	clean(HOMA_DATA_HDR + 4);
	CHECK(await(&seen, HOMA_NEED_ACK, id ^ 1, PATIENCE), "no NEED_ACK");
	clean(HOMA_COMMON_HDR);
	alive();
}

void hostile_duplicates(void)
{
	uint64_t id = new_id();
	int i;

	begin();
	for (i = 0; i < 3; i++) {
		make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
		send_packet(&frame);
	}
	ping(2, 100);
	for (i = 0; i < 3; i++) {
		uint8_t *homa =
			make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);

		homa[48] = (uint8_t)(i & 1); /* said to be a retransmission */
		send_packet(&frame);
	}
	barrier(-1);
	CHECK(!readable(sv.fd, 100), "executed again after its acknowledgment");
	alive();
}

void hostile_start_msg(void)
{
	uint64_t id;
	size_t i;

	begin();
	for (i = 0; i < ARRAY_SIZE(sore); i++) {
		uint8_t *homa = make(&frame, 2, HOMA_START_MSG, PEER_PORT, PORT,
				     new_id(), 32);

		put32(homa + 28, sore[i]);
		send_packet(&frame);
	}
	barrier(-1);
	/* One that is meant: granted from the start. */
	id = new_id();
	put32(make(&frame, 2, HOMA_START_MSG, PEER_PORT, PORT, id, 32) + 28,
	      2000);
	send_packet(&frame);
	CHECK(await(&seen, HOMA_GRANT, id ^ 1, PATIENCE), "not granted");
	for (i = 0; i < 2; i++) {
		make_data(&frame, 2, PEER_PORT, PORT, id, 2000,
			  1000 * (uint32_t)i, 1000);
		send_packet(&frame);
	}
	ping(2, 2000);
	alive();
}
