/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two hosts with an engine each (tests/pair), whose network is somebody else's: what their
 * send schedulers hand out is taken from here as it is, with all its segments in one, and what
 * comes is put in packet by packet. Applications check every byte and that nothing is executed
 * twice; what is wrong ends the process with a message. Python reads the declarations between
 * the two marker lines through cffi.
 */
#ifndef HW_ENDS_H
#define HW_ENDS_H

#include <stdbool.h>
#include <stdint.h>

/* BEGIN cffi */
struct hw_ends;

/*
 * struct hw_out - what a host wants to send
 * @src, @dst: numbers of the hosts, 0 or 1.
 * @prio: priority on the wire, 0 to 7.
 * @data: it is DATA; else it is a control packet.
 * @seg: bytes of the message in each packet, with @data.
 * @length: bytes of the Homa header and of all of the message that goes with it.
 */
struct hw_out {
	uint32_t src;
	uint32_t dst;
	uint32_t prio;
	uint32_t data;
	uint32_t seg;
	uint32_t length;
};

/* Make the hosts. @encap: Homa is sent in UDP to this port; 0: it is not. */
struct hw_ends *hw_ends_new(uint64_t seed, uint32_t rate_mbps, uint32_t mtu,
			    bool v6, uint32_t encap);
/* Host @client starts an RPC; 0, or a negative errno if the engine has no room for it. */
int hw_ends_start(struct hw_ends *ends, uint32_t client, uint32_t request,
		  uint32_t response);
/* Has every RPC ended at both hosts? How many ended with their response? */
bool hw_ends_quiet(struct hw_ends *ends);
uint32_t hw_ends_answered(struct hw_ends *ends);
/* Let everything happen until @now, in ns. */
void hw_ends_run(struct hw_ends *ends, uint64_t now);
/* The present; and when something happens next, even if nothing comes. */
uint64_t hw_ends_now(struct hw_ends *ends);
uint64_t hw_ends_next(struct hw_ends *ends);
/* The device of @host has so many bytes waiting. */
void hw_ends_queued(struct hw_ends *ends, uint32_t host, uint64_t bytes);
/* Write what is to be sent next to @buf, of 65,536 bytes; false: nothing. */
bool hw_ends_get(struct hw_ends *ends, struct hw_out *out, void *buf);
/* A packet came at host @dst. */
void hw_ends_put(struct hw_ends *ends, uint32_t src, uint32_t dst,
		 uint32_t prio, const void *packet, uint32_t length);
/* Number of DATA packets that were sent again. */
uint64_t hw_ends_again(struct hw_ends *ends);
/* When all is quiet: nothing may be left at any host. The memory of @ends is freed. */
void hw_ends_finish(struct hw_ends *ends);
/* END cffi */

#endif
