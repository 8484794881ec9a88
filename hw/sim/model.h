/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Verilated homa_nic as frames that go in and come out. One call is one cycle of its clock;
 * everything that happens in it is told by the functions of struct model_calls.
 */
#ifndef HOMA_HW_MODEL_H
#define HOMA_HW_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct model;

/* Where frames go in: super-frames and others of the host, and those of the port. */
enum model_input { MODEL_SUPER, MODEL_OTHER, MODEL_PORT, MODEL_INPUTS };

/** struct model_got - what the card says beside a frame that it received; see mnic_got. */
struct model_got {
	/* When its first byte arrived, in ns of the card's clock. */
	uint64_t time;
	/* The RSS hash. */
	uint32_t hash;
	/* The number of the queue that it came by. */
	uint32_t queue;
	/* The number of packets in it, at least 1. */
	uint16_t pieces;
	/* Bytes of the message in each packet of a unit but the last. */
	uint16_t seg;
	/* What it is, an MNIC_CLASS_*. */
	uint8_t class_;
	/* The offset of the Homa header, in bytes. */
	uint8_t at;
	/* True if headers and length contradict each other. */
	bool bad;
};

/** struct model_piece - an entry of the list of a unit */
struct model_piece {
	/* The offset of the packet's first byte in the message. */
	uint32_t offset;
	/* The number of its bytes of the message. */
	uint32_t length;
};

/**
 * struct model_calls - what happens in a cycle
 * @left: a packet leaves the port.
 * @got: a frame or unit was received; @list has an entry for each packet of a unit.
 * @done: what became of a frame of MODEL_SUPER with this tag.
 */
struct model_calls {
	void (*left)(void *arg, const uint8_t *frame, uint32_t len);
	void (*got)(void *arg, const uint8_t *frame, uint32_t len,
		    const struct model_got *said, const struct model_piece *list);
	void (*done)(void *arg, uint32_t tag, uint32_t status, uint32_t packets);
};

/** model_new() - make a card that was just reset; @wave: NULL, or the name of a VCD file. NULL if
 *  memory is lacking. */
struct model *model_new(const struct model_calls *calls, void *arg,
			const char *wave);
void model_free(struct model *m);

/** model_takes() - may another frame be put into this input? */
bool model_takes(const struct model *m, enum model_input input);
/** model_put() - put a frame of at most 65,536 bytes in; it is copied. @seg: 0, or for MODEL_SUPER
 *  the bytes of the message in each packet. */
void model_put(struct model *m, enum model_input input, const uint8_t *frame,
	       uint32_t len, uint32_t seg, uint32_t tag);
/** model_cycle() - one cycle; returns true if a beat moved anywhere. */
bool model_cycle(struct model *m);

/** model_write(), model_read() - a register; they take some cycles. False if it is refused. */
bool model_write(struct model *m, uint32_t address, uint32_t value);
bool model_read(struct model *m, uint32_t address, uint32_t *value);

/** model_cycles() - the number of cycles since the reset. */
uint64_t model_cycles(const struct model *m);
/** model_record() - write the wave from now on, or cease to. */
void model_record(struct model *m, bool on);

#ifdef __cplusplus
}
#endif

#endif
