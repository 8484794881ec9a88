/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of libhoma's core share; nothing here is seen outside. */
#ifndef LIBHOMA_IMPL_H
#define LIBHOMA_IMPL_H

#include <stdbool.h>
#include <string.h>
#include "homa_backend.h"
#include "homa_clock.h"

#define HOMA_TEXT 256
#define HOMA_MAX_BATCH 4096u /* messages in one homa_receive_batch() */

/**
 * struct homa - an open handle
 * @ops, @host: who runs the protocol.
 * @serial: tells handles apart, also one that got the address of an old one.
 * @fork_generation: homa_fork_generation when it was opened.
 * @via: name of the host.
 * @reason: why it was chosen.
 * @buffers: what homa_alloc() gave; NULL until it is called for the first time. Atomic.
 */
struct homa {
	const struct homa_backend_ops *ops;
	void *host;
	uint64_t serial;
	unsigned int fork_generation;
	const char *via;
	char reason[HOMA_TEXT];
	struct homa_buffers *buffers;
};

/** struct homa_claim - a buffer of homa_alloc() that is about to be sent; no other call finds it */
struct homa_claim {
	struct homa_buffers *of;
	struct homa_buffer *buffer;
};

/**
 * homa_buffer_claim() - does the message lie in buffers of @h? Only for a handle that has some.
 * 0 with @claim filled if it is one, and then @out->room if the host shall send from there;
 * or -EINVAL: it lies where buffers were.
 */
int homa_buffer_claim(struct homa *h, const char *op,
		      struct homa_message_out *out, struct homa_claim *claim);
/** homa_buffer_alloc(), homa_buffer_free() - homa_alloc() and homa_free(). */
int homa_buffer_alloc(struct homa *h, size_t length, void **out);
int homa_buffer_free(struct homa *h, void *at);
/** homa_buffer_settle() - the call that sends it gave @rc; the handle may be gone. */
void homa_buffer_settle(const struct homa_claim *claim, int rc);
/** homa_buffers_end() - the handle has been closed. */
void homa_buffers_end(struct homa_buffers *all);

/**
 * struct homa_choice - what homa_choose() decided
 * @try_kernel: the kernel first, if its module is loaded.
 * @try_service: then homad; on failure @via.
 * @via: host to open: "kernel", "service", "afxdp" or "udp".
 * @fallback: on failure try "udp" and say so.
 * @interface: for afxdp.
 * @address: local address or NULL.
 * @reason: why not a better one, or "".
 */
struct homa_choice {
	int try_kernel;
	int try_service;
	const char *via;
	int fallback;
	char interface[32];
	const char *address;
	char reason[HOMA_TEXT];
};

/** homa_choose() - which host; @err receives one sentence on failure. */
int homa_choose(const struct homa_options *options, struct homa_choice *choice,
		char *err, size_t errlen);

/** homa_read_options() - what a program of any version says; -EINVAL, -E2BIG with @err. */
int homa_read_options(const struct homa_options *in, struct homa_options *out,
		      char *err, size_t errlen);

/** homa_settle_options() - defaults and environment into @out, checked. */
int homa_settle_options(const struct homa_options *in,
			struct homa_backend_options *out, char *err,
			size_t errlen);

/** homa_load_embedded() - the embedded host's table; NULL with @err filled. */
const struct homa_backend_ops *homa_load_embedded(char *err, size_t errlen);

/** homa_knl_get() - the kernel host's table; NULL: not in this library. */
#ifdef HOMA_NO_KERNEL
static inline const struct homa_backend_ops *homa_knl_get(void)
{
	return NULL;
}
#else
const struct homa_backend_ops *homa_knl_get(void);
#endif

/** homa_svc_get() - the service host's table. */
const struct homa_backend_ops *homa_svc_get(void);
/** homa_svc_why() - homad's own sentence about what it just refused this thread,
 *  once; NULL: none. */
const char *homa_svc_why(void);

/** homa_until() - struct homa_message_out.deadline for a wait of so long, -1: for ever */
static inline uint64_t homa_until(int64_t within_ns)
{
	/* This machine's clock has not come to half of its range. */
	return within_ns < 0 ? 0 : homa_clock_ns() + (uint64_t)within_ns;
}

/** homa_send_request() - homa_requestv() of a message that is filled but for its length. */
int homa_send_request(struct homa *h, const struct sockaddr *dest,
		      socklen_t destlen, struct homa_message_out *out,
		      uint64_t cookie, unsigned int flags, uint64_t *id);

/** homa_fail() - remember this thread's error on @h (NULL: of homa_open()). */
int homa_fail(const struct homa *h, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/**
 * homa_fail_op() - the same, worded by operation and code
 * @serial: of the handle, which another thread may have closed meanwhile.
 */
int homa_fail_op(uint64_t serial, const char *op, int code);
/** homa_fail_text() - the same with a sentence that came from elsewhere. */
int homa_fail_text(uint64_t serial, const char *op, int code, const char *text);
/** homa_last_error() - what this thread's last failure on @h was. */
const char *homa_last_error(const struct homa *h);
/** homa_code_text() - the plain meaning of an RPC's or a call's errno. */
const char *homa_code_text(int code);

/** homa_is_among() - one of @names, which end with NULL? */
static inline bool homa_is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names != NULL;
}

/** How often this process is the child of a fork(); 0 in the first. */
extern unsigned int homa_fork_generation;
void homa_watch_forks(void);

#endif
