// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters of a handle: homad's, most of which are of the whole machine, and those of
 * this handle, which are counted here.
 */
#include <stdlib.h>
#include <string.h>
#include "client.h"
#include "fd.h"
#include "libhoma_impl.h"
#include "svc_memory.h"
#include "svc_wait.h"

typedef void visitor(void *arg, const char *name, const char *description,
		     uint64_t value);

/* The names of counters that are counted here; homad's of the same name are left out. */
static const char *const ours[] = { "host_out_bytes", "rx_fresh_bytes",
				    "rpcs_failed", NULL };

/* Ask homad for its counters; NULL if there are none. The caller has @ctl and frees them. */
static struct homa_ctl_metric *ask(struct homa_svc *c, u32 *total)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_METRICS };
	struct homa_ctl_answer answer = { 0 };
	struct homa_ctl_metric *all;

	*total = 0;
	if (homa_svc_question(c, &request, &answer, NULL)) {
		homa_svc_why();
		return NULL;
	}
	all = calloc(answer.total + 1, sizeof(*all));
	/* If some records are missing, those that came are used; the others are empty. */
	homa_svc_records(c, all, sizeof(*all), answer.total);
	*total = all ? answer.total : 0;
	return all;
}

static u64 open_requests(struct homa_svc *c)
{
	u32 i, top = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);
	u64 n = 0;

	for (i = 0; i < top; i++)
		n += __atomic_load_n(&c->slots[i].token, __ATOMIC_RELAXED) != 0;
	return n;
}

void homa_svc_metrics(void *host, visitor *visit, void *arg)
{
	struct homa_svc_counters counters;
	struct homa_ctl_metric *all;
	struct homa_svc *c = host;
	u64 out_bytes, rx_bytes, failed;
	bool rpcs = false;
	u32 i, total;

	pthread_mutex_lock(&c->ctl);
	all = ask(c, &total);
	homa_gate_lock(&c->lock);
	if (homa_svc_state(c) == HOMA_SVC_UP)
		c->counters.progress_rounds += homa_svc_drain(c, NULL);
	homa_svc_fd_touch(c);
	/* Threads without this lock add to some of them. */
#define X(name, text) \
	counters.name = __atomic_load_n(&c->counters.name, __ATOMIC_RELAXED);
	HOMA_SVC_COUNTERS(X)
#undef X
	rx_bytes = c->rx_bytes;
	failed = c->failed;
	out_bytes = homa_svc_long_used(c->att);
	homa_gate_unlock(&c->lock);
	pthread_mutex_unlock(&c->ctl);

	for (i = 0; i < total; i++) {
		struct homa_ctl_metric *m = &all[i];

		m->name[sizeof(m->name) - 1] = '\0';
		m->text[sizeof(m->text) - 1] = '\0';
		rpcs |= !strcmp(m->name, "rpcs");
		if (m->name[0] && !homa_is_among(m->name, ours))
			visit(arg, m->name, m->text, m->value);
	}
	free(all);
	if (!rpcs)
		visit(arg, "rpcs", "our requests open now", open_requests(c));
	visit(arg, "rx_fresh_bytes", "message bytes received by this handle",
	      rx_bytes);
	visit(arg, "rpcs_failed", "our requests that failed", failed);
#define X(name, text) visit(arg, "host_" #name, text, counters.name);
	HOMA_SVC_COUNTERS(X)
#undef X
	visit(arg, "host_out_bytes", "memory of outgoing messages now, bytes",
	      out_bytes);
}
