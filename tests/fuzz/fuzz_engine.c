/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two whole engines at the mercy of the input, which is read as a script: the
 * applications send, abort, close and pause; packets wait in the network until
 * the script delivers, repeats, damages or loses one; packets of any content
 * are made up; time passes. The host around the engines is that of tests/pair.
 *
 * Whatever happened, the network is then made perfect and everything must come
 * to an end: no RPC, gap record, page or pinned object left, no object used
 * after its end (ASan), no answer to a packet by more than a bounded number of
 * control packets. As long as the script made up nothing, contents and
 * at-most-once execution are checked, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MAX_HELD 256
#define MAX_RPCS 200
#define MAX_SCRIPT_NS (20 * PAIR_S)
/* 16 RESENDs of gaps, acks, and what a batch of grants brings. */
#define MAX_ANSWERS 48

enum op {
	OP_SEND,
	OP_DELIVER_ALL,
	OP_DELIVER,
	OP_DROP,
	OP_REPEAT,
	OP_DAMAGE,
	OP_TIME,
	OP_ABORT,
	OP_CLOSE,
	OP_RAW,
	OP_FORGE,
	OP_RESTART,
	OP_PAUSE,
	OP_STARVE,
	OP_ICMP,
	OP_RELEASE_ALL,
	OPS,
};

struct script {
	const u8 *at, *end;
	struct pair_pkt *held[MAX_HELD];
	u64 held_since[MAX_HELD];
	u32 num_held;
};

static u64 packets, inputs;

static void report(void)
{
	double seconds = (double)clock() / CLOCKS_PER_SEC;

	fprintf(stderr,
		"%llu inputs, %llu packets, %.0f packets per second of processor time\n",
		(unsigned long long)inputs, (unsigned long long)packets,
		(double)packets / (seconds > 0 ? seconds : 1));
}

/*
 * libFuzzer's schedule by entropy costs more time than two engines; a plain
 * schedule finds more here. A flag on the command line overrides this one.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char flag[] = "-entropic=0";
	char **args = calloc((size_t)*argc + 2, sizeof(*args));

	if (!args)
		return 0;
	args[0] = (*argv)[0];
	args[1] = flag;
	memcpy(args + 2, *argv + 1, ((size_t)*argc - 1) * sizeof(*args));
	*argv = args;
	++*argc;
	atexit(report);
	return 0;
}

static u8 next(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static u32 next32(struct script *s)
{
	u32 v = next(s);

	v |= (u32)next(s) << 8;
	v |= (u32)next(s) << 16;
	return v | (u32)next(s) << 24;
}

/* Lengths around everything that matters, from one byte. */
static u32 length_of(u8 b)
{
	static const u32 lengths[] = {
		1,     100,   1423,  1424,  1425,   5000,   9999,   10001,
		40000, 65535, 65536, 65537, 100000, 131073, 250000, 300,
	};

	return lengths[b & 15] + (b >> 4);
}

/* ---- the network is a list ---- */

static bool hold(struct pair_world *w, struct pair_pkt *pkt)
{
	struct script *s = w->user;

	if (s->num_held == MAX_HELD) {
		free(pkt);
		return true;
	}
	s->held[s->num_held] = pkt;
	s->held_since[s->num_held++] = w->now;
	return true;
}

static struct pair_pkt *unhold(struct script *s, u32 i)
{
	struct pair_pkt *pkt = s->held[i];

	s->num_held--;
	memmove(&s->held[i], &s->held[i + 1],
		(s->num_held - i) * sizeof(s->held[0]));
	memmove(&s->held_since[i], &s->held_since[i + 1],
		(s->num_held - i) * sizeof(s->held_since[0]));
	return pkt;
}

static u64 control_sent(const struct pair_world *w)
{
	u64 sum = 0;
	u32 i;

	for (i = 1; i < HOMA_TYPES; i++) /* all but DATA */
		sum += w->by_type[i];
	return sum;
}

static void deliver(struct pair_world *w, struct pair_pkt *pkt)
{
	u64 before = control_sent(w);

	pair_net_deliver(w, pkt);
	pair_check(w, control_sent(w) - before <= MAX_ANSWERS,
		   "%llu control packets in answer to one",
		   (unsigned long long)(control_sent(w) - before));
}

static struct pair_pkt *copy_of(const struct pair_pkt *pkt)
{
	struct pair_pkt *copy =
		pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);

	memcpy(copy->data, pkt->data, pkt->len);
	return copy;
}

/* What is promised about duplicates ends after a second. */
static void drop_old(struct pair_world *w, struct script *s)
{
	while (s->num_held && w->now - s->held_since[0] > 900 * PAIR_MS)
		free(unhold(s, 0));
}

static void deliver_all(struct pair_world *w, struct script *s)
{
	u32 n = s->num_held;

	while (n-- && s->num_held)
		deliver(w, unhold(s, 0));
}

static void op_held(struct pair_world *w, struct script *s, enum op op)
{
	struct pair_pkt *pkt;
	u32 i, n;

	i = next(s);
	if (!s->num_held)
		return;
	i %= s->num_held;
	if (op == OP_REPEAT) {
		deliver(w, copy_of(s->held[i]));
		return;
	}
	pkt = unhold(s, i);
	if (op == OP_DROP) {
		free(pkt);
		return;
	}
	if (op == OP_DAMAGE) {
		w->corrupting = true;
		n = next(s);
		if (n & 0x80)
			pkt->len = n % (pkt->len + 1);
		for (n = 1 + (n & 3); n && pkt->len; n--) {
			i = next(s) % (pkt->len < 96 ? pkt->len : 96);
			pkt->data[i] = next(s);
		}
	}
	deliver(w, pkt);
}

/* ---- packets that nobody sent ---- */

static void op_raw(struct pair_world *w, struct script *s)
{
	u8 dst = next(s) & 1;
	u32 i, len = next(s);
	struct pair_pkt *pkt = pair_pkt_new(dst ^ 1, dst, 0, len);

	w->corrupting = true;
	for (i = 0; i < len; i++)
		pkt->data[i] = i < 96 ? next(s) : 0;
	deliver(w, pkt);
}

static void forge_body(struct script *s, struct homa_packet *p, u32 length)
{
	u32 a = next32(s), b = next32(s);
	u32 i;

	if (next(s) & 1) { /* plausible numbers */
		a %= length + 1;
		b %= length + 1;
	}
	switch (p->hdr.type) {
	case HOMA_DATA:
		p->data.length = next(s) & 1 ? length : b;
		p->data.incoming = b;
		p->data.offset = a;
		p->data.ack.client_id = p->hdr.sender_id;
		p->data.ack.server_port = PAIR_SERVER_PORT;
		p->data.cutoff_version = next(s);
		p->data.retransmit = next(s) & 1;
		p->data.incast = next(s) & 1;
		p->data.resp_limit_kib = next(s);
		break;
	case HOMA_GRANT:
		p->grant.offset = a;
		p->grant.priority = next(s);
		break;
	case HOMA_RESEND:
		p->resend.offset = a;
		p->resend.length = next(s) & 1 ? HOMA_RESEND_ALL : b;
		p->resend.priority = next(s);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++)
			p->cutoffs.cutoff[i] = next32(s);
		p->cutoffs.version = next(s);
		break;
	case HOMA_ACK:
		p->ack.num = next(s) % 6;
		for (i = 0; i < p->ack.num; i++) {
			p->ack.ack[i].client_id = p->hdr.sender_id + 2 * next(s);
			p->ack.ack[i].server_port = PAIR_SERVER_PORT;
		}
		break;
	case HOMA_START_MSG:
		p->start.length = next(s) & 1 ? length : b;
		break;
	}
}

/* A well-formed packet about an RPC that exists or might. */
static void op_forge(struct pair_world *w, struct script *s)
{
	struct homa_packet p;
	u8 dst = next(s) & 1, type = HOMA_TYPE_FIRST + next(s) % HOMA_TYPES;
	u8 which = next(s), how = next(s);
	struct pair_rpc *rpc = w->num_rpcs ? w->book[which % w->num_rpcs] : NULL;
	u32 length = rpc ? rpc->request_length : 5000;
	struct pair_pkt *pkt;
	u32 payload, len;

	memset(&p, 0, sizeof(p));
	w->corrupting = true;
	p.hdr.type = type;
	p.hdr.sport = rpc ? rpc->client_port : 40000;
	p.hdr.dport = PAIR_SERVER_PORT;
	p.hdr.sender_id = rpc ? rpc->handle.id : 1000 + (u64)which;
	if (rpc && rpc->client == dst) { /* from its server */
		p.hdr.sender_id ^= 1;
		p.hdr.sport = PAIR_SERVER_PORT;
		p.hdr.dport = rpc->client_port;
		length = rpc->response_length;
	}
	if (how & 1)
		p.hdr.sender_id += 2 * next(s);
	if (how & 2)
		p.hdr.sender_id ^= 1;
	forge_body(s, &p, length);
	payload = type == HOMA_DATA ? next(s) * 8 : 0;
	pkt = pair_pkt_new(dst ^ 1, dst, 0, HOMA_MAX_HDR + payload);
	memset(pkt->data, 0, pkt->len);
	len = homa_packet_encode(pkt->data, &p);
	pkt->len = len + payload;
	deliver(w, pkt);
}

static void op_icmp(struct pair_world *w, struct script *s)
{
	static const int errors[] = { HOMA_ENOTCONN, HOMA_EHOSTUNREACH,
				      HOMA_EPROTONOSUPPORT, HOMA_ETIMEDOUT };
	struct pair_host *h = &w->hosts[next(s) & 1];
	u8 which = next(s), how = next(s);
	struct pair_rpc *rpc = w->num_rpcs ? w->book[which % w->num_rpcs] : NULL;

	if (!rpc)
		return;
	w->corrupting = true;
	h->ctx.now = w->now;
	homa_icmp(&h->ctx, &w->hosts[h->index ^ 1].addr,
		  how & 1 ? rpc->client_port : 0, how & 2 ? rpc->server_port : 0,
		  how & 4 ? rpc->handle.id : 0, errors[how >> 6]);
	pair_poll(h);
}

/* ---- applications ---- */

static void op_send(struct pair_world *w, struct script *s)
{
	u8 who = next(s), req = next(s), resp = next(s);
	u8 client = who & 1, sock = who >> 1 & 1;
	struct pair_rpc *rpc;

	if (w->num_rpcs >= MAX_RPCS || !w->hosts[client].socks[sock].open)
		return;
	rpc = pair_rpc_start(w, client, sock, who & 4 ? client : client ^ 1,
			     who & 8 ? 7777 : PAIR_SERVER_PORT, length_of(req),
			     length_of(resp), NULL);
	if (rpc && who & 16) {
		rpc->reply_delay_set = true;
		rpc->reply_delay = (who >> 5) * 50 * PAIR_MS;
	}
}

static void op_abort(struct pair_world *w, struct script *s)
{
	u8 which = next(s);
	struct pair_rpc *rpc;

	if (!w->num_rpcs)
		return;
	rpc = w->book[(which >> 1) % w->num_rpcs];
	if (rpc->state == PAIR_PENDING)
		pair_rpc_abort(w, rpc, which & 1 ? HOMA_EINTR : 0);
}

static void op_close(struct pair_world *w, struct script *s)
{
	u8 b = next(s);
	struct pair_host *h = &w->hosts[b & 1];
	u32 i = b >> 1 & 1;

	if (h->socks[i].open)
		pair_sock_close(h, i, 1 + (b >> 4));
	else if (!h->socks[i].sock)
		pair_sock_open(h, i ? 0 : PAIR_SERVER_PORT);
}

static void op_restart(struct pair_world *w, struct script *s)
{
	w->corrupting = true; /* old packets may run again: documented */
	pair_restart(&w->hosts[next(s) & 1]);
}

static void step(struct pair_world *w, struct script *s)
{
	u8 op = next(s) % OPS;

	switch (op) {
	case OP_SEND:
		op_send(w, s);
		break;
	case OP_DELIVER_ALL:
		deliver_all(w, s);
		break;
	case OP_DELIVER:
	case OP_DROP:
	case OP_REPEAT:
	case OP_DAMAGE:
		op_held(w, s, op);
		break;
	case OP_TIME:
		pair_run_for(w, 1ull << (next(s) % 28)); /* to 134 ms */
		drop_old(w, s);
		break;
	case OP_ABORT:
		op_abort(w, s);
		break;
	case OP_CLOSE:
		op_close(w, s);
		break;
	case OP_RAW:
		op_raw(w, s);
		break;
	case OP_FORGE:
		op_forge(w, s);
		break;
	case OP_RESTART:
		op_restart(w, s);
		break;
	case OP_PAUSE:
		w->hosts[0].hold_events ^= 1;
		break;
	case OP_STARVE:
		w->cfg.starve ^= 1000;
		break;
	case OP_ICMP:
		op_icmp(w, s);
		break;
	case OP_RELEASE_ALL:
		pair_run_for(w, 10 * PAIR_US);
		deliver_all(w, s);
		break;
	}
}

static void configure(struct script *s, struct pair_config *cfg)
{
	u8 a = next(s), b = next(s);

	pair_config_default(cfg);
	cfg->seed = 1;
	cfg->buckets = 8;
	cfg->tombstones = 256;
	cfg->ctrl_slots = 32;
	cfg->shards = a & 1 ? 4 : 1;
	cfg->pool_pages = a & 2 ? 0 : a & 4 ? 17 : 6;
	cfg->max_segs = a & 8 ? 1 : 6;
	cfg->copy_delay_ns = a & 16 ? 50000 : 0;
	cfg->done_delay_ns = a & 32 ? 50000 : 0;
	cfg->take_delay_ns = a & 64 ? 50000 : 0;
	cfg->release_delay_ns = a & 128 ? PAIR_MS : 0;
	cfg->supply_step = b & 1 ? 3000 : 0;
	cfg->timer_budget = b & 2 ? 1 : 100;
	cfg->max_packets = 500000;
	if (b & 4)
		homa_params_sigcomm(&cfg->params);
	if (b & 8)
		cfg->params.max_overcommit = 1;
	if (b & 16)
		cfg->params.num_priorities = 1 + (b >> 5);
	if (b & 32)
		cfg->params.max_peers = 16;
	if (b & 64)
		cfg->params.max_server_rpcs_per_peer = 3;
	if (b & 128)
		cfg->params.cutoff_interval_ms = 5;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct script s = { .at = bytes, .end = bytes + len };
	struct pair_config cfg;
	struct pair_world *w;
	u64 end;
	u32 i;

	if (len < 3)
		return 0;
	configure(&s, &cfg);
	w = pair_world_new(&cfg);
	w->user = &s;
	w->intercept = hold;
	end = w->now + MAX_SCRIPT_NS;
	while (s.at < s.end && w->now < end)
		step(w, &s);
	w->intercept = NULL;
	w->cfg.starve = 0;
	w->hosts[0].hold_events = false;
	while (s.num_held)
		free(unhold(&s, 0));
	for (i = 0; i < 2; i++)
		pair_poll(&w->hosts[i]);
	pair_drain(w, 200 * PAIR_S);
	packets +=
		w->packets + w->hosts[0].rx_delivered + w->hosts[1].rx_delivered;
	inputs++;
	pair_finish(w);
	return 0;
}
