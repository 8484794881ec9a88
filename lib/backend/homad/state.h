/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a process knows of its handle and homad does not, as it goes to the next process in a
 * file (handover.c): places of requests, messages that nobody has taken, what is free of the
 * memory to send from. The next process may have another release of this library, so these
 * are records of their own with a version, and not our tables. In the file, one behind the
 * other, all in this machine's byte order:
 *
 *	struct homa_svc_state_head
 *	for each submission ring: struct homa_svc_state_ring, and u32 stage_end[entries]
 *	slots	struct homa_svc_state_slot
 *	items	struct homa_svc_state_item
 *	requests	u64, words of homa_svc.requests
 *	kept	u32, offsets of pieces that wait for room in the release ring
 *	for each segment: struct homa_svc_state_heap, and u32 tags[units]
 *
 * homad does not read it. Who imports a handle checks it all the same: the file is as old as
 * the token, and a mistake in it should be an error and not a broken program.
 *
 * Written by: the process that hands the handle over; read by: the one that takes it, which
 * trusts it as far as its own memory.
 */
#ifndef HOMA_SVC_STATE_H
#define HOMA_SVC_STATE_H

#include "transfer.h"

#define HOMA_SVC_STATE_MAGIC 0x6f766f48u /* "Hovo" */
#define HOMA_SVC_STATE_VERSION 1u

/* struct homa_svc_state_head - counts of the records behind it, and members of struct homa_svc and
 * struct homa_svc_att that have the same names */
struct homa_svc_state_head {
	/* HOMA_SVC_STATE_MAGIC and HOMA_SVC_STATE_VERSION. */
	u32 magic, version;
	/* The size of the whole file in bytes. */
	u64 bytes;
	/* libhoma's number of the handle, which names of requests contain. */
	u64 serial;
	/* From here to @shared_port: members of struct homa_svc and struct homa_svc_att that have
	 * the same names, at the time of homa_export(). */
	u64 numbers, order, rx_bytes, failed, pieces_taken, pieces_released;
	/* Members of the same names. */
	u32 generation, fresh, cq_head, release_tail, release_shown, sqs, listen;
	/* The member of the same name. */
	u16 bound;
	/* The member of the same name. */
	u8 shared_port;
	/* 0. */
	u8 reserved;
	/* The size of the receive pool that the application asked for, in pages of 64 KiB; 0 if
	 * it took homad's default. */
	u32 rcvbuf_pages;
	/* The number of records of each kind in the file, and of segments. */
	u32 slots, items, requests, kept, segs;
};

/* struct homa_svc_state_ring - members of struct homa_svc_ring that have the same names, and the
 * number of the ring's entries */
struct homa_svc_state_ring {
	/* The number of entries; then the members of the same names. */
	u32 entries, tail, head, stage_tail, stage_head;
};

/* struct homa_svc_state_slot - members of struct homa_svc_slot; its @peer as @ip and @encap */
struct homa_svc_state_slot {
	/* The members of the same names. */
	u64 token, id, cookie;
	/* @ip, @encap: homa_svc_slot.peer. */
	u8 ip[16];
	/* The length of the request, in bytes. */
	u32 length;
	/* @port: the server's Homa port. */
	u16 encap, port;
	/* The members of the same names; then zeros. */
	u8 state, gone, is_private, reserved[5];
};

/* struct homa_svc_state_item - members of struct homa_svc_item */
struct homa_svc_state_item {
	/* The number of the message. */
	u64 order;
	/* homad's completion. */
	struct homa_cqe cqe;
};

/* struct homa_svc_state_heap - members of struct homa_svc_heap, in units of HOMA_SVC_UNIT bytes */
struct homa_svc_state_heap {
	/* The members of the same names. */
	u32 units, rover, used;
};

HOMA_STATIC_ASSERT(sizeof(struct homa_svc_state_head) == 128, "as in the file");
HOMA_STATIC_ASSERT(sizeof(struct homa_svc_state_slot) == 56, "as in the file");
HOMA_STATIC_ASSERT(sizeof(struct homa_svc_state_item) == 136, "as in the file");

#endif
