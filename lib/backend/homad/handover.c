// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The handle goes to another process. The process that gives it shuts it for its own threads,
 * writes what only this library knows of it into a file (state_write.c), and has homad keep the
 * attachment under a token. If homad refuses, the handle is open again as if nothing had been
 * tried. The process that takes it maps the memory, reads the file, and tells homad when both
 * are right. Before that it writes nothing to the memory, so another process may try if it fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "handover.h"
#include "svc_memory.h"
#include "transfer.h"

static void lock_all(struct homa_svc *c)
{
	u32 i;

	homa_gate_lock(&c->lock);
	for (i = 0; i < HOMA_SHM_SQS; i++)
		homa_gate_lock(&c->rings[i].lock);
	homa_gate_lock(&c->release_lock);
}

static void unlock_all(struct homa_svc *c)
{
	u32 i;

	homa_gate_unlock(&c->release_lock);
	for (i = 0; i < HOMA_SHM_SQS; i++)
		homa_gate_unlock(&c->rings[i].lock);
	homa_gate_unlock(&c->lock);
}

/* The number of pieces of a message in the present pool that waits for the application. */
static u64 pieces_of(const struct homa_svc *c, const struct homa_svc_item *item)
{
	return item->generation == c->att->generation ? item->cqe.num_pages : 0;
}

/* The number of pieces of all messages that wait for the application. */
static u64 pieces_waiting(const struct homa_svc *c)
{
	const struct homa_list *first = &c->ready[HOMA_SVC_REQUESTS], *node;
	u64 n = 0;
	u32 i;

	for (node = first->next; node != first; node = node->next)
		n += pieces_of(c, homa_container_of(node,
						    const struct homa_svc_item,
						    list));
	for (i = 0; i < c->fresh; i++)
		if (c->slots[i].token && c->slots[i].state == HOMA_SVC_DONE)
			n += pieces_of(c, &c->slot_items[i]);
	return n;
}

/* Return the reason why the handle cannot be given away now, NULL if it can. Copies under way,
 * memory of homa_alloc() and threads that sleep have references. The caller has all locks. */
static const char *used_by(const struct homa_svc *c)
{
	const struct homa_svc_att *att = c->att;

	if (__atomic_load_n(&c->inside, __ATOMIC_SEQ_CST) ||
	    !homa_list_empty(&c->waiters))
		return "another thread is in a call with this handle; let it return first";
	if (!homa_list_empty(&c->old))
		return "messages of a homad that has ended are not released; release them first";
	if (att->pieces_taken - att->pieces_released != pieces_waiting(c))
		return "a message that was received is not released; release it first, a homa_ticket is enough to answer it";
	if (__atomic_load_n(&att->refs, __ATOMIC_ACQUIRE) != 1)
		return "memory of homa_alloc() is neither sent nor freed, or another thread sends; mend that first";
	return NULL;
}

/* Make every call fail from now on; returns the file with the handle's state, or an error. */
static int shut(struct homa_svc *c, u64 serial)
{
	const char *user;
	int rc;

	homa_svc_show_releases(c);
	lock_all(c);
	rc = homa_svc_error(c);
	if (!rc && homa_svc_state(c) != HOMA_SVC_UP)
		rc = -ECONNREFUSED;
	user = rc ? NULL : used_by(c);
	if (user) {
		homa_svc_set_why(user);
		rc = -EBUSY;
	}
	if (!rc)
		rc = homa_svc_state_write(c, serial);
	if (rc >= 0)
		__atomic_store_n(&c->state, HOMA_SVC_SHUT, __ATOMIC_RELEASE);
	unlock_all(c);
	return rc;
}

/* Have homad keep the attachment; if it does not, the handle is open again. */
static int export_handle(struct homa_svc *c, int fd, u8 token[16])
{
	struct homa_ctl_request request = { .op = HOMA_CTL_EXPORT };
	struct homa_ctl_answer answer;
	bool ended;
	int rc;

	rc = homa_svc_tell_fd(c->att, &request, fd);
	if (!rc)
		rc = homa_svc_hear(c->att, HOMA_CTL_EXPORT, &answer, NULL, 0);
	ended = rc != 0;
	if (ended) {
		rc = -ECONNREFUSED;
	} else {
		rc = answer.error;
		if (rc)
			homa_svc_set_why(answer.text);
	}
	homa_gate_lock(&c->lock);
	if (rc)
		homa_svc_undo_shut(c, ended);
	else
		homa_svc_done_shut(c);
	homa_gate_unlock(&c->lock);
	if (!rc)
		memcpy(token, answer.ip, sizeof(answer.ip));
	return rc;
}

int homa_svc_export(void *host, uint64_t serial, uint8_t token[16])
{
	struct homa_svc *c = host;
	int fd, rc;

	if (!c->handover) {
		homa_svc_set_why(
			"the handle was not opened with HOMA_OPEN_HANDOVER");
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&c->ctl);
	rc = homa_svc_revive_locked(c);
	if (!rc && !(c->att->queues->features & HOMA_SHM_CAN_HANDOVER))
		rc = -EOPNOTSUPP;
	if (!rc) {
		fd = shut(c, serial);
		rc = fd < 0 ? fd : export_handle(c, fd, token);
		if (fd >= 0)
			close(fd);
	}
	pthread_mutex_unlock(&c->ctl);
	return rc;
}

/* ---- the other end ---- */

static void say_refused(const struct homa_ctl_answer *answer, char *err,
			size_t errlen)
{
	snprintf(err, errlen, "homad refused: %s",
		 *answer->text ? answer->text : strerror(-answer->error));
}

/* Map all memory of the attachment, also the segments behind the first one. */
static int map(struct homa_svc *c, struct homa_svc_att *att, int *fds,
	       char *err, size_t errlen)
{
	struct stat st;
	u32 i;
	int fd, rc;

	/* The receive pool is mapped as it is, whatever its size. */
	rc = homa_svc_attach_map(c, att, fds, err, errlen);
	for (i = 1; !rc && i < att->answer.segment; i++) {
		fd = fds[HOMA_CTL_FD_STATE + i];
		fds[HOMA_CTL_FD_STATE + i] = -1;
		if (fstat(fd, &st)) {
			close(fd);
			rc = -EPROTO;
		} else {
			rc = homa_svc_segment_add(att, i, fd, (u64)st.st_size);
		}
		if (rc)
			snprintf(err, errlen, "cannot use homad's memory: %s",
				 strerror(-rc));
	}
	return rc;
}

/* Ask homad for the attachment that @token stands for, and map it. */
static int look(struct homa_svc *c, struct homa_svc_att *att,
		const u8 token[16], int *fds, char *err, size_t errlen)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_IMPORT,
					    .features = HOMA_SVC_FEATURES };
	u32 i;
	int rc;

	memcpy(request.ip, token, sizeof(request.ip));
	rc = homa_svc_tell(att, &request);
	if (rc)
		snprintf(err, errlen, "homad at %s ended", c->path);
	if (!rc)
		rc = homa_svc_attach_answer(c, att, HOMA_CTL_IMPORT, fds,
					    HOMA_CTL_IMPORT_FDS, err, errlen);
	if (rc)
		return rc;
	if (att->answer.segment < 1 ||
	    att->answer.segment > HOMA_SHM_HANDOVER_SEGMENTS) {
		snprintf(err, errlen, "homad's answer makes no sense");
		return -EPROTO;
	}
	for (i = 0; i < HOMA_CTL_FD_STATE + att->answer.segment; i++) {
		if (fds[i] < 0) {
			snprintf(err, errlen,
				 "homad's descriptors did not arrive; raise the limit of open files (ulimit -n)");
			return -EMFILE;
		}
	}
	return map(c, att, fds, err, errlen);
}

/* Read the handle's state, which the former process wrote, when the handle has its attachment. */
static int remember(struct homa_svc *c, int fd, u64 *serial, char *err,
		    size_t errlen)
{
	int rc = homa_svc_state_read(c, fd, serial);

	if (rc == -EPROTO)
		snprintf(err, errlen,
			 "another release of libhoma has handed the handle over, whose file this one cannot read");
	else if (rc)
		snprintf(err, errlen,
			 "what the former process has written about the handle cannot be read: %s",
			 strerror(-rc));
	return rc;
}

/* Tell homad that this process takes the attachment. */
static int take(struct homa_svc *c, char *err, size_t errlen)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_TAKE };
	struct homa_ctl_answer answer;
	int rc;

	rc = homa_svc_ask(c->att, &request, &answer, NULL, 0);
	if (rc) {
		snprintf(err, errlen, "homad at %s ended", c->path);
		return -ECONNREFUSED;
	}
	if (answer.error) {
		say_refused(&answer, err, errlen);
		return answer.error;
	}
	c->att->answer.port = answer.port;
	/* Nobody waits yet, here or in the former process. */
	__atomic_store_n(&c->att->queues->armed, 0, __ATOMIC_SEQ_CST);
	return 0;
}

int homa_svc_import(void **out, const struct homa_backend_options *options,
		    const uint8_t token[16], uint64_t *serial, char *err,
		    size_t errlen)
{
	int i, rc, fds[HOMA_CTL_IMPORT_FDS];
	struct homa_svc_att *att = NULL;
	struct homa_svc *c = NULL;

	for (i = 0; i < (int)HOMA_CTL_IMPORT_FDS; i++)
		fds[i] = -1;
	rc = homa_svc_new(&c, options, err, errlen);
	if (rc)
		return rc;
	c->handover = true;
	rc = homa_svc_attach_dial(c, &att, true, err, errlen);
	if (!rc)
		rc = look(c, att, token, fds, err, errlen);
	if (!rc) {
		homa_svc_adopt(c, att);
		att = NULL;
		rc = remember(c, fds[HOMA_CTL_FD_STATE], serial, err, errlen);
	}
	if (!rc)
		rc = take(c, err, errlen);
	for (i = 0; i < (int)HOMA_CTL_IMPORT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rc) {
		if (att)
			homa_svc_att_put(att);
		homa_svc_free(c);
		return rc;
	}
	homa_svc_list_handle(c);
	*out = c;
	return 0;
}
