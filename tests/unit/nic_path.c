/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The path cache when there are more destinations than it remembers. The kernel is
 * played here: every destination is behind one router, whose address is lasting.
 */
#include "path.h"
#include "unit.h"

static u32 asked;
static u32 neighbours; /* questions for one */
static bool silent; /* neighbours do not answer */
static u32 touches;
static u32 asked_for_mine;
static struct homa_addr mine;

static struct homa_addr number(u32 n)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, 0xff, 10 } };

	addr.ip[13] = (u8)(n >> 16);
	addr.ip[14] = (u8)(n >> 8);
	addr.ip[15] = (u8)n;
	return addr;
}

int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *route)
{
	(void)rtnl;
	(void)oif;
	asked++;
	if (!memcmp(dst->ip, mine.ip, 16))
		asked_for_mine++;
	memset(route, 0, sizeof(*route));
	route->ifindex = 1;
	route->hop = silent ? *dst : number(1);
	route->src = number(2);
	return 0;
}

int nic_neigh_get(struct nic_rtnl *rtnl, int ifindex, const struct homa_addr *hop,
		  struct nic_neigh *neigh)
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
	(void)neigh;
	return false;
}

static void done(void *arg, struct nic_path *path, const struct nic_tx *pkt, int error)
{
	(void)arg;
	(void)path;
	(void)pkt;
	(void)error;
}

static bool touch(void *arg, const struct homa_addr *hop)
{
	(void)arg;
	(void)hop;
	touches++;
	return true;
}

static void find__many_destinations(void **state)
{
	struct nic_netif netif = { .index = 1, .mtu = 1500, .up = true };
	struct homa_addr bound = number(2);
	struct nic_paths paths;
	struct nic_rtnl rtnl;
	u32 i;

	(void)state;
	memset(&rtnl, 0, sizeof(rtnl));
	mine = number(3);
	assert_int_equal(nic_paths_init(&paths, &rtnl, &netif, &bound, done, touch, NULL), 0);
	for (i = 0; i < 5 * NIC_PATH_MAX; i++) {
		struct homa_addr other = number(1000 + i);
		struct nic_path *path = nic_path_find(&paths, &other);

		/* In use, and never to be refreshed: only the table's size counts. */
		assert_non_null(path);
		assert_int_equal(path->state, NIC_PATH_READY);
		path->used = true;
		if (i % 1000 == 0)
			assert_non_null(nic_path_find(&paths, &mine));
		assert_true(paths.count <= NIC_PATH_MAX);
	}
	/* Every one of theirs was looked up once; mine stayed through all of it. */
	assert_int_equal(asked_for_mine, 1);
	assert_int_equal(asked, 5 * NIC_PATH_MAX + 1);
	nic_paths_fini(&paths);
}

/* A stranger's destinations, all of them neighbours that do not answer: each step over
 * them is short, and every one is come to. */
static void tick__many_destinations(void **state)
{
	struct nic_netif netif = { .index = 1, .mtu = 1500, .up = true };
	struct homa_addr bound = number(2);
	u64 now = nic_now_ms() + 600;
	struct nic_paths paths;
	struct nic_rtnl rtnl;
	u32 i, before, failed = 0;

	(void)state;
	memset(&rtnl, 0, sizeof(rtnl));
	assert_int_equal(nic_paths_init(&paths, &rtnl, &netif, &bound, done, touch, NULL), 0);
	silent = true;
	for (i = 0; i < NIC_PATH_MAX; i++) {
		struct homa_addr other = number(1000 + i);

		assert_int_equal(nic_path_find(&paths, &other)->state, NIC_PATH_RESOLVING);
	}
	for (i = 0; i < NIC_PATH_MAX; i++) {
		before = neighbours + touches;
		nic_paths_tick(&paths, now + 6000);
		assert_in_range(neighbours + touches - before, 0, 8);
	}
	for (i = 0; i < NIC_PATH_MAX; i++)
		failed += paths.ring[i]->state == NIC_PATH_FAILED;
	assert_int_equal(failed, NIC_PATH_MAX);
	nic_paths_fini(&paths);
	silent = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__many_destinations),
		cmocka_unit_test(tick__many_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
