/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A transport without a protocol, for tests of the network: hosts send the
 * packets that the test hands them, in order, and the test sees what arrives.
 */
#ifndef SIM_TEST_BLAST_H
#define SIM_TEST_BLAST_H

#include "sim_transport.h"

extern const struct sim_transport sim_blast;

struct blast;
typedef void (*blast_fn)(struct sim *sim, struct sim_pkt *pkt, void *arg);

/**
 * blast_new() - a run of @cfg with this transport; prints the reason and
 * returns NULL if that is impossible
 */
struct sim *blast_new(struct sim_config *cfg);
/** blast_on_rx() - what happens to packets before they are freed */
void blast_on_rx(struct sim *sim, blast_fn fn, void *arg);
/** blast_pkt() - a packet of @wire bytes, not sent yet */
struct sim_pkt *blast_pkt(struct sim *sim, u32 src, u32 dst, u32 wire, u8 prio);
/** blast_send() - queue it at its source now */
void blast_send(struct sim *sim, struct sim_pkt *pkt);
/** blast_send_at() - at @at */
void blast_send_at(struct sim *sim, struct sim_pkt *pkt, u64 at);
/** blast_load() - from now until @until every host sends random packets at this load (percent) */
void blast_load(struct sim *sim, u32 percent, u64 until);
/** blast_random() - a packet from @src to a random other host */
struct sim_pkt *blast_random(struct sim *sim, u32 src);
/** blast_waiting() - packets handed to a host and not sent yet, all hosts */
u64 blast_waiting(const struct sim *sim);

#endif
