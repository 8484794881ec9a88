/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP sockets the way the transports want them; see tcp_setup.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tcp_setup.h"
#include "unix.h"

/* Time after which a blocking read returns, to notice signals and the run's end. */
#define BLOCK_US 50000
/* Number of descriptors for everything else than connections: results, /proc, epoll. */
#define OTHER_FDS 32

static int set_options(const struct bench_config *config, int fd)
{
	struct timeval timeout = { 0, BLOCK_US };
	int one = 1;

	if (!bench_is_unix(config) &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return -errno;
	if (config->wait == BENCH_WAIT_BLOCK &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		return -errno;
	return 0;
}

static int set_congestion(int fd, const char *name)
{
	if (!name)
		return 0;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
		       (socklen_t)strlen(name)))
		return -errno;
	return 0;
}

static void read_sysctl(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	text[0] = '\0';
	if (!file)
		return;
	if (!fgets(text, (int)size, file))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

int tcp_setup_check(const struct bench_config *config, char *err, size_t errlen)
{
	struct rlimit limit;
	char have[256];
	int fd, ret;

	/* A pool can need thousands of descriptors. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!config->congestion)
		return 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = set_congestion(fd, config->congestion);
	close(fd);
	if (ret) {
		read_sysctl("/proc/sys/net/ipv4/tcp_available_congestion_control",
			    have, sizeof(have));
		snprintf(err, errlen,
			 "--cc: congestion control '%s' cannot be used (%s); this kernel has: %s",
			 config->congestion, strerror(-ret), have);
	}
	return ret;
}

int tcp_setup_resolve(const struct bench_config *config, const char *what,
		      const char *text, struct sockaddr_storage *addr,
		      uint32_t *addrlen, char *err, size_t errlen)
{
	bool is_unix = bench_is_unix(config);
	int ret = is_unix ? bench_unix_resolve(text, addr, addrlen) :
			    bench_resolve(text, addr, addrlen);

	if (ret && is_unix)
		snprintf(err, errlen,
			 "%s '%s' is not @NAME, a name of up to 107 bytes for a UNIX socket",
			 what, text);
	else if (ret)
		snprintf(err, errlen,
			 "%s '%s' is not ADDRESS:PORT with a numeric address",
			 what, text);
	return ret;
}

static int socket_type(const struct bench_config *config)
{
	return bench_is_unix(config) ? bench_unix_type(config) : SOCK_STREAM;
}

int tcp_setup_listen(const struct bench_config *config, char *where,
		     size_t wherelen, char *err, size_t errlen)
{
	struct sockaddr_storage addr;
	uint32_t addrlen;
	int fd, ret, one = 1;

	ret = tcp_setup_resolve(config, "--bind", config->bind, &addr, &addrlen,
				err, errlen);
	if (ret)
		return ret;
	fd = socket(addr.ss_family, socket_type(config) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ret = set_options(config, fd);
	if (!ret)
		ret = set_congestion(fd, config->congestion);
	if (!ret && (bind(fd, (struct sockaddr *)&addr, addrlen) ||
		     listen(fd, 4096) || fcntl(fd, F_SETFL, O_NONBLOCK) < 0))
		ret = -errno;
	if (ret) {
		snprintf(err, errlen, "--bind %s: %s%s", config->bind,
			 strerror(-ret),
			 ret == -EADDRINUSE ?
				 "; another process serves there, choose another port or name" :
			 ret == -EADDRNOTAVAIL ?
				 "; this host has no such address, see 'ip address'" :
				 "");
		close(fd);
		return ret;
	}
	if (bench_is_unix(config)) {
		snprintf(where, wherelen, "%s", config->bind);
		return fd;
	}
	addrlen = sizeof(addr);
	getsockname(fd, (struct sockaddr *)&addr, &addrlen);
	bench_address_text(&addr, where, wherelen);
	return fd;
}

int tcp_setup_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void tcp_setup_limits(const struct bench_config *config, uint32_t *all,
		      uint32_t *peer)
{
	uint32_t peers = config->peer_count ? config->peer_count : 1;
	struct rlimit limit;
	rlim_t fds = UINT32_MAX;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < fds)
		fds = limit.rlim_cur;
	*all = fds > 2 * OTHER_FDS ? (uint32_t)fds - OTHER_FDS :
				     (uint32_t)fds / 2;
	*peer = (uint32_t)(fds / 2 / peers);
	if (!*peer)
		*peer = 1;
}

int tcp_setup_accept(int listen_fd, int *spare_fd, bool *refuse)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	int error = errno;

	/* Options and congestion control are inherited from the listener. */
	if (fd >= 0 && !*refuse)
		return fd;
	if (fd < 0 && (error == EMFILE || error == ENFILE) && *spare_fd >= 0) {
		/* A connection that is left in the queue would make us ready to accept for
		 * ever. */
		close(*spare_fd);
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		error = fd < 0 ? errno : EMFILE;
		if (fd >= 0)
			close(fd);
		*spare_fd = tcp_setup_spare();
		*refuse = fd >= 0;
		return -error;
	}
	*refuse = fd >= 0;
	if (fd < 0)
		return -error;
	close(fd);
	return -EMFILE;
}

/* Binds a client to the address that --bind names, if any. A socket that has an address and no port
 * stays the kernel's under homa-run --tcp. */
static int bind_local(const struct bench_config *config, int fd)
{
	struct sockaddr_storage addr;
	uint32_t addrlen;
	int one = 1;

	if (!config->bind || config->any_source || bench_is_unix(config))
		return 0;
	if (bench_resolve(config->bind, &addr, &addrlen))
		return -EINVAL;
	if (addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr)->sin6_port = 0;
	else
		((struct sockaddr_in *)&addr)->sin_port = 0;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&addr, addrlen) ? -errno : 0;
}

int tcp_setup_connect(const struct bench_config *config,
		      const struct sockaddr_storage *addr, uint32_t addrlen,
		      bool *connecting)
{
	int fd, ret;

	fd = socket(addr->ss_family,
		    socket_type(config) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	ret = set_options(config, fd);
	if (!ret)
		ret = set_congestion(fd, config->congestion);
	if (!ret)
		ret = bind_local(config, fd);
	if (!ret && connect(fd, (const struct sockaddr *)addr, addrlen))
		ret = -errno;
	*connecting = ret == -EINPROGRESS;
	if (!ret || *connecting) {
		/* From here on MSG_DONTWAIT decides whether a call waits, see
		 * tcp_conn.c. */
		fcntl(fd, F_SETFL, 0);
		return fd;
	}
	close(fd);
	return ret;
}

int tcp_setup_connected(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

void tcp_setup_report(const struct bench_config *config, cJSON *json)
{
	static const char *const settings[] = {
		"tcp_congestion_control",
		"tcp_slow_start_after_idle",
		"tcp_rmem",
		"tcp_wmem",
		"tcp_notsent_lowat",
		"tcp_autocorking",
	};
	char path[128], text[128];
	cJSON *sysctl = cJSON_AddObjectToObject(json, "sysctl");
	size_t i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s",
			 settings[i]);
		read_sysctl(path, text, sizeof(text));
		if (text[0])
			cJSON_AddStringToObject(sysctl, settings[i], text);
		if (i == 0)
			cJSON_AddStringToObject(json, "congestion_control",
						config->congestion ?
							config->congestion :
							text);
	}
}
