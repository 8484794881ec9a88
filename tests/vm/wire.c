// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the machine sends in the situations of tests/data/wire-vectors, frame by
 * frame, for test_wire.py to compare with what the existing module sends:
 *
 *	wire 4|6
 *
 * prints "frame NAME HEX", HEX from the IP header on, and "note NAME VALUE". We
 * are the peer behind a tap (tap.h): what provokes each packet is said here, what
 * it must look like is said there.
 */
#include <signal.h>
#include "peer.h"

static void print(const char *name)
{
	const uint8_t *ip = seen.frame + ETH;
	size_t i, n = seen.size - ETH;

	printf("frame %s ", name);
	for (i = 0; i < n; i++)
		printf("%02x", ip[i]);
	printf("\n");
}

static void want(const char *name, int type, uint64_t id)
{
	CHECK(await(&seen, type, id, PATIENCE), "%s never came", name);
	print(name);
}

static uint8_t *control(int type, uint64_t id, size_t bytes)
{
	return make(&frame, 2, type, PEER_PORT, client_port(), id ^ 1, bytes);
}

/* Requests of the machine: one packet, several, granted, asked for again. */
static void requests(void)
{
	uint64_t id = ask(2, 100), first = id;
	uint8_t *homa;
	int i;

	printf("note client_port %d\n", client_port());
	printf("note first_id %llu\n", (unsigned long long)id);
	want("data_newpeer", HOMA_DATA, id);
	homa = control(HOMA_CUTOFFS, id, HOMA_CUTOFFS_LEN);
	for (i = 0; i < 4; i++)
		put32(homa + 28 + 4 * i, i ? 0 : 0x7fffffff);
	put32(homa + 44, 1000000);
	put32(homa + 48, 15000);
	put32(homa + 52, 2800);
	put32(homa + 56, 200);
	put16(homa + 60, 3);
	send_packet(&frame);
	finish(2, id, 50);

	/* Level 7, with the cutoffs' version and the ack of the first. */
	id = ask(2, 100);
	want("data_single", HOMA_DATA, id);
	printf("note acked %llu\n", (unsigned long long)first);
	finish(2, id, 50);

	/* Level 5: three packets. */
	id = ask(2, 3000);
	for (i = 0; i < 3; i++)
		want("data_multi", HOMA_DATA, id);
	/* A gap of it, and all, again. */
	homa = control(HOMA_RESEND, id, HOMA_RESEND_LEN);
	put32(homa + 28, PACKET);
	put32(homa + 32, PACKET);
	homa[36] = 7;
	send_packet(&frame);
	want("data_retransmit", HOMA_DATA, id);
	put32(control(HOMA_RESEND, id, HOMA_RESEND_LEN) + 32, 0xffffffff);
	frame.bytes[frame.l4 + 36] = 6;
	send_packet(&frame);
	for (i = 0; i < 3; i++)
		want("data_retransmit_all", HOMA_DATA, id);
	/* The server does not know it: from the start. */
	control(HOMA_RPC_UNKNOWN, id, HOMA_COMMON_HDR);
	send_packet(&frame);
	for (i = 0; i < 3; i++)
		want("data_retransmit_unknown", HOMA_DATA, id);
	finish(2, id, 50);

	/* More than may be sent unasked; then at a scheduled level. */
	id = ask(2, 60000);
	printf("note unsched %u\n", UNSCHED);
	for (i = 0; i < (int)((UNSCHED + PACKET - 1) / PACKET); i++)
		want("data_unsched", HOMA_DATA, id);
	homa = control(HOMA_GRANT, id, HOMA_GRANT_LEN);
	put32(homa + 28, UNSCHED + 5000);
	homa[32] = 1;
	send_packet(&frame);
	want("data_sched", HOMA_DATA, id);
	/* Beyond what was granted: a lost grant; beyond what was sent: busy. */
	control(HOMA_NEED_ACK, id, HOMA_COMMON_HDR);
	send_packet(&frame);
	want("resend_response", HOMA_RESEND, id);
	put32(control(HOMA_GRANT, id, HOMA_GRANT_LEN) + 28, 60000);
	send_packet(&frame);
	finish(2, id, 50);
	/* Done: NEED_ACK is answered by ACK, with others that wait. */
	control(HOMA_NEED_ACK, id, HOMA_COMMON_HDR);
	send_packet(&frame);
	want("ack", HOMA_ACK, id);
	printf("note acked_by_ack %llu\n", (unsigned long long)id);
	/* What nobody knows. */
	put32(control(HOMA_RESEND, 2, HOMA_RESEND_LEN) + 32, 100);
	send_packet(&frame);
	want("unknown", HOMA_RPC_UNKNOWN, 2);
}

/* Requests to the machine: grants, what is missing, the response, the end. */
static void responses(void)
{
	uint64_t id = new_id();
	static uint8_t bytes[3000];
	uint8_t *homa;
	uint32_t i;

	printf("note server_id %llu\n", (unsigned long long)(id ^ 1));
	make_data(&frame, 2, PEER_PORT, PORT, id, 100000, 0, 1000);
	send_packet(&frame);
	want("cutoffs", HOMA_CUTOFFS, id ^ 1);
	want("grant", HOMA_GRANT, id ^ 1);
	/* 1,000 to 2,000 is missing, and all after 3,000. */
	make_data(&frame, 2, PEER_PORT, PORT, id, 100000, 2000, 1000);
	send_packet(&frame);
	want("resend_gap", HOMA_RESEND, id ^ 1);
	/* What was overtaken is asked for by itself, and with all the rest after silence. */
	do
		CHECK(await(&seen, HOMA_RESEND, id ^ 1, PATIENCE),
		      "resend_tail never came");
	while (get32(seen.homa + 28) == 1000);
	print("resend_tail");

	id = new_id();
	make_data(&frame, 2, PEER_PORT, PORT, id, 100, 0, 100);
	send_packet(&frame);
	serve(id, 100);
	printf("note response_id %llu\n", (unsigned long long)(id ^ 1));
	homa = make(&frame, 2, HOMA_RESEND, PEER_PORT, PORT, id, HOMA_RESEND_LEN);
	put32(homa + 32, 0xffffffff);
	homa[36] = 7;
	send_packet(&frame);
	want("busy", HOMA_BUSY, id ^ 1);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = byte_at(i);
	answer(2, id, bytes, sizeof(bytes));
	for (i = 0; i < 3; i++)
		want("data_response", HOMA_DATA, id ^ 1);
	want("need_ack", HOMA_NEED_ACK, id ^ 1);
}

/* Acks that wait are sent five at a time when there is no DATA to carry them. */
static void many_acks(void)
{
	uint64_t ids[12];
	int i;

	for (i = 0; i < 12; i++) {
		ids[i] = ask(2, 10);
		want("data_ten", HOMA_DATA, ids[i]);
	}
	for (i = 0; i < 12; i++)
		finish(2, ids[i], 20);
	want("ack_many", HOMA_ACK, 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "arguments");
	signal(SIGPIPE, SIG_IGN);
	version = atoi(argv[1]);
	meet(200);
	requests();
	responses();
	many_acks();
	printf("ok\n");
	return 0;
}
