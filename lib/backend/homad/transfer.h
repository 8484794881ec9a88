/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the client's files do for a handle that goes to another process (handover.c), and for
 * nothing else.
 */
#ifndef HOMA_SVC_TRANSFER_H
#define HOMA_SVC_TRANSFER_H

#include "client.h"
#include "svc_att.h"
#include "svc_wait.h"

/* open.c */
/** homa_svc_new() - make a handle without an attachment; on failure @err gets a sentence. */
int homa_svc_new(struct homa_svc **out,
		 const struct homa_backend_options *options, char *err,
		 size_t errlen);
void homa_svc_free(struct homa_svc *c);

/* attach.c */
/** homa_svc_attach_dial() - make an attachment and connect it; homad is not asked yet. */
int homa_svc_attach_dial(struct homa_svc *c, struct homa_svc_att **out,
			 bool wait, char *err, size_t errlen);
/** homa_svc_attach_answer() - wait for homad's answer to ATTACH or IMPORT, with up to @num_fds
 *  descriptors, which the caller closes. */
int homa_svc_attach_answer(const struct homa_svc *c, struct homa_svc_att *att,
			   u16 op, int *fds, u32 num_fds, char *err,
			   size_t errlen);
/** homa_svc_attach_map() - map the memory behind @fds. Those that @att keeps become -1. */
int homa_svc_attach_map(const struct homa_svc *c, struct homa_svc_att *att,
			int *fds, char *err, size_t errlen);

/* reconnect.c */
/** homa_svc_undo_shut() - open a handle again that was shut for a handover which failed. @ended
 *  says whether homad has ended. Under @lock. */
void homa_svc_undo_shut(struct homa_svc *c, bool ended);
/** homa_svc_done_shut() - tell homa_fd() and waiting threads that the handle stays shut; under
 *  @lock. */
void homa_svc_done_shut(struct homa_svc *c);

/* ctl.c */
/** homa_svc_set_why() - set the sentence that homa_svc_why() tells this thread next. */
void homa_svc_set_why(const char *text);

/* slots.c */
/** homa_svc_slot_name() - make the slot, filled before, known by its id. */
void homa_svc_slot_name(struct homa_svc *c, u32 index);

/* complete.c: under @lock */
/** homa_svc_queue_again() - keep a message that the former process has not taken, in @item or, if
 *  that is NULL, in a free item. Returns false if @order is wrong or there is no memory. */
bool homa_svc_queue_again(struct homa_svc *c, struct homa_svc_item *item,
			  const struct homa_cqe *cqe, u64 order);

/* state_write.c, state_read.c: what the handle knows and homad does not, as bytes */
/** homa_svc_state_write() - write it to a memfd of fixed size; the descriptor, or -errno. The
 *  caller has all locks. */
int homa_svc_state_write(struct homa_svc *c, u64 serial);
/** homa_svc_state_read() - read it from @fd into a handle that nobody else knows and that has
 *  adopted its attachment. -EPROTO if another release wrote the file, -EBADMSG if it is wrong. */
int homa_svc_state_read(struct homa_svc *c, int fd, u64 *serial);

#endif
