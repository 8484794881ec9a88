// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's fast path with the memory of an application that the input writes.
 * The input is a script: words of the rings and headers, commands with any
 * field, message bytes, kicks, time, binding, a new pool, shutdown, eviction
 * and a new start. A second application, which does everything right, lives in
 * the same daemon; a nic leads to a network where nobody answers, or where the
 * input makes up packets. If the input wants that, both have TCP streams, too,
 * and the second one echoes what comes to its listener.
 *
 * Whatever the first one did: an echo of the second one with itself works and
 * has its content, by an RPC and by a stream, and when both are gone the
 * engine holds nothing of theirs.
 * Each piece of shared memory is an allocation of its own, so that ASan sees
 * every access beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "shm_bed.h"
#include "shm_lies.h"
#include "shm_script.h"
#include "shm_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define EVIL_POOL (3u << HOMA_BPAGE_SHIFT)
#define GOOD_POOL (32u << HOMA_BPAGE_SHIFT)
#define GOOD_PORT 77
#define EVIL_PORT 78
#define MAX_OPS 400
/* An operation of this kind is about streams; the others count from 0. */
#define STREAMS_FROM 240

enum op {
	OP_ROUNDS,
	OP_COMMAND,
	OP_POKE,
	OP_INDEX,
	OP_CONSUME,
	OP_RELEASE,
	OP_BYTES,
	OP_TIME,
	OP_BIND,
	OP_POOL,
	OP_SHUTDOWN,
	OP_RESTART,
	OP_PACKET,
	OP_ASK_EVIL,
	OP_REPLY,
	OP_BURST,
	OPS,
};

static struct shm_side evil, good;
static struct shm_streams evil_tcp, good_tcp;
static u64 inputs;

/* Commands count like packets here. */
static void report(void)
{
	fprintf(stderr,
		"%llu inputs, %llu packets and commands, %.1f s of processor time\n",
		(unsigned long long)inputs, (unsigned long long)shm_handled,
		(double)clock() / CLOCKS_PER_SEC);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	atexit(report);
	return 0;
}

/* ---- the good one ---- */

static bool serve(u32 length, u8 mark)
{
	struct homa_cqe cqe;
	struct homa_sqe sqe;
	bool mine = false;
	u32 i;

	while (shm_next(&good, &cqe)) {
		if (cqe.kind != HOMA_CQE_REQUEST && cqe.kind != HOMA_CQE_FREE &&
		    (cqe.token & 0xffff) == SHM_RPCS - 1) {
			MUST(good.asking && cqe.num_pages <= HOMA_SHM_PAGES);
			good.asking = false;
		} else if (cqe.kind == HOMA_CQE_RESPONSE) {
			MUST(cqe.length == length);
			MUST(cqe.num_pages == (length - 1) / HOMA_BPAGE_SIZE + 1);
			for (i = 0; i < length; i += 97)
				MUST(good.app.pool[cqe.pages[i >> HOMA_BPAGE_SHIFT] +
						   (i & (HOMA_BPAGE_SIZE - 1))] ==
				     mark);
			mine = true;
		} else if (cqe.kind == HOMA_CQE_REQUEST) {
			/* The same memory is sent again: an echo of our own. */
			sqe = (struct homa_sqe){
				.op = HOMA_SQE_REPLY,
				.length = length,
				.token = cqe.token,
			};
			shm_push(&good, &sqe);
		} else {
			MUST(cqe.kind == HOMA_CQE_FREE);
		}
		if (cqe.kind != HOMA_CQE_FREE)
			shm_release(&good, cqe.pages, cqe.num_pages);
	}
	return mine;
}

static void good_works(u32 length)
{
	u8 mark = (u8)(length * 7 + 1);
	struct homa_sqe sqe;
	bool done = false;
	u32 i;

	/* Answers to the other one are still being sent from there; its
	 * contents are its own affair. */
	memset(good.app.seg[0].base, mark, length);
	sqe = shm_request(&good, GOOD_PORT, length);
	shm_push(&good, &sqe);
	for (i = 0; i < SHM_MAX_ROUNDS && !done; i++) {
		shm_rounds(1);
		fuzz_clock += 50000;
		done = serve(length, mark);
	}
	MUST(done);
	MUST(!good.app.evicted && good.app.phase == HOMAD_APP_OPEN);
}

/* ---- what the input can do ---- */

static void command(struct script *s)
{
	struct homa_sqe sqe = shm_request(&evil, GOOD_PORT, 1 + byte(s) * 300);
	u32 spoil = byte(s);

	if (spoil & 1)
		sqe.port = spoil & 2 ? EVIL_PORT : (u16)word(s);
	if (spoil & 4)
		sqe.ip[15] = (u8)byte(s);
	if (spoil & 8)
		sqe.op = (u8)(byte(s) % 5);
	if (spoil & 16)
		sqe.token = (u64)byte(s) << 16 | byte(s) % (SHM_RPCS + 1);
	if (spoil & 32)
		sqe.flags = (u8)byte(s);
	if (spoil & 64)
		sqe.length = number(s);
	if (spoil & 128) {
		sqe.offset = number(s);
		sqe.segment = (u16)(byte(s) > 250 ? word(s) : 0);
		sqe.encap = (u16)(byte(s) > 200 ? word(s) : 0);
	}
	shm_push(&evil, &sqe);
}

static void poke(struct script *s)
{
	u8 *q = (u8 *)evil.app.queues;
	u32 at = word(s) * 5 % sizeof(struct homa_shm_queues);
	u32 n = byte(s) % 64;

	/* Half of the time where it matters. */
	if (byte(s) & 1)
		at %= sizeof(struct homa_shm_header);
	while (n-- && at < sizeof(struct homa_shm_queues))
		q[at++] = (u8)byte(s);
}

static void set_index(struct script *s)
{
	struct homa_shm_header *h = evil.app.queues;
	/* sq, release and cq lie one behind the other. */
	struct homa_shm_ring *rings = h->sq;
	struct homa_shm_ring *ring = &rings[byte(s) % (HOMA_SHM_SQS + 2)];
	u32 *index = byte(s) & 1 ? &ring->tail : &ring->head;
	u32 how = byte(s);

	*index = how & 1 ? *index + (u32)(int8_t)byte(s) : number(s);
	if (how & 2)
		h->sqs = number(s);
	homad_poll_app(shm_homad.threads[0], &evil.app);
}

static void consume(struct script *s)
{
	struct homa_cqe cqe;
	u32 n = byte(s) % 32;

	while (n-- && shm_next(&evil, &cqe)) {
		if (cqe.kind == HOMA_CQE_REQUEST && byte(s) & 1) {
			struct homa_sqe sqe = {
				.op = HOMA_SQE_REPLY,
				.length = 1 + byte(s),
				.token = cqe.token,
			};

			shm_push(&evil, &sqe);
		}
		if (cqe.num_pages <= HOMA_SHM_PAGES && byte(s) & 3)
			shm_release(&evil, cqe.pages, cqe.num_pages);
	}
}

static void change_pool(struct script *s)
{
	u32 pages = 1 + byte(s) % 8;
	struct homad_pool change = {
		.app = &evil.app,
		.pool = shm_aligned((size_t)pages << HOMA_BPAGE_SHIFT),
		.bytes = (size_t)pages << HOMA_BPAGE_SHIFT,
		.pool_mem = shm_aligned(homa_pool_size(pages)),
	};
	u8 *old = evil.app.pool;

	if (homad_call(shm_homad.threads[0], homad_session_pool, &change))
		free(change.pool);
	else
		free(old);
	free(change.pool_mem);
}

/* Anything, from the network, but not to the good one: it has no way to tell
 * a forged message from a true one, and its buffers are as many as they are. */
static void packet(struct script *s)
{
	static const u8 types[] = { 0x10, 0x10, 0x11, 0x12,
				    0x13, 0x14, 0x17, 0x18 };
	struct nic_tx tx = {
		.dst = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	};
	u8 bytes[256];
	u32 i, n = 28 + byte(s) % 200;

	for (i = 0; i < n; i++)
		bytes[i] = (u8)byte(s);
	if (byte(s) & 1) {
		homa_put_be16(bytes + 2, EVIL_PORT);
		bytes[11] = types[byte(s) % sizeof(types)];
		bytes[12] = 0x50;
	}
	if (homa_get_be16(bytes + 2) == GOOD_PORT)
		homa_put_be16(bytes + 2, EVIL_PORT);
	tx.hdr = bytes;
	tx.hdr_len = n;
	nic_tx(shm_outside, &tx, 1);
}

/* It may answer, refuse, or never answer. */
static void ask_evil(struct script *s)
{
	struct homa_sqe sqe = shm_request(&good, EVIL_PORT, 1 + byte(s));

	if (good.asking)
		return;
	good.asking = true;
	sqe.token = (u64)good.serial << 16 | (SHM_RPCS - 1);
	shm_push(&good, &sqe);
}

/* ---- streams ---- */

static void serve_streams(void)
{
	if (good_tcp.open)
		shm_streams_serve(&good_tcp, &good);
}

static void end_evil(void)
{
	if (evil_tcp.open)
		shm_streams_leave(&evil_tcp);
	shm_detach(&evil, serve_streams);
	if (evil_tcp.open)
		shm_streams_free(&evil_tcp, &evil);
}

/* Returns whether the evil one can use streams; those of both begin when it first does. */
static bool have_streams(void)
{
	static u8 *spans;

	if (evil.app.phase != HOMAD_APP_OPEN)
		return false;
	if (!spans)
		spans = mmap(NULL, (size_t)SHM_SLOTS * 2 * HOMA_STREAM_SPAN,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(spans != MAP_FAILED);
	if (!good_tcp.open) {
		shm_streams_open(&good_tcp, &good, NULL);
		shm_streams_listen(&good_tcp, GOOD_TCP);
	}
	if (!evil_tcp.open)
		shm_streams_open(&evil_tcp, &evil, spans);
	return true;
}

static void step(struct script *s)
{
	struct homa_sqe sqe;
	u32 op = byte(s), n;

	if (!evil.open)
		shm_attach(&evil, EVIL_POOL);
	if (op >= STREAMS_FROM) {
		if (have_streams())
			shm_lies_step(s, &evil_tcp, &evil);
		serve(1, 0);
		serve_streams();
		return;
	}
	op %= OPS;
	switch (op) {
	case OP_ROUNDS:
		shm_rounds(1 + byte(s) % 8);
		break;
	case OP_COMMAND:
		command(s);
		break;
	case OP_POKE:
		poke(s);
		break;
	case OP_INDEX:
		set_index(s);
		break;
	case OP_CONSUME:
		consume(s);
		break;
	case OP_RELEASE:
		n = number(s);
		if (byte(s) & 1)
			n = n % 8 << HOMA_BPAGE_SHIFT;
		shm_release(&evil, &n, 1);
		break;
	case OP_BYTES:
		memset(evil.app.seg[0].base, (int)byte(s), 4096);
		break;
	case OP_TIME:
		fuzz_clock += (u64)word(s) << (byte(s) % 16);
		break;
	case OP_BIND:
		shm_bind(&evil, byte(s) & 1 ? EVIL_PORT : (u16)word(s));
		break;
	case OP_POOL:
		change_pool(s);
		break;
	case OP_SHUTDOWN:
		homad_call(shm_homad.threads[0], homad_session_shutdown,
			   &evil.app);
		break;
	case OP_RESTART:
		end_evil();
		break;
	case OP_PACKET:
		packet(s);
		break;
	case OP_ASK_EVIL:
		ask_evil(s);
		break;
	case OP_REPLY:
		sqe = shm_request(&evil, 0, 1 + byte(s));
		sqe.op = HOMA_SQE_REPLY;
		sqe.token = (u64)(byte(s) % 8) << 16 | byte(s) % SHM_RPCS;
		shm_push(&evil, &sqe);
		break;
	case OP_BURST:
		for (n = byte(s); n; n--) {
			sqe = shm_request(&evil,
					  byte(s) & 1 ? EVIL_PORT : GOOD_PORT,
					  1 + word(s));
			shm_push(&evil, &sqe);
		}
		break;
	}
	serve(1, 0);
	serve_streams();
}

static void good_streams_work(void)
{
	u32 rounds;

	if (!good_tcp.open)
		return;
	/* Connections of the evil one end. */
	for (rounds = 0; rounds < SHM_MAX_ROUNDS && good_tcp.s.num_open;
	     rounds++) {
		shm_rounds(1);
		fuzz_clock += 100000;
		serve_streams();
	}
	MUST(!good_tcp.s.num_open);
	shm_streams_echo(&good_tcp, &good, GOOD_TCP, 1);
	shm_streams_echo(&good_tcp, &good, GOOD_TCP, 10000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct script s = { bytes, bytes + len };
	u32 ops = 0;

	inputs++;
	fuzz_clock = 1000000000;
	shm_start();
	shm_attach(&good, GOOD_POOL);
	shm_bind(&good, GOOD_PORT);
	while (s.at < s.end && ops++ < MAX_OPS)
		step(&s);
	good_works(1);
	good_works(100000);
	if (evil.open)
		end_evil();
	good_works(5000);
	good_streams_work();
	shm_detach(&good, NULL);
	if (good_tcp.open)
		shm_streams_free(&good_tcp, &good);
	MUST(homa_list_empty(&shm_homad.threads[0]->apps));
	MUST(homa_list_empty(&shm_homad.threads[0]->closing));
	shm_stop();
	shm_streams_stop();
	return 0;
}
