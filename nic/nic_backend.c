// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What all backends share: failing with a sentence, a bounded list of ICMP
 * errors, and a coarse clock. Backends call this file; nic.c calls backends.
 */
#include "nic_backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int nic_fail(char *err, size_t errlen, int code, const char *fmt, ...)
{
	va_list ap;

	if (err && errlen) {
		va_start(ap, fmt);
		vsnprintf(err, errlen, fmt, ap);
		va_end(ap);
	}
	return code;
}

void nic_errq_push(struct nic_errq *q, const struct nic_error *error)
{
	if (q->tail - q->head < NIC_ERRQ_SIZE)
		q->slots[q->tail++ % NIC_ERRQ_SIZE] = *error;
}

int nic_errq_take(struct nic_errq *q, struct nic_error *errors, int n)
{
	int taken = 0;

	while (taken < n && q->head != q->tail)
		errors[taken++] = q->slots[q->head++ % NIC_ERRQ_SIZE];
	return taken;
}

struct nic_error nic_error_for(const struct homa_addr *dst, const u8 *hdr,
			       u32 len, int error, u32 mtu)
{
	struct nic_error e;

	memset(&e, 0, sizeof(e));
	e.dst = *dst;
	e.error = error;
	e.mtu = mtu;
	if (hdr && len >= 4) {
		e.sport = homa_get_be16(hdr);
		e.dport = homa_get_be16(hdr + 2);
	}
	if (hdr && len >= 28)
		e.sender_id = homa_get_be64(hdr + 20);
	return e;
}

u64 nic_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (u64)ts.tv_sec * 1000 + (u64)ts.tv_nsec / 1000000;
}
