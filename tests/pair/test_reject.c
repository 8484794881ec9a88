/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Servers that do not answer: a request that the application rejects fails at its client
 * at once, if the client understands that, and runs once in any case.
 */
#include "forge.h"

#define ERRNO 77

static struct pair_rpc *rejected(struct pair_world *w, u32 request)
{
	struct pair_rpc *r = pair_rpc(w, 0, 1, request, 100);

	r->reject = ERRNO;
	return r;
}

static void assert_heard(struct pair_world *w, const struct pair_rpc *r)
{
	assert_int_equal(r->state, PAIR_FAILED);
	assert_int_equal(r->error, ERRNO);
	assert_int_equal(r->executed, 1);
	assert_int_equal(count(w, 0, HOMA_M_rpcs_rejected), 1);
	assert_int_equal(count(w, 1, HOMA_M_requests_rejected), 1);
	assert_int_equal(count(w, 1, HOMA_M_requests_discarded), 0);
}

static void reject__is_heard_at_once(void **state)
{
	static const u32 lengths[] = { 1, 100, 20000, 1000000 };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct seen seen;
		struct pair_world *w = world(2, i & 1 ? 54321 : 0, &seen);
		struct pair_rpc *r = rejected(w, lengths[i]);

		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_heard(w, r);
		/* Nobody had to ask for anything. */
		assert_int_equal(sent(&seen, 1, HOMA_RESEND), 0);
		assert_int_equal(sent(&seen, 0, HOMA_RPC_UNKNOWN), 0);
		pair_finish(w);
	}
}

static void reject__in_a_host_that_gives_and_sends_at_once(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.deliver_whole = true;
	cfg.at_once = true;
	w = pair_world_new(&cfg);
	r = rejected(w, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_heard(w, r);
	assert_true(w->delivered_whole > 0);
	assert_int_equal(w->sent_at_once, 2);
	pair_finish(w);
}

static void reject__is_repeated_until_it_is_heard(void **state)
{
	u32 lost;

	(void)state;
	for (lost = 1; lost < 4; lost++) {
		struct seen seen;
		struct pair_world *w = world(2, 0, &seen);
		struct pair_filter *f =
			pair_filter_add(w, HOMA_DATA, 1, 0, 0, lost);
		struct pair_rpc *r = rejected(w, 100);

		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(f->hits, lost);
		assert_heard(w, r);
		pair_finish(w);
	}
}

/* The ack waits for something to ride on: the server asks, and is not kept waiting for
 * the application to look. */
static void reject__ends_at_the_server_before_the_application_looks(void **state)
{
	struct homa_counts counts;
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r;

	(void)state;
	w->hosts[0].hold_events = true;
	r = rejected(w, 100);
	pair_run_for(w, 10 * PAIR_MS);
	assert_int_equal(r->state, PAIR_PENDING);
	assert_true(sent(&seen, 0, HOMA_NEED_ACK) > 0);
	homa_engine_counts(w->hosts[1].engine, &counts);
	assert_int_equal(counts.rpcs, 0);
	w->hosts[0].hold_events = false;
	pair_poll(&w->hosts[0]);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_heard(w, r);
	pair_finish(w);
}

/* What the existing module sends: no extension. */
static bool plain(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	(void)w;
	(void)arg;
	if (pkt->src == 0 && homa_peek_type(pkt->data) == HOMA_DATA)
		pkt->data[49] = 0;
	return false;
}

static void reject__who_does_not_understand_times_out(void **state)
{
	struct homa_counts counts;
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r;

	(void)state;
	w->tap = plain;
	r = rejected(w, 3000);
	pair_run_for(w, PAIR_MS);
	/* The server keeps nothing. */
	homa_engine_counts(w->hosts[1].engine, &counts);
	assert_int_equal(counts.rpcs, 0);
	assert_int_equal(count(w, 1, HOMA_M_requests_discarded), 1);
	assert_int_equal(count(w, 1, HOMA_M_requests_rejected), 0);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(r->state, PAIR_FAILED);
	assert_int_equal(r->error, HOMA_ETIMEDOUT);
	assert_int_equal(r->executed, 1);
	assert_true(count(w, 0, HOMA_M_restarts) > 0);
	pair_finish(w);
}

/* In vain: nothing is to be handed in. */
static int reject(struct pair_world *w, u32 host, struct homa_handle handle,
		  u32 error)
{
	struct homa_rpc *obj;
	int err = homa_rpc_reject(ctx_of(w, host), handle, error, 1, &obj);

	assert_null(obj);
	return err;
}

static void reject__wants_a_taken_request_and_an_errno(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 5 * PAIR_MS);

	(void)state;
	pair_run_for(w, PAIR_MS);
	assert_int_equal(r->executed, 1);
	assert_true(homa_rpc_awaited(ctx_of(w, 1), r->server_handle));
	assert_int_equal(reject(w, 1, r->server_handle, 0), -HOMA_EINVAL);
	assert_int_equal(reject(w, 1, r->server_handle, HOMA_MAX_ERRNO + 1),
			 -HOMA_EINVAL);
	assert_int_equal(reject(w, 0, r->handle, ERRNO), -HOMA_EINVAL);
	assert_true(homa_rpc_awaited(ctx_of(w, 1), r->server_handle));
	/* It has been answered: not any more. */
	pair_filter_add(w, HOMA_DATA, 1, 0, 0, 1);
	pair_run_for(w, 5 * PAIR_MS);
	assert_int_equal(r->replies, 1);
	assert_false(homa_rpc_awaited(ctx_of(w, 1), r->server_handle));
	assert_int_equal(reject(w, 1, r->server_handle, ERRNO), -HOMA_EINVAL);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	/* It is gone: nobody minds. */
	pair_drain(w, 10 * PAIR_S);
	assert_int_equal(reject(w, 1, r->server_handle, ERRNO), 0);
	pair_finish(w);
}

static void awaited__until_the_client_gives_up(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 5 * PAIR_MS);

	(void)state;
	pair_run_for(w, PAIR_MS);
	assert_true(homa_rpc_awaited(ctx_of(w, 1), r->server_handle));
	assert_int_equal(pair_rpc_abort(w, r, 0), 0);
	pair_run_for(w, PAIR_MS);
	assert_false(homa_rpc_awaited(ctx_of(w, 1), r->server_handle));
	pair_finish(w);
}

static struct homa_packet rejection(const struct pair_rpc *r, u16 error)
{
	struct homa_packet p = about(r, HOMA_DATA, true);

	p.data.error = error;
	p.data.length = p.data.incoming = p.data.payload_len = 1;
	return p;
}

static void forged__needs_what_a_response_needs(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 20 * PAIR_MS);
	struct homa_packet p;

	(void)state;
	pair_run_for(w, PAIR_MS);
	p = rejection(r, ERRNO);
	p.hdr.sport ^= 1;
	forge(w, 1, 0, &p, 1);
	assert_int_equal(count(w, 0, HOMA_M_drop_ports), 1);
	p = rejection(r, ERRNO);
	p.hdr.sender_id += 2;
	forge(w, 1, 0, &p, 1);
	assert_int_equal(count(w, 0, HOMA_M_drop_unknown_rpc), 1);
	/* To a server it is nothing at all. */
	p = about(r, HOMA_DATA, false);
	p.data.error = ERRNO;
	forge(w, 0, 1, &p, 100);
	assert_int_equal(r->state, PAIR_PENDING);
	assert_int_equal(r->executed, 1);
	assert_int_equal(count(w, 0, HOMA_M_rpcs_rejected), 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

/* Of a response that has begun no rejection is believed. */
static void forged__comes_too_late_for_a_response(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 100, 500000);
	struct homa_packet p;

	(void)state;
	/* The rest is lost until the rejection has come. */
	pair_filter_add(w, HOMA_DATA, 1, 0, 1, 100000);
	pair_run_for(w, PAIR_MS);
	p = rejection(r, ERRNO);
	forge(w, 1, 0, &p, 1);
	assert_int_equal(count(w, 0, HOMA_M_drop_length), 1);
	assert_int_equal(r->state, PAIR_PENDING);
	w->num_filters = 0;
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reject__is_heard_at_once),
		cmocka_unit_test(reject__in_a_host_that_gives_and_sends_at_once),
		cmocka_unit_test(reject__is_repeated_until_it_is_heard),
		cmocka_unit_test(
			reject__ends_at_the_server_before_the_application_looks),
		cmocka_unit_test(reject__who_does_not_understand_times_out),
		cmocka_unit_test(reject__wants_a_taken_request_and_an_errno),
		cmocka_unit_test(awaited__until_the_client_gives_up),
		cmocka_unit_test(forged__needs_what_a_response_needs),
		cmocka_unit_test(forged__comes_too_late_for_a_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
