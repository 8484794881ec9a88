/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reading what the other side of a message NIC wrote: bounds of rings, slots, frames and
 * units. Driver and device both do it with these functions, which touch nothing but their
 * arguments.
 */
#ifndef HOMA_MESSAGE_CHECK_H
#define HOMA_MESSAGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "message_nic.h"

/** mnic_address() - write the name of the device's abstract Unix socket, its leading 0 included,
 *  to @out; returns its length. The name is one of the network namespace. */
int mnic_address(const char *interface, char *out, size_t size);

/** mnic_hello_ok() - can there be a device with these numbers? */
bool mnic_hello_ok(const struct mnic_hello *hello);
/** mnic_bytes() - the size of the memory for numbers that mnic_hello_ok() has agreed to. */
size_t mnic_bytes(const struct mnic_hello *hello);
/** mnic_queue_at() - the offset of a queue in the memory. */
size_t mnic_queue_at(uint32_t queue);
/** mnic_slot_at() - the offset of slot @slot of @queue. @got: one for frames received. */
size_t mnic_slot_at(const struct mnic_hello *hello, uint32_t queue, bool got,
		    uint32_t slot);

/** mnic_waiting() - the entries that a consumer which has taken @taken may read; -1 if the
 *  producer says that there are more than a ring can have. */
int mnic_waiting(const struct mnic_ring *ring, uint32_t taken);
/** mnic_room() - the entries that a producer which has made @made may put in; -1 if the consumer
 *  says that it took more than there were. */
int mnic_room(const struct mnic_ring *ring, uint32_t made);

/** mnic_publish() - raise @made; returns true if the consumer's eventfd is to be written. */
bool mnic_publish(struct mnic_ring *ring, uint32_t made);
/** mnic_consumed() - tell the producer that @taken entries were taken out. */
void mnic_consumed(struct mnic_ring *ring, uint32_t taken);
/** mnic_sleep() - say that we want to be woken; returns false if there is something already. */
bool mnic_sleep(struct mnic_ring *ring, uint32_t taken);

/** mnic_send_ok() - can the device send this? @features: those that it has. */
bool mnic_send_ok(const struct mnic_send *send, uint32_t slots,
		  uint32_t features);

/** mnic_got_ok() - can the device have received this? It looks at the numbers, not into the
 *  slot. */
bool mnic_got_ok(const struct mnic_got *got, uint32_t slots);

/**
 * mnic_unit_ok() - are unit and list of one mind?
 * @unit: a copy of the bytes from the Homa header on.
 * @bytes: the number of them.
 * @list: a copy of the list, of @pieces entries; at least 1.
 *
 * Each packet has at least one byte of the message, all but the last have the same number, the
 * offsets in unit and list are the same, and the lengths use up the unit exactly.
 */
bool mnic_unit_ok(const uint8_t *unit, uint32_t bytes,
		  const struct mnic_piece *list, uint32_t pieces);

#endif
