/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the hostile application share. It lives many short lives,
 * each a process of its own that attaches and misbehaves in one way; which and
 * how follow from a seed, so that a life can be lived again alone.
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "raw.h"

/**
 * struct hostile - one life
 * @rng: state of the random numbers; use below().
 * @ip, @port: an echo server that other applications use; to be hit with
 *	proper requests only, and seldom. One of TCP has the same port there.
 * @far, @has_far: another host that echoes by TCP, at the same port, if there is one.
 * @ms: how long it should last.
 */
struct hostile {
	uint64_t rng;
	uint8_t ip[16], far[16];
	uint16_t port;
	bool has_far;
	int ms;
};

/* The status of a life that homad did not want any more. */
#define HOSTILE_REFUSED 42

/** below() - a random number from 0 to @n - 1. */
uint32_t below(struct hostile *h, uint32_t n);
/** bits() - 64 random bits, or one of the values that break programs. */
uint64_t bits(struct hostile *h);
/** going() - is the life not over? */
bool going(const struct hostile *h);

/** hostile_attach() - attach or, when homad refuses, end this life in peace. */
void hostile_attach(struct hostile *h, struct raw *r);
/** hostile_sqe() - a request, mostly proper, with as many fields spoiled as
 *  @evil says. */
struct homa_sqe hostile_sqe(struct hostile *h, struct raw *r, int evil);

/* hostile_rings.c: what goes into the shared memory */
void live_commands(struct hostile *h);
void live_indices(struct hostile *h);
void live_header(struct hostile *h);
void live_scribble(struct hostile *h);
void live_unread(struct hostile *h);
void live_unreleased(struct hostile *h);
void live_release_lies(struct hostile *h);
void live_forged_replies(struct hostile *h);

/* hostile_os.c: what goes through the kernel */
void live_memory(struct hostile *h);
void live_eventfds(struct hostile *h);
void live_ctl_garbage(struct hostile *h);
void live_ctl_deaf(struct hostile *h);
void live_silent(struct hostile *h);
void live_attach_many(struct hostile *h);
void live_killed(struct hostile *h);
void live_stopped(struct hostile *h);
void live_polite(struct hostile *h);

/* hostile_streams.c: the memory of TCP streams */
void live_stream_commands(struct hostile *h);
void live_stream_slots(struct hostile *h);
void live_stream_indices(struct hostile *h);
void live_stream_scribble(struct hostile *h);
void live_stream_memory(struct hostile *h);

/* hostile_shares.c: listeners and streams of TCP that several attachments have */
void live_stream_listen(struct hostile *h);
void live_stream_share(struct hostile *h);
void live_stream_pass(struct hostile *h);

#endif
