/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory from which long messages are sent: segments that homad gives to an attachment.
 */
#ifndef HOMA_SVC_MEMORY_H
#define HOMA_SVC_MEMORY_H

#include "homa_backend.h"
#include "homa_plat.h"

struct homa_svc;
struct homa_svc_att;

/* segments.c */
/** homa_svc_segment_get() - take @bytes out of an existing segment; 0 or -ENOBUFS. */
int homa_svc_segment_get(struct homa_svc_att *att, u32 bytes, u32 *segment,
			 u32 *offset);
/** homa_svc_segment_add() - make the memory behind @fd a segment, and close @fd. Segments that
 *  homad made before it and that we did not get stay empty. */
int homa_svc_segment_add(struct homa_svc_att *att, u32 segment, int fd,
			 u64 bytes);
void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset);
/** homa_svc_long_used() - return the number of bytes in use in all segments. */
u64 homa_svc_long_used(struct homa_svc_att *att);
/** homa_svc_long_has() - tell whether @at lies in the memory to send from. */
bool homa_svc_long_has(struct homa_svc_att *att, const void *at);
/** homa_svc_unalloc() - give back a room of homa_alloc() and its reference to the attachment. */
void homa_svc_unalloc(const struct homa_room *room);

/* long.c */
/** homa_svc_long_get() - take memory for a long message; the caller gets a reference to @att. */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_ask() - do the same, but -EAGAIN if the submission ring is full. */
int homa_svc_long_ask(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_try() - do the same, but -EAGAIN instead of waiting or asking homad. */
int homa_svc_long_try(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_keep() - do the same for memory that is filled later; the ring may be full. */
int homa_svc_long_keep(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		       u32 *segment, u32 *offset);

/* alloc.c */
int homa_svc_alloc(void *host, size_t length, struct homa_room *room);
int homa_svc_sends_from(void *host, const void *at);

#endif
