// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The calls of libhoma_preload.h: like libhoma.c, arguments are checked here
 * and the host does the rest.
 */
#include <errno.h>
#include "libhoma_impl.h"
#include "libhoma_preload.h"

#define PAGE ((size_t)65536)

static int result(uint64_t serial, const char *op, int rc)
{
	return rc >= 0 ? rc : homa_fail_op(serial, op, rc);
}

/* Another thread may close the handle while its host is called, so this is read before. */
static uint64_t serial_of(const struct homa *h)
{
	return h ? h->serial : 0;
}

static int check(const struct homa *h, const char *op)
{
	if (h && h->fork_generation == homa_fork_generation)
		return 0;
	return homa_fail(h, -EINVAL, "%s: no handle of this process", op);
}

int homa_internal_set_region(struct homa *h, void *region, size_t bytes)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "set_region");

	if (rc)
		return rc;
	if (!bytes || bytes % PAGE || (uintptr_t)region % 4096)
		return homa_fail(h, -EINVAL,
				 "set_region: %zu bytes; it must be a multiple of 65536 that begins at a page",
				 bytes);
	return result(serial, "set_region",
		      h->ops->set_region(h->host, region, bytes));
}

int homa_internal_release_pages(struct homa *h, const uint32_t *pages,
				unsigned int num)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "release_pages");

	if (rc || !num)
		return rc;
	return result(serial, "release_pages",
		      h->ops->release_pages(h->host, pages, num));
}

int homa_internal_rpcs(struct homa *h,
		       void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		       void *arg)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "rpcs");

	return rc ? rc :
		    result(serial, "rpcs", h->ops->rpcs(h->host, visit, arg));
}

int homa_internal_listen(struct homa *h, uint16_t port, unsigned int flags)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "listen");
	const char *why;

	if (rc)
		return rc;
	rc = h->ops->listen(h->host, port, flags);
	why = rc ? homa_svc_why() : NULL;
	if (why)
		return homa_fail_text(serial, "listen", rc, why);
	return result(serial, "listen", rc);
}

int homa_internal_fd_edges(struct homa *h)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "fd_edges");

	return rc ? rc : result(serial, "fd_edges", h->ops->fd_edges(h->host));
}

int homa_internal_shutdown(struct homa *h)
{
	const uint64_t serial = serial_of(h);
	int rc = check(h, "shutdown");

	return rc ? rc : result(serial, "shutdown", h->ops->shutdown(h->host));
}
