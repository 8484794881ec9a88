// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening and closing a handle: settle the options, choose the host, open it,
 * and fall back where "auto" allows it. A child of fork() shares descriptors
 * and rings with its parent but not its threads, so a handle is dead there:
 * every call finds out by comparing a number that fork() changes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "libhoma_impl.h"
#include "libhoma_preload.h"

unsigned int homa_fork_generation;

static void in_child(void)
{
	homa_fork_generation++;
}

static void register_child(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

void homa_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_child);
}

/* Append a sentence to the reason why no better host was taken. */
__attribute__((format(printf, 2, 3))) static void
add_reason(struct homa *h, const char *format, ...)
{
	size_t used = strlen(h->reason);
	va_list args;

	if (used)
		used += (size_t)snprintf(h->reason + used,
					 sizeof(h->reason) - used, "; ");
	if (used >= sizeof(h->reason))
		return;
	va_start(args, format);
	vsnprintf(h->reason + used, sizeof(h->reason) - used, format, args);
	va_end(args);
}

/* Only homad can share a port between handles and keep a handle for another process. */
static int may_open(const struct homa *h,
		    const struct homa_backend_options *options, char *err,
		    size_t errlen)
{
	const char *flag = options->flags & HOMA_OPEN_SHARED_PORT ?
				   "HOMA_OPEN_SHARED_PORT" :
			   options->flags & HOMA_OPEN_HANDOVER ?
				   "HOMA_OPEN_HANDOVER" :
				   NULL;

	if (!flag)
		return 0;
	snprintf(err, errlen, "%s works over homad only, not over \"%s\"%s%.*s",
		 flag, h->via, *h->reason ? "; " : "", HOMA_TEXT / 2, h->reason);
	return -EOPNOTSUPP;
}

static int open_kernel(struct homa *h, struct homa_backend_options *options,
		       char *err, size_t errlen)
{
	int rc;

	h->ops = homa_ksock_get();
	h->via = "kernel";
	rc = may_open(h, options, err, errlen);
	if (rc)
		return rc;
	return h->ops->open(&h->host, options, err, errlen);
}

/*
 * "auto" asks for a socket only where the module is loaded: to ask for one has
 * the kernel look for a module on the disk, and might load it.
 */
static int try_kernel(struct homa *h, struct homa_backend_options *options,
		      char *err, size_t errlen)
{
	int rc;

	if (access("/proc/net/homa_metrics", F_OK)) {
		add_reason(h, "the kernel's module is not loaded");
		return -EOPNOTSUPP;
	}
	rc = open_kernel(h, options, err, errlen);
	if (rc)
		add_reason(h, "kernel: %.*s", HOMA_TEXT / 2, err);
	return rc;
}

/* Attach to homad. "auto" goes on without, but remembers why. */
static int open_service(struct homa *h, struct homa_backend_options *options,
			char *err, size_t errlen)
{
	int rc;

	h->ops = homa_svc_get();
	h->via = "service";
	rc = h->ops->open(&h->host, options, err, errlen);
	if (rc == -ECONNREFUSED)
		add_reason(h, "homad is not running");
	else if (rc)
		add_reason(h, "homad: %.*s", HOMA_TEXT / 2, err);
	return rc;
}

static int open_embedded(struct homa *h, const struct homa_choice *choice,
			 struct homa_backend_options *options, char *err,
			 size_t errlen)
{
	/* shorter than the whole text, which puts a sentence before it */
	char first[HOMA_TEXT - 64];
	int rc;

	h->via = choice->via;
	rc = may_open(h, options, err, errlen);
	if (rc)
		return rc;
	h->ops = homa_load_embedded(err, errlen);
	if (!h->ops)
		return -EOPNOTSUPP;
	options->nic = choice->via;
	/* Over UDP the interface tells the packet size and the link rate. */
	options->interface = choice->interface[0] ? choice->interface : NULL;
	options->address = choice->address;
	rc = h->ops->open(&h->host, options, err, errlen);
	if (!rc || !choice->fallback)
		return rc;
	/* AF_XDP cannot be used here. If the cause is a bad setting, UDP fails by it, too. */
	snprintf(first, sizeof(first), "%.*s", (int)sizeof(first) - 1, err);
	options->nic = h->via = "udp";
	rc = h->ops->open(&h->host, options, err, errlen);
	if (!rc)
		add_reason(h, "AF_XDP on %s: %s", choice->interface, first);
	return rc;
}

static int open_host(struct homa *h, const struct homa_choice *choice,
		     struct homa_backend_options *options, char *err,
		     size_t errlen)
{
	if (!strcmp(choice->via, "kernel"))
		return open_kernel(h, options, err, errlen);
	if (!strcmp(choice->via, "service"))
		return open_service(h, options, err, errlen);
	if (choice->try_kernel && !try_kernel(h, options, err, errlen))
		return 0;
	if (choice->try_service && !open_service(h, options, err, errlen))
		return 0;
	if (*choice->reason)
		add_reason(h, "%s", choice->reason);
	return open_embedded(h, choice, options, err, errlen);
}

int homa_internal_open(struct homa **out, const struct homa_options *options,
		       void *region)
{
	static const struct homa_options defaults;
	static uint64_t serials;
	struct homa_backend_options settled;
	struct homa_options said;
	struct homa_choice choice;
	char err[HOMA_TEXT] = "";
	struct homa *h = NULL;
	int rc;

	if (!out)
		return homa_fail(NULL, -EINVAL,
				 "homa_open: no place for the handle");
	*out = NULL;
	rc = homa_read_options(options ? options : &defaults, &said, err,
			       sizeof(err));
	if (!rc)
		rc = homa_settle_options(&said, &settled, err, sizeof(err));
	if (rc)
		goto fail;
	settled.region = region;
	rc = homa_choose(&said, &choice, err, sizeof(err));
	if (rc)
		goto fail;
	h = calloc(1, sizeof(*h));
	if (!h) {
		snprintf(err, sizeof(err), "out of memory");
		rc = -ENOMEM;
		goto fail;
	}
	homa_watch_forks();
	h->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
	/* The next process of this handle may have handles with small serials of its own. */
	if ((settled.flags & HOMA_OPEN_HANDOVER) &&
	    getrandom(&h->serial, sizeof(h->serial), 0) != sizeof(h->serial)) {
		rc = -errno;
		goto fail;
	}
	h->fork_generation = homa_fork_generation;
	rc = open_host(h, &choice, &settled, err, sizeof(err));
	if (rc)
		goto fail;
	*out = h;
	return 0;
fail:
	free(h);
	return homa_fail(NULL, rc, "%s", *err ? err : homa_code_text(rc));
}

int homa_open(struct homa **out, const struct homa_options *options)
{
	return homa_internal_open(out, options, NULL);
}

const char *homa_open_error(void)
{
	return homa_last_error(NULL);
}

void homa_close(struct homa *h)
{
	if (!h)
		return;
	/* In a child of fork() the host belongs to the parent and is left alone. */
	if (h->fork_generation == homa_fork_generation)
		h->ops->close(h->host);
	if (h->fork_generation == homa_fork_generation)
		homa_buffers_end(h->buffers);
	free(h);
}

const char *homa_error(struct homa *h)
{
	return homa_last_error(h);
}

const char *homa_via(struct homa *h)
{
	return h ? h->via : "";
}

const char *homa_via_reason(struct homa *h)
{
	return h ? h->reason : "";
}
