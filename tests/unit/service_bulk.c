// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/bulk.c: whom homad answers that asks for its UDP port. The rest is in
 * tests/homad/test_bulk.py.
 */
#include "homa_codec.h"
#include "homa_sockaddr.h"
#include "service_bed.h"
#include "unit.h"

#define US 1000ull

struct asked_bed {
	struct bed *bed;
	struct nic_info udp;
};

static void asked_new(struct asked_bed *a)
{
	struct homad *d;

	a->bed = bed_new();
	d = &a->bed->d;
	a->udp = *d->ports[0].info;
	a->udp.address.encap = HOMA_ENCAP_PORT;
	d->udp = add_port(d, NULL);
	d->udp->info = &a->udp;
	d->udp->encap = true;
	a->bed->t->ctx.now = 1000000 * US;
}

/* Host @n asks; returns how many answers there are. */
static u32 asks(struct asked_bed *a, u32 n)
{
	struct homa_packet p = { .hdr = { .type = HOMA_RESEND,
					  .sport = 1,
					  .dport = 0x8000,
					  .sender_id = 4712 } };
	struct nic_rx pkt = { .src = number(n) };
	struct homad_thread *t = a->bed->t;
	struct homa_tx_desc desc;
	u8 bytes[HOMA_MAX_HDR];
	u32 answers = 0;

	pkt.len = homa_packet_encode(bytes, &p);
	pkt.data = bytes;
	homad_bulk_heard(t, &a->bed->d.ports[0], &pkt);
	while (homa_tx(&t->ctx, a->bed->d.udp->link, 1, &desc) == HOMA_TX_PACKET) {
		assert_int_equal(homa_peek_type(desc.hdr), HOMA_RPC_UNKNOWN);
		assert_memory_equal(desc.dst.ip, pkt.src.ip, 16);
		answers++;
	}
	t->ctx.now += 20 * US;
	return answers;
}

/* One who asks without pause is answered once in a millisecond. */
static void bulk__answers_are_few(void **state)
{
	struct asked_bed a;
	u32 i, answers = 0;

	(void)state;
	asked_new(&a);
	for (i = 0; i < 500; i++)
		answers += asks(&a, 7);
	assert_int_equal(answers, 10);
	/* And all together no oftener than every 20 us. */
	answers = 0;
	for (i = 0; i < 20; i++) {
		answers += asks(&a, 100 + i);
		a.bed->t->ctx.now -= 19 * US;
	}
	assert_int_equal(answers, 1);
	bed_free(a.bed);
}

/* Another one is answered all the same, in the same millisecond. */
static void bulk__answers_others_than_who_asks_without_pause(void **state)
{
	struct asked_bed a;

	(void)state;
	asked_new(&a);
	assert_int_equal(asks(&a, 7), 1);
	assert_int_equal(asks(&a, 7), 0);
	assert_int_equal(asks(&a, 8), 1);
	assert_int_equal(asks(&a, 7), 0);
	assert_int_equal(asks(&a, 9), 1);
	bed_free(a.bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bulk__answers_are_few),
		cmocka_unit_test(bulk__answers_others_than_who_asks_without_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
