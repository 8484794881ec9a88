// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Routes remembered under UDP: those in use do not push out each other, and those
 * that are asked for once do not push out those in use. The routing table is played.
 */
#include "route.h"
#include "udp.h"
#include "unit.h"

static u32 asked;

int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *route)
{
	(void)rtnl;
	(void)dst;
	(void)oif;
	asked++;
	memset(route, 0, sizeof(*route));
	route->ifindex = 1;
	return 0;
}

static struct nic *open_udp(void)
{
	struct nic_config config = { .backend = "udp", .address = "127.0.0.1" };
	char err[256] = "";
	struct nic *nic;
	struct udp *u;

	if (nic_open(&nic, &config, err, sizeof(err)))
		fail_msg("%s", err);
	u = udp_of(nic);
	/* The same sets in every run. */
	u->route_key[0] = 0x1234567890abcdefull;
	u->route_key[1] = 0xfedcba0987654321ull;
	asked = 0;
	return nic;
}

static void ask(struct nic *nic, u32 number)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, 0xff, 10 } };
	u32 mtu = 0;

	addr.ip[13] = (u8)(number >> 16);
	addr.ip[14] = (u8)(number >> 8);
	addr.ip[15] = (u8)number;
	assert_int_equal(nic_route(nic, &addr, &mtu), 0);
	assert_int_equal(mtu, 65535 - 8);
}

static void route__two_hundred_neighbours_in_turn(void **state)
{
	struct nic *nic = open_udp();
	u32 i;

	(void)state;
	for (i = 0; i < 200 * 20; i++)
		ask(nic, i % 200);
	assert_int_equal(asked, 200);
	nic_close(nic);
}

static void route__a_device_is_asked_for_its_mtu_once(void **state)
{
	struct nic *nic = open_udp();
	u64 until;
	u32 i;

	(void)state;
	ask(nic, 0);
	until = udp_of(nic)->device.expires_ms = nic_now_ms() + 1000000;
	for (i = 1; i < 5000; i++)
		ask(nic, i);
	assert_int_equal(asked, 5000);
	assert_int_equal(udp_of(nic)->device.index, 1);
	assert_int_equal(udp_of(nic)->device.expires_ms, until);
	nic_close(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(route__two_hundred_neighbours_in_turn),
		cmocka_unit_test(route__a_device_is_asked_for_its_mtu_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
