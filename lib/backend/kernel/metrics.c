// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters of a handle: the module's, which are of the whole network namespace,
 * and what belongs to this handle alone, counted here or asked of its socket.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "backend_kernel.h"
#include "libhoma_impl.h"

#define METRICS "/proc/net/homa_metrics"
/* The number of RPCs opened between the two questions for which there is room. */
#define ROOM 64u

typedef void visitor(void *arg, const char *name, const char *description,
		     uint64_t value);

/* The names of counters that are counted here; the module's of the same name are left out. */
static const char *const ours[] = {
	"rpcs",
	"rx_fresh_bytes",
	"rpcs_failed",
	"host_out_bytes",
#define X(name, text) "host_" #name,
	HOMA_KSOCK_COUNTERS(X)
#undef X
		NULL,
};

/* Read a line of the module's counters: a name, a value, and what it means. */
static void one_line(char *line, visitor *visit, void *arg)
{
	unsigned long long value;
	int name_end = 0, text = 0;
	char *name = line;

	while (isspace((unsigned char)*name))
		name++;
	if (!*name || *name == '#' ||
	    sscanf(name, "%*s%n %llu %n", &name_end, &value, &text) < 1 || !text)
		return;
	name[name_end] = '\0';
	line = name + text;
	while (*line == '#' || isspace((unsigned char)*line))
		line++;
	line[strcspn(line, "\n")] = '\0';
	if (!homa_is_among(name, ours))
		visit(arg, name, line, value);
}

static void of_module(visitor *visit, void *arg)
{
	FILE *file = fopen(METRICS, "re");
	char line[512];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		one_line(line, visit, arg);
	fclose(file);
}

/* The number of open RPCs of the socket; @out_bytes gets the bytes of messages it sends. */
static u64 of_socket(struct homa_ksock *c, u64 *out_bytes)
{
	struct homa_info info = { 0 };
	struct homa_rpc_info *rpcs;
	size_t room;
	u32 i;

	*out_bytes = 0;
	if (ioctl(c->fd, HOMAIOCINFO, &info) || !info.num_rpcs)
		return info.num_rpcs;
	room = (info.num_rpcs + ROOM) * sizeof(*rpcs);
	rpcs = calloc(1, room);
	if (!rpcs)
		return info.num_rpcs;
	info.rpc_info = rpcs;
	info.rpc_info_length = room;
	if (ioctl(c->fd, HOMAIOCINFO, &info))
		info.num_rpcs = 0;
	for (i = 0; i < info.num_rpcs && i < room / sizeof(*rpcs); i++)
		if (rpcs[i].tx_length > 0)
			*out_bytes += (u64)rpcs[i].tx_length;
	free(rpcs);
	return info.num_rpcs;
}

/* The number of our requests that are over and not taken, which the kernel has forgotten. */
static u64 kept_responses(const struct homa_ksock *c)
{
	const struct homa_list *node;
	u64 n = 0;

	for (node = c->ready.next; node != &c->ready; node = node->next)
		n += homa_container_of(node, struct homa_ksock_item, list)->msg.kind !=
		     HOMA_REQUEST;
	return n;
}

void homa_ksock_metrics(void *host, visitor *visit, void *arg)
{
	struct homa_ksock_counters counters;
	u64 rpcs, rx_bytes, failed, out_bytes;
	struct homa_ksock *c = host;

	homa_gate_lock(&c->lock);
	homa_ksock_drain(c);
	rpcs = of_socket(c, &out_bytes) + kept_responses(c);
	counters = c->counters;
	rx_bytes = c->rx_bytes;
	failed = c->failed;
	homa_gate_unlock(&c->lock);

	of_module(visit, arg);
	visit(arg, "rpcs", "RPCs of this handle that are open now", rpcs);
	visit(arg, "rx_fresh_bytes", "message bytes received by this handle",
	      rx_bytes);
	visit(arg, "rpcs_failed", "our requests that failed", failed);
#define X(name, text) visit(arg, "host_" #name, text, counters.name);
	HOMA_KSOCK_COUNTERS(X)
#undef X
	visit(arg, "host_out_bytes", "bytes of outgoing messages now", out_bytes);
}
