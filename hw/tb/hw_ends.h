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

/* Makes the hosts. @encap: the UDP port to which Homa is sent; 0: Homa is sent without
 * UDP. */
struct hw_ends *hw_ends_new(uint64_t seed, uint32_t rate_mbps, uint32_t mtu,
			    bool v6, uint32_t encap);
/* Starts an RPC of host @client. Returns 0, or a negative errno if the engine has no room
 * for the RPC. */
int hw_ends_start(struct hw_ends *ends, uint32_t client, uint32_t request,
		  uint32_t response);
/* The first function returns whether every RPC has ended at both hosts, the second the
 * number of RPCs that ended with their response. */
bool hw_ends_quiet(struct hw_ends *ends);
uint32_t hw_ends_answered(struct hw_ends *ends);
/* Runs both hosts until @now, in ns. */
void hw_ends_run(struct hw_ends *ends, uint64_t now);
/* The first function returns the present time, the second the time at which something
 * happens next even if no packet comes, both in ns. */
uint64_t hw_ends_now(struct hw_ends *ends);
uint64_t hw_ends_next(struct hw_ends *ends);
/* Tells host @host that @bytes bytes wait in its device. */
void hw_ends_queued(struct hw_ends *ends, uint32_t host, uint64_t bytes);
/* Takes the next packet that is to be sent, and writes its bytes to @buf, which has room
 * for 65,536. Returns false if there is none. */
bool hw_ends_get(struct hw_ends *ends, struct hw_out *out, void *buf);
/* Gives a packet that has come to host @dst. */
void hw_ends_put(struct hw_ends *ends, uint32_t src, uint32_t dst,
		 uint32_t prio, const void *packet, uint32_t length);
/* Returns the number of DATA packets that were sent again. */
uint64_t hw_ends_again(struct hw_ends *ends);
/* Checks, when all is quiet, that nothing is left at any host, and frees the memory of
 * @ends. */
void hw_ends_finish(struct hw_ends *ends);
/* END cffi */

#endif
