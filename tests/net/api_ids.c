// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The server's id of an RPC is its client's, the last bit changed, whatever lies
 * between them: it is the one in the packets. Asks an api_server which ids it sees.
 *
 *	api_ids ADDRESS
 */
#include "api_common.h"

#define COUNT 50u

static struct homa *h;
static struct sockaddr_storage server;
static unsigned char data[HOMA_MAX_MESSAGE];

static void ask(size_t length, unsigned int flags, uint64_t *ids)
{
	struct api_order order = { .mark = API_ORDER, .what = API_ID };
	unsigned int i;

	memcpy(data, &order, sizeof(order));
	for (i = 0; i < COUNT; i++)
		API_CHECK(!homa_request(h, (struct sockaddr *)&server,
					sizeof(server), data, length, i, flags,
					&ids[i]),
			  "%s", homa_error(h));
}

static void check(size_t length, unsigned int flags)
{
	struct homa_message msg;
	uint64_t ids[COUNT], seen;
	unsigned int i;

	ask(length, flags, ids);
	for (i = 0; i < COUNT; i++) {
		API_CHECK(!homa_receive_id(h, &msg, ids[i], 60000), "%s",
			  homa_error(h));
		API_CHECK(msg.kind == HOMA_RESPONSE && msg.cookie == i,
			  "error %d", msg.error);
		API_CHECK(msg.id == ids[i] && !(ids[i] & 1), "its own id");
		API_CHECK(homa_copy(&msg, &seen, sizeof(seen)) == sizeof(seen),
			  "length %zu", msg.length);
		API_CHECK(seen == (ids[i] ^ 1),
			  "%zu bytes: %llx here, %llx at the server", length,
			  (unsigned long long)ids[i], (unsigned long long)seen);
		homa_release(h, &msg);
	}
}

int main(int argc, char **argv)
{
	static const size_t lengths[] = { 8, 1000, 5000, 70000, 500000 };
	size_t i;

	API_CHECK(argc == 2, "usage: api_ids ADDRESS");
	API_CHECK(!homa_parse_address(argv[1], &server), "%s", homa_open_error());
	API_CHECK(!homa_open(&h, NULL), "%s", homa_open_error());
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		check(lengths[i], 0);
		check(lengths[i], HOMA_PRIVATE);
	}
	homa_close(h);
	printf("ok\n");
	return 0;
}
