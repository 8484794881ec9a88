/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/homad/fast/trace.c: records come out as they went in, a full ring loses the
 * newest and counts them, filters leave out what is not wanted before it costs
 * room. One thread writes and reads here.
 */
#include "unit.h"

#include "app.h"
#include "homad_trace.h"

struct bed {
	struct homad_trace_want want;
	struct homad_thread *t;
	struct homad_port port;
	u8 packet[200];
};

static struct bed *bed_new(u32 snap, size_t memory)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	u32 i;

	assert_non_null(bed);
	bed->want.packets = true;
	bed->want.rpcs = true;
	bed->want.snap = snap;
	bed->t = calloc(1, sizeof(*bed->t));
	assert_non_null(bed->t);
	bed->t->trace = homad_trace_new(&bed->want, memory);
	assert_non_null(bed->t->trace);
	bed->port.index = 3;
	for (i = 0; i < sizeof(bed->packet); i++)
		bed->packet[i] = (u8)i;
	return bed;
}

static void bed_free(struct bed *bed)
{
	homad_trace_free(bed->t->trace);
	free(bed->t);
	free(bed);
}

/* @id: the sender's; ports as on the wire. */
static struct nic_rx packet_in(struct bed *bed, u64 id, u16 sport, u16 dport,
			       u8 last)
{
	struct homa_wire_common *h = (struct homa_wire_common *)bed->packet;
	struct nic_rx rx = { .data = bed->packet, .len = sizeof(bed->packet) };

	homa_put_be16(&h->sport, sport);
	homa_put_be16(&h->dport, dport);
	homa_put_be64(&h->sender_id, id);
	rx.src.ip[15] = last;
	return rx;
}

static void receive(struct bed *bed, u64 id, u16 sport, u16 dport, u8 last)
{
	const struct nic_rx rx = packet_in(bed, id, sport, dport, last);

	homad_trace_rx(bed->t, &bed->port, &rx);
}

static u32 count(struct bed *bed)
{
	u32 n = 0;

	while (homad_trace_peek(bed->t->trace)) {
		homad_trace_pop(bed->t->trace);
		n++;
	}
	return n;
}

static void packet__in(void **state)
{
	struct bed *bed = bed_new(64, 1 << 16);
	const struct homad_trace_record *r;

	(void)state;
	receive(bed, 8, 40000, 80, 7);
	r = homad_trace_peek(bed->t->trace);
	assert_non_null(r);
	assert_int_equal(r->kind, HOMAD_TRACE_RX);
	assert_int_equal(r->port, 3);
	assert_int_equal(r->own_port, 80);
	assert_int_equal(r->peer_port, 40000);
	assert_true(r->rpc == 9); /* as this end calls it */
	assert_int_equal(r->src[15], 7);
	assert_int_equal(r->length, 200);
	assert_int_equal(r->captured, 64);
	assert_memory_equal(r + 1, bed->packet, 64);
	homad_trace_pop(bed->t->trace);
	assert_null(homad_trace_peek(bed->t->trace));
	bed_free(bed);
}

/* Header and payload are two pieces for the nic and one for the reader. */
static void packet__out(void **state)
{
	struct bed *bed = bed_new(100, 1 << 16);
	const struct homad_trace_record *r;
	struct nic_tx tx = {
		.hdr = bed->packet,
		.hdr_len = 56,
		.payload = bed->packet + 100,
		.payload_len = 90,
		.prio = 5,
	};

	(void)state;
	homa_put_be64(bed->packet + 20, 9);
	homad_trace_tx(bed->t, &bed->port, HOMAD_TRACE_TX, &tx);
	r = homad_trace_peek(bed->t->trace);
	assert_non_null(r);
	assert_true(r->rpc == 9);
	assert_int_equal(r->prio, 5);
	assert_int_equal(r->length, 146);
	assert_int_equal(r->captured, 100);
	assert_memory_equal(r + 1, bed->packet, 56);
	assert_memory_equal((const u8 *)(r + 1) + 56, bed->packet + 100, 44);
	bed_free(bed);
}

/* Whatever the length of what came, nothing is read behind its end. */
static void packet__short(void **state)
{
	struct bed *bed = bed_new(64, 1 << 16);
	u32 len;

	(void)state;
	for (len = 0; len < 40; len++) {
		u8 *exact = malloc(len ? len : 1);
		const struct nic_rx rx = { .data = exact, .len = len };
		const struct homad_trace_record *r;

		memset(exact, 1, len ? len : 1);
		homad_trace_rx(bed->t, &bed->port, &rx);
		r = homad_trace_peek(bed->t->trace);
		assert_non_null(r);
		assert_int_equal(r->captured, len);
		homad_trace_pop(bed->t->trace);
		free(exact);
	}
	bed_free(bed);
}

static void ring__full_loses_and_counts(void **state)
{
	struct bed *bed = bed_new(64, 16384);
	const u32 slots = bed->t->trace->mask + 1;
	u32 i, round;

	(void)state;
	assert_true(slots >= 16 && slots * bed->t->trace->slot_bytes <= 16384);
	for (round = 1; round <= 3; round++) {
		for (i = 0; i < slots + 5; i++)
			receive(bed, 2 * i, 1, 2, 0);
		assert_int_equal(bed->t->trace->lost, 5 * round);
		for (i = 0; i < slots; i++) {
			const struct homad_trace_record *r =
				homad_trace_peek(bed->t->trace);

			assert_non_null(r);
			assert_true(r->rpc == (2 * i ^ 1));
			homad_trace_pop(bed->t->trace);
		}
		assert_null(homad_trace_peek(bed->t->trace));
	}
	bed_free(bed);
}

static void filter__by_port_peer_and_application(void **state)
{
	struct bed *bed = bed_new(64, 1 << 16);

	(void)state;
	bed->want.port = 80;
	receive(bed, 2, 40000, 80, 1);
	receive(bed, 2, 80, 40000, 1);
	receive(bed, 2, 40000, 81, 1);
	assert_int_equal(count(bed), 2);

	bed->want.port = 0;
	bed->want.by_peer = true;
	bed->want.peer[15] = 9;
	receive(bed, 2, 40000, 80, 1);
	receive(bed, 2, 40000, 80, 9);
	assert_int_equal(count(bed), 1);

	bed->want.by_peer = false;
	bed->want.by_app = true;
	receive(bed, 2, 40000, 80, 1);
	assert_int_equal(count(bed), 0); /* nobody of that name */
	bed->want.app_port[0] = 80;
	bed->want.num_apps = 1;
	receive(bed, 2, 40000, 80, 1);
	receive(bed, 2, 80, 40000, 1); /* somebody else's port 80 */
	assert_int_equal(count(bed), 1);

	bed->want.packets = false;
	receive(bed, 2, 40000, 80, 1);
	assert_int_equal(count(bed), 0);
	bed_free(bed);
}

/* A segment of TCP: its flag, its own byte of DSCP and ECN, and addresses as they are. */
static void segment__in_and_out(void **state)
{
	struct bed *bed = bed_new(40, 1 << 16);
	const u8 here[16] = { [15] = 1 }, there[16] = { [15] = 2 };
	struct homad_traced seg = {
		.kind = HOMAD_TRACE_TX,
		.tos = 8 << 2 | 3,
		.port = &bed->port,
		.from = here,
		.to = there,
		.bytes = 1032,
		.header = bed->packet,
		.header_bytes = 32,
		.payload = bed->packet + 100,
		.payload_bytes = 90,
		.app = 5,
	};
	const struct homad_trace_record *r;

	(void)state;
	homa_put_be16(bed->packet, 80);
	homa_put_be16(bed->packet + 2, 40000);
	homad_trace_segment(bed->t, &seg);
	r = homad_trace_peek(bed->t->trace);
	assert_non_null(r);
	assert_int_equal(r->kind, HOMAD_TRACE_TX);
	assert_int_equal(r->flags, HOMAD_TRACE_TCP);
	assert_int_equal(r->prio, 35);
	assert_int_equal(r->own_port, 80);
	assert_int_equal(r->peer_port, 40000);
	assert_int_equal(r->length, 1032);
	assert_int_equal(r->captured, 40);
	assert_memory_equal(r + 1, bed->packet, 32);
	assert_memory_equal((const u8 *)(r + 1) + 32, bed->packet + 100, 8);
	assert_memory_equal(r->src, here, 16);
	assert_memory_equal(r->dst, there, 16);
	homad_trace_pop(bed->t->trace);

	seg.kind = HOMAD_TRACE_RX;
	seg.header_bytes = 3; /* no ports in it */
	seg.payload_bytes = 0;
	homad_trace_segment(bed->t, &seg);
	r = homad_trace_peek(bed->t->trace);
	assert_non_null(r);
	assert_int_equal(r->own_port, 0);
	assert_int_equal(r->captured, 3);
	bed_free(bed);
}

static void segment__filters(void **state)
{
	struct bed *bed = bed_new(40, 1 << 16);
	const u8 here[16] = { [15] = 1 }, there[16] = { [15] = 2 };
	struct homad_traced seg = { .kind = HOMAD_TRACE_RX,
				    .port = &bed->port,
				    .from = there,
				    .to = here,
				    .bytes = 20,
				    .header = bed->packet,
				    .header_bytes = 20,
				    .app = 5 };

	(void)state;
	homa_put_be16(bed->packet, 40000);
	homa_put_be16(bed->packet + 2, 80);
	bed->want.port = 80;
	homad_trace_segment(bed->t, &seg);
	bed->want.port = 81;
	homad_trace_segment(bed->t, &seg);
	assert_int_equal(count(bed), 1);

	bed->want.port = 0;
	bed->want.by_peer = true;
	bed->want.peer[15] = 2;
	homad_trace_segment(bed->t, &seg);
	bed->want.peer[15] = 1; /* our own address */
	homad_trace_segment(bed->t, &seg);
	assert_int_equal(count(bed), 1);

	/* An attachment's port of Homa says nothing of TCP. */
	bed->want.by_peer = false;
	bed->want.by_app = true;
	bed->want.num_apps = 1;
	bed->want.app[0] = 6;
	bed->want.app_port[0] = 80;
	homad_trace_segment(bed->t, &seg);
	seg.app = 0;
	homad_trace_segment(bed->t, &seg);
	assert_int_equal(count(bed), 0);
	seg.to_app = 6;
	homad_trace_segment(bed->t, &seg);
	seg.to_app = 0;
	seg.app = 6;
	homad_trace_segment(bed->t, &seg);
	assert_int_equal(count(bed), 2);

	bed->want.packets = false;
	homad_trace_segment(bed->t, &seg);
	assert_int_equal(count(bed), 0);
	bed_free(bed);
}

static void rpc__its_end(void **state)
{
	struct bed *bed = bed_new(64, 1 << 16);
	struct homad_app *app = calloc(1, sizeof(*app));
	struct homad_rpc rpc = { .app = app, .client = true };
	const struct homad_trace_record *r;

	(void)state;
	app->id = 12;
	rpc.handle.id = 44;
	homad_trace_rpc(bed->t, HOMAD_TRACE_END, &rpc, 0, 0);
	r = homad_trace_peek(bed->t->trace);
	assert_non_null(r);
	assert_int_equal(r->kind, HOMAD_TRACE_END);
	assert_true(r->app == 12 && r->rpc == 44);
	assert_int_equal(r->flags, HOMAD_TRACE_CLIENT);
	assert_int_equal(r->captured, 0);
	homad_trace_pop(bed->t->trace);

	rpc.app = NULL; /* not known to any application */
	homad_trace_rpc(bed->t, HOMAD_TRACE_END, &rpc, 0, 0);
	assert_int_equal(count(bed), 0);
	free(app);
	bed_free(bed);
}

static void off__nothing_happens(void **state)
{
	struct bed *bed = bed_new(64, 1 << 16);
	struct homad_trace *trace = bed->t->trace;

	(void)state;
	homad_trace_attach(bed->t, NULL);
	receive(bed, 2, 1, 2, 0);
	homad_trace_attach(bed->t, trace);
	assert_int_equal(count(bed), 0);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet__in),
		cmocka_unit_test(packet__out),
		cmocka_unit_test(packet__short),
		cmocka_unit_test(ring__full_loses_and_counts),
		cmocka_unit_test(filter__by_port_peer_and_application),
		cmocka_unit_test(segment__in_and_out),
		cmocka_unit_test(segment__filters),
		cmocka_unit_test(rpc__its_end),
		cmocka_unit_test(off__nothing_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
