// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/slow/backing.c: whose attachments that were refused memory are looked at again. A
 * tick is a call; the memory is there at once, as there is no memory thread.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "attach.h"
#include "log.h"

#define MANY 1000u /* more than are looked at in many ticks */
#define FEW 16u	   /* as are looked at in one */
#define USERS 40u  /* who were refused memory */
#define MOST 256u /* attachments that are looked at in one tick, of all users */
#define POOL_PAGE ((u64)1 << HOMA_BPAGE_SHIFT)

struct bed {
	struct homad d;
	struct homad_slow slow;
	struct homad_attach attach;
	struct homad_thread thread;
	struct homa_shm_header queues;
	u8 *pool;
};

static struct bed *bed_new(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	u32 i;

	homad_log_init(HOMAD_ERROR, HOMAD_LOG_TEXT);
	homad_config_default(&bed->d.config);
	bed->d.config.quota.user_memory = 1u << 30;
	bed->d.config.quota.total_memory = 1ull << 33;
	for (i = 0; i < HOMAD_USER_BUCKETS; i++)
		homa_list_init(&bed->attach.users[i]);
	homa_list_init(&bed->attach.grown);
	homa_list_init(&bed->attach.refusers);
	bed->attach.d = &bed->d;
	bed->d.threads[0] = &bed->thread;
	bed->thread.d = &bed->d;
	bed->slow.attach = &bed->attach;
	bed->d.slow = &bed->slow;
	bed->slow.loop.epfd = epoll_create1(0);
	assert_int_equal(homad_backing_start(&bed->d), 0);
	/* The test says when it is time. */
	close(bed->attach.tick.fd);
	bed->attach.tick.fd = eventfd(0, EFD_NONBLOCK);
	bed->pool = mmap(NULL, POOL_PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(bed->pool != MAP_FAILED);
	return bed;
}

static void bed_free(struct bed *bed)
{
	homad_backing_stop(&bed->d);
	close(bed->slow.loop.epfd);
	munmap(bed->pool, POOL_PAGE);
	homad_users_stop(&bed->d);
	free(bed);
}

static void tick(struct bed *bed)
{
	assert_int_equal(eventfd_write(bed->attach.tick.fd, 1), 0);
	bed->attach.tick.ready(&bed->d, &bed->attach.tick, EPOLLIN);
}

/* Attachments without memory that want a page each, which their user has been refused. They close,
 * so that the fast path does not hear of it. */
static struct homad_attachment *wanting(struct bed *bed,
					struct homad_user *user, u32 n)
{
	struct homad_attachment *a = calloc(n, sizeof(*a));
	u32 i;

	for (i = 0; i < n; i++) {
		a[i].user = user;
		a[i].rings_backed = 1;
		a[i].app.thread = &bed->thread;
		a[i].app.queues = &bed->queues;
		a[i].app.pool = bed->pool;
		a[i].app.pool_bytes = POOL_PAGE;
		a[i].app.want_pages = 1;
		a[i].app.phase = HOMAD_APP_CLOSING;
		homa_list_init(&a[i].grown);
		homa_list_init(&a[i].refused);
		homa_list_add_tail(&user->refused, &a[i].refused);
	}
	homa_list_add_tail(&bed->attach.refusers, &user->refuser);
	return a;
}

/* How many have their page? */
static u32 served(const struct homad_attachment *a, u32 n)
{
	u32 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += a[i].pool_backed;
	return sum;
}

static void end(struct bed *bed, struct homad_attachment *a, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		homad_backing_forget(&bed->d, &a[i].app);
		homad_settle(a[i].user, a[i].memory);
	}
	free(a);
}

static void refused__others_do_not_wait_for_a_full_account(void **state)
{
	struct bed *bed = bed_new();
	struct homad_user *full = homad_user_get(&bed->d, 1000),
			  *modest = homad_user_get(&bed->d, 1001);
	const u64 taken = bed->d.config.quota.user_memory;
	struct homad_attachment *his, *mine;
	u32 i;

	(void)state;
	homad_account(full, taken);
	his = wanting(bed, full, MANY);
	mine = wanting(bed, modest, FEW);
	tick(bed);
	assert_int_equal(served(his, MANY), 0);
	assert_int_equal(served(mine, FEW), FEW);
	/* He is served when he has room, all in their turn. */
	homad_settle(full, taken);
	for (i = 0; i < MANY; i += FEW) {
		assert_int_equal(served(his, MANY), i);
		tick(bed);
	}
	assert_int_equal(served(his, MANY), MANY);
	end(bed, his, MANY);
	end(bed, mine, FEW);
	bed_free(bed);
}

/* Who wants what he has is answered at a tick, too, and no more does he keep others waiting. */
static void refused__others_do_not_wait_for_who_lacks_nothing(void **state)
{
	struct bed *bed = bed_new();
	struct homad_user *idle = homad_user_get(&bed->d, 1000),
			  *modest = homad_user_get(&bed->d, 1001);
	struct homad_attachment *his, *mine;
	u32 i;

	(void)state;
	his = wanting(bed, idle, MANY);
	for (i = 0; i < MANY; i++)
		his[i].app.want_pages = 0;
	mine = wanting(bed, modest, FEW);
	tick(bed);
	assert_int_equal(served(mine, FEW), FEW);
	end(bed, his, MANY);
	end(bed, mine, FEW);
	bed_free(bed);
}

/* Many users take turns, so that a tick keeps no request waiting for long. */
static void refused__a_tick_is_short_for_many_users(void **state)
{
	struct bed *bed = bed_new();
	struct homad_attachment *a[USERS];
	u32 i, ticks = 0, sum, before = 0;

	(void)state;
	for (i = 0; i < USERS; i++)
		a[i] = wanting(bed, homad_user_get(&bed->d, 1000 + i), FEW);
	do {
		tick(bed);
		for (i = sum = 0; i < USERS; i++)
			sum += served(a[i], FEW);
		assert_in_range(sum - before, 1, MOST);
		before = sum;
		ticks++;
	} while (sum < USERS * FEW);
	assert_int_equal(ticks, (USERS * FEW + MOST - 1) / MOST);
	for (i = 0; i < USERS; i++)
		end(bed, a[i], FEW);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused__others_do_not_wait_for_a_full_account),
		cmocka_unit_test(refused__others_do_not_wait_for_who_lacks_nothing),
		cmocka_unit_test(refused__a_tick_is_short_for_many_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
