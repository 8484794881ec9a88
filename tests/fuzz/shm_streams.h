/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams of the applications of shm_bed.h, between each other, and what the slow path would do
 * for them. Memory of larger buffers than the first ones is one piece for all of a side's slots.
 */
#ifndef FUZZ_SHM_STREAMS_H
#define FUZZ_SHM_STREAMS_H

#include "shm_bed.h"
#include "stream_share.h"
#include "streams.h"

#define SHM_SLOTS 16u
#define SHM_LARGE 16u /* log2 of the largest buffer */
#define SHM_LISTENERS 8u

/**
 * struct shm_stream - a stream as its application believes
 * @used: It has one in this slot.
 * @asked: It has opened it itself, and does not echo.
 * @generation: see struct homa_stream_slot.
 * @end, @read, @map: the words that it writes.
 */
struct shm_stream {
	bool used, asked;
	u32 generation;
	u32 end, read;
	u64 map;
};

/**
 * struct shm_streams - the streams of a side
 * @s: homad's part.
 * @open: the side has streams.
 * @tail, @head: the indices of its command ring and event ring, as it believes.
 * @listener: the number of its last listener.
 * @failed: connections that it could not open.
 * @of: its streams, by slot.
 * @ticket: a ticket that nobody has redeemed, or NULL.
 */
struct shm_streams {
	struct homad_streams s;
	bool open;
	u32 tail, head, listener, failed;
	struct shm_stream of[SHM_SLOTS];
	struct homad_ticket *ticket;
};

/** shm_streams_open() - give @side streams, with larger buffers in @spans if that is not NULL. */
void shm_streams_open(struct shm_streams *st, struct shm_side *side, u8 *spans);
/** shm_streams_leave() - before shm_detach(): no process can redeem its ticket any more. */
void shm_streams_leave(struct shm_streams *st);
/** shm_streams_free() - after shm_detach(). */
void shm_streams_free(struct shm_streams *st, struct shm_side *side);
/** shm_streams_stop() - after shm_stop(): free the listeners. */
void shm_streams_stop(void);

/** shm_streams_give() - put a command into the ring, whether or not there is room. */
void shm_streams_give(struct shm_streams *st, struct shm_side *side,
		      const struct homa_stream_command *c);
/** shm_streams_connect() - the command to connect to @port of this host. */
struct homa_stream_command shm_streams_connect(u16 port);
/** shm_streams_hear() - take one event; false: there is none. */
bool shm_streams_hear(struct shm_streams *st);
/** shm_streams_listen() - listen at @port, for connections of this host. */
void shm_streams_listen(struct shm_streams *st, u16 port);
/** shm_streams_serve() - echo what has come, and close what has ended. */
void shm_streams_serve(struct shm_streams *st, struct shm_side *side);
/** shm_streams_echo() - a connection to the side's own @port, which carries @length bytes there and
 *  back. It must work. */
void shm_streams_echo(struct shm_streams *st, struct shm_side *side, u16 port,
		      u32 length);

/** shm_streams_grant() - do what the slow path is asked for: larger buffers of at most 2^@most
 *  bytes. */
void shm_streams_grant(u8 most);
/** shm_streams_share(), shm_streams_join() - get a ticket; redeem it. */
void shm_streams_share(struct shm_streams *st, bool listeners);
void shm_streams_join(struct shm_streams *st);

#endif
