// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs to be looked at by ./homa ss, top and trace, over the raw ABI:
 *
 *	rpcs serve PORT		echo every request; prints "serving"
 *	rpcs hold PORT		take requests and never answer; prints "serving"
 *	rpcs ask IPV4 PORT COUNT LENGTH [OUTSTANDING]
 *				COUNT requests (0: without end); prints "asking"
 *				after the first was sent, "done N failed M" at
 *				the end
 *	rpcs spread IPV4 PORT COUNT
 *				one request to each of COUNT addresses from that one on; prints
 *				"refused N" (EDQUOT) "failed M" once homad has taken all, and
 *				keeps the others open
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "raw.h"

static void serve(struct raw *r, uint16_t port, bool hold)
{
	struct homa_sqe sqe = { .op = HOMA_SQE_REPLY };
	struct homa_cqe cqe;
	int rc = raw_bind(r, port);

	if (rc)
		raw_die("rpcs: cannot bind: %s", strerror(-rc));
	printf("serving\n");
	fflush(stdout);
	for (;;) {
		if (!raw_next(r, &cqe, 1000) || cqe.kind != HOMA_CQE_REQUEST)
			continue;
		raw_release(r, &cqe);
		if (hold)
			continue;
		sqe.token = cqe.token;
		sqe.length = cqe.length;
		sqe.segment = cqe.length > HOMA_SHM_STAGE;
		while (!raw_push(r, 0, &sqe))
			usleep(100);
	}
}

static void ask(struct raw *r, const char *ip, uint16_t port,
		unsigned long count, uint32_t length, unsigned long outstanding)
{
	unsigned long sent = 0, done = 0, failed = 0;
	uint8_t to[16] = { [10] = 0xff, [11] = 0xff };
	struct homa_cqe cqe;

	if (inet_pton(AF_INET, ip, to + 12) != 1)
		raw_die("rpcs: %s is no IPv4 address", ip);
	while (!count || done < count) {
		while ((!count || sent < count) && sent - done < outstanding) {
			struct homa_sqe sqe = raw_sqe(r, to, port, 0, length);

			sqe.segment = length > HOMA_SHM_STAGE;
			if (!raw_push(r, 0, &sqe))
				break;
			if (!sent++) {
				printf("asking\n");
				fflush(stdout);
			}
		}
		if (!raw_next(r, &cqe, 1000) || cqe.kind == HOMA_CQE_FREE)
			continue;
		done++;
		failed += cqe.kind != HOMA_CQE_RESPONSE;
		if (cqe.kind == HOMA_CQE_RESPONSE)
			raw_release(r, &cqe);
	}
	printf("done %lu failed %lu\n", done, failed);
}

static void count_failure(const struct homa_cqe *cqe, uint32_t *refused,
			  uint32_t *failed)
{
	if (cqe->kind == HOMA_CQE_FAILED && cqe->error == EDQUOT)
		++*refused;
	else if (cqe->kind == HOMA_CQE_FAILED)
		++*failed;
}

static void spread(struct raw *r, const char *ip, uint16_t port, uint32_t count)
{
	uint8_t to[16] = { [10] = 0xff, [11] = 0xff };
	uint32_t sent = 0, refused = 0, failed = 0, first;
	struct homa_sqe sqe = { 0 };
	struct homa_cqe cqe;

	if (inet_pton(AF_INET, ip, &first) != 1)
		raw_die("rpcs: %s is no IPv4 address", ip);
	while (sent < count || __atomic_load_n(&r->submit[0].index->head,
					       __ATOMIC_ACQUIRE) != count) {
		uint32_t next = htonl(ntohl(first) + sent);

		memcpy(to + 12, &next, sizeof(next));
		/* Each entry has a token of its own, so one that finds no room stays. */
		if (sent < count && !sqe.token)
			sqe = raw_sqe(r, to, port, 0, 100);
		if (sent < count && raw_push(r, 0, &sqe)) {
			sqe.token = 0;
			sent++;
		}
		while (raw_next(r, &cqe, sent < count ? 0 : 10))
			count_failure(&cqe, &refused, &failed);
	}
	while (raw_next(r, &cqe, 500))
		count_failure(&cqe, &refused, &failed);
	printf("refused %u failed %u\n", refused, failed);
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct raw r;
	int rc = raw_attach(&r, 0);

	if (rc)
		raw_die("rpcs: cannot attach: %s", strerror(-rc));
	raw_room(&r);
	if (argc == 3)
		serve(&r, (uint16_t)atoi(argv[2]), !strcmp(argv[1], "hold"));
	else if (argc == 5 && !strcmp(argv[1], "spread"))
		spread(&r, argv[2], (uint16_t)atoi(argv[3]),
		       (uint32_t)atoi(argv[4]));
	else if (argc >= 6)
		ask(&r, argv[2], (uint16_t)atoi(argv[3]),
		    strtoul(argv[4], NULL, 0), (uint32_t)atoi(argv[5]),
		    argc > 6 ? strtoul(argv[6], NULL, 0) : 8);
	else
		raw_die("rpcs: what?");
	raw_close(&r);
	return 0;
}
