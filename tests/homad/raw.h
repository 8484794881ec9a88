/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An attachment to homad by the raw ABI, without libhoma: for tests that do
 * what libhoma never does. Nothing here checks what its caller asks for.
 */
#ifndef TEST_RAW_H
#define TEST_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shm.h"

/* struct raw_ring - a ring, where the table of places has it; @index NULL: nowhere */
struct raw_ring {
	struct homa_shm_ring *index;
	void *first;
	uint32_t entries;
};

/**
 * struct raw - an attachment
 * @sock: connection to the attach socket.
 * @answer: to ATTACH.
 * @fd: descriptors of the answer, enum HOMA_CTL_FD_*; -1: not there.
 * @q, @data, @pool: the memory, mapped; NULL if it was not sent. Of @q only the header is
 *	there for sure.
 * @places: its table of @num_places. @submit, @complete, @release: the rings.
 * @token: counts requests. @mute: raw_push() does not ring the bell.
 */
struct raw {
	int sock;
	struct homa_ctl_answer answer;
	int fd[HOMA_CTL_ATTACH_FDS];
	struct homa_shm_queues *q;
	struct homa_shm_place *places;
	uint32_t num_places;
	struct raw_ring submit[HOMA_SHM_SQS], complete, release;
	uint8_t *data;
	uint8_t *pool;
	uint32_t token;
	bool mute;
};

/** raw_die() - print a sentence and end with status 1. */
void raw_die(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/** raw_connect() - to $HOMA_SERVICE_SOCKET; a negative errno. */
int raw_connect(void);

/** raw_request() - a well-formed request for @op. */
struct homa_ctl_request raw_request(enum homa_ctl_op op);

/**
 * raw_ask() - send a request, wait for its answer
 * @fds, @max: descriptors that come with it; unused places become -1.
 * Returns the answer's error, or a negative errno of the connection.
 */
int raw_ask(int sock, const struct homa_ctl_request *request,
	    struct homa_ctl_answer *answer, int *fds, int max);
/** raw_hear() - wait for the answer to a request that was sent. */
int raw_hear(int sock, struct homa_ctl_answer *answer, int *fds, int max);

/** raw_attach() - connect, attach with @pool_bytes (0: default), map. 0 or a
 *  negative errno; @r is to be closed in either case. */
int raw_attach(struct raw *r, uint64_t pool_bytes);
/** raw_attach_as() - the same with a request of the caller's. */
int raw_attach_as(struct raw *r, const struct homa_ctl_request *request);
/** raw_close() - unmap and close whatever there is. */
void raw_close(struct raw *r);
/** raw_bind() - become a server on @port; 0 or a negative errno. */
int raw_bind(struct raw *r, uint16_t port);

/** raw_push() - put a command into ring @ring and kick if asked to; false if full. */
bool raw_push(struct raw *r, unsigned int ring, const struct homa_sqe *sqe);
/** raw_kick() - whether or not homad asked for it. */
void raw_kick(struct raw *r);
/** raw_room() - segment 1, of 1 MiB: for what is longer than the data memory at first. */
void raw_room(struct raw *r);
/** raw_sqe() - a proper request of @length bytes at @offset of segment 0 to
 *  "::ffff:@ip" and @port, with the next token. */
struct homa_sqe raw_sqe(struct raw *r, const uint8_t ip[16], uint16_t port,
			uint32_t offset, uint32_t length);
/** raw_next() - the next completion, waiting up to @ms; false if none came. */
bool raw_next(struct raw *r, struct homa_cqe *cqe, int ms);
/** raw_release() - give the pages of a completion back. */
void raw_release(struct raw *r, const struct homa_cqe *cqe);
/** raw_evicted() - homad ended the attachment: its state, or the connection's
 *  end, within @ms. */
bool raw_evicted(struct raw *r, int ms);

#endif
