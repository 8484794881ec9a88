// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The C library's syscall(). Programs call by number what other hooks stand before by name: libuv,
 * and so Node, closes its sockets so, which are no points of cancellation then. Such a call is the
 * hook's. A program that does it by an instruction of its own is not reached.
 *
 * Not here are calls whose argument or result is another one by number than by name: those of
 * signals, and those that write how much is left of the time (ppoll(), select()). Sockets that are
 * made by number are the kernel's.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "hook.h"
#include "tcp.h"

/* The arguments of the call: a number, a size and an address. */
#define NUM(i) ((int)arg[i])
#define SIZE(i) ((size_t)arg[i])
#define LEN(i) ((socklen_t)arg[i])
#define AT(i) ((void *)arg[i])

#define IS(name, call)                                                   \
	case SYS_##name:                                                 \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); \
		*rc = (call);                                            \
		pthread_setcancelstate(cancel, NULL);                    \
		return true

/* Do the call by its hook; false if there is none. */
static bool by_name(long number, const long arg[6], long *rc)
{
	int cancel, fd = NUM(0);

	switch (number) {
		IS(read, read(fd, AT(1), SIZE(2)));
		IS(write, write(fd, AT(1), SIZE(2)));
		IS(readv, readv(fd, AT(1), NUM(2)));
		IS(writev, writev(fd, AT(1), NUM(2)));
		IS(sendto, sendto(fd, AT(1), SIZE(2), NUM(3), AT(4), LEN(5)));
		IS(recvfrom, recvfrom(fd, AT(1), SIZE(2), NUM(3), AT(4), AT(5)));
		IS(sendmsg, sendmsg(fd, AT(1), NUM(2)));
		IS(recvmsg, recvmsg(fd, AT(1), NUM(2)));
		IS(sendmmsg, sendmmsg(fd, AT(1), (unsigned int)NUM(2), NUM(3)));
		IS(recvmmsg,
		   recvmmsg(fd, AT(1), (unsigned int)NUM(2), NUM(3), AT(4)));
		IS(sendfile, sendfile(fd, NUM(1), AT(2), SIZE(3)));
		IS(splice, splice(fd, AT(1), NUM(2), AT(3), SIZE(4),
				  (unsigned int)NUM(5)));
		IS(bind, bind(fd, AT(1), LEN(2)));
		IS(connect, connect(fd, AT(1), LEN(2)));
		IS(listen, listen(fd, NUM(1)));
		IS(accept, accept(fd, AT(1), AT(2)));
		IS(accept4, accept4(fd, AT(1), AT(2), NUM(3)));
		IS(shutdown, shutdown(fd, NUM(1)));
		IS(getsockname, getsockname(fd, AT(1), AT(2)));
		IS(getpeername, getpeername(fd, AT(1), AT(2)));
		IS(setsockopt, setsockopt(fd, NUM(1), NUM(2), AT(3), LEN(4)));
		IS(getsockopt, getsockopt(fd, NUM(1), NUM(2), AT(3), AT(4)));
		IS(close, close(fd));
		IS(close_range, close_range((unsigned int)NUM(0),
					    (unsigned int)NUM(1), NUM(2)));
		IS(dup, dup(fd));
#ifdef SYS_dup2
		IS(dup2, dup2(fd, NUM(1)));
#endif
		IS(dup3, dup3(fd, NUM(1), NUM(2)));
		IS(fcntl, fcntl(fd, NUM(1), AT(2)));
		IS(ioctl, ioctl(fd, (unsigned long)arg[1], AT(2)));
#ifdef SYS_poll
		IS(poll, poll(AT(0), (nfds_t)arg[1], NUM(2)));
#endif
		IS(epoll_ctl, epoll_ctl(fd, NUM(1), NUM(2), AT(3)));
#ifdef SYS_epoll_wait
		IS(epoll_wait, epoll_wait(fd, AT(1), NUM(2), NUM(3)));
#endif
		IS(epoll_pwait, epoll_pwait(fd, AT(1), NUM(2), NUM(3), AT(4)));
	}
	return false;
}

/* Whatever the call is, it has at most six arguments; what the caller has not given is not
 * looked at. */
HOMA_PL_HOOK long syscall(long number, ...)
{
	long arg[6], rc;
	va_list list;
	int i;

	if (number == SYS_io_uring_setup && homa_pl_uring_denied()) {
		errno = ENOSYS;
		return -1;
	}
	va_start(list, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	/* Without a socket of ours nothing is done: an allocator may make the call as it begins. */
	if (__atomic_load_n(&homa_pl_live, __ATOMIC_RELAXED) &&
	    by_name(number, arg, &rc))
		return rc;
	return HOMA_PL_REAL(syscall)(number, arg[0], arg[1], arg[2], arg[3],
				     arg[4], arg[5]);
}
