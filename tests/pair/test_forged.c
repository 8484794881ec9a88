/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets and errors that somebody else sends in a host's name, and questions
 * about RPCs that never were: what is believed of them, and what comes back.
 */
#include <string.h>

#include "pair_test.h"

/* What hosts have sent, by type and recipient; see watch(). */
struct seen {
	u32 sent[PAIR_MAX_HOSTS][HOMA_TYPES];
	struct homa_packet last[HOMA_TYPES];
};

static bool see(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct seen *seen = arg;
	struct homa_packet p;

	(void)w;
	if (homa_packet_decode(&p, pkt->data, pkt->len))
		return false;
	seen->sent[pkt->dst][p.hdr.type - HOMA_TYPE_FIRST]++;
	seen->last[p.hdr.type - HOMA_TYPE_FIRST] = p;
	return false;
}

static struct pair_world *world(u32 hosts, struct seen *seen)
{
	struct pair_config cfg;
	struct pair_world *w;

	pair_config_default(&cfg);
	cfg.hosts = hosts;
	w = pair_world_new(&cfg);
	memset(seen, 0, sizeof(*seen));
	w->tap = see;
	w->tap_arg = seen;
	return w;
}

static u32 sent(const struct seen *seen, u8 to, u8 type)
{
	return seen->sent[to][type - HOMA_TYPE_FIRST];
}

static const struct homa_packet *last(const struct seen *seen, u8 type)
{
	return &seen->last[type - HOMA_TYPE_FIRST];
}

/* A control packet, or DATA with @payload zeros, arrives at @to in @from's name. */
static void forge(struct pair_world *w, u8 from, u8 to,
		  const struct homa_packet *p, u32 payload)
{
	struct pair_pkt *pkt = pair_pkt_new(from, to, 7, HOMA_MAX_HDR + payload);

	memset(pkt->data, 0, pkt->len);
	pkt->len = homa_packet_encode(pkt->data, p) + payload;
	pair_net_deliver(w, pkt);
	pair_run_for(w, PAIR_MS);
}

static struct homa_packet question(u8 type, u64 sender_id)
{
	struct homa_packet p = { .hdr = { .sport = 1, .dport = 0x8000,
					  .type = type, .sender_id = sender_id } };

	return p;
}

/* ---- questions about nothing ---- */

static void question__with_id_1_is_answered(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, &seen);
	struct homa_packet q = question(HOMA_NEED_ACK, 1);

	(void)state;
	forge(w, 0, 1, &q, 0);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 1);
	assert_int_equal(last(&seen, HOMA_ACK)->hdr.sender_id, 0);
	/* Nothing else with such an id means anything. */
	q.hdr.sender_id = 0;
	forge(w, 0, 1, &q, 0);
	q = question(HOMA_RESEND, 1);
	forge(w, 0, 1, &q, 0);
	q.hdr.sender_id = 0;
	forge(w, 0, 1, &q, 0);
	assert_int_equal(pair_host_metric(&w->hosts[1], HOMA_M_drop_id), 3);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 1);
	assert_int_equal(sent(&seen, 0, HOMA_RPC_UNKNOWN), 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(question__with_id_1_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
