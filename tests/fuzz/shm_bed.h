/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A homad without its slow path, in virtual time and in memory, for fuzz_shm:
 * one fast-path thread whose rounds are run by hand, a port to a network with
 * one other host, and the port between applications.
 */
#ifndef FUZZ_SHM_BED_H
#define FUZZ_SHM_BED_H

#include "fuzz_clock.h"
#include "nic.h"
#include "fast.h"

#define MUST(cond)                        \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

#define SHM_RPCS 16u /* of an application; the last one is not request()'s */
#define SHM_DATA (160u << 10)
#define SHM_MAX_ROUNDS 20000

/**
 * struct shm_side - an application
 * @app: its attachment, whose memory outlives it.
 * @tail, @head: its submission ring 0 and completion ring, as it believes.
 * @released: of the release ring.
 * @serial: requests so far.
 * @open: attached.
 * @asking: uses its last RPC.
 */
struct shm_side {
	struct homad_app app;
	u32 tail, head, released;
	u32 serial;
	bool open, asking;
};

extern struct homad shm_homad;
/* The other host, 10.0.0.2; the daemon is 10.0.0.1. */
extern struct nic *shm_outside;
/* Commands and packets over all inputs. */
extern u64 shm_handled;

/** shm_aligned() - zeroed memory, to be freed. */
void *shm_aligned(size_t size);

/** shm_start(), shm_stop() - the daemon. */
void shm_start(void);
void shm_stop(void);
/** shm_rounds() - @n rounds of the fast path, a little time for each. */
void shm_rounds(u32 n);

/** shm_attach() - a new attachment with @pool bytes of receive pool. */
void shm_attach(struct shm_side *s, u32 pool);
/** shm_detach() - end it; its RPCs and streams must come to an end. @meanwhile: what the other one
 *  does in each round, or NULL. */
void shm_detach(struct shm_side *s, void (*meanwhile)(void));
void shm_push(struct shm_side *s, const struct homa_sqe *sqe);
/** shm_request() - a proper one to 10.0.0.1, with the next token. */
struct homa_sqe shm_request(struct shm_side *s, u16 port, u32 length);
/** shm_next() - take a completion; false: none is there. */
bool shm_next(struct shm_side *s, struct homa_cqe *cqe);
void shm_release(struct shm_side *s, const u32 *pages, u32 n);
void shm_bind(struct shm_side *s, u16 port);

#endif
