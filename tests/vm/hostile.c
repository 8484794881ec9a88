// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hostile packets, one check for each way in which Homa's receivers have been
 * broken before, or could be:
 *
 *	hostile 4|6 plain|napi|frags [CHECK...]
 *
 * See tap.h for how packets enter the kernel.
 */
#include <signal.h>
#include "hostile_vm.h"

void begin(void)
{
	meet(100);
	quiet();
}

/*
 * Waits for the packet of a response of @size bytes. A machine that is slow by what it checks
 * may lose it, because the queue of the device was full of what a flood had it ask. Its client
 * asks for it then, as clients do.
 */
static bool answered(int peer, uint64_t id, uint32_t size)
{
	const int times = patience();
	uint8_t *homa;
	int i;

	for (i = 1; !await(&seen, HOMA_DATA, id ^ 1, PATIENCE / times); i++) {
		if (i >= times)
			return false;
		homa = make(&frame, peer, HOMA_RESEND, PEER_PORT, PORT, id,
			    HOMA_RESEND_LEN);
		put32(homa + 32, size);
		send_packet(&frame);
	}
	return true;
}

void ping(int peer, uint32_t size)
{
	uint64_t id = get64(frame.bytes + frame.l4 + 20);
	struct iovec iov[HOMA_MAX_BPAGES];
	uint32_t i;

	serve(id, size);
	pieces(&sv, size, iov);
	for (i = 0; i < size && i < HOMA_BPAGE_SIZE; i++)
		CHECK(((uint8_t *)iov[0].iov_base)[i] == byte_at(i),
		      "byte %u of %u", i, size);
	answer(peer, id, "pong", 4);
	CHECK(answered(peer, id, 4), "no response packet");
	CHECK(seen.bytes == HOMA_DATA_HDR + 4 &&
		      !memcmp(seen.homa + HOMA_DATA_HDR, "pong", 4),
	      "%zu bytes", seen.bytes);
	CHECK(seen.sport == PORT && seen.dport == PEER_PORT && seen.peer == peer,
	      "addresses");
	/* We are done with it. */
	make(&frame, peer, HOMA_ACK, PEER_PORT, PORT, id, HOMA_ACK_LEN);
	send_packet(&frame);
}

void alive(void)
{
	uint64_t id;

	make_data(&frame, 2, PEER_PORT, PORT, new_id(), 100, 0, 100);
	send_packet(&frame);
	ping(2, 100);
	id = ask(2, 200);
	data_until(id, 200);
	finish(2, id, 50);
}

/* What was seen of a message since forget(). */
static uint8_t have[HOMA_MAX_MESSAGE_LENGTH];
static uint64_t have_of;

void forget(void)
{
	have_of = 0;
}

static uint32_t missing(uint32_t end)
{
	uint32_t i, n = 0;

	for (i = 0; i < end; i++)
		n += !have[i];
	return n;
}

void data_until(uint64_t id, uint32_t end)
{
	if (have_of != id)
		memset(have, 0, sizeof(have));
	have_of = id;
	while (missing(end)) {
		uint32_t offset, n, i;

		CHECK(await(&seen, HOMA_DATA, id, PATIENCE),
		      "%u bytes of %u were not sent", missing(end), end);
		offset = seen_offset(&seen);
		n = (uint32_t)seen.bytes - HOMA_DATA_HDR;
		CHECK(seen.bytes > HOMA_DATA_HDR &&
			      offset + n <= get32(seen.homa + 28),
		      "bytes %u to %u of a message of %u", offset, offset + n,
		      get32(seen.homa + 28));
		CHECK(!(seen.tos & 0x1f), "TOS %02x", seen.tos);
		for (i = 0; i < n; i++)
			CHECK(seen.homa[HOMA_DATA_HDR + i] == byte_at(offset + i),
			      "byte %u", offset + i);
		memset(have + offset, 1, n);
	}
}

void grant(int peer, uint64_t id, uint32_t offset, int priority)
{
	uint8_t *homa = make(&frame, peer, HOMA_GRANT, PEER_PORT, client_port(),
			     id ^ 1, HOMA_GRANT_LEN);

	put32(homa + 28, offset);
	homa[32] = (uint8_t)priority;
	send_packet(&frame);
}

void resend(int peer, uint64_t id, uint32_t offset, uint32_t length, int priority)
{
	uint8_t *homa = make(&frame, peer, HOMA_RESEND, PEER_PORT,
			     client_port(), id ^ 1, HOMA_RESEND_LEN);

	put32(homa + 28, offset);
	put32(homa + 32, length);
	homa[36] = (uint8_t)priority;
	send_packet(&frame);
}

void counted(const char *name, long long before, long long n)
{
	long long after = metric(name);

	CHECK(before >= 0 && after >= 0, "there is no counter %s", name);
	CHECK(after - before >= n, "%s grew by %lld, not %lld", name,
	      after - before, n);
}

#define X(name, text) { text, hostile_##name },
static const struct check checks[] = { FIELD_CHECKS(X) SPOOF_CHECKS(X)
					       ROOM_CHECKS(X) SHAPE_CHECKS(X) };
#undef X

int main(int argc, char **argv)
{
	char prefix[64];
	int failed;

	CHECK(argc >= 3, "arguments");
	signal(SIGPIPE, SIG_IGN);
	version = atoi(argv[1]);
	name_flavour(argv[2]);
	snprintf(prefix, sizeof(prefix), "hostile v%d %s: ", version, argv[2]);
	failed = run_checks(checks, ARRAY_SIZE(checks), prefix, 120, argv + 3);
	print_plan();
	return failed != 0;
}
