// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The bits that say which TCP ports are taken: each port of each queue has one of its own.
 */
#include "unit.h"

#include "afxdp.h"
#include "homa_xdp.h"

#define WORDS ((size_t)HOMA_XDP_QUEUES * HOMA_XDP_PORT_WORDS)

static u32 bits_set(const u64 *words)
{
	u32 n = 0;

	for (size_t i = 0; i < WORDS; i++)
		n += (u32)__builtin_popcountll(words[i]);
	return n;
}

static void ports__each_has_its_bit(void **state)
{
	static const u16 ports[] = { 0,	 1,	31,    32,    63,   64,
				     80, 32767, 32768, 65472, 65535 };
	u64 *words = calloc(WORDS, sizeof(*words));
	struct afxdp_prog prog = { .ports = words };
	u32 n = HOMA_ARRAY_SIZE(ports), set = 0;

	(void)state;
	assert_non_null(words);
	for (u32 queue = 0; queue < HOMA_XDP_QUEUES; queue++) {
		for (u32 i = 0; i < n; i++) {
			assert_false(afxdp_prog_has_port(&prog, queue, ports[i]));
			afxdp_prog_port(&prog, queue, ports[i], true);
			afxdp_prog_port(&prog, queue, ports[i], true);
			assert_true(afxdp_prog_has_port(&prog, queue, ports[i]));
			assert_int_equal(bits_set(words), ++set);
		}
	}
	for (u32 queue = 0; queue < HOMA_XDP_QUEUES; queue++) {
		for (u32 i = 0; i < n; i++) {
			afxdp_prog_port(&prog, queue, ports[i], false);
			assert_false(afxdp_prog_has_port(&prog, queue, ports[i]));
			assert_int_equal(bits_set(words), --set);
		}
	}
	free(words);
}

/* As the XDP program reads them: a word for 64 ports, the lowest bit for the lowest. */
static void ports__lie_where_the_program_looks(void **state)
{
	u64 *words = calloc(WORDS, sizeof(*words));
	struct afxdp_prog prog = { .ports = words };

	(void)state;
	assert_non_null(words);
	afxdp_prog_port(&prog, 3, 7020, true); /* 109 * 64 + 44 */
	assert_true(words[3 * HOMA_XDP_PORT_WORDS + 109] == 1ull << 44);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports__each_has_its_bit),
		cmocka_unit_test(ports__lie_where_the_program_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
