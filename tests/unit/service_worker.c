// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/slow/worker.c: users take turns at the memory thread. A first piece of work, which is
 * homad's own, holds the thread until all others have been given.
 */
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "unit.h"

#include "attach.h"

#define MOST 200u

/* A piece of work that takes several turns, each of which leaves a letter. */
struct piece {
	struct homad_work work;
	char name;
	u32 turns;
};

struct bed {
	struct homad d;
	struct homad_slow slow;
	struct homad_work gate;
	sem_t open;
};

static char order[MOST + 1], ended[MOST + 1];
static sem_t *gate_opens;

static bool wait_at_gate(struct homad_work *work)
{
	(void)work;
	while (sem_wait(gate_opens))
		;
	return false;
}

static void gate_done(struct homad *d, struct homad_work *work)
{
	(void)d;
	(void)work;
}

static void leave(char *letters, char name)
{
	letters[strlen(letters)] = name;
}

static bool run(struct homad_work *work)
{
	struct piece *piece = homa_container_of(work, struct piece, work);

	leave(order, piece->name);
	return --piece->turns > 0;
}

static void done(struct homad *d, struct homad_work *work)
{
	(void)d;
	leave(ended, homa_container_of(work, struct piece, work)->name);
}

static struct piece piece(char name, u32 turns)
{
	return (struct piece){ .work = { .run = run, .done = done },
			       .name = name,
			       .turns = turns };
}

static struct bed *bed_new(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	char err[256];

	memset(order, 0, sizeof(order));
	memset(ended, 0, sizeof(ended));
	bed->d.slow = &bed->slow;
	bed->slow.loop.epfd = epoll_create1(0);
	sem_init(&bed->open, 0, 0);
	gate_opens = &bed->open;
	assert_int_equal(homad_worker_start(&bed->d, err, sizeof(err)), 0);
	bed->gate = (struct homad_work){ .run = wait_at_gate, .done = gate_done };
	homad_work(&bed->d, NULL, &bed->gate);
	return bed;
}

/* Has everything done that was given. */
static void bed_end(struct bed *bed)
{
	sem_post(&bed->open);
	homad_worker_stop(&bed->d);
	close(bed->slow.loop.epfd);
	sem_destroy(&bed->open);
	free(bed);
}

static void worker__users_take_turns(void **state)
{
	struct piece his[MOST / 2], mine = piece('m', 1);
	struct homad_line greedy = { .num = 0 }, modest = { .num = 0 };
	struct bed *bed = bed_new();
	u32 i;

	(void)state;
	for (i = 0; i < MOST / 2; i++) {
		his[i] = piece('g', 1);
		homad_work(&bed->d, &greedy, &his[i].work);
	}
	homad_work(&bed->d, &modest, &mine.work);
	assert_int_equal(greedy.num, MOST / 2);
	assert_int_equal(modest.num, 1);
	bed_end(bed);
	assert_memory_equal(order, "gmgg", 4);
	assert_int_equal(strlen(ended), MOST / 2 + 1);
	assert_int_equal(greedy.num, 0);
	assert_int_equal(modest.num, 0);
}

/* What is large lets others go between, but not what the same user wants done after it. */
static void worker__large_work_is_done_in_parts(void **state)
{
	struct piece large = piece('L', 4), next = piece('n', 1),
		     first = piece('a', 1), second = piece('b', 2);
	struct homad_line greedy = { .num = 0 }, a = { .num = 0 },
			  b = { .num = 0 };
	struct bed *bed = bed_new();

	(void)state;
	homad_work(&bed->d, &greedy, &large.work);
	homad_work(&bed->d, &greedy, &next.work);
	homad_work(&bed->d, &a, &first.work);
	homad_work(&bed->d, &b, &second.work);
	bed_end(bed);
	assert_string_equal(order, "LabLbLLn");
	assert_string_equal(ended, "abLn");
}

/* Without the thread, as while homad ends, work is done at once. */
static void worker__is_not_needed(void **state)
{
	struct piece large = piece('L', 3);
	struct homad_line line = { .num = 0 };
	struct homad_slow slow = { .worker = NULL };
	struct homad d = { .slow = &slow };

	(void)state;
	memset(order, 0, sizeof(order));
	memset(ended, 0, sizeof(ended));
	homad_work(&d, &line, &large.work);
	assert_string_equal(order, "LLL");
	assert_string_equal(ended, "L");
	assert_int_equal(line.num, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker__users_take_turns),
		cmocka_unit_test(worker__large_work_is_done_in_parts),
		cmocka_unit_test(worker__is_not_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
