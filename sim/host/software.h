/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host's software on its cores: what passes between the application, the
 * transport and the network card. Without cores (the default) none of these
 * functions is called.
 */
#ifndef SIM_SOFTWARE_H
#define SIM_SOFTWARE_H

#include "sim.h"

/** Where the cores' time goes. */
enum sim_part {
	SIM_PART_SEND,	/* system calls that send requests or one-way messages */
	SIM_PART_REPLY, /* system calls that send responses */
	SIM_PART_RECV,	/* system calls that receive messages */
	SIM_PART_WAKE,	/* wake-ups of threads */
	SIM_PART_NAPI,
	SIM_PART_SOFTIRQ,
	SIM_PART_PACER, /* packets that are sent later than the first of their message */
	SIM_PARTS,
};

extern const char *const sim_part_names[SIM_PARTS];

typedef void (*sim_msg_fn)(struct sim *sim, struct sim_msg *msg);

/** sim_software_new() - cores of all hosts; -ENOMEM */
int sim_software_new(struct sim *sim);
void sim_software_free(struct sim *sim);
/** sim_software_send() - have @msg's sender make its system call, then call @then */
void sim_software_send(struct sim *sim, struct sim_msg *msg, sim_msg_fn then);
/** sim_software_recv() - have @msg's receiver make its system call, then call @then */
void sim_software_recv(struct sim *sim, struct sim_msg *msg, sim_msg_fn then);
/** sim_software_alone() - return what Homa's software takes of the time of a message of @length
 *  bytes that meets no other and whose reader polls, ps; of packets that follow each other
 *  only the last one's reception does not overlap with the others' way */
u64 sim_software_alone(const struct sim *sim, u32 length);
/** sim_software_tx() - the packet that a host begins to send keeps a core busy */
void sim_software_tx(struct sim *sim, const struct sim_pkt *pkt);
/** sim_software_rx() - have @pkt's receiver take it in, then give it to the transport */
void sim_software_rx(struct sim *sim, struct sim_pkt *pkt);
/** sim_software_use() - cores that @part kept busy in the measured window, mean of all hosts */
double sim_software_use(const struct sim *sim, enum sim_part part);
/** sim_software_batch() - packets that a pass of NAPI took, mean; 0: there was none */
double sim_software_batch(const struct sim *sim);

#endif
