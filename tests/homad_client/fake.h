/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A homad for tests of libhoma's homad backend: it speaks the attach protocol on a
 * thread, and the test plays the rings, entry by entry, so that every order of
 * events can be made. One attachment at a time.
 */
#ifndef FAKE_H
#define FAKE_H

#include <homa/libhoma.h>
#include <pthread.h>
#include "homa_plat.h"
#include "shm.h"

#define FAKE_DATA (4u << 20)
#define FAKE_POOL (4u << 20)

/**
 * struct fake - a homad that does what the test says
 * @version: 0: ours. @refuse: error of ATTACH with @text.
 * @max_rpcs, @max_segments, @id_key: of the next attachment.
 * @no_memory: questions for a segment are refused; @segment_questions: so many came; atomic.
 * @hang_ups: so many questions of kind @hang_up_op (0: for a segment) are answered by the end of
 * the connection, as if homad had died and was back at once; atomic. @hang_up_us: time until then,
 * in us.
 * @lose_fds: so many answers for a segment come without their descriptor, as if the program had
 * none left; atomic.
 * @strange: so many answers to that kind name another kind, as if they were late ones; atomic.
 * @left_open: so many connections came while the former one had not ended; atomic.
 * @hold: a question of kind @hold_op (0: ATTACH) is not answered as long as it is set. @held: one
 * waits for that; atomic.
 * @cut: so many answers to RPCS and METRICS stop in the middle of their records; atomic.
 * @questions: so many came of each kind; atomic.
 * @unreachable: last byte of an address that has no route.
 * @routes, @binds, @attaches: questions so far; atomic. @bound: last port.
 * @listen: HOMA_CTL_LISTEN_* of the last LISTEN.
 * @cannot: HOMA_SHM_CAN_* that the next attachment lacks.
 * @former: it was built before there was a table of places, and says and checks what it did then.
 * @minor: the minor version of what it says. @features: bits that it has besides.
 * @entries: of the rings, not 0; the next attachment gets them behind struct homa_shm_queues.
 * @spoil: changes the header, which has been written, before the handle sees it.
 * @alive: answer to whether a client waits; @alives: questions for that; atomic.
 * @echo: a thread answers every request with its own bytes.
 */
struct fake {
	u16 version;
	int refuse;
	const char *text;
	u32 max_rpcs, max_segments;
	u64 id_key[2];
	u8 unreachable;
	u32 routes, binds, attaches;
	u32 cannot, alive, alives;
	bool former;
	u16 minor;
	u32 features;
	struct homa_ctl_rings entries;
	void (*spoil)(struct homa_shm_header *h);
	u32 no_memory, segment_questions, hang_ups, hang_up_us;
	u32 lose_fds, strange, left_open, hold, held;
	u16 hang_up_op, hold_op;
	u32 cut;
	u32 questions[HOMA_CTL_ALIVE + 1];
	u16 bound;
	u64 listen;
	char name[32];

	char path[100];
	int listen_fd, conn, stop_fd;
	pthread_t thread, echo_thread;
	bool echo;
	struct homa_shm_queues *q;
	struct homa_sqe *sqe[HOMA_SHM_SQS];
	struct homa_cqe *cqe;
	u32 *pages_back;
	u64 queues_bytes;
	u8 *seg[HOMA_SHM_SEGMENTS];
	u64 seg_bytes[HOMA_SHM_SEGMENTS];
	u32 segs;
	u8 *pool;
	u64 pool_bytes;
	int wake_fd, ready_fd, kick_fd;
	u32 sq_head[HOMA_SHM_SQS], sq_last, cq_tail, release_head;
	u32 next_page;
	bool out[FAKE_POOL / 65536];
};

/** fake_start() - listen and serve; the path goes to HOMA_SERVICE_SOCKET. */
void fake_start(struct fake *f);
/** fake_kill() - as if by SIGKILL: the connection and the socket end. */
void fake_kill(struct fake *f);
/** fake_evict() - the attachment is ended. */
void fake_evict(struct fake *f);

/** fake_next() - the next entry of any submission ring, waited for; consumed. */
struct homa_sqe fake_next(struct fake *f);
/** fake_quiet() - does none come within a moment? */
bool fake_quiet(struct fake *f);
/** fake_bytes() - where a message lies. */
const u8 *fake_bytes(struct fake *f, const struct homa_sqe *sqe);
/** fake_put() - a completion, with @length bytes at a place of the pool. */
void fake_put(struct fake *f, struct homa_cqe cqe, const void *bytes);
/** fake_free() - the bytes of @sqe's message are the application's again. */
void fake_free(struct fake *f, const struct homa_sqe *sqe);
/** fake_respond(), fake_request() - the usual ones. */
void fake_respond(struct fake *f, u64 token, const void *bytes, u32 length);
void fake_request(struct fake *f, u64 token, const void *bytes, u32 length);
/** fake_released() - how many pieces came back so far. */
u32 fake_released(struct fake *f);
/** fake_echo() - let a thread answer from now on, until fake_kill(). */
void fake_echo(struct fake *f);

#endif
