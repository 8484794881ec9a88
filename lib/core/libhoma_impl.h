/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of libhoma's core share; nothing here is seen outside. Written by: the thread that
 * opens or calls, before others know the object, unless a field is atomic. */
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
 * @ops: the functions of the host that runs the protocol.
 * @host: the host's own object for this handle, the first argument of these functions.
 * @serial: a number that no other handle has, not even one that got this one's address later.
 * @fork_generation: the value of homa_fork_generation when the handle was opened.
 * @via: the name of the host.
 * @reason: why no better host was taken, "" if nothing is to be said.
 * @buffers: the table of what homa_alloc() gave; NULL until its first call. It is atomic.
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

/**
 * struct homa_claim - a buffer of homa_alloc() that is about to be sent; no other call finds it
 * @of: the table that the buffer was taken out of; NULL if the message lies in no buffer.
 * @buffer: the buffer.
 */
struct homa_claim {
	struct homa_buffers *of;
	struct homa_buffer *buffer;
};

/**
 * homa_buffer_claim() - take the buffer in which the message lies out of the table
 * The handle must have called homa_alloc(). If the message lies in a buffer, @claim is filled,
 * and @out->room if the host shall send from there. Returns 0, or -EINVAL if the message lies
 * where a buffer was that has been sent or freed.
 */
int homa_buffer_claim(struct homa *h, const char *op,
		      struct homa_message_out *out, struct homa_claim *claim);
/** homa_buffer_alloc(), homa_buffer_free() - do what homa_alloc() and homa_free() promise. */
int homa_buffer_alloc(struct homa *h, size_t length, void **out);
int homa_buffer_free(struct homa *h, void *at);
/**
 * homa_buffer_settle() - the call that sends the claimed buffer has returned @rc
 * After an error the program has the buffer again. The handle may be closed already.
 */
void homa_buffer_settle(const struct homa_claim *claim, int rc);
/** homa_buffers_end() - give back all buffers of a handle that has been closed. */
void homa_buffers_end(struct homa_buffers *all);

/**
 * struct homa_choice - what homa_choose() decided
 * @try_kernel: true if the kernel is tried first, provided that its module is loaded.
 * @try_service: true if homad is tried before @via.
 * @via: the host to open if the hosts above were not opened: "kernel", "service", "afxdp",
 *	"message" or "udp".
 * @fallback: true if "udp" is opened when "afxdp" fails.
 * @interface: the name of the network interface for "afxdp" and "message", "" if there is none.
 * @address: the local address that was asked for, as text, or NULL.
 * @reason: why @via is not a better host, or "".
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

/** homa_choose() - choose the host; on failure @err receives one sentence. */
int homa_choose(const struct homa_options *options, struct homa_choice *choice,
		char *err, size_t errlen);

/**
 * homa_read_options() - copy the options of a program that was built for any version
 * Returns 0, or -EINVAL or -E2BIG with a sentence in @err.
 */
int homa_read_options(const struct homa_options *in, struct homa_options *out,
		      char *err, size_t errlen);

/** homa_settle_options() - write options, environment and defaults into @out and check them. */
int homa_settle_options(const struct homa_options *in,
			struct homa_backend_options *out, char *err,
			size_t errlen);

/** homa_slice_init() - read how long slices shall be from the environment; 0, or -EINVAL with a
 *  sentence in @err. */
int homa_slice_init(char *err, size_t errlen);
/** homa_slice_shorten() - this thread receives messages: have it run soon when one comes. The
 *  first call of a thread makes two system calls, others none. */
void homa_slice_shorten(void);

/** homa_load_embedded() - load the embedded host; NULL with a sentence in @err on failure. */
const struct homa_backend_ops *homa_load_embedded(char *err, size_t errlen);

/** homa_ksock_get() - the kernel backend's functions; NULL if this library has no kernel
 *  backend. */
#ifdef HOMA_NO_KERNEL
static inline const struct homa_backend_ops *homa_ksock_get(void)
{
	return NULL;
}
#else
const struct homa_backend_ops *homa_ksock_get(void);
#endif

/** homa_svc_get() - the functions of the host that is a client of homad. */
const struct homa_backend_ops *homa_svc_get(void);
/** homa_svc_why() - homad's own sentence about what it just refused this thread; NULL if
 *  there is none. The sentence is forgotten with this call. */
const char *homa_svc_why(void);

/** homa_until() - the deadline of a message whose sender waits @within_ns, -1 for ever */
static inline uint64_t homa_until(int64_t within_ns)
{
	/* This machine's clock has not come to half of its range. */
	return within_ns < 0 ? 0 : homa_clock_ns() + (uint64_t)within_ns;
}

/** homa_send_request() - send the request @out, in which all but the length is filled in. */
int homa_send_request(struct homa *h, const struct sockaddr *dest,
		      socklen_t destlen, struct homa_message_out *out,
		      uint64_t cookie, unsigned int flags, uint64_t *id);

/** homa_fail() - remember an error of this thread on @h (NULL for homa_open()); returns @code. */
int homa_fail(const struct homa *h, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/**
 * homa_fail_op() - remember an error whose sentence follows from the operation and the code
 * @serial: the serial of the handle, which another thread may have closed meanwhile.
 */
int homa_fail_op(uint64_t serial, const char *op, int code);
/** homa_fail_text() - remember an error whose sentence came from elsewhere. */
int homa_fail_text(uint64_t serial, const char *op, int code, const char *text);
/** homa_last_error() - the sentence about this thread's last failure on @h; "" if none is known. */
const char *homa_last_error(const struct homa *h);
/** homa_code_text() - the plain meaning of an RPC's or a call's errno. */
const char *homa_code_text(int code);

/** homa_is_among() - is @name one of @names, which end with NULL? */
static inline bool homa_is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names != NULL;
}

/** The number of fork() calls between the first process and this one; 0 in the first. */
extern unsigned int homa_fork_generation;
void homa_watch_forks(void);

#endif
