// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options of homa_open(): defaults, then the environment, then what the
 * program says; and a check of each, so that hosts need none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libhoma_impl.h"

/* The size in bytes of the options of a program that says no size: the first version's. */
#define SIZE_UNSAID \
	(offsetof(struct homa_options, config) + sizeof(const char *))
#define SIZE_MAX_SANE 4096u /* A size of more bytes than that is refused. */
#define PAGE ((size_t)65536)
#define RCVBUF_DEFAULT ((size_t)32 << 20)
#define RCVBUF_MIN ((size_t)2 << 20) /* two longest messages fit */
#define RCVBUF_MAX ((size_t)4 << 30)
#define SPIN_DEFAULT 50 /* us */
#define KNOWN_FLAGS \
	(HOMA_OPEN_NO_THREAD | HOMA_OPEN_SHARED_PORT | HOMA_OPEN_HANDOVER)

static int env_mbps(uint32_t *mbps, char *err, size_t errlen)
{
	const char *text = getenv("HOMA_LINK_MBPS");
	unsigned long value;
	char *end;

	if (!text || !*text)
		return 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value == 0 || value > 10000000) {
		snprintf(err, errlen,
			 "HOMA_LINK_MBPS=%s: it must be a number of Mbit/s from 1 to 10000000",
			 text);
		return -EINVAL;
	}
	*mbps = (uint32_t)value;
	return 0;
}

int homa_read_options(const struct homa_options *in, struct homa_options *out,
		      char *err, size_t errlen)
{
	size_t i, size = in->size ? in->size : SIZE_UNSAID;

	memset(out, 0, sizeof(*out));
	if (size < sizeof(in->size) || size > SIZE_MAX_SANE) {
		snprintf(err, errlen,
			 "options of %zu bytes: size is sizeof(struct homa_options), or 0",
			 size);
		return -EINVAL;
	}
	for (i = sizeof(*out); i < size; i++) {
		if (((const char *)in)[i]) {
			snprintf(err, errlen,
				 "an option is set that libhoma %d.%d.%d does not know; use a newer one",
				 HOMA_VERSION_MAJOR, HOMA_VERSION_MINOR,
				 HOMA_VERSION_PATCH);
			return -E2BIG;
		}
	}
	memcpy(out, in, size < sizeof(*out) ? size : sizeof(*out));
	return 0;
}

unsigned int homa_version(void)
{
	return HOMA_VERSION;
}

int homa_settle_options(const struct homa_options *in,
			struct homa_backend_options *out, char *err,
			size_t errlen)
{
	out->udp_port = in->udp_port;
	out->link_mbps = in->link_mbps;
	out->rcvbuf = in->rcvbuf ? in->rcvbuf : RCVBUF_DEFAULT;
	out->own_rcvbuf = in->rcvbuf != 0;
	out->region = NULL;
	out->spin_us = in->spin_us ? in->spin_us : SPIN_DEFAULT;
	out->flags = in->flags;
	out->config[0] = getenv("HOMA_CONFIG");
	out->config[1] = in->config;
	if (out->rcvbuf % PAGE || out->rcvbuf < RCVBUF_MIN ||
	    out->rcvbuf > RCVBUF_MAX) {
		snprintf(err, errlen,
			 "receive buffer of %zu bytes: it must be a multiple of 65536 from %zu to %zu",
			 in->rcvbuf, RCVBUF_MIN, RCVBUF_MAX);
		return -EINVAL;
	}
	if (in->spin_us < -1) {
		snprintf(err, errlen,
			 "spin_us %d: it must be -1 (never block), 0 (default) or microseconds",
			 (int)in->spin_us);
		return -EINVAL;
	}
	if (in->flags & ~KNOWN_FLAGS) {
		snprintf(err, errlen, "unknown flags 0x%x for homa_open()",
			 (unsigned int)(in->flags & ~KNOWN_FLAGS));
		return -EINVAL;
	}
	if (homa_slice_init(err, errlen))
		return -EINVAL;
	return out->link_mbps ? 0 : env_mbps(&out->link_mbps, err, errlen);
}
