// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Settings, counters, netlink and namespaces at random; see fuzz_admin.h. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "fuzz_admin.h"

#define SETTINGS "/proc/sys/net/homa"

enum {
	KNOBS = 128,
	COMMANDS = 6 /* one more than there are, and 0 */
};

static struct knob {
	char path[300], value[256];
} knobs[KNOBS];
static uint32_t count;
static uint16_t family;

static ssize_t read_some(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, bytes, size);
	close(fd);
	return n;
}

struct question {
	struct nlmsghdr hdr;
	struct genlmsghdr genl;
	struct nlattr attr;
	char text[8];
};

/* Which number netlink has given to the family "homa"; 0: there is none. */
static uint16_t find_family(void)
{
	struct question q = {
		.hdr = { sizeof(q), GENL_ID_CTRL, NLM_F_REQUEST, 1, 0 },
		.genl = { CTRL_CMD_GETFAMILY, 1, 0 },
		.attr = { NLA_HDRLEN + 5, CTRL_ATTR_FAMILY_NAME },
		.text = "homa",
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	char bytes[4096];
	ssize_t n, at = NLMSG_HDRLEN + GENL_HDRLEN;
	uint16_t id = 0;

	if (fd < 0 || send(fd, &q, sizeof(q), 0) < 0)
		return 0;
	n = recv(fd, bytes, sizeof(bytes), 0);
	while (at + NLA_HDRLEN <= n) {
		struct nlattr *attr = (void *)(bytes + at);

		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			memcpy(&id, bytes + at + NLA_HDRLEN, sizeof(id));
		at += NLA_ALIGN(attr->nla_len) ?: n;
	}
	close(fd);
	return id;
}

void admin_begin(void)
{
	DIR *dir = opendir(SETTINGS);
	struct dirent *entry;

	family = find_family();
	while (dir && count < KNOBS && (entry = readdir(dir))) {
		struct knob *k = &knobs[count];
		ssize_t n;

		snprintf(k->path, sizeof(k->path), SETTINGS "/%s", entry->d_name);
		n = read_some(k->path, k->value, sizeof(k->value) - 1);
		count += n > 0;
	}
	if (dir)
		closedir(dir);
}

void admin_restore(void)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		write_file(knobs[i].path, knobs[i].value);
}

static void change(struct draws *d)
{
	static const uint64_t sore[] = { 0,	1,	    2,		100,
					 65535, 0x7fffffff, 0xffffffff, ~0ull };
	struct knob *k = &knobs[draw_below(d, count)];
	char text[256] = "";
	uint32_t i, n = draw_below(d, 4) ? 1 : 1 + draw_below(d, 9);

	if (!draw_below(d, 3)) {
		write_file(k->path, k->value);
		return;
	}
	for (i = 0; i < n; i++) {
		uint64_t value = draw_below(d, 3) ? sore[draw_below(d, 8)] :
						    draw(d) >> draw_below(d, 64);

		snprintf(text + strlen(text), 24, "%s%llu",
			 draw_below(d, 30) ? " " : "-",
			 (unsigned long long)value);
	}
	write_file(k->path, text);
}

static void ask(struct draws *d)
{
	struct question q = {
		.hdr = { sizeof(q), family,
			 (uint16_t)(draw_below(d, 6) ? NLM_F_REQUEST | NLM_F_DUMP :
						       draw(d)),
			 1, 0 },
		.genl = { (uint8_t)draw_below(d, COMMANDS), 1, 0 },
		.attr = { (uint16_t)(draw_below(d, 4) ? 12 : draw(d)),
			  (uint16_t)draw_below(d, 50) },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	char bytes[8192];
	uint32_t n = draw_below(d, 5);

	if (fd < 0)
		return;
	if (draw_below(d, 2))
		q.hdr.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN;
	send(fd, &q, q.hdr.nlmsg_len, MSG_DONTWAIT);
	while (n-- && recv(fd, bytes, 1 + draw_below(d, sizeof(bytes)),
			   MSG_DONTWAIT) > 0)
		;
	close(fd);
}

/* What is opened after this by the thread is elsewhere; with the last of it, elsewhere ends. */
static void move(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}

void admin_do(struct draws *d)
{
	char bytes[4096];
	uint32_t what = draw_below(d, 64);

	if (!what)
		move();
	else if (what < 24 && count)
		change(d);
	else if (what < 44 && family)
		ask(d);
	else
		read_some(what < 54 ? "/proc/net/homa_metrics" :
				      "/proc/net/protocols",
			  bytes, 1 + draw_below(d, sizeof(bytes)));
}
