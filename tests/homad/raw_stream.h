/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Streams of an attachment by the raw ABI (abi/shm_stream.h), for tests that do what libhoma never
 * does. What the functions here write is correct as long as the words that they read are; whatever
 * these are, they stay within the memory that was mapped.
 */
#ifndef TEST_RAW_STREAM_H
#define TEST_RAW_STREAM_H

#include "raw.h"
#include "shm_stream.h"

#define RAW_STREAMS 64u /* streams that are remembered */

/**
 * struct raw_stream - a stream that the attachment has, as it believes
 * @slot, @generation: its name.
 * @home, @home_slot: the attachment in whose memory it lies, and its slot there.
 * @end, @read, @map: the words that the application writes, as it knows them.
 */
struct raw_stream {
	uint32_t slot, generation;
	struct raw_streams *home;
	uint32_t home_slot;
	uint32_t end, read;
	uint64_t map;
};

/**
 * struct raw_streams - an attachment with streams
 * @r: the attachment.
 * @memory, @event: descriptors of HOMA_CTL_STREAMS, or -1.
 * @area: the memory of @bytes; what follows lies in it, and was read when it was fresh.
 * @tail, @head: of the command ring and of the event ring, as the application believes.
 * @mine: @num streams that it has.
 * @mate: the attachment in whose memory streams lie that it joins.
 * @listener: the number of its last listener; 0: it had none.
 */
struct raw_streams {
	struct raw r;
	int memory, event;
	struct homa_stream_area *area;
	size_t bytes;
	struct homa_stream_command *commands;
	struct homa_stream_event *events;
	struct homa_stream_slot *slots;
	uint8_t *firsts, *spans;
	uint32_t entries, num_slots;
	uint32_t tail, head;
	struct raw_stream mine[RAW_STREAMS];
	uint32_t num;
	struct raw_streams *mate;
	uint32_t listener;
};

/** raw_streams_attach() - attach with @features and ask for streams; 0 or a negative errno. @s is
 *  to be closed in either case. */
int raw_streams_attach(struct raw_streams *s, uint32_t features);
void raw_streams_close(struct raw_streams *s);
/** raw_streams_give() - put a command into the ring and kick if asked to; false: it is full. */
bool raw_streams_give(struct raw_streams *s,
		      const struct homa_stream_command *command);
/** raw_streams_hear() - take the next event, and remember the streams that it brings; false: there
 *  is none. */
bool raw_streams_hear(struct raw_streams *s, struct homa_stream_event *event);

/** raw_stream_words() - return the words of a stream, which its holders share. */
struct homa_stream_slot *raw_stream_words(const struct raw_stream *stream);
/** raw_stream_say() - give a command for a stream; @value: see struct homa_stream_command. */
bool raw_stream_say(struct raw_streams *s, const struct raw_stream *stream,
		    uint16_t op, uint32_t value);
/** raw_stream_ring() - say that positions have moved, unless homad has not looked yet. */
void raw_stream_ring(struct raw_streams *s, const struct raw_stream *stream);
/** raw_stream_write() - write at most @n bytes @byte, as many as there is room for. */
void raw_stream_write(struct raw_streams *s, struct raw_stream *stream,
		      uint32_t n, uint8_t byte);
/** raw_stream_jump() - have the send buffer, if it is empty, in another place and of 2^@shift
 *  bytes, if there is memory for so many. */
void raw_stream_jump(struct raw_stream *stream, uint32_t shift, uint32_t origin);
/** raw_stream_read() - take all that has arrived. */
void raw_stream_read(struct raw_streams *s, struct raw_stream *stream);
/** raw_stream_forget() - the attachment has let go of its stream @i. */
void raw_stream_forget(struct raw_streams *s, uint32_t i);

#endif
