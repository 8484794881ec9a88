/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of `hostile` share beyond peer.h. Every check ends with alive(): whatever came
 * before, RPCs work in both directions.
 */
#ifndef TESTS_VM_HOSTILE_H
#define TESTS_VM_HOSTILE_H

#include "peer.h"

/** begin() - the tap and the sockets of a check. */
void begin(void);
/** alive() - an RPC from us to the machine, and one from the machine to us. */
void alive(void);
/** ping() - a request of ours as this frame; the machine must execute and answer it once. */
void ping(int peer, uint32_t size);
/** data_until() - pass over DATA of RPC @id until all before @end were seen, in this
 *  and earlier calls for the same RPC; forget() - see them again. */
void data_until(uint64_t id, uint32_t end);
void forget(void);
/** grant(), resend() - of ours for the machine's request. */
void grant(int peer, uint64_t id, uint32_t offset, int priority);
void resend(int peer, uint64_t id, uint32_t offset, uint32_t length,
	    int priority);
/** counted() - a counter grew by @n at least since `before`; no counters: passes. */
void counted(const char *name, long long before, long long n);
#define FIELD_CHECKS(X)                                                   \
	X(grant_priority, "unclamped priority index: GRANT")              \
	X(resend_priority, "unclamped priority index: RESEND")            \
	X(zero_length, "zero message length")                             \
	X(negative_length, "negative message lengths")                    \
	X(long_message, "a message longer than can be received")          \
	X(contradiction, "packets that disagree on the length")           \
	X(num_acks, "num_acks beyond the packet")                         \
	X(grant_high_bit, "GRANT offset with the high bit is clamped")    \
	X(data_beyond, "DATA beyond the end of the message")              \
	X(empty_data, "DATA without payload")                             \
	X(incoming_lies, "`incoming` that lies")                          \
	X(resend_ranges, "RESEND for what was never sent")                \
	X(bad_ids, "id 0, port 0, wrong parity")                          \
	X(unknown_types, "types that do not exist")                       \
	X(stack_leak,                                                     \
	  "stack leak: nothing but the header in RPC_UNKNOWN and others") \
	X(duplicates, "a request that comes again is executed once")      \
	X(start_msg, "START_MSG with all lengths")

#define SPOOF_CHECKS(X)                                                         \
	X(spoofed_cutoffs,                                                      \
	  "spoofed CUTOFFS change that peer only, and no memory")               \
	X(spoofed_ack, "spoofed ACK from another address ends nothing")         \
	X(spoofed_unknown,                                                      \
	  "spoofed RPC_UNKNOWN from another address ends nothing")              \
	X(spoofed_freeze, "spoofed FREEZE does nothing")                        \
	X(spoofed_response, "a response by another port or id")                 \
	X(spoofed_icmp, "ICMP errors that quote little, lies or strangers")     \
	X(disguised_icmp, "the same about packets in TCP's disguise")           \
	X(sources, "each RPC is answered from the address that it was sent to") \
	X(sources_later,                                                        \
	  "so it is later, when the device was full or the RPC is over")        \
	X(martians, "from and to broadcast, multicast and nobody")              \
	X(flood, "thousands of requests that never end")                        \
	X(peers_flood, "requests from hundreds of addresses")                   \
	X(buffers_flood,                                                        \
	  "long requests that take all receive buffers, and never end")         \
	X(storms,                                                               \
	  "BUSY, NEED_ACK and ACK by the hundred: no more comes back than came")

#define ROOM_CHECKS(X)                                                            \
	X(rcvbuf_full, "a full receive buffer costs packets, but no RPC")         \
	X(cgroup_full,                                                            \
	  "a full memory cgroup costs no RPC, and is charged all the same")       \
	X(gaps_paid, "records of gaps are charged to the cgroup of their socket") \
	X(filtered, "packets that a socket's filter refuses")                     \
	X(moved,                                                                  \
	  "a socket's filter judges its packets, whoever has its old port")

#define SHAPE_CHECKS(X)                                                     \
	X(truncated, "every type cut off at every byte")                    \
	X(cut_frames, "frames shorter than IP says")                        \
	X(padded, "frames with padding behind the packet")                  \
	X(options, "IP options and extension headers")                      \
	X(fragments, "IP fragments in any order")                           \
	X(lost_fragments, "IP fragments that never become a packet")        \
	X(split_headers, "headers split over fragments at every byte")      \
	X(bursts, "good and bad packets in one batch")                      \
	X(gso_garbage, "GSO-marked garbage")                                \
	X(gso_tiny, "a frame of thousands of tiny segments")                \
	X(gso_forwarded,                                                    \
	  "GSO-marked garbage to be segmented on its way to somebody else") \
	X(disguises, "TCP and UDP disguises nobody asked for")

#define X(name, text) void hostile_##name(void);
FIELD_CHECKS(X)
SPOOF_CHECKS(X)
ROOM_CHECKS(X)
SHAPE_CHECKS(X)
#undef X

#endif
