/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Scale: an engine that has many RPCs from many peers open while something else is
 * measured.
 */
#ifndef HOMA_TESTS_BENCH_CROWD_H
#define HOMA_TESTS_BENCH_CROWD_H

#include "homa_engine.h"

#define CROWD_PEERS 10000u
#define CROWD_RPCS 100000u

/**
 * bench_crowd() - CROWD_RPCS requests of 100 bytes from CROWD_PEERS addresses come to
 *	@port and are taken, and never answered
 * @refill: gives @ctx the spare memory that it lacks; called with @arg.
 * Return: how many are open.
 */
u32 bench_crowd(struct homa_ctx *ctx, struct homa_link *link, u16 port,
		void (*refill)(void *arg), void *arg);

#endif
