// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * recvmsg(), and the receive buffers that go with it. Pieces that the application
 * releases go back to the kernel with the next recvmsg(), up to 16 at a time, which
 * costs nothing. When half of the region is out, the kernel might be short of them. Then they
 * are given back at once, by a recvmsg() for an RPC that does not exist, because a thread that
 * is blocked for want of buffers would not call it. The kernel refuses a piece that it did not
 * hand out, so this file knows which pieces are out: a program that releases twice, or a copy of
 * a message, harms nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "backend_kernel.h"

#define NO_SUCH_ID (~(u64)1) /* a client's id that no RPC has */

int homa_ksock_pages_init(struct homa_ksock *c)
{
	size_t pieces = c->region_bytes / HOMA_KSOCK_GRANULE;

	c->out = mmap(NULL, pieces, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->out == MAP_FAILED)
		c->out = NULL;
	c->back = mmap(NULL, pieces * sizeof(*c->back), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->back == MAP_FAILED)
		c->back = NULL;
	return c->out && c->back ? 0 : -ENOMEM;
}

void homa_ksock_pages_free(struct homa_ksock *c)
{
	size_t pieces = c->region_bytes / HOMA_KSOCK_GRANULE;

	if (c->out)
		munmap(c->out, pieces);
	if (c->back)
		munmap(c->back, pieces * sizeof(*c->back));
}

static u8 *place(struct homa_ksock *c, u32 offset)
{
	return &c->out[offset / HOMA_KSOCK_GRANULE];
}

void homa_ksock_pages_out(struct homa_ksock *c,
			  const struct homa_recvmsg_args *args)
{
	u32 i;

	for (i = 0; i < args->num_bpages; i++)
		__atomic_store_n(place(c, args->bpage_offsets[i]), 1,
				 __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->pieces, args->num_bpages, __ATOMIC_RELAXED);
}

void homa_ksock_pages_back(struct homa_ksock *c, struct homa_recvmsg_args *args)
{
	u32 n;

	args->num_bpages = 0;
	if (!__atomic_load_n(&c->num_back, __ATOMIC_RELAXED))
		return;
	homa_gate_lock(&c->back_lock);
	n = homa_min_u32(c->num_back, HOMA_MAX_BPAGES);
	__atomic_store_n(&c->num_back, c->num_back - n, __ATOMIC_RELAXED);
	memcpy(args->bpage_offsets, &c->back[c->num_back], n * sizeof(*c->back));
	homa_gate_unlock(&c->back_lock);
	args->num_bpages = n;
	__atomic_fetch_sub(&c->pieces, n, __ATOMIC_RELAXED);
}

int homa_ksock_recv(struct homa_ksock *c, u64 id, int flags,
		    struct homa_ksock_got *got)
{
	struct msghdr hdr = {
		.msg_name = &got->from,
		.msg_namelen = sizeof(got->from),
		.msg_control = &got->args,
		.msg_controllen = sizeof(got->args),
	};
	ssize_t n;

	got->args.id = id;
	got->args.completion_cookie = 0;
	got->args.reserved = 0;
	homa_ksock_pages_back(c, &got->args);
	n = recvmsg(c->fd, &hdr, flags);
	if (unlikely(n < 0)) {
		if (!got->args.completion_cookie)
			return -errno;
		got->error = errno;
		got->length = 0;
		got->args.num_bpages = 0;
		return 0;
	}
	got->error = 0;
	got->length = (size_t)n;
	homa_ksock_pages_out(c, &got->args);
	return 0;
}

void homa_ksock_flush(struct homa_ksock *c)
{
	struct homa_ksock_got got;

	while (__atomic_load_n(&c->num_back, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&c->counters.flushes, 1, __ATOMIC_RELAXED);
		homa_ksock_recv(c, NO_SUCH_ID, MSG_DONTWAIT, &got);
	}
}

static int put(struct homa_ksock *c, u32 offset)
{
	if (offset >= c->region_bytes || offset % HOMA_KSOCK_GRANULE ||
	    !__atomic_exchange_n(place(c, offset), 0, __ATOMIC_RELAXED))
		return -EINVAL;
	homa_gate_lock(&c->back_lock);
	c->back[c->num_back] = offset;
	__atomic_store_n(&c->num_back, c->num_back + 1, __ATOMIC_RELAXED);
	homa_gate_unlock(&c->back_lock);
	return 0;
}

int homa_ksock_release_pages(void *host, const uint32_t *pages, unsigned int num)
{
	struct homa_ksock *c = host;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < num; i++)
		if (put(c, pages[i]))
			rc = -EINVAL;
	if (__atomic_load_n(&c->pieces, __ATOMIC_RELAXED) >=
	    c->region_bytes / HOMA_BPAGE_SIZE / 2)
		homa_ksock_flush(c);
	return rc;
}

int homa_ksock_release(void *host, struct homa_message *msg)
{
	return homa_ksock_release_pages(host,
					(const u32 *)&msg->priv[HOMA_PRIV_PAGES],
					homa_min_u32((u32)msg->iovcnt,
						     HOMA_MAX_BPAGES));
}
