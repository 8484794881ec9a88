/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The process that is a message NIC: the Verilated card between three sides. The driver has the
 * queues of nic/message/message_nic.h; the link is a packet socket on an interface without
 * addresses; what is not Homa is the kernel's, which has a TAP interface. As in a NIC, all that
 * is sent and received goes through the card.
 */
#ifndef HOMA_HW_CARD_H
#define HOMA_HW_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message_check.h"
#include "model.h"

#define CARD_TAGS 256u

/**
 * struct card_options - what the user asked for
 * @tap: the name of the interface to make, by which a driver finds the device, too.
 * @link: the name of the interface that is the cable.
 * @mac: the Ethernet address of the first.
 * @features: bits MNIC_FEATURE_*.
 * @queues: the number of queues.
 * @slots: the number of slots of each direction of a queue.
 * @mbps: the link rate that drivers are told, in Mbit/s.
 * @wave: NULL, or the file for the waveform.
 */
struct card_options {
	const char *tap;
	const char *link;
	uint8_t mac[6];
	uint32_t features;
	uint32_t queues;
	uint32_t slots;
	uint32_t mbps;
	const char *wave;
};

/* The counters of the process itself: X(name, "what one count means"). */
#define CARD_COUNTS(X)                                                   \
	X(sent, "frames that the driver sent")                           \
	X(super, "of them super-frames")                                 \
	X(invalid, "descriptors that cannot be")                         \
	X(got, "frames and units that the driver got")                   \
	X(units, "of them units")                                        \
	X(pieces, "packets in the units")                                \
	X(no_slot, "frames that were lost because no slot was empty")    \
	X(drivers, "drivers that came")                                  \
	X(broken, "drivers that were left because they broke the rules") \
	X(kernel_out, "frames of the kernel that were sent")             \
	X(kernel_in, "frames that the kernel got")                       \
	X(link_lost, "frames that the link did not take")

struct card_counts {
#define X(name, text) uint64_t name;
	CARD_COUNTS(X)
#undef X
};

/**
 * struct card_queue - a queue, as the device knows it
 * @shared: the queue in the shared memory.
 * @bell: the eventfd that the driver writes.
 * @call: the eventfd that the device writes.
 * @sent: the number of entries that were taken out of the ring of frames to send.
 * @done: the number of completions that were made.
 * @posted: the number of empty slots that were taken.
 * @got: the number of received frames that were told.
 * @flying: for each slot for sending, whether the device has it.
 * @ours: for each slot for receiving, whether the device may fill it.
 */
struct card_queue {
	struct mnic_queue *shared;
	int bell;
	int call;
	uint32_t sent;
	uint32_t done;
	uint32_t posted;
	uint32_t got;
	bool flying[MNIC_ENTRIES];
	bool ours[MNIC_ENTRIES];
};

/**
 * struct card_tag - a frame of the first input that has no completion yet
 * @used: true if there is one.
 * @driver: the number of the driver that sent it.
 * @queue: its queue.
 * @slot: its slot.
 */
struct card_tag {
	bool used;
	uint64_t driver;
	uint32_t queue;
	uint32_t slot;
};

/**
 * struct card - the device
 * @options: what the user asked for.
 * @hello: what drivers are told.
 * @model: the card itself.
 * @counts: the counters.
 * @tap: the TAP's descriptor.
 * @link: the packet socket.
 * @listener: the socket at which drivers call.
 * @driver: the connection to the driver; -1 if there is none.
 * @memory: the shared memory.
 * @bytes: its size.
 * @q: the queues.
 * @tags: the frames of the first input without completion, by tag.
 * @next_tag: the tag of the next one.
 * @spoiled: true if the driver broke the rules and must be left.
 */
struct card {
	struct card_options options;
	struct mnic_hello hello;
	struct model *model;
	struct card_counts counts;
	int tap;
	int link;
	int listener;
	int driver;
	uint8_t *memory;
	size_t bytes;
	struct card_queue q[MNIC_QUEUES_MAX];
	struct card_tag tags[CARD_TAGS];
	uint32_t next_tag;
	bool spoiled;
};

/* card_driver.c: coming and going of drivers */
int card_listen(struct card *c);
void card_accept(struct card *c);
void card_leave(struct card *c);

/* card_queue.c: what is in the queues */
/** card_send() - give the card what the driver wants to send, as far as its inputs are free;
 *  returns whether anything moved. */
bool card_send(struct card *c);
/** card_got() - give a received frame to the driver. */
void card_got(struct card *c, const uint8_t *frame, uint32_t len,
	      const struct model_got *said, const struct model_piece *list);
/** card_done() - the card has told what became of a frame. */
void card_done(struct card *c, uint32_t tag, uint32_t status, uint32_t packets);
/** card_may_sleep() - ask the driver for its doorbell; false if there is work already. */
bool card_may_sleep(struct card *c);

/* card_link.c: kernel and cable */
int card_open_link(struct card *c);
/** card_close_link() - also remove the TAP interface. */
void card_close_link(struct card *c);
/** card_take() - read a frame of the kernel and one of the cable, if the card takes them;
 *  returns whether there was one. */
bool card_take(struct card *c);
void card_to_link(struct card *c, const uint8_t *frame, uint32_t len);
void card_to_kernel(struct card *c, const uint8_t *frame, uint32_t len);

#endif
