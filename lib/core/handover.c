// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Handles that go from one process to another. This file writes and reads the token as text
 * and checks who may export and import; the client of homad does the rest. Other hosts have
 * nobody who could keep a handle meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "handover.h"
#include "libhoma_impl.h"

#define TOKEN_BYTES 16

_Static_assert(sizeof(struct homa_handover) > 2 * TOKEN_BYTES, "the token fits");

static void to_text(const uint8_t token[TOKEN_BYTES], struct homa_handover *text)
{
	int i;

	memset(text, 0, sizeof(*text));
	for (i = 0; i < TOKEN_BYTES; i++)
		snprintf(text->token + 2 * i, 3, "%02x", token[i]);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
				      -1;
}

static int from_text(const struct homa_handover *text, uint8_t token[TOKEN_BYTES])
{
	int i, high, low;

	if (!text || strnlen(text->token, sizeof(text->token)) != 2 * TOKEN_BYTES)
		return -EINVAL;
	for (i = 0; i < TOKEN_BYTES; i++) {
		high = digit(text->token[2 * i]);
		low = digit(text->token[2 * i + 1]);
		if (high < 0 || low < 0)
			return -EINVAL;
		token[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

int homa_export(struct homa *h, struct homa_handover *handover)
{
	static const char op[] = "homa_export";
	uint8_t token[TOKEN_BYTES];
	uint64_t serial;
	const char *why;
	int rc;

	if (!h || h->fork_generation != homa_fork_generation)
		return homa_fail(h, -EINVAL, "%s: no handle of this process", op);
	if (!handover)
		return homa_fail(h, -EINVAL, "%s: no place for the token", op);
	if (h->ops != homa_svc_get())
		return homa_fail(h, -EOPNOTSUPP,
				 "%s: homad can keep a handle for another process, \"%s\" cannot",
				 op, h->via);
	/* Another thread may close the handle while homad is asked. */
	serial = h->serial;
	rc = homa_svc_export(h->host, serial, token);
	if (!rc) {
		to_text(token, handover);
		return 0;
	}
	why = homa_svc_why();
	return why ? homa_fail_text(serial, op, rc, why) :
		     homa_fail_op(serial, op, rc);
}

/* Refuse options that an imported handle brings along with it. */
static int check_options(const struct homa_options *o, char *err, size_t errlen)
{
	const char *wrong = NULL;

	if (o->via && strcmp(o->via, "auto") && strcmp(o->via, "service"))
		wrong = "via: a handle is imported from homad";
	else if (o->rcvbuf)
		wrong = "rcvbuf: the handle has its receive buffer";
	else if (o->flags & ~(HOMA_OPEN_NO_THREAD | HOMA_OPEN_HANDOVER))
		wrong = "flags: whether a port is shared is kept as it was";
	else
		return 0;
	snprintf(err, errlen, "homa_import: %s; leave it out", wrong);
	return -EINVAL;
}

static int import(struct homa *h, const struct homa_handover *handover,
		  const struct homa_options *options, char *err, size_t errlen)
{
	static const struct homa_options defaults;
	struct homa_backend_options settled;
	uint8_t token[TOKEN_BYTES];
	struct homa_options said;
	int rc;

	rc = homa_read_options(options ? options : &defaults, &said, err, errlen);
	if (!rc)
		rc = check_options(&said, err, errlen);
	if (!rc)
		rc = homa_settle_options(&said, &settled, err, errlen);
	if (rc)
		return rc;
	if (from_text(handover, token)) {
		snprintf(err, errlen,
			 "homa_import: a token has %d digits and small letters a to f, as homa_export() wrote it",
			 2 * TOKEN_BYTES);
		return -EINVAL;
	}
	return homa_svc_import(&h->host, &settled, token, &h->serial, err,
			       errlen);
}

int homa_import(struct homa **out, const struct homa_handover *handover,
		const struct homa_options *options)
{
	char err[HOMA_TEXT] = "";
	struct homa *h;
	int rc;

	if (!out)
		return homa_fail(NULL, -EINVAL,
				 "homa_import: no place for the handle");
	*out = NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return homa_fail(NULL, -ENOMEM, "out of memory");
	homa_watch_forks();
	h->fork_generation = homa_fork_generation;
	h->ops = homa_svc_get();
	h->via = "service";
	rc = import(h, handover, options, err, sizeof(err));
	if (!rc) {
		*out = h;
		return 0;
	}
	free(h);
	return homa_fail(NULL, rc, "%s", *err ? err : homa_code_text(rc));
}
