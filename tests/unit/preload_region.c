// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The receive region and the table of RPCs of lib/preload, without sockets:
 * pieces never overlap, come back once, and everything is free again at the end.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "libhoma_preload.h"
#include "../../lib/preload/internal.h"
#include "../../lib/preload/real.h"
#include "../../lib/preload/preload_sock.h"

#define BYTES (((size_t)3 << 20) + 5000)

/* What region.c and rpcs.c want of their neighbours. */
struct homa_pl_real homa_pl_real = { .munmap = munmap };
struct homa_pl_sock *homa_pl_all;
unsigned int homa_pl_generation;
static int lend_result;
static void (*while_lending)(void); /* what another thread does just then */

void homa_pl_resolve(void *where, const char *name)
{
	(void)where;
	(void)name;
}

int homa_pl_error(struct homa_pl_sock *s, int rc, const char *text)
{
	(void)s;
	assert_true(strlen(text) < HOMA_ERROR_MSG_SIZE);
	return rc;
}

void homa_pl_debug(const char *format, ...)
{
	(void)format;
}

const char *homa_error(struct homa *h)
{
	(void)h;
	return "";
}

int homa_internal_set_region(struct homa *h, void *region, size_t bytes)
{
	(void)h;
	assert_non_null(region);
	assert_int_equal(bytes % HOMA_BPAGE_SIZE, 0);
	if (while_lending)
		while_lending();
	return lend_result;
}

/* And recv.c and options.c: no message ever comes. */
static int received;

int homa_receive_ns(struct homa *h, struct homa_message *msg,
		    unsigned int flags, int64_t timeout_ns)
{
	(void)h;
	(void)msg;
	(void)flags;
	(void)timeout_ns;
	received++;
	return -EAGAIN;
}

int homa_receive_id(struct homa *h, struct homa_message *msg, uint64_t id,
		    int timeout_ms)
{
	(void)h;
	(void)msg;
	(void)id;
	(void)timeout_ms;
	received++;
	return -EAGAIN;
}

void homa_release(struct homa *h, struct homa_message *msg)
{
	(void)h;
	(void)msg;
}

int homa_internal_release_pages(struct homa *h, const uint32_t *pages,
				uint32_t num)
{
	(void)h;
	(void)pages;
	(void)num;
	return 0;
}

int homa_pl_serve(struct homa_pl_sock *s, bool on)
{
	(void)s;
	(void)on;
	return 0;
}

void homa_pl_claim_port(struct homa_pl_sock *s)
{
	(void)s;
}

int64_t homa_pl_now(void)
{
	return 0;
}

static struct homa_pl_sock *new_sock(void)
{
	struct homa_pl_sock *s = calloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	homa_pl_all = s;
	return s;
}

static uint8_t *map(void)
{
	return mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static struct homa_pl_sock *with_region(void)
{
	struct homa_pl_sock *s = new_sock();

	assert_int_equal(homa_pl_region_set(s, (uintptr_t)map(), BYTES), 0);
	assert_int_equal(s->region.pages, BYTES / HOMA_BPAGE_SIZE);
	return s;
}

static void done(struct homa_pl_sock *s)
{
	homa_pl_rpcs_free(s);
	homa_pl_region_free(s);
	free(s);
	homa_pl_all = NULL;
}

struct message {
	size_t length;
	uint32_t num;
	uint32_t offsets[HOMA_MAX_BPAGES];
};

/* Marks the bytes of @m in @owner, which must have been free. */
static void mark(uint8_t *owner, const struct message *m, uint8_t was, uint8_t is)
{
	size_t left = m->length;
	uint32_t i;

	for (i = 0; i < m->num; i++) {
		size_t j, n = left < HOMA_BPAGE_SIZE ? left : HOMA_BPAGE_SIZE;

		assert_true(m->offsets[i] + n <=
			    BYTES / HOMA_BPAGE_SIZE * HOMA_BPAGE_SIZE);
		if (left > HOMA_BPAGE_SIZE)
			assert_int_equal(m->offsets[i] % HOMA_BPAGE_SIZE, 0);
		/* An assertion for each byte would take most of the time. */
		for (j = 0; j < n && owner[m->offsets[i] + j] == was; j++)
			;
		assert_int_equal(j, n);
		memset(&owner[m->offsets[i]], is, n);
		left -= n;
	}
	assert_int_equal(left, 0);
}

static size_t random_length(void)
{
	switch (rand() % 4) {
	case 0:
		return 1 + (size_t)rand() % 200;
	case 1:
		return 1 + (size_t)rand() % 70000;
	case 2:
		return HOMA_BPAGE_SIZE * (1 + (size_t)rand() % 3);
	default:
		return 1 + (size_t)rand() % HOMA_MAX_MESSAGE_LENGTH;
	}
}

static void region_get__never_overlaps(void **state)
{
	struct homa_pl_sock *s = with_region();
	uint8_t *owner = calloc(1, BYTES);
	struct message held[64];
	int i, n, rounds, count = 0, refused = 0;

	(void)state;
	srand(1);
	for (rounds = 0; rounds < 20000; rounds++) {
		struct message *m = &held[count];

		if (count < 64 && rand() % 2) {
			m->length = random_length();
			n = homa_pl_region_get(&s->region, m->length, m->offsets);
			if (n < 0) {
				assert_int_equal(n, -ENOBUFS);
				refused++;
				continue;
			}
			m->num = (uint32_t)n;
			mark(owner, m, 0, 1);
			count++;
		} else if (count) {
			i = rand() % count;
			mark(owner, &held[i], 1, 0);
			assert_int_equal(homa_pl_region_put(&s->region,
							    held[i].num,
							    held[i].offsets),
					 0);
			assert_int_equal(homa_pl_region_put(&s->region,
							    held[i].num,
							    held[i].offsets),
					 -EINVAL);
			held[i] = held[--count];
		}
	}
	assert_true(refused > 10);
	while (count--)
		assert_int_equal(homa_pl_region_put(&s->region, held[count].num,
						    held[count].offsets),
				 0);
	/* Nothing is lost: as many long messages fit as there is room for. */
	for (i = 0; i < 3; i++)
		assert_int_equal(homa_pl_region_get(&s->region,
						    15 << HOMA_BPAGE_SHIFT,
						    held[i].offsets),
				 15);
	free(owner);
	done(s);
}

static void region_put__refuses_nonsense(void **state)
{
	struct homa_pl_sock *s = with_region();
	uint32_t offsets[2], bad[] = { 1, 64, 0xffffffff, 0x80000000, 48u << 16 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(homa_pl_region_put(&s->region, 1, &bad[i]),
				 -EINVAL);
	assert_int_equal(homa_pl_region_get(&s->region, 100, &offsets[0]), 1);
	assert_int_equal(homa_pl_region_get(&s->region, 100, &offsets[1]), 1);
	bad[0] = offsets[0] + 64; /* inside */
	assert_int_equal(homa_pl_region_put(&s->region, 1, bad), -EINVAL);
	assert_int_equal(homa_pl_region_put(&s->region, 2, offsets), 0);
	assert_int_equal(homa_pl_region_put(&s->region, 1, offsets), -EINVAL);
	done(s);
}

static void region_note__counts_what_libhoma_gives(void **state)
{
	struct homa_pl_sock *s = with_region();
	uint32_t offsets[3] = { 0, 64, 7u << 16 };
	uint64_t all = homa_pl_region_avail(&s->region);

	(void)state;
	assert_int_equal(all, (uint64_t)s->region.pages << 16);
	homa_pl_region_note(&s->region, 3, offsets);
	assert_int_equal(homa_pl_region_avail(&s->region),
			 all - 2 * HOMA_BPAGE_SIZE);
	assert_int_equal(homa_pl_region_put(&s->region, 1, offsets), 0);
	assert_int_equal(homa_pl_region_avail(&s->region),
			 all - 2 * HOMA_BPAGE_SIZE);
	assert_int_equal(homa_pl_region_put(&s->region, 2, offsets + 1), 0);
	assert_int_equal(homa_pl_region_avail(&s->region), all);
	done(s);
}

static void region_unmap__waits_for_close(void **state)
{
	struct homa_pl_sock *s = with_region();
	uint8_t *start = s->region.start;
	unsigned char seen[1];

	(void)state;
	assert_int_equal(homa_pl_region_unmap(start, BYTES), 0);
	start[0] = 1;
	homa_pl_region_free(s);
	assert_int_equal(mincore(start, 4096, seen), -1);
	free(s);
	/* A child's: the parent's region is no longer there. */
	s = with_region();
	start = s->region.start;
	homa_pl_generation++;
	assert_int_equal(homa_pl_region_unmap(start, BYTES), 0);
	assert_int_equal(mincore(start, 4096, seen), -1);
	assert_null(s->region.start);
	homa_pl_generation = 0;
	done(s);
}

static struct homa_message message(uint64_t id, uint32_t ip)
{
	struct homa_message msg = { .kind = HOMA_REQUEST, .id = id };
	struct sockaddr_in *in = (struct sockaddr_in *)&msg.peer;

	in->sin_family = AF_INET;
	in->sin_port = htons(40000);
	in->sin_addr.s_addr = htonl(ip);
	return msg;
}

static void rpc_find__by_id_and_peer(void **state)
{
	struct homa_pl_sock *s = new_sock();
	struct homa_message one = message(7, 0x0a000001),
			    two = message(7, 0x0a000002);
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6,
				       .sin6_port = htons(40000) };
	struct homa_pl_rpc *rpc;

	(void)state;
	assert_int_equal(homa_pl_rpc_request(s, &one), 0);
	assert_int_equal(homa_pl_rpc_request(s, &two), 0);
	assert_int_equal(homa_pl_rpc_private(s, 8, 5), 0);
	rpc = homa_pl_rpc_find(s, 7, (struct sockaddr *)&two.peer);
	assert_non_null(rpc);
	assert_memory_equal(&rpc->msg.peer, &two.peer,
			    sizeof(struct sockaddr_in));
	/* The same peer as an AF_INET6 socket names it. */
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	mapped.sin6_addr.s6_addr[12] = 10;
	mapped.sin6_addr.s6_addr[15] = 1;
	rpc = homa_pl_rpc_find(s, 7, (struct sockaddr *)&mapped);
	assert_non_null(rpc);
	homa_pl_rpc_take(s, rpc);
	free(rpc);
	assert_null(homa_pl_rpc_find(s, 7, (struct sockaddr *)&one.peer));
	assert_null(homa_pl_rpc_find(s, 7, NULL));
	assert_non_null(homa_pl_rpc_find(s, 8, NULL));
	homa_pl_rpc_forget(s, 8);
	assert_null(homa_pl_rpc_find(s, 8, NULL));
	done(s);
}

static void rpc_request__forgets_the_oldest(void **state)
{
	struct homa_pl_sock *s = new_sock();
	struct homa_message msg;
	uint32_t i;

	(void)state;
	for (i = 0; i < HOMA_PL_REQUESTS + 2; i++) {
		msg = message(2 * i + 1, 0x0a000001);
		assert_int_equal(homa_pl_rpc_request(s, &msg), 0);
	}
	assert_int_equal(s->requests, HOMA_PL_REQUESTS);
	assert_null(homa_pl_rpc_find(s, 3, (struct sockaddr *)&msg.peer));
	assert_non_null(homa_pl_rpc_find(s, 5, (struct sockaddr *)&msg.peer));
	done(s);
}

/* ---- SO_HOMA_RCVBUF and recvmsg() ---- */

static int64_t receive(struct homa_pl_sock *s)
{
	struct homa_recvmsg_args args = { 0 };
	struct msghdr hdr = { .msg_control = &args,
			      .msg_controllen = sizeof(args) };

	return homa_pl_recvmsg(s, &hdr, MSG_DONTWAIT);
}

static void receive_early(void)
{
	assert_non_null(homa_pl_all->region.start);
	assert_int_equal(receive(homa_pl_all), -EINVAL);
}

/* Who receives while libhoma is being told of the region would take a message that does
 * not lie in it, or give one page away twice. */
static void recvmsg__waits_for_the_whole_of_the_region(void **state)
{
	struct homa_pl_sock *s = new_sock();
	struct homa_rcvbuf_args args = { .length = BYTES };

	(void)state;
	args.start = (uintptr_t)map();
	received = 0;
	assert_int_equal(receive(s), -EINVAL);
	while_lending = receive_early;
	assert_int_equal(homa_pl_setsockopt(s, IPPROTO_HOMA, SO_HOMA_RCVBUF,
					    &args, sizeof(args)),
			 0);
	while_lending = NULL;
	assert_int_equal(received, 0);
	assert_int_equal(receive(s), -EAGAIN);
	assert_true(received > 0);
	done(s);
	munmap((void *)(uintptr_t)args.start, BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region_get__never_overlaps),
		cmocka_unit_test(region_put__refuses_nonsense),
		cmocka_unit_test(region_note__counts_what_libhoma_gives),
		cmocka_unit_test(region_unmap__waits_for_close),
		cmocka_unit_test(rpc_find__by_id_and_peer),
		cmocka_unit_test(rpc_request__forgets_the_oldest),
		cmocka_unit_test(recvmsg__waits_for_the_whole_of_the_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
