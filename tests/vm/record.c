// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Records what `homa ss` and `homa top` read, for tests/data/ops/kernel: for each
 * command of the netlink family a line "COMMAND HEX" per datagram, headers and all.
 *
 *	record socks rpcs peers devs
 */
#include <linux/genetlink.h>
#include "../../host/kernel/observe/homa_diag.h"
#include "guest.h"

static unsigned char buf[1 << 17] __attribute__((aligned(8)));

static void ask(int fd, uint16_t type, uint16_t flags, uint8_t command, int named)
{
	struct {
		struct nlmsghdr head;
		struct genlmsghdr genl;
		struct nlattr attr;
		char name[8];
	} r = { 0 };

	r.head.nlmsg_len = named ? sizeof(r) : NLMSG_LENGTH(GENL_HDRLEN);
	r.head.nlmsg_type = type;
	r.head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	r.genl.cmd = command;
	r.genl.version = HOMA_DIAG_VERSION;
	r.attr.nla_type = CTRL_ATTR_FAMILY_NAME;
	r.attr.nla_len = NLA_HDRLEN + sizeof(HOMA_DIAG_FAMILY);
	strcpy(r.name, HOMA_DIAG_FAMILY);
	CHECK(send(fd, &r, r.head.nlmsg_len, 0) > 0, "send");
}

static uint16_t family(int fd)
{
	ssize_t n, at = NLMSG_LENGTH(GENL_HDRLEN);

	ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, 1);
	n = recv(fd, buf, sizeof(buf), 0);
	while (at < n) {
		struct nlattr *attr = (struct nlattr *)(buf + at);

		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(attr + 1);
		at += NLA_ALIGN(attr->nla_len);
	}
	CHECK(0, "there is no family");
	return 0;
}

static void record(int fd, uint16_t type, const char *name)
{
	static const char *const names[] = { "socks", "rpcs", "peers", "devs" };
	uint8_t command = 0;
	ssize_t i, n;

	while (strcmp(names[command], name))
		CHECK(++command < 4, "no command %s", name);
	ask(fd, type, NLM_F_DUMP, command + HOMA_DIAG_SOCKS, 0);
	do {
		n = recv(fd, buf, sizeof(buf), 0);
		CHECK(n > 0, "recv");
		printf("%s ", name);
		for (i = 0; i < n; i++)
			printf("%02x", buf[i]);
		printf("\n");
		/* The end is in a datagram of its own. */
	} while (((struct nlmsghdr *)buf)->nlmsg_type != NLMSG_DONE);
}

int main(int argc, char **argv)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), i;
	uint16_t type;

	CHECK(fd >= 0, "no netlink");
	type = family(fd);
	for (i = 1; i < argc; i++)
		record(fd, type, argv[i]);
	return 0;
}
