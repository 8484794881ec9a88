// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * An attachment begins. It connects, tells homad who we are, maps the memory that homad
 * sends, and becomes the handle's (homa_svc_adopt()).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "svc_att.h"
#include "svc_ring.h"
#include "svc_slot.h"
#include "transfer.h"

static int connect_sentence(int code, const char *path, char *err, size_t errlen)
{
	if (code == ENOENT || code == ECONNREFUSED) {
		snprintf(err, errlen,
			 "nobody listens at %s: start homad ('systemctl start homad', or 'homad' as root), or name its socket by HOMA_SERVICE_SOCKET",
			 path);
		return -ECONNREFUSED;
	}
	if (code == EACCES || code == EPERM) {
		snprintf(err, errlen,
			 "not permitted to write to %s: join the group of homad's socket, or see mode and group under [attach] in homad.toml",
			 path);
		return -EACCES;
	}
	snprintf(err, errlen, "cannot connect to homad at %s: %s", path,
		 strerror(code));
	return -code;
}

int homa_svc_dial(struct homa_svc_att *att, const char *path, bool wait,
		  char *err, size_t errlen)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = HOMA_SVC_ANSWER_S };
	int rc;

	rc = homa_svc_make_socket(att);
	if (rc)
		return connect_sentence(-rc, path, err, errlen);
	if (!wait)
		fcntl(att->sock, F_SETFL, O_NONBLOCK);
	setsockopt(att->sock, SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	setsockopt(att->sock, SOL_SOCKET, SO_SNDTIMEO, &patience,
		   sizeof(patience));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	do {
		rc = connect(att->sock, (struct sockaddr *)&sun, sizeof(sun));
	} while (rc && errno == EINTR);
	if (rc)
		return connect_sentence(errno, path, err, errlen);
	fcntl(att->sock, F_SETFL, 0);
	return 0;
}

static int ask_attach(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_ATTACH,
					    .bytes = c->rcvbuf,
					    .features = HOMA_SVC_FEATURES };

	if (c->handover)
		request.features |= HOMA_SHM_CAN_HANDOVER;
	snprintf(request.name, sizeof(request.name), "%s",
		 program_invocation_short_name);
	return homa_svc_tell(att, &request);
}

static int no_answer(const struct homa_svc *c, int rc, char *err, size_t errlen)
{
	if (rc)
		snprintf(err, errlen,
			 "homad at %s did not answer; see its log, or restart it",
			 c->path);
	return rc;
}

int homa_svc_attach_answer(const struct homa_svc *c, struct homa_svc_att *att,
			   u16 op, int *fds, u32 num_fds, char *err,
			   size_t errlen)
{
	struct homa_ctl_answer *answer = &att->answer;
	int i, rc;

	rc = homa_svc_hear(att, op, answer, fds, num_fds);
	if (rc)
		return no_answer(c, rc, err, errlen);
	if (!homa_svc_same_major(answer->version)) {
		snprintf(err, errlen,
			 "homad at %s has version %u of the shared memory, this library has %u; install both from one release",
			 c->path, answer->version, HOMA_SHM_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (answer->error) {
		snprintf(err, errlen, "homad refused: %s",
			 *answer->text ? answer->text : strerror(-answer->error));
		return answer->error;
	}
	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++) {
		if (fds[i] < 0) {
			snprintf(err, errlen,
				 "homad's descriptors did not arrive; raise the limit of open files (ulimit -n)");
			return -EMFILE;
		}
	}
	return 0;
}

static int map_all(const struct homa_svc *c, struct homa_svc_att *att,
		   const int *fds)
{
	const struct homa_ctl_answer *answer = &att->answer;
	const struct homa_shm_header *h;

	if (answer->queues_bytes < sizeof(*h) ||
	    answer->data_bytes < HOMA_SVC_STAGES ||
	    (c->region && answer->pool_bytes != c->rcvbuf))
		return -EPROTO;
	att->queues = homa_svc_map(fds[HOMA_CTL_FD_QUEUES], answer->queues_bytes);
	att->seg[0] = homa_svc_map(fds[HOMA_CTL_FD_DATA], answer->data_bytes);
	if (!att->queues || !att->seg[0])
		return -ENOMEM;
	h = att->queues;
	if (h->magic != HOMA_SHM_MAGIC || !homa_svc_same_major(h->version) ||
	    homa_svc_find_rings(att))
		return -EPROTO;
	att->seg_bytes[0] = answer->data_bytes;
	att->num_segs = 1;
	if (homa_svc_heap_init(&att->heap[0],
			       answer->data_bytes - HOMA_SVC_STAGES))
		return -ENOMEM;
	return homa_svc_map_pool(att, fds[HOMA_CTL_FD_POOL], answer->pool_bytes,
				 c->region);
}

int homa_svc_attach_dial(struct homa_svc *c, struct homa_svc_att **out,
			 bool wait, char *err, size_t errlen)
{
	struct homa_svc_att *att = calloc(1, sizeof(*att));
	int rc;

	if (!att) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	att->refs = 1;
	att->sock = att->wake_fd = att->kick_fd = -1;
	homa_list_init(&att->old);
	homa_list_init(&att->all);
	rc = homa_svc_dial(att, c->path, wait, err, errlen);
	if (rc)
		homa_svc_att_put(att);
	else
		*out = att;
	return rc;
}

int homa_svc_attach_ask(struct homa_svc *c, struct homa_svc_att **out,
			bool wait, char *err, size_t errlen)
{
	int rc = homa_svc_attach_dial(c, out, wait, err, errlen);

	if (rc)
		return rc;
	rc = no_answer(c, ask_attach(c, *out), err, errlen);
	if (rc) {
		homa_svc_att_put(*out);
		*out = NULL;
	}
	return rc;
}

int homa_svc_attach_map(const struct homa_svc *c, struct homa_svc_att *att,
			int *fds, char *err, size_t errlen)
{
	int rc;

	att->wake_fd = fds[HOMA_CTL_FD_WAKE];
	att->kick_fd = fds[HOMA_CTL_FD_KICK];
	fds[HOMA_CTL_FD_WAKE] = fds[HOMA_CTL_FD_KICK] = -1;
	rc = map_all(c, att, fds);
	if (rc)
		snprintf(err, errlen, "cannot use homad's memory: %s",
			 rc == -EPROTO ?
				 "it has another layout; install homad and libhoma from one release" :
				 strerror(-rc));
	return rc;
}

int homa_svc_attach_hear(struct homa_svc *c, struct homa_svc_att *att,
			 char *err, size_t errlen)
{
	int fds[HOMA_CTL_ATTACH_FDS] = { -1, -1, -1, -1, -1 };
	int i, rc;

	rc = homa_svc_attach_answer(c, att, HOMA_CTL_ATTACH, fds,
				    HOMA_CTL_ATTACH_FDS, err, errlen);
	if (!rc)
		rc = homa_svc_attach_map(c, att, fds, err, errlen);
	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

int homa_svc_attach(struct homa_svc *c, struct homa_svc_att **out, char *err,
		    size_t errlen)
{
	struct homa_svc_att *att;
	int rc;

	rc = homa_svc_attach_ask(c, &att, true, err, errlen);
	if (rc)
		return rc;
	rc = homa_svc_attach_hear(c, att, err, errlen);
	if (rc)
		homa_svc_att_put(att);
	else
		*out = att;
	return rc;
}

static void swap(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_svc_att *old = c->att;
	u64 pages = att->pool_bytes / 65536;
	u32 i;

	att->generation = ++c->generations;
	c->cq_head = c->cq_tail = 0;
	c->release_tail = c->release_shown = 0;
	c->kept = c->kept_next = 0;
	__atomic_store_n(&c->sqs, 1, __ATOMIC_RELAXED);
	/* A small pool needs each page back at once. */
	c->release_batch = pages >= 512 ? 8 : (u32)(pages / 64);
	for (i = 0; i < HOMA_SHM_SQS; i++) {
		c->rings[i].tail = c->rings[i].head = 0;
		c->rings[i].stage_tail = c->rings[i].stage_head = 0;
		homa_svc_unlearn(&c->rings[i], NULL);
	}
	homa_svc_slots_limit(c, att->answer.max_rpcs);
	/* A homad that makes ids of numbers has a new key, so the numbers begin anew. */
	c->numbering = att->queues->id_key[0] ? HOMA_SQE_NUMBERED : 0;
	if (c->numbering)
		c->numbers = 1;
	c->att = att;
	if (!old)
		return;
	homa_svc_send_leave(c, old);
	/* The old attachment stays mapped while the application holds messages in it. */
	if (old->pieces_taken != old->pieces_released && !old->lent)
		homa_list_add_tail(&c->old, &old->old);
	else
		homa_svc_att_put(old);
}

void homa_svc_adopt(struct homa_svc *c, struct homa_svc_att *att)
{
	u32 i;

	homa_gate_lock(&c->lock);
	for (i = 0; i < HOMA_SHM_SQS; i++)
		homa_gate_lock(&c->rings[i].lock);
	homa_gate_lock(&c->release_lock);
	swap(c, att);
	c->counters.attaches++;
	__atomic_store_n(&c->state, HOMA_SVC_UP, __ATOMIC_RELEASE);
	homa_gate_unlock(&c->release_lock);
	for (i = 0; i < HOMA_SHM_SQS; i++)
		homa_gate_unlock(&c->rings[i].lock);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
}
