/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A homad for tests of streams: it speaks the attach protocol on a thread, and connects
 * streams of its one attachment with each other: what one writes its peer reads. The
 * rings are worked off by the test, step by step (fake_step()), or by another thread
 * (fake_run()), which sleeps and is kicked as homad is.
 */
#ifndef FAKE_STREAMS_H
#define FAKE_STREAMS_H

#include <pthread.h>
#include "homa_plat.h"
#include "shm_stream.h"

#define FAKE_SLOTS 1024u
#define FAKE_LISTENERS 8u

/** struct fake_end - the fake's side of a slot */
struct fake_end {
	bool used, shut, ended, closed;
	u32 peer; /* its slot */
	/* Bytes taken, as far as the last doorbell told. */
	u32 rx_read;
	u32 rx_end, tx_free, rx_shift;
};

/**
 * struct fake - a homad that does what the test says
 * @num_slots, @entries: of the area; 0: FAKE_SLOTS, 4096. @cannot: HOMA_SHM_CAN_* that it lacks.
 * @rx_shift, @tx_shift: of a new stream's buffers; 0: HOMA_STREAM_MIN_SHIFT.
 * @spoil: changes the area before it is handed over.
 * @still: streams' bytes are not moved, as if the network stood still.
 * @late: answers to STREAM_LISTEN come after the listener's first connections; us.
 * @commands: so many came of each kind. @kicks: and so many kicks. @options: the last.
 * @patience: the last of each kind. @backlog: of the last listener.
 * @memory_lock: held in each step.
 */
struct fake {
	u32 num_slots, entries, cannot, rx_shift, tx_shift;
	void (*spoil)(struct homa_stream_area *area);
	bool still;
	u32 late;
	u32 commands[16], kicks, options, attaches;
	u32 patience[HOMA_STREAM_PATIENCES];
	u64 backlog;

	char path[100];
	int listen_fd, conn, stop_fd, kick_fd, wake_fd;
	pthread_t thread, runner;
	bool running;
	u32 stop; /* atomic */
	pthread_mutex_t memory_lock;
	struct homa_shm_queues *q;
	struct homa_stream_area *area;
	u64 bytes;
	struct homa_stream_command *command;
	struct homa_stream_event *event;
	struct homa_stream_slot *slot;
	u8 *spans, *firsts;
	u32 head, tail, generations;
	struct fake_end end[FAKE_SLOTS];
	u16 port[FAKE_LISTENERS]; /* of listener 1 + index; 0: none */
};

/** fake_start() - listen and serve at @path, which is also HOMA_SERVICE_SOCKET. */
void fake_start(struct fake *f);
/** fake_step() - work off what is in the command ring; how much that was. */
u32 fake_step(struct fake *f);
/** fake_run() - let a thread do that until fake_kill(). */
void fake_run(struct fake *f);
/** fake_stop() - that thread ends, and the test may step again. */
void fake_stop(struct fake *f);
/** fake_kill() - as if by SIGKILL: the connection and the socket end. */
void fake_kill(struct fake *f);
/** fake_event() - any event, and the signal for it. */
void fake_event(struct fake *f, struct homa_stream_event event);
/** fake_incoming() - a connection comes to a listener; its slot. */
u32 fake_incoming(struct fake *f, u32 listener);
/** fake_arrive() - @n bytes arrive in @slot's stream, from nowhere. */
void fake_arrive(struct fake *f, u32 slot, const void *bytes, u32 n);
/** fake_end() - its peer has ended it (HOMA_STREAM_HAS_END), or it failed with @error. */
void fake_end(struct fake *f, u32 slot, u32 error);
/** fake_changed() - an event for it, unless there is one. */
void fake_changed(struct fake *f, u32 slot);

#endif
