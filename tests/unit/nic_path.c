/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The path cache when there are more destinations than it remembers. The kernel is
 * played here: every destination is behind one router, whose address is lasting.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "homa_hash.h"
#include "path.h"
#include "played_routes.h"
#include "unit.h"

static u32 neighbours; /* questions for one */
static bool silent;    /* neighbours do not answer */
static u32 touches;
static u32 handed_over;
static struct nic_neigh told; /* by a notification */

int nic_neigh_get(struct nic_rtnl *rtnl, int ifindex,
		  const struct homa_addr *hop, struct nic_neigh *neigh)
{
	(void)rtnl;
	(void)ifindex;
	neighbours++;
	memset(neigh, 0, sizeof(*neigh));
	neigh->hop = *hop;
	if (silent)
		return 0;
	neigh->state = NIC_NEIGH_VALID;
	neigh->lasting = true;
	return 0;
}

/* So that the linker takes none of it from elsewhere. */
int nic_neigh_use(struct nic_rtnl *rtnl, int ifindex, const struct homa_addr *hop)
{
	(void)rtnl;
	(void)ifindex;
	(void)hop;
	return 0;
}

bool nic_neigh_decode(const struct nlmsghdr *msg, struct nic_neigh *neigh)
{
	(void)msg;
	*neigh = told;
	return true;
}

static void done(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		 int error)
{
	(void)arg;
	(void)path;
	(void)pkt;
	(void)error;
	handed_over++;
}

static bool touch(void *arg, const struct homa_addr *hop)
{
	(void)arg;
	(void)hop;
	touches++;
	return true;
}

/* ---- one device ---- */

struct bed {
	struct nic_netif netif;
	struct homa_addr bound;
	struct nic_rtnl rtnl;
	struct nic_paths paths;
	int kernel; /* the other end of notifications */
};

static struct bed *bed_new(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	int fds[2];

	bed->netif = (struct nic_netif){ .index = 1, .mtu = 1500, .up = true };
	bed->bound = number(2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
	bed->rtnl.events_fd = fds[0];
	bed->kernel = fds[1];
	asked = asked_for_mine = neighbours = touches = handed_over = 0;
	silent = on_link = false;
	assert_int_equal(nic_paths_init(&bed->paths, &bed->rtnl, &bed->netif,
					&bed->bound, done, touch, NULL),
			 0);
	return bed;
}

static void bed_free(struct bed *bed)
{
	nic_paths_fini(&bed->paths);
	close(bed->rtnl.events_fd);
	close(bed->kernel);
	free(bed);
}

/* The kernel tells of a neighbour, whose link address ends in @last. */
static void tell(struct bed *bed, const struct homa_addr *hop,
		 enum nic_neigh_state state, u8 last)
{
	struct nlmsghdr msg = { .nlmsg_len = sizeof(msg),
				.nlmsg_type = RTM_NEWNEIGH };

	memset(&told, 0, sizeof(told));
	told.ifindex = 1;
	told.hop = *hop;
	told.state = state;
	told.mac[5] = last;
	assert_int_equal(send(bed->kernel, &msg, sizeof(msg), 0), sizeof(msg));
	nic_paths_events(&bed->paths);
}

static struct nic_path *find(struct bed *bed, u32 n)
{
	struct homa_addr addr = number(n);
	struct nic_path *path = nic_path_find(&bed->paths, &addr);

	assert_non_null(path);
	return path;
}

static bool hold(struct bed *bed, u32 owner, u32 to)
{
	struct nic_tx pkt = { .hdr = (const u8 *)"header",
			      .hdr_len = 6,
			      .owner = owner };

	return nic_path_hold(&bed->paths, find(bed, to), &pkt);
}

/* ---- tests ---- */

static void find__many_destinations(void **state)
{
	struct bed *bed = bed_new();
	u32 i;

	(void)state;
	mine = number(3);
	for (i = 0; i < 5 * NIC_PATH_MAX; i++) {
		struct nic_path *path = find(bed, 1000 + i);

		/* In use, and never to be refreshed: only the table's size counts. */
		assert_int_equal(path->state, NIC_PATH_READY);
		path->used = true;
		if (i % 1000 == 0)
			find(bed, 3);
		assert_true(bed->paths.count <= NIC_PATH_MAX);
	}
	/* Every one of theirs was looked up once; mine stayed through all of it. */
	assert_int_equal(asked_for_mine, 1);
	assert_int_equal(asked, 5 * NIC_PATH_MAX + 1);
	bed_free(bed);
}

/* Who guesses which addresses share a chain makes it no longer than that. */
static void find__many_destinations_of_one_chain(void **state)
{
	struct bed *bed = bed_new();
	struct nic_path *path;
	u32 i, n = 0, length = 0, chain = 0;

	(void)state;
	for (i = 0; n < 500; i++) {
		struct homa_addr addr = number(i);
		u32 hash = homa_hash_ip(addr.ip, bed->paths.key[0],
					bed->paths.key[1]) &
			   4095;

		if (!i)
			chain = hash;
		if (hash != chain)
			continue;
		find(bed, i);
		n++;
	}
	for (path = bed->paths.buckets[chain]; path; path = path->next)
		length++;
	assert_int_equal(length, 32);
	assert_int_equal(bed->paths.count, 32);
	/* The rest of the table is as good as new. */
	for (i = 1u << 23; i < (1u << 23) + 1000; i++)
		find(bed, i);
	assert_in_range(bed->paths.count, 1000, 1032);
	bed_free(bed);
}

/* A stranger's destinations, all of them neighbours that do not answer: each step over
 * them is short, and every one is come to. */
static void tick__many_destinations(void **state)
{
	struct bed *bed = bed_new();
	u64 now = nic_now_ms() + 600;
	u32 i, before, failed = 0;

	(void)state;
	silent = on_link = true;
	for (i = 0; i < NIC_PATH_MAX; i++)
		assert_int_equal(find(bed, 1000 + i)->state, NIC_PATH_RESOLVING);
	for (i = 0; i < NIC_PATH_MAX; i++) {
		before = neighbours + touches;
		nic_paths_tick(&bed->paths, now + 6000);
		assert_in_range(neighbours + touches - before, 0, 8);
	}
	for (i = 0; i < NIC_PATH_MAX; i++)
		failed += bed->paths.ring[i]->state == NIC_PATH_FAILED;
	assert_int_equal(failed, NIC_PATH_MAX);
	bed_free(bed);
}

static u32 with_address(const struct bed *bed, u8 last)
{
	u32 i, n = 0;

	for (i = 0; i < bed->paths.count; i++)
		n += bed->paths.ring[i]->state == NIC_PATH_READY &&
		     bed->paths.ring[i]->frame.bytes[5] == last;
	return n;
}

/* News of a router that everybody is behind are not told to everybody. */
static void neigh__many_destinations_behind_a_router(void **state)
{
	struct homa_addr router = number(1);
	struct bed *bed = bed_new();
	u32 i, before;

	(void)state;
	silent = true;
	for (i = 0; i < NIC_PATH_MAX; i++)
		find(bed, 1000 + i);
	for (i = 0; i < 20; i++)
		assert_true(hold(bed, 1, 1000 + i));
	before = asked + neighbours + touches;
	tell(bed, &router, NIC_NEIGH_VALID, 7);
	/* But to those that wait for it. */
	assert_int_equal(handed_over, 20);
	assert_int_equal(bed->paths.held, 0);
	assert_int_equal(with_address(bed, 7), 20);
	for (i = 0; i < NIC_PATH_MAX; i++)
		assert_int_equal(find(bed, 1000 + i)->state, NIC_PATH_READY);
	assert_int_equal(with_address(bed, 7), NIC_PATH_MAX);
	tell(bed, &router, NIC_NEIGH_VALID, 8);
	assert_int_equal(with_address(bed, 7), NIC_PATH_MAX);
	find(bed, 1000);
	assert_int_equal(with_address(bed, 8), 1);
	assert_int_equal(asked + neighbours + touches, before);
	bed_free(bed);
}

/* It goes, fails, and comes back: each is seen at the next use, and asked for once. */
static void neigh__comes_and_goes(void **state)
{
	struct homa_addr router = number(1);
	struct bed *bed = bed_new();
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(find(bed, i + 10)->state, NIC_PATH_READY);
	nic_hop_find(&bed->paths.hops, &router)->used_ms = 0;
	tell(bed, &router, NIC_NEIGH_NONE, 0);
	for (i = 0; i < 100; i++) {
		/* As if it had not been in the same millisecond. */
		nic_hop_find(&bed->paths.hops, &router)->changed_ms = 1;
		assert_int_equal(find(bed, i + 10)->state, NIC_PATH_RESOLVING);
	}
	assert_int_equal(touches, 1);
	assert_true(hold(bed, 1, 10));
	tell(bed, &router, NIC_NEIGH_FAILED, 0);
	assert_int_equal(handed_over, 1);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_FAILED);
	assert_int_equal(find(bed, 11)->error, EHOSTUNREACH);
	tell(bed, &router, NIC_NEIGH_VALID, 9);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	assert_int_equal(find(bed, 12)->state, NIC_PATH_READY);
	assert_int_equal(with_address(bed, 9), 2);
	bed_free(bed);
}

static u32 number_of(const struct bed *bed, u32 owner)
{
	return homa_hash_mix(owner ^ bed->paths.key[0]) % NIC_PATH_OWNERS;
}

/* The next owner after @owner that shares no number with those up to it. */
static u32 next_owner(const struct bed *bed, u32 owner)
{
	u32 next = owner + 1, i;

	for (i = 1; i <= owner; i++)
		if (number_of(bed, i) == number_of(bed, next)) {
			next++;
			i = 0;
		}
	return next;
}

/* Who sends to ever so many neighbours that do not answer leaves half of the room. */
static void hold__a_share_for_each_owner(void **state)
{
	struct bed *bed = bed_new();
	u32 i, greedy = 0, second = 0, b = next_owner(bed, 1),
	       c = next_owner(bed, b);

	(void)state;
	silent = on_link = true;
	for (i = 0; i < 2 * NIC_PATH_HOLD_ALL; i++)
		greedy += hold(bed, 1, 1000 + i);
	assert_int_equal(greedy, NIC_PATH_HOLD_ALL / 2);
	for (i = 0; i < 2 * NIC_PATH_HOLD_ALL; i++)
		second += hold(bed, b, 5000 + i);
	assert_int_equal(second, NIC_PATH_HOLD_ALL / 4);
	for (i = 0; i < NIC_PATH_HOLD; i++)
		assert_true(hold(bed, c, 9000));
	/* What he gets rid of he may have again. */
	tell(bed, &(struct homa_addr){ 0 }, NIC_NEIGH_VALID, 1);
	assert_false(hold(bed, 1, 1000));
	for (i = 0; i < 200; i++) {
		struct homa_addr hop = number(1000 + i);

		tell(bed, &hop, NIC_NEIGH_VALID, 1);
	}
	assert_int_equal(handed_over, 200);
	assert_true(hold(bed, 1, 9001));
	bed_free(bed);
}

/* ---- somebody else asks the kernel ---- */

static struct nic_way question;
static u32 questions;
static int answer;

static int somebody(void *arg, const struct nic_way *way)
{
	(void)arg;
	questions++;
	question = *way;
	return answer;
}

static struct bed *bed_with_somebody(void)
{
	struct bed *bed = bed_new();

	questions = 0;
	answer = 1;
	bed->paths.ask = somebody;
	return bed;
}

/* Somebody has asked. */
static void learn(struct bed *bed)
{
	nic_way_ask(&bed->rtnl, &question);
	nic_path_learn(&bed->paths, &question);
}

static void ask__packets_are_held_until_the_answer(void **state)
{
	struct bed *bed = bed_with_somebody();

	(void)state;
	assert_int_equal(find(bed, 10)->state, NIC_PATH_RESOLVING);
	assert_int_equal(find(bed, 10)->mtu, 1500);
	assert_true(hold(bed, 1, 10));
	assert_true(hold(bed, 1, 10));
	/* Steps over all do not ask, either, nor give up early. */
	nic_paths_tick(&bed->paths, nic_now_ms() + 1000);
	assert_int_equal(asked + neighbours + (u32)bed->paths.asked, 0);
	assert_int_equal(questions, 1);
	learn(bed);
	assert_int_equal(handed_over, 2);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	assert_int_equal(questions, 1);
	assert_int_equal(bed->paths.asked, 0);
	bed_free(bed);
}

/* What was not asked for is as good, and is asked for no more. */
static void ask__an_answer_before_the_question(void **state)
{
	struct bed *bed = bed_with_somebody();

	(void)state;
	question = (struct nic_way){ .dst = number(10), .ifindex = 1 };
	learn(bed);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	assert_int_equal(questions, 0);
	bed_free(bed);
}

static void ask__again_when_there_is_room(void **state)
{
	struct bed *bed = bed_with_somebody();

	(void)state;
	answer = 0;
	find(bed, 10);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_RESOLVING);
	assert_int_equal(questions, 2);
	answer = 1;
	find(bed, 10);
	find(bed, 10);
	assert_int_equal(questions, 3);
	/* Without anybody the nic asks itself. */
	answer = -1;
	assert_int_equal(find(bed, 11)->state, NIC_PATH_READY);
	assert_int_equal(bed->paths.asked, 1);
	bed_free(bed);
}

/* What is in use goes on as it is while routes are asked for anew; an answer that is
 * older than the last change is asked for once more. */
static void ask__ready_goes_on(void **state)
{
	struct nlmsghdr msg = { .nlmsg_len = sizeof(msg),
				.nlmsg_type = RTM_NEWROUTE };
	struct bed *bed = bed_with_somebody();

	(void)state;
	find(bed, 10);
	learn(bed);
	assert_int_equal(send(bed->kernel, &msg, sizeof(msg), 0), sizeof(msg));
	nic_paths_events(&bed->paths);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	assert_int_equal(questions, 2);
	nic_way_ask(&bed->rtnl, &question);
	question.asked_ms = bed->paths.routes_ms;
	nic_path_learn(&bed->paths, &question);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	assert_int_equal(questions, 3);
	nic_way_ask(&bed->rtnl, &question);
	question.asked_ms = bed->paths.routes_ms + 1;
	nic_path_learn(&bed->paths, &question);
	find(bed, 10);
	assert_int_equal(questions, 3);
	assert_int_equal(bed->paths.asked, 0);
	bed_free(bed);
}

/* An answer that does not come ends the wait, and later there is another try. */
static void ask__no_answer(void **state)
{
	struct bed *bed = bed_with_somebody();
	struct nic_path *path = find(bed, 10);

	(void)state;
	assert_true(hold(bed, 1, 10));
	path->resolved_ms -= 6000;
	nic_paths_tick(&bed->paths, nic_now_ms() + 600);
	assert_int_equal(path->state, NIC_PATH_FAILED);
	assert_int_equal(handed_over, 1);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_RESOLVING);
	assert_int_equal(questions, 2);
	learn(bed);
	assert_int_equal(find(bed, 10)->state, NIC_PATH_READY);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__many_destinations),
		cmocka_unit_test(find__many_destinations_of_one_chain),
		cmocka_unit_test(tick__many_destinations),
		cmocka_unit_test(neigh__many_destinations_behind_a_router),
		cmocka_unit_test(neigh__comes_and_goes),
		cmocka_unit_test(hold__a_share_for_each_owner),
		cmocka_unit_test(ask__packets_are_held_until_the_answer),
		cmocka_unit_test(ask__an_answer_before_the_question),
		cmocka_unit_test(ask__again_when_there_is_room),
		cmocka_unit_test(ask__ready_goes_on),
		cmocka_unit_test(ask__no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
