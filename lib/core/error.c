// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sentences about failures. They are kept per thread, for the few handles the
 * thread failed on last. Failing often must stay cheap (-EAGAIN is how a
 * non-blocking receive says "nothing"), so a failure stores what happened and
 * the sentence is worded when somebody asks.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "libhoma_impl.h"

#define SLOTS 4

/**
 * struct slot - one remembered failure of this thread
 * @serial: the serial of the handle that failed; 0 stands for homa_open().
 * @op: the name of the call, from which and @code the sentence is still to be worded;
 *	NULL if @text has the sentence already.
 * @code: the negative errno.
 * @text: the sentence.
 */
struct slot {
	uint64_t serial;
	const char *op;
	int code;
	char text[HOMA_TEXT];
};

static _Thread_local struct slot slots[SLOTS];
/* The slot that was last taken for another handle; the next one is taken after it. */
static _Thread_local unsigned int last;

/* The slot of the handle; NULL if this thread remembers no failure on it. */
static struct slot *find(uint64_t serial)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++) {
		if (slots[i].serial == serial && (serial || i == 0))
			return &slots[i];
	}
	return NULL;
}

/* The slot for a failure on the handle; what it says of another one is written over. */
static struct slot *slot_of(uint64_t serial)
{
	struct slot *slot = find(serial);

	if (slot)
		return slot;
	/* Slot 0 is homa_open()'s. */
	last = last % (SLOTS - 1) + 1;
	slots[last].serial = serial;
	return &slots[last];
}

int homa_fail(const struct homa *h, int code, const char *format, ...)
{
	struct slot *slot = slot_of(h ? h->serial : 0);
	va_list args;

	/* Forget what homad said about the failure, because this sentence is better. */
	homa_svc_why();
	slot->op = NULL;
	slot->code = code;
	va_start(args, format);
	vsnprintf(slot->text, sizeof(slot->text), format, args);
	va_end(args);
	return code;
}

int homa_fail_op(uint64_t serial, const char *op, int code)
{
	struct slot *slot = slot_of(serial);

	slot->op = op;
	slot->code = code;
	return code;
}

int homa_fail_text(uint64_t serial, const char *op, int code, const char *text)
{
	struct slot *slot = slot_of(serial);

	slot->op = NULL;
	slot->code = code;
	snprintf(slot->text, sizeof(slot->text), "%s: %s", op, text);
	/* If homad said something else, it is forgotten, because this sentence is better. */
	homa_svc_why();
	return code;
}

const char *homa_code_text(int code)
{
	switch (-code) {
	case EAGAIN:
		return "nothing arrived within the time allowed";
	case EINTR:
		return "a signal interrupted the wait; call again";
	case ESHUTDOWN:
		return "the handle is being closed, or was handed over";
	case ENOBUFS:
		return "too many RPCs are open; receive their responses first";
	case ENOMEM:
		return "out of memory";
	case EHOSTUNREACH:
		return "there is no route to that address; check it and the routing table";
	case ENETUNREACH:
		return "there is no route to that network; check the routing table";
	case ENOTCONN:
		return "nobody serves that port at that address; start the server or check the port";
	case ETIMEDOUT:
		return "the peer did not answer in time; it is down, unreachable or too busy";
	case EPROTONOSUPPORT:
		return "the peer does not speak Homa this way: open with via=udp if it uses UDP encapsulation, without if not";
	case ECONNREFUSED:
		return "homad is not running at present; start it, the handle attaches again by itself";
	case ECONNRESET:
		return "homad ended while the RPC was open; send it again, the handle attaches again by itself";
	case ECONNABORTED:
		return "homad ended this attachment because its shared memory was overwritten; see homad's log and open a new handle";
	case EADDRINUSE:
		return "that port is taken by another handle; choose another one";
	case ENOENT:
		return "there is no such RPC: it was received or aborted already";
	case ECANCELED:
		return "the server dropped the request without an answer";
	case EOPNOTSUPP:
		return "what runs the protocol is older than this call; update homad or the kernel's module";
	case EMSGSIZE:
		return "the message is too long";
	case EAFNOSUPPORT:
		return "addresses must be AF_INET or AF_INET6, and of the kind this handle is bound to";
	case EPERM:
	case EACCES:
		return "not permitted; this needs root or CAP_NET_ADMIN";
	default:
		return strerror(-code);
	}
}

const char *homa_last_error(const struct homa *h)
{
	struct slot *slot = find(h ? h->serial : 0);

	if (!slot)
		return "";
	if (slot->op) {
		snprintf(slot->text, sizeof(slot->text), "%s: %s", slot->op,
			 homa_code_text(slot->code));
		slot->op = NULL;
	}
	return slot->text;
}
