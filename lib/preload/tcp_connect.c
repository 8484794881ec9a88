// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How a TCP socket connects: by homad or by the kernel, and what later calls of connect() say. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include "pl_signals.h"
#include "preload_sock.h"
#include "stream_fork.h"
#include "tcp.h"

/* Wait until the connection is open or has failed, unless the socket is non-blocking. @under_way is
 * returned if it is neither then. */
static int await_open(struct homa_pl_sock *s, struct homa_stream *stream,
		      int under_way)
{
	struct homa_pl_tcp *tcp = s->tcp;
	int rc = -EAGAIN;

	if (!(s->status & O_NONBLOCK))
		rc = homa_pl_wait_for(s, HOMA_STREAM_OUT,
				      homa_pl_until(s->sndtimeo));
	/* Another thread may have given it back, when its error is told as well. */
	if (rc && rc != -ECONNABORTED)
		return rc == -EAGAIN ? under_way : rc;
	rc = rc ? ECONNABORTED : 0;
	if (homa_stream_error(stream))
		rc = homa_stream_error(stream);
	/* That thread may have connected the socket anew since. */
	homa_pl_tcp_lock();
	if (tcp->stream == stream) {
		tcp->connecting = false;
		tcp->open = !rc;
	}
	homa_pl_tcp_unlock();
	if (rc)
		homa_pl_tcp_give_back(s, stream);
	return -rc;
}

/* What connect() returns for a connection that is under way or over; -EAGAIN if there is none, or
 * one that the kernel shall open. */
static int connect_again(struct homa_pl_sock *s, struct homa_stream *stream)
{
	struct homa_pl_tcp *tcp = s->tcp;
	int error, rc;

	homa_pl_pump();
	error = homa_stream_error(stream);
	if (tcp->open && !tcp->connecting)
		return -EISCONN;
	if (error) {
		bool told = tcp->error_told;

		homa_pl_tcp_give_back(s, stream);
		/* What the program has heard already, by SO_ERROR, it does not hear again. */
		return error == EOPNOTSUPP ? -EAGAIN :
		       told		   ? -ECONNABORTED :
					     -error;
	}
	if (!homa_pl_tcp_is_open(stream)) {
		rc = await_open(s, stream, -EALREADY);
		return rc == -EOPNOTSUPP ? -EAGAIN : rc;
	}
	tcp->connecting = false;
	tcp->open = true;
	return 0;
}

/* Wait for homad's answer to a connection within this host, which comes at once. If homad does not
 * serve it, -EOPNOTSUPP is returned, and the kernel shall. */
static int await_answer(struct homa_pl_sock *s, struct homa_stream *stream)
{
	int rc;

	do
		rc = homa_pl_wait_for(s, HOMA_STREAM_OUT, INT64_MAX);
	while (rc == -EINTR);
	if (homa_stream_error(stream) != EOPNOTSUPP)
		return 0;
	homa_pl_tcp_give_back(s, stream);
	return -EOPNOTSUPP;
}

/* May this thread ask for a connection? Of several that do so at once only one may. */
static bool begin_connect(struct homa_pl_tcp *tcp)
{
	bool may;

	homa_pl_tcp_lock();
	may = !tcp->stream && !tcp->begins;
	if (may)
		__atomic_store_n(&tcp->begins, true, __ATOMIC_RELEASE);
	homa_pl_tcp_unlock();
	return may;
}

static void end_begin(struct homa_pl_tcp *tcp)
{
	homa_pl_tcp_lock();
	__atomic_store_n(&tcp->begins, false, __ATOMIC_RELEASE);
	homa_pl_tcp_unlock();
}

/* Ask homad for a connection. -EOPNOTSUPP: the kernel shall open it. A call that does not wait for
 * the connection hears that here, as nobody could hand the socket over later. */
static int ask_homad(struct homa_pl_sock *s, const struct sockaddr *local,
		     const struct sockaddr *addr, socklen_t len,
		     struct homa_stream **stream)
{
	/* Another thread may ask for the name while this one waits in connect(). */
	int rc = homa_stream_connect_with(homa_pl_streams(), &s->tcp->patience,
					  local, addr, len, true, stream);

	if (rc || local || !(s->status & O_NONBLOCK) ||
	    homa_pl_tcp_knows_way(addr))
		return rc;
	if (homa_stream_await_way(*stream) != -EOPNOTSUPP) {
		homa_pl_tcp_note_way(addr);
		return 0;
	}
	/* Who takes the news of it has the lock, too. */
	homa_pl_tcp_lock();
	homa_stream_abort(*stream);
	homa_pl_tcp_unlock();
	return -EOPNOTSUPP;
}

/* Connect by homad. @local: the address to connect from, if @addr is on this host; else NULL. */
static int connect_by_homad(struct homa_pl_sock *s, const struct sockaddr *local,
			    const struct sockaddr *addr, socklen_t len)
{
	struct homa_pl_tcp *tcp = s->tcp;
	struct homa_stream *stream;
	int rc;

	if (!begin_connect(tcp))
		return -EALREADY;
	rc = ask_homad(s, local, addr, len, &stream);
	if (rc) {
		end_begin(tcp);
		return rc;
	}
	homa_stream_set_user(stream, s);
	homa_stream_options(stream, tcp->options);
	homa_stream_limit_send(stream, tcp->send_most);
	homa_stream_limit_unsent(stream, tcp->unsent_most);
	tcp->connecting = true;
	tcp->last = stream;
	__atomic_store_n(&tcp->stream, stream, __ATOMIC_RELEASE);
	end_begin(tcp);
	homa_pl_tcp_moved(s);
	rc = local ? await_answer(s, stream) : 0;
	if (rc)
		return rc;
	homa_pl_debug("connect() goes through homad");
	return await_open(s, stream, -EINPROGRESS);
}

/* What the kernel says first of an address that cannot be one. */
static int check(const struct sockaddr *addr, socklen_t len)
{
	if (len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	if (len && !addr)
		return -EFAULT;
	return len < sizeof(addr->sa_family) ? -EINVAL : 0;
}

/* What connect() returns for a socket that is or was homad's, whose connection or listener @stream
 * is. If it is -EAGAIN, the socket is nobody's now and connects. */
static int not_first(struct homa_pl_sock *s, struct homa_stream *stream,
		     const struct sockaddr *addr, socklen_t len)
{
	int rc = check(addr, len);
	bool forgets = !rc && addr->sa_family == AF_UNSPEC;

	if (rc)
		return rc;
	if (s->tcp->listens && !s->tcp->stopped && !forgets)
		return -EISCONN;
	if (s->tcp->listens) {
		rc = homa_pl_tcp_unlisten(s);
		return rc || forgets ? rc : -EAGAIN;
	}
	if (!forgets)
		return connect_again(s, stream);
	homa_pl_tcp_give_back(s, stream);
	return 0;
}

int homa_pl_tcp_connect(struct homa_pl_sock *s, int fd,
			const struct sockaddr *addr, socklen_t len)
{
	struct homa_streams *ctx = homa_pl_streams();
	struct homa_stream *stream =
		__atomic_load_n(&s->tcp->stream, __ATOMIC_ACQUIRE);
	struct sockaddr_storage from = { 0 };
	int rc = stream ? not_first(s, stream, addr, len) : -EAGAIN, here;

	if (rc != -EAGAIN)
		return rc;
	if (ctx && addr && len >= sizeof(struct sockaddr_in) &&
	    addr->sa_family == s->family &&
	    homa_streams_takes(ctx, addr, len) > 0 &&
	    !homa_pl_tcp_connects_itself(s, fd, addr)) {
		here = homa_pl_tcp_is_this_host(addr, len, &from);
		rc = here < 0 ? -EOPNOTSUPP :
				connect_by_homad(s,
						 here ? (struct sockaddr *)&from :
							NULL,
						 addr, len);
		if (rc != -EOPNOTSUPP)
			return rc;
	}
	return homa_pl_kernel_connect(s, fd, addr, len);
}
