// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Socket options. Those of Homa and the timeouts do something; what else a
 * socket has at level SOL_SOCKET is kept and told again, because programs set
 * it out of habit and would stop at an error.
 */
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include "internal.h"

static int set_region(struct homa_pl_sock *s, const void *value, socklen_t len)
{
	const struct homa_rcvbuf_args *args = value;
	int rc;

	if (len != sizeof(*args))
		return homa_pl_error(
			s, -EINVAL,
			"SO_HOMA_RCVBUF: the value is not a struct homa_rcvbuf_args");
	pthread_mutex_lock(&s->lock);
	rc = homa_pl_region_set(s, args->start, args->length);
	pthread_mutex_unlock(&s->lock);
	if (rc)
		return rc;
	homa_pl_region_lend(s);
	/* A thread that received before this would not know whether libhoma has the region. */
	__atomic_store_n(&s->has_region, true, __ATOMIC_RELEASE);
	return 0;
}

static int set_server(struct homa_pl_sock *s, const void *value, socklen_t len)
{
	int on;

	if (len != sizeof(on))
		return homa_pl_error(s, -EINVAL,
				     "SO_HOMA_SERVER: the value is not an int");
	memcpy(&on, value, sizeof(on));
	return homa_pl_serve(s, on != 0);
}

/* Seconds and microseconds to ns; 0 and 0 means for ever. */
static int set_timeout(const void *value, socklen_t len, int64_t *timeout)
{
	struct timeval tv;

	if (len < sizeof(tv))
		return -EINVAL;
	memcpy(&tv, value, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return -EDOM;
	if (tv.tv_sec < 0)
		*timeout = 0;
	else if (!tv.tv_sec && !tv.tv_usec)
		*timeout = -1;
	else if (tv.tv_sec > 1000000000)
		*timeout = -1;
	else
		*timeout = tv.tv_sec * 1000000000ll + tv.tv_usec * 1000ll;
	return 0;
}

static int set_socket(struct homa_pl_sock *s, int name, const void *value,
		      socklen_t len)
{
	int number;

	switch (name) {
	case SO_RCVTIMEO:
		return set_timeout(value, len, &s->rcvtimeo);
	case SO_SNDTIMEO:
		return set_timeout(value, len, &s->sndtimeo);
	case SO_TYPE:
	case SO_PROTOCOL:
	case SO_DOMAIN:
	case SO_ERROR:
	case SO_ACCEPTCONN:
		return -ENOPROTOOPT;
	}
	if (name <= 0 || name >= HOMA_PL_OPTIONS)
		return -ENOPROTOOPT;
	if (len < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	/* The kernel tells twice the size that was asked for. */
	if (name == SO_RCVBUF || name == SO_SNDBUF)
		number = number < 0 || number > 1 << 29 ? 1 << 30 : 2 * number;
	s->options[name] = number;
	return 0;
}

int homa_pl_setsockopt(struct homa_pl_sock *s, int level, int name,
		       const void *value, socklen_t len)
{
	if (level != IPPROTO_HOMA && level != SOL_SOCKET)
		return -ENOPROTOOPT;
	if ((int)len < 0)
		return -EINVAL;
	if (!value)
		return -EFAULT;
	if (level == SOL_SOCKET)
		return set_socket(s, name, value, len);
	if (name == SO_HOMA_RCVBUF)
		return set_region(s, value, len);
	if (name == SO_HOMA_SERVER)
		return set_server(s, value, len);
	return homa_pl_error(s, -ENOPROTOOPT,
			     "setsockopt: Homa has no such option");
}

static int copy_out(void *value, socklen_t *len, const void *from, size_t size)
{
	if (*len > size)
		*len = (socklen_t)size;
	memcpy(value, from, *len);
	return 0;
}

static int get_timeout(int64_t ns, void *value, socklen_t *len)
{
	struct timeval tv = { 0 };

	if (ns > 0) {
		tv.tv_sec = ns / 1000000000;
		tv.tv_usec = ns % 1000000000 / 1000;
	}
	return copy_out(value, len, &tv, sizeof(tv));
}

static int get_socket(struct homa_pl_sock *s, int name, void *value,
		      socklen_t *len)
{
	int number;

	switch (name) {
	case SO_RCVTIMEO:
		return get_timeout(s->rcvtimeo, value, len);
	case SO_SNDTIMEO:
		return get_timeout(s->sndtimeo, value, len);
	case SO_TYPE:
		number = SOCK_DGRAM;
		break;
	case SO_PROTOCOL:
		number = IPPROTO_HOMA;
		break;
	case SO_DOMAIN:
		number = s->family;
		break;
	case SO_ERROR:
	case SO_ACCEPTCONN:
		number = 0;
		break;
	default:
		if (name <= 0 || name >= HOMA_PL_OPTIONS)
			return -ENOPROTOOPT;
		number = s->options[name];
		if (!number && (name == SO_RCVBUF || name == SO_SNDBUF))
			number = 212992;
	}
	return copy_out(value, len, &number, sizeof(number));
}

static int get_homa(struct homa_pl_sock *s, int name, void *value, socklen_t *len)
{
	struct homa_rcvbuf_args args;
	int on = s->server;

	switch (name) {
	case SO_HOMA_RCVBUF:
		if (*len < sizeof(args))
			return -EINVAL;
		args.start = (uintptr_t)s->region.start;
		args.length = (size_t)s->region.pages << HOMA_BPAGE_SHIFT;
		return copy_out(value, len, &args, sizeof(args));
	case SO_HOMA_SERVER:
		if (*len < sizeof(on))
			return -EINVAL;
		return copy_out(value, len, &on, sizeof(on));
	}
	return homa_pl_error(s, -ENOPROTOOPT,
			     "getsockopt: Homa has no such option");
}

int homa_pl_getsockopt(struct homa_pl_sock *s, int level, int name, void *value,
		       socklen_t *len)
{
	if (level != IPPROTO_HOMA && level != SOL_SOCKET)
		return -ENOPROTOOPT;
	if (!value || !len)
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	return level == SOL_SOCKET ? get_socket(s, name, value, len) :
				     get_homa(s, name, value, len);
}
