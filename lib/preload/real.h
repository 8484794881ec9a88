/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The functions that hooks stand before, found once. HOMA_PL_REAL(close)(fd)
 * calls the C library's own (or that of the next preloaded library).
 */
#ifndef HOMA_PRELOAD_REAL_H
#define HOMA_PRELOAD_REAL_H

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

typedef unsigned long homa_pl_request_t;
/* These are liburing's, which a program may have. */
struct io_uring;
struct io_uring_params;

/* Each function has its return type, its name, and the types of its arguments. */
#define HOMA_PL_FUNCTIONS(X)                                                     \
	X(long, syscall, (long, ...))                                            \
	X(int, socket, (int, int, int))                                          \
	X(int, bind, (int, const struct sockaddr *, socklen_t))                  \
	X(int, connect, (int, const struct sockaddr *, socklen_t))               \
	X(int, listen, (int, int))                                               \
	X(int, accept, (int, struct sockaddr *, socklen_t *))                    \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int))              \
	X(int, shutdown, (int, int))                                             \
	X(int, getsockname, (int, struct sockaddr *, socklen_t *))               \
	X(int, getpeername, (int, struct sockaddr *, socklen_t *))               \
	X(int, setsockopt, (int, int, int, const void *, socklen_t))             \
	X(int, getsockopt, (int, int, int, void *, socklen_t *))                 \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                   \
	X(ssize_t, recvmsg, (int, struct msghdr *, int))                         \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int))             \
	X(int, recvmmsg,                                                         \
	  (int, struct mmsghdr *, unsigned int, int, struct timespec *))         \
	X(ssize_t, send, (int, const void *, size_t, int))                       \
	X(ssize_t, sendto,                                                       \
	  (int, const void *, size_t, int, const struct sockaddr *, socklen_t))  \
	X(ssize_t, recv, (int, void *, size_t, int))                             \
	X(ssize_t, recvfrom,                                                     \
	  (int, void *, size_t, int, struct sockaddr *, socklen_t *))            \
	X(ssize_t, read, (int, void *, size_t))                                  \
	X(ssize_t, write, (int, const void *, size_t))                           \
	X(ssize_t, readv, (int, const struct iovec *, int))                      \
	X(ssize_t, writev, (int, const struct iovec *, int))                     \
	X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))        \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))       \
	X(ssize_t, __read_chk, (int, void *, size_t, size_t))                    \
	X(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))               \
	X(ssize_t, __recvfrom_chk,                                               \
	  (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))    \
	X(ssize_t, sendfile, (int, int, off_t *, size_t))                        \
	X(ssize_t, sendfile64, (int, int, off64_t *, size_t))                    \
	X(ssize_t, splice,                                                       \
	  (int, off64_t *, int, off64_t *, size_t, unsigned int))                \
	X(int, ioctl, (int, homa_pl_request_t, ...))                             \
	X(int, fcntl, (int, int, ...))                                           \
	X(int, fcntl64, (int, int, ...))                                         \
	X(int, close, (int))                                                     \
	X(int, close_range, (unsigned int, unsigned int, int))                   \
	X(void, closefrom, (int))                                                \
	X(int, munmap, (void *, size_t))                                         \
	X(int, dup, (int))                                                       \
	X(int, dup2, (int, int))                                                 \
	X(int, dup3, (int, int, int))                                            \
	X(int, poll, (struct pollfd *, nfds_t, int))                             \
	X(int, ppoll,                                                            \
	  (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))  \
	X(int, __poll_chk, (struct pollfd *, nfds_t, int, size_t))               \
	X(int, __ppoll_chk,                                                      \
	  (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *,   \
	   size_t))                                                              \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))    \
	X(int, pselect,                                                          \
	  (int, fd_set *, fd_set *, fd_set *, const struct timespec *,           \
	   const sigset_t *))                                                    \
	X(int, execve, (const char *, char *const *, char *const *))             \
	X(int, execvpe, (const char *, char *const *, char *const *))            \
	X(int, fexecve, (int, char *const *, char *const *))                     \
	X(int, execveat, (int, const char *, char *const *, char *const *, int)) \
	X(int, posix_spawn,                                                      \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *,            \
	   const posix_spawnattr_t *, char *const *, char *const *))             \
	X(int, posix_spawnp,                                                     \
	  (pid_t *, const char *, const posix_spawn_file_actions_t *,            \
	   const posix_spawnattr_t *, char *const *, char *const *))             \
	X(int, system, (const char *))                                           \
	X(FILE *, popen, (const char *, const char *))                           \
	X(FILE *, fdopen, (int, const char *))                                   \
	X(int, vdprintf, (int, const char *, va_list))                           \
	X(int, __vdprintf_chk, (int, int, const char *, va_list))                \
	X(int, sigaction, (int, const struct sigaction *, struct sigaction *))   \
	X(int, io_uring_setup, (unsigned int, struct io_uring_params *))         \
	X(int, io_uring_queue_init,                                              \
	  (unsigned int, struct io_uring *, unsigned int))                       \
	X(int, io_uring_queue_init_params,                                       \
	  (unsigned int, struct io_uring *, struct io_uring_params *))           \
	X(int, io_uring_queue_init_mem,                                          \
	  (unsigned int, struct io_uring *, struct io_uring_params *, void *,    \
	   size_t))                                                              \
	X(int, epoll_create, (int))                                              \
	X(int, epoll_create1, (int))                                             \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))                 \
	X(int, epoll_wait, (int, struct epoll_event *, int, int))                \
	X(int, epoll_pwait,                                                      \
	  (int, struct epoll_event *, int, int, const sigset_t *))               \
	X(int, epoll_pwait2,                                                     \
	  (int, struct epoll_event *, int, const struct timespec *,              \
	   const sigset_t *))

/* struct homa_pl_real - the functions; NULL if the C library has none of that name */
struct homa_pl_real {
#define X(ret, name, args) ret(*name) args;
	HOMA_PL_FUNCTIONS(X)
#undef X
};

extern struct homa_pl_real homa_pl_real;

/**
 * homa_pl_resolve() - find one function, for a hook that runs before our constructor
 * @where: its field in homa_pl_real, which is set
 * @name: its name
 *
 * Only this one: an allocator that initialises itself may call the hook, and dlsym() calls the
 * allocator when it does not find a name, as it does not find liburing's in most programs.
 */
void homa_pl_resolve(void *where, const char *name);

#define HOMA_PL_REAL(name)                                                \
	(*({                                                              \
		if (__builtin_expect(!__atomic_load_n(&homa_pl_real.name, \
						      __ATOMIC_RELAXED),  \
				     0))                                  \
			homa_pl_resolve(&homa_pl_real.name, #name);       \
		homa_pl_real.name;                                        \
	}))

/* These are the fortified variants of functions, which no header declares. */
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
		       struct sockaddr *addr, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

int __vdprintf_chk(int fd, int flag, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
int __dprintf_chk(int fd, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* This marks a function that replaces one of the C library. */
#define HOMA_PL_HOOK __attribute__((visibility("default")))

#endif
