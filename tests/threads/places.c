/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Places of sockets while other threads look at them without a lock: one thread moves a
 * socket from address to address, and lets another one come to its port and go; three ask
 * whether the port says that a packet is for the socket. No address that it never had may be
 * taken for its own, such as one half of two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hammer.h"

#define ROUNDS 40000u

/* struct watcher - a thread that looks; @seen: how often the socket was at one of its
 * addresses; @wrong: how often at one that it never had */
struct watcher {
	struct hammer *h;
	u32 index;
	u64 seen, wrong;
};

static const struct homa_from hers[] = { { { 1, 1 } }, { { 2, 2 } } };
static const struct homa_from others[] = {
	{ { 1, 2 } }, { { 2, 1 } }, { { 3, 3 } }, { { 0, 0 } }
};

static bool is_at(struct watcher *w, const struct homa_from *local)
{
	struct homa_ctx *ctx = &w->h->thread[w->index].ctx;

	ctx->heard_at = *local;
	return homa_sock_exact(ctx, w->h->slot[0].sock);
}

static void *watch(void *data)
{
	struct watcher *w = data;
	u32 i;

	bool last;

	/* The last turn is at rest, so that each has seen it. */
	do {
		last = __atomic_load_n(&w->h->stop, __ATOMIC_ACQUIRE);
		for (i = 0; i < HOMA_ARRAY_SIZE(hers); i++)
			w->seen += is_at(w, &hers[i]);
		for (i = 0; i < HOMA_ARRAY_SIZE(others); i++)
			w->wrong += is_at(w, &others[i]);
	} while (!last);
	return NULL;
}

static void move(struct hammer *h, u32 slot, u32 port,
		 const struct homa_from *local)
{
	struct homa_place place = { .local = *local };

	assert_int_equal(homa_sock_bind_at(&h->thread[0].ctx, h->slot[slot].sock,
					   (u16)(HAMMER_PORT + port), &place),
			 0);
}

static void places__change_while_others_look(void **state)
{
	struct hammer *h = hammer_new(4, 4, 4, 1);
	struct watcher watchers[3] = { { 0 } };
	pthread_t ids[3];
	u32 i;

	(void)state;
	move(h, 0, 0, &hers[0]);
	for (i = 0; i < 3; i++) {
		watchers[i].h = h;
		watchers[i].index = i + 1;
		assert_int_equal(pthread_create(&ids[i], NULL, watch,
						&watchers[i]),
				 0);
	}
	for (i = 0; i < ROUNDS; i++) {
		move(h, 0, 0, &hers[i & 1]);
		if (i % 16 == 7)
			move(h, 1, 0, &others[2]);
		else if (i % 16 == 9)
			move(h, 1, 1, &others[2]);
	}
	__atomic_store_n(&h->stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 3; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(watchers[i].wrong, 0);
		assert_true(watchers[i].seen);
	}
	assert_int_equal(hammer_free(h), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places__change_while_others_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
