// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of the calls that move bytes. Only sendmsg(), recvmsg() and their
 * plural forms can carry what Homa needs to know; all others fail on a Homa
 * socket as they do in the kernel, instead of reading the descriptor that
 * stands for it.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include "hook.h"
#include "tcp.h"

/* True if the kernel shall do the call: @s is NULL, or a socket that is not homad's, of which this
 * lets go. */
static bool is_kernels(struct homa_pl_sock *s)
{
	if (!s || (s->tcp && homa_pl_tcp_stream(s->tcp) && !s->tcp->listens) ||
	    (!s->tcp && !s->set))
		return !s;
	homa_pl_put(s);
	return true;
}

static int64_t tcp_send(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags)
{
	if (!msg)
		return -EFAULT;
	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	return homa_pl_tcp_write(s, msg->msg_iov, (int)msg->msg_iovlen, flags);
}

static int64_t tcp_receive(struct homa_pl_sock *s, struct msghdr *msg, int flags)
{
	int64_t rc;

	if (!msg)
		return -EFAULT;
	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	rc = homa_pl_tcp_recv(s, msg->msg_iov, (int)msg->msg_iovlen, flags);
	if (rc >= 0) {
		msg->msg_namelen = 0;
		msg->msg_controllen = 0;
		msg->msg_flags = flags & MSG_OOB;
		if ((flags & MSG_OOB) && !rc)
			msg->msg_flags |= MSG_TRUNC;
	}
	return rc;
}

static ssize_t tcp_write(struct homa_pl_sock *s, const void *buf, size_t size,
			 int flags)
{
	struct iovec one = { (void *)(uintptr_t)buf, size };

	return homa_pl_result(s, homa_pl_tcp_write(s, &one, 1, flags));
}

static ssize_t tcp_read(struct homa_pl_sock *s, void *buf, size_t size)
{
	struct iovec one = { buf, size };

	return homa_pl_result(s, homa_pl_tcp_read(s, &one, 1, 0));
}

static ssize_t tcp_recv(struct homa_pl_sock *s, void *buf, size_t size, int flags)
{
	struct iovec one = { buf, size };

	return homa_pl_result(s, homa_pl_tcp_recv(s, &one, 1, flags));
}

/* TCP tells no address, as the peer is known, and says so where one was asked for. */
static ssize_t tcp_recvfrom(struct homa_pl_sock *s, void *buf, size_t size,
			    int flags, const struct sockaddr *addr,
			    socklen_t *len)
{
	struct iovec one = { buf, size };
	int64_t rc = homa_pl_tcp_recv(s, &one, 1, flags);

	if (rc >= 0 && addr) {
		if (!len || (int)*len < 0)
			rc = len ? -EINVAL : -EFAULT;
		else
			*len = 0;
	}
	return homa_pl_result(s, rc);
}

static size_t bytes_of(const struct msghdr *msg)
{
	size_t bytes = 0, i;

	for (i = 0; i < msg->msg_iovlen; i++)
		bytes += msg->msg_iov[i].iov_len;
	return bytes;
}

static int64_t one_send(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags)
{
	int cancel;
	int64_t rc;

	if (s->tcp)
		return tcp_send(s, msg, flags);
	rc = homa_pl_begin(s, &cancel);
	if (rc)
		return rc;
	rc = homa_pl_sendmsg(s, msg, flags);
	homa_pl_end(cancel);
	return rc;
}

static int64_t one_receive(struct homa_pl_sock *s, struct msghdr *msg, int flags)
{
	int cancel;
	int64_t rc;

	if (s->tcp)
		return tcp_receive(s, msg, flags);
	rc = homa_pl_begin(s, &cancel);
	if (rc)
		return rc;
	rc = homa_pl_recvmsg(s, msg, flags);
	homa_pl_end(cancel);
	return rc;
}

HOMA_PL_HOOK ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (!s && homa_pl_tcp_passes(msg))
		return homa_pl_tcp_pass(fd, msg, flags);
	if (is_kernels(s))
		return HOMA_PL_REAL(sendmsg)(fd, msg, flags);
	return homa_pl_result(s, one_send(s, msg, flags));
}

HOMA_PL_HOOK ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	ssize_t n;

	if (is_kernels(s)) {
		n = HOMA_PL_REAL(recvmsg)(fd, msg, flags);
		if (n >= 0)
			homa_pl_tcp_received(msg);
		return n;
	}
	return homa_pl_result(s, one_receive(s, msg, flags));
}

/* Send messages through a UNIX socket, some of which pass sockets of homad's. */
static int send_passing(int fd, struct mmsghdr *msgs, unsigned int count,
			int flags)
{
	unsigned int i;
	ssize_t n;

	for (i = 0; i < count; i++) {
		const struct msghdr *msg = &msgs[i].msg_hdr;

		n = homa_pl_tcp_passes(msg) ?
			    homa_pl_tcp_pass(fd, msg, flags) :
			    HOMA_PL_REAL(sendmsg)(fd, msg, flags);
		if (n < 0)
			return i ? (int)i : -1;
		msgs[i].msg_len = (unsigned int)n;
	}
	return (int)i;
}

HOMA_PL_HOOK int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count,
			  int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);
	unsigned int i;
	int64_t rc = 0;

	for (i = 0; !s && homa_pl_live && msgs && i < count; i++)
		if (homa_pl_tcp_passes(&msgs[i].msg_hdr))
			return send_passing(fd, msgs, count, flags);
	if (is_kernels(s))
		return HOMA_PL_REAL(sendmmsg)(fd, msgs, count, flags);
	for (i = 0; i < count && rc >= 0; i++) {
		rc = one_send(s, &msgs[i].msg_hdr, flags);
		if (rc < 0)
			break;
		msgs[i].msg_len = (unsigned int)rc;
		/* What follows must not stand in the stream in place of the rest. */
		if (s->tcp && (size_t)rc < bytes_of(&msgs[i].msg_hdr)) {
			i++;
			break;
		}
	}
	return (int)homa_pl_result(s, i ? (int64_t)i : rc);
}

HOMA_PL_HOOK int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count,
			  int flags, struct timespec *timeout)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);
	int64_t rc = 0, until = -1;
	unsigned int i;

	if (is_kernels(s)) {
		rc = HOMA_PL_REAL(recvmmsg)(fd, msgs, count, flags, timeout);
		for (i = 0; rc > 0 && i < (unsigned int)rc; i++)
			homa_pl_tcp_received(&msgs[i].msg_hdr);
		return (int)rc;
	}
	if (!homa_pl_is_time(timeout))
		return (int)homa_pl_result(s, -EINVAL);
	if (timeout && timeout->tv_sec < INT64_MAX / 2000000000)
		until = homa_pl_now() + timeout->tv_sec * 1000000000ll +
			timeout->tv_nsec;
	for (i = 0; i < count; i++) {
		/* As in the kernel, the timeout is only looked at between two messages. */
		if (i && until >= 0 && homa_pl_now() >= until)
			break;
		if (i && (flags & MSG_WAITFORONE))
			flags |= MSG_DONTWAIT;
		rc = one_receive(s, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (rc < 0)
			break;
		msgs[i].msg_len = (unsigned int)rc;
	}
	return (int)homa_pl_result(s, i ? (int64_t)i : rc);
}

/* Refuse a call that cannot carry ids, with EINVAL as the kernel does. */
static ssize_t refuse(struct homa_pl_sock *s)
{
	homa_pl_error(s, -EINVAL,
		      "Homa sockets are read and written by sendmsg() and recvmsg() with msg_control only");
	return homa_pl_result(s, -EINVAL);
}

HOMA_PL_HOOK ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(send)(fd, buf, size, flags);
	return s->tcp ? tcp_write(s, buf, size, flags) : refuse(s);
}

HOMA_PL_HOOK ssize_t sendto(int fd, const void *buf, size_t size, int flags,
			    const struct sockaddr *addr, socklen_t len)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(sendto)(fd, buf, size, flags, addr, len);
	return s->tcp ? tcp_write(s, buf, size, flags) : refuse(s);
}

HOMA_PL_HOOK ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(recv)(fd, buf, size, flags);
	return s->tcp ? tcp_recv(s, buf, size, flags) : refuse(s);
}

HOMA_PL_HOOK ssize_t recvfrom(int fd, void *buf, size_t size, int flags,
			      struct sockaddr *addr, socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(recvfrom)(fd, buf, size, flags, addr, len);
	return s->tcp ? tcp_recvfrom(s, buf, size, flags, addr, len) : refuse(s);
}

HOMA_PL_HOOK ssize_t read(int fd, void *buf, size_t size)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(read)(fd, buf, size);
	return s->tcp ? tcp_read(s, buf, size) : refuse(s);
}

HOMA_PL_HOOK ssize_t write(int fd, const void *buf, size_t size)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(write)(fd, buf, size);
	return s->tcp ? tcp_write(s, buf, size, 0) : refuse(s);
}

HOMA_PL_HOOK ssize_t readv(int fd, const struct iovec *iov, int count)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(readv)(fd, iov, count);
	if (s->tcp)
		return homa_pl_result(s, homa_pl_tcp_read(s, iov, count, 0));
	return refuse(s);
}

HOMA_PL_HOOK ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(writev)(fd, iov, count);
	if (s->tcp)
		return homa_pl_result(s, homa_pl_tcp_writev(s, iov, count, 0));
	return refuse(s);
}

/* Without a place in a file these are readv() and writev(), with flags. Returns the flags of recv()
 * and send() that mean the same, or an error. */
static int at_flags(int flags)
{
	if (flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT))
		return -EOPNOTSUPP;
	return flags & RWF_NOWAIT ? MSG_DONTWAIT : 0;
}

HOMA_PL_HOOK ssize_t preadv2(int fd, const struct iovec *iov, int count,
			     off_t at, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);
	int64_t rc;

	if (is_kernels(s))
		return HOMA_PL_REAL(preadv2)(fd, iov, count, at, flags);
	/* The kernel says that there are no places in a socket. */
	if (at != -1) {
		homa_pl_put(s);
		return HOMA_PL_REAL(preadv2)(fd, iov, count, at, flags);
	}
	if (!s->tcp)
		return refuse(s);
	rc = at_flags(flags);
	if (rc >= 0)
		rc = homa_pl_tcp_read(s, iov, count, (int)rc);
	return homa_pl_result(s, rc);
}

HOMA_PL_HOOK ssize_t pwritev2(int fd, const struct iovec *iov, int count,
			      off_t at, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);
	int64_t rc;

	if (is_kernels(s))
		return HOMA_PL_REAL(pwritev2)(fd, iov, count, at, flags);
	if (at != -1) {
		homa_pl_put(s);
		return HOMA_PL_REAL(pwritev2)(fd, iov, count, at, flags);
	}
	if (!s->tcp)
		return refuse(s);
	rc = at_flags(flags);
	if (rc >= 0)
		rc = homa_pl_tcp_writev(s, iov, count, (int)rc);
	return homa_pl_result(s, rc);
}

/* off_t has 64 bits wherever this library is built. */

HOMA_PL_HOOK ssize_t preadv64v2(int fd, const struct iovec *iov, int count,
				off64_t at, int flags)
{
	return preadv2(fd, iov, count, at, flags);
}

HOMA_PL_HOOK ssize_t pwritev64v2(int fd, const struct iovec *iov, int count,
				 off64_t at, int flags)
{
	return pwritev2(fd, iov, count, at, flags);
}

/* With -D_FORTIFY_SOURCE programs call these instead. */

HOMA_PL_HOOK ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(__read_chk)(fd, buf, size, room);
	return s->tcp && size <= room ? tcp_read(s, buf, size) : refuse(s);
}

HOMA_PL_HOOK ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room,
				int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(__recv_chk)(fd, buf, size, room, flags);
	return s->tcp && size <= room ? tcp_recv(s, buf, size, flags) : refuse(s);
}

HOMA_PL_HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room,
				    int flags, struct sockaddr *addr,
				    socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(__recvfrom_chk)(fd, buf, size, room, flags,
						    addr, len);
	return s->tcp && size <= room ?
		       tcp_recvfrom(s, buf, size, flags, addr, len) :
		       refuse(s);
}

/* ---- files ---- */

HOMA_PL_HOOK ssize_t sendfile(int fd, int in, off_t *offset, size_t count)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	if (is_kernels(s))
		return HOMA_PL_REAL(sendfile)(fd, in, offset, count);
	return s->tcp ? homa_pl_result(s, homa_pl_tcp_sendfile(s, in, offset,
							       count)) :
			refuse(s);
}

HOMA_PL_HOOK ssize_t sendfile64(int fd, int in, off64_t *offset, size_t count)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	/* off_t has 64 bits wherever this library is built. */
	if (is_kernels(s))
		return HOMA_PL_REAL(sendfile64)(fd, in, offset, count);
	return s->tcp ? homa_pl_result(s, homa_pl_tcp_sendfile(s, in,
							       (off_t *)offset,
							       count)) :
			refuse(s);
}

HOMA_PL_HOOK ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at,
			    size_t count, unsigned int flags)
{
	struct homa_pl_sock *s = homa_pl_find(in);

	if (!is_kernels(s))
		return s->tcp ? homa_pl_result(s,
					       homa_pl_tcp_splice_out(s, in_at,
								      out, out_at,
								      count,
								      flags)) :
				refuse(s);
	s = homa_pl_find(out);
	if (!is_kernels(s))
		return s->tcp ?
			       homa_pl_result(s, homa_pl_tcp_splice_in(s, out_at,
								       in, in_at,
								       count,
								       flags)) :
			       refuse(s);
	return HOMA_PL_REAL(splice)(in, in_at, out, out_at, count, flags);
}
