/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the client's files do for a handle that goes to another process (handover.c), and for
 * nothing else.
 */
#ifndef HOMA_SVC_TRANSFER_H
#define HOMA_SVC_TRANSFER_H

#include "client.h"

/* open.c */
/** homa_svc_new() - a handle without an attachment; @err gets a sentence on failure. */
int homa_svc_new(struct homa_svc **out,
		 const struct homa_backend_options *options, char *err,
		 size_t errlen);
void homa_svc_free(struct homa_svc *c);

/* attach.c */
/** homa_svc_attach_dial() - the begin of homa_svc_attach_ask(): connected, and nothing asked. */
int homa_svc_attach_dial(struct homa_svc *c, struct homa_svc_att **out,
			 bool wait, char *err, size_t errlen);
/** homa_svc_attach_answer() - homad's answer to ATTACH or IMPORT, waited for, with up to @num_fds
 *  descriptors, which the caller closes. */
int homa_svc_attach_answer(const struct homa_svc *c, struct homa_svc_att *att,
			   u16 op, int *fds, u32 num_fds, char *err,
			   size_t errlen);
/** homa_svc_attach_map() - map the memory behind them. Those of @fds that @att keeps become -1. */
int homa_svc_attach_map(const struct homa_svc *c, struct homa_svc_att *att,
			int *fds, char *err, size_t errlen);

/* reconnect.c */
/** homa_svc_undo_shut() - under @lock: the handle was shut in vain. @ended: homad has ended. */
void homa_svc_undo_shut(struct homa_svc *c, bool ended);
/** homa_svc_done_shut() - under @lock: it stays shut. */
void homa_svc_done_shut(struct homa_svc *c);

/* ctl.c */
/** homa_svc_set_why() - what homa_svc_why() tells this thread next. */
void homa_svc_set_why(const char *text);

/* slots.c */
/** homa_svc_slot_name() - the place, filled before, is found by its id. */
void homa_svc_slot_name(struct homa_svc *c, u32 index);

/* complete.c: under @lock */
/** homa_svc_queue_again() - a message that another process has not taken, into @item, NULL: a free
 *  one. false: it is not in order, or there is no memory. */
bool homa_svc_queue_again(struct homa_svc *c, struct homa_svc_item *item,
			  const struct homa_cqe *cqe, u64 order);

/* state_write.c, state_read.c: the handle's own memory of itself as bytes */
/** homa_svc_state_write() - under all locks: a sealed memfd with it, or -errno. */
int homa_svc_state_write(struct homa_svc *c, u64 serial);
/** homa_svc_state_read() - from @fd into a handle that nobody else knows and that has adopted
 *  its attachment. -EPROTO: another library wrote it, -EBADMSG: none did. */
int homa_svc_state_read(struct homa_svc *c, int fd, u64 *serial);

#endif
