// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Looking into the module from a guest, where there is no Python:
 *
 *	look dump socks|rpcs|peers|devs	one line per object: its kind, then name=value
 *	look pending 4|6 IP PORT LENGTH COUNT
 *					requests that wait at a server; "ready ID" of the
 *					first, and stays until it is killed
 *	look raw IP HEX			a packet of protocol 146 with these bytes
 *	look write FILE TEXT		"taken", or why not
 *	look weak COMMAND...		without CAP_NET_ADMIN
 *	look as UID COMMAND...		as another user
 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "../../host/kernel/observe/homa_diag.h"
#include "guest.h"

/* As people (and the tests) read them; the number of bytes tells the type. */
static const char *const names[HOMA_DIAG_A_COUNT] = {
	[HOMA_DIAG_A_INODE] = "inode",
	[HOMA_DIAG_A_UID] = "uid",
	[HOMA_DIAG_A_FAMILY] = "family",
	[HOMA_DIAG_A_PORT] = "port",
	[HOMA_DIAG_A_SERVER] = "server",
	[HOMA_DIAG_A_SHUTDOWN] = "shutdown",
	[HOMA_DIAG_A_ENCAP] = "encap",
	[HOMA_DIAG_A_TX_BYTES] = "tx_bytes",
	[HOMA_DIAG_A_REGION_BYTES] = "region_bytes",
	[HOMA_DIAG_A_PARTIAL_BYTES] = "partial_bytes",
	[HOMA_DIAG_A_STARVED] = "starved",
	[HOMA_DIAG_A_MESSAGES] = "messages",
	[HOMA_DIAG_A_ID] = "id",
	[HOMA_DIAG_A_COOKIE] = "cookie",
	[HOMA_DIAG_A_CLIENT] = "client",
	[HOMA_DIAG_A_PHASE] = "phase",
	[HOMA_DIAG_A_PROBES] = "probes",
	[HOMA_DIAG_A_ERROR] = "error",
	[HOMA_DIAG_A_PEER] = "peer",
	[HOMA_DIAG_A_PEER_PORT] = "peer_port",
	[HOMA_DIAG_A_IFINDEX] = "ifindex",
	[HOMA_DIAG_A_AGE_NS] = "age_ns",
	[HOMA_DIAG_A_SILENT_NS] = "silent_ns",
	[HOMA_DIAG_A_TX_LENGTH] = "tx_length",
	[HOMA_DIAG_A_TX_SENT] = "tx_sent",
	[HOMA_DIAG_A_TX_GRANTED] = "tx_granted",
	[HOMA_DIAG_A_RX_LENGTH] = "rx_length",
	[HOMA_DIAG_A_RX_RECEIVED] = "rx_received",
	[HOMA_DIAG_A_RX_GRANTED] = "rx_granted",
	[HOMA_DIAG_A_NUM_RPCS] = "num_rpcs",
	[HOMA_DIAG_A_SERVER_RPCS] = "server_rpcs",
	[HOMA_DIAG_A_IDLE_MS] = "idle_ms",
	[HOMA_DIAG_A_SEG_SIZE] = "seg_size",
	[HOMA_DIAG_A_CUTOFF_VERSION] = "cutoff_version",
	[HOMA_DIAG_A_CUTOFFS] = "cutoffs",
	[HOMA_DIAG_A_ACKS_OWED] = "acks_owed",
	[HOMA_DIAG_A_IFNAME] = "ifname",
	[HOMA_DIAG_A_MTU] = "mtu",
	[HOMA_DIAG_A_RTT_BYTES] = "rtt_bytes",
	[HOMA_DIAG_A_MAX_INCOMING] = "max_incoming",
	[HOMA_DIAG_A_RESEND_US] = "resend_us",
	[HOMA_DIAG_A_TIMEOUT_US] = "timeout_us",
	[HOMA_DIAG_A_RTT_US] = "rtt_us",
	[HOMA_DIAG_A_SENDING] = "sending",
	[HOMA_DIAG_A_GRANTING] = "granting",
	[HOMA_DIAG_A_WAITING] = "waiting",
	[HOMA_DIAG_A_WITHHELD] = "withheld",
	[HOMA_DIAG_A_BACKLOG_NS] = "backlog_ns",
	[HOMA_DIAG_A_LINK] = "link",
	[HOMA_DIAG_A_PRIVATE] = "private",
	[HOMA_DIAG_A_RX_GAPS] = "rx_gaps",
	[HOMA_DIAG_A_RX_GAP_BYTES] = "rx_gap_bytes",
	[HOMA_DIAG_A_AVAIL_BYTES] = "avail_bytes",
};

/* ---- netlink ---- */

struct request {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	struct nlattr attr;
	char name[8];
};

static int netlink_open(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

	CHECK(fd >= 0, "no netlink socket");
	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)), "netlink");
	return fd;
}

static void ask(int fd, int type, int flags, int command, const char *name)
{
	struct request r = {
		.head = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			  .nlmsg_type = (uint16_t)type,
			  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			  .nlmsg_seq = 1 },
		.genl = { .cmd = (uint8_t)command, .version = HOMA_DIAG_VERSION }
	};

	if (name) {
		r.attr.nla_type = CTRL_ATTR_FAMILY_NAME;
		r.attr.nla_len = (uint16_t)(NLA_HDRLEN + strlen(name) + 1);
		snprintf(r.name, sizeof(r.name), "%s", name);
		r.head.nlmsg_len += NLMSG_ALIGN(r.attr.nla_len);
	}
	CHECK(send(fd, &r, r.head.nlmsg_len, 0) == (ssize_t)r.head.nlmsg_len,
	      "netlink");
}

typedef void each_fn(const struct nlattr *attr, void *arg);

static void each_attr(const struct nlmsghdr *m, each_fn *fn, void *arg)
{
	const char *at = (const char *)m + NLMSG_LENGTH(GENL_HDRLEN);
	const char *end = (const char *)m + m->nlmsg_len;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)at;

		CHECK(attr->nla_len >= NLA_HDRLEN && attr->nla_len <= end - at,
		      "attribute");
		fn(attr, arg);
		at += NLA_ALIGN(attr->nla_len);
	}
}

static void family_id(const struct nlattr *attr, void *arg)
{
	if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
		memcpy(arg, attr + 1, 2);
}

static uint16_t find_family(int fd)
{
	static char buf[8192] __attribute__((aligned(8)));
	struct nlmsghdr *m = (struct nlmsghdr *)buf;
	uint16_t id = 0;

	ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, HOMA_DIAG_FAMILY);
	CHECK(recv(fd, buf, sizeof(buf), 0) >= (ssize_t)NLMSG_LENGTH(GENL_HDRLEN),
	      "netlink");
	CHECK(m->nlmsg_type != NLMSG_ERROR, "there is no family %s",
	      HOMA_DIAG_FAMILY);
	each_attr(m, family_id, &id);
	return id;
}

static void show_bytes(const struct nlattr *attr, const void *data, int size)
{
	char text[INET6_ADDRSTRLEN];
	uint64_t value = 0;
	int i;

	if (attr->nla_type == HOMA_DIAG_A_IFNAME) {
		printf("%s", (const char *)data);
	} else if (size == 16) {
		printf("%s", inet_ntop(AF_INET6, data, text, sizeof(text)));
	} else if (size == 32) {
		for (i = 0; i < 8; i++)
			printf("%s%u", i ? "," : "", ((const uint32_t *)data)[i]);
	} else {
		CHECK(size == 1 || size == 2 || size == 4 || size == 8,
		      "%d bytes", size);
		memcpy(&value, data, (size_t)size);
		printf("%llu", (unsigned long long)value);
	}
}

static void show_attr(const struct nlattr *attr, void *arg)
{
	(void)arg;
	if (attr->nla_type == HOMA_DIAG_A_PAD)
		return;
	CHECK(attr->nla_type < HOMA_DIAG_A_COUNT && names[attr->nla_type],
	      "attribute %u", attr->nla_type);
	printf(" %s=", names[attr->nla_type]);
	show_bytes(attr, attr + 1, attr->nla_len - NLA_HDRLEN);
}

static void dump(const char *what)
{
	static const char *const commands[] = { "socks", "rpcs", "peers", "devs" };
	static char buf[65536] __attribute__((aligned(8)));
	int fd = netlink_open(), command = 0;

	while (strcmp(commands[command], what))
		CHECK(++command < 4, "%s?", what);
	ask(fd, find_family(fd), NLM_F_DUMP, command + HOMA_DIAG_SOCKS, NULL);
	for (;;) {
		ssize_t left = recv(fd, buf, sizeof(buf), 0);
		struct nlmsghdr *m = (struct nlmsghdr *)buf;

		CHECK(left > 0, "netlink");
		for (; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return;
			if (m->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(m))->error;
				CHECK(0, "dump of %s", what);
			}
			printf("%s", what);
			each_attr(m, show_attr, NULL);
			printf("\n");
		}
	}
}

/* ---- something to look at ---- */

static void pending(int family, const char *ip, int port, size_t length, int count)
{
	static unsigned char bytes[HOMA_MAX_MESSAGE_LENGTH];
	struct sock client = open_sock(family, 0), server = open_sock(family, 0);
	union address to = address(family, ip, port);
	uint64_t id;

	bind_sock(&server, port);
	fill(bytes, length, 1);
	id = request(&client, &to, bytes, length, 77, 0);
	while (--count > 0)
		request(&client, &to, bytes, length, 77, 0);
	CHECK(readable(server.fd, 60000), "the request does not arrive");
	printf("ready %llu\n", (unsigned long long)id);
	fflush(stdout);
	pause();
}

static void raw(const char *ip, const char *hex)
{
	union address to = address(AF_INET, ip, 0);
	unsigned char bytes[256];
	size_t n;
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_HOMA);

	CHECK(fd >= 0, "no raw socket");
	for (n = 0; hex[2 * n] && n < sizeof(bytes); n++)
		CHECK(sscanf(hex + 2 * n, "%2hhx", &bytes[n]) == 1, "hex");
	CHECK(sendto(fd, bytes, n, 0, &to.sa, sizeof(to.in4)) == (ssize_t)n,
	      "send");
}

/* A shell's echo has one word for all errors. */
static void put(const char *path, const char *what)
{
	int rc = write_file(path, what);

	printf("%s\n", rc ? strerror(-rc) : "taken");
}

/* ---- others' eyes ---- */

static void run(char **command)
{
	execvp(*command, command);
	CHECK(0, "%s", *command);
}

static void weak(char **command)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];

	/* What a program of root's may have at most; it gets all of that. */
	CHECK(!prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN), "capabilities");
	CHECK(!syscall(SYS_capget, &head, data), "capabilities");
	data[0].inheritable &= ~(1u << CAP_NET_ADMIN);
	CHECK(!syscall(SYS_capset, &head, data), "capabilities");
	run(command);
}

static void as_user(unsigned int uid, char **command)
{
	CHECK(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid), "user %u",
	      uid);
	run(command);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 3, "arguments");
	if (!strcmp(argv[1], "dump"))
		dump(argv[2]);
	else if (!strcmp(argv[1], "pending") && argc == 7)
		pending(*argv[2] == '4' ? AF_INET : AF_INET6, argv[3],
			atoi(argv[4]), (size_t)atol(argv[5]), atoi(argv[6]));
	else if (!strcmp(argv[1], "raw") && argc == 4)
		raw(argv[2], argv[3]);
	else if (!strcmp(argv[1], "write") && argc == 4)
		put(argv[2], argv[3]);
	else if (!strcmp(argv[1], "weak"))
		weak(argv + 2);
	else if (!strcmp(argv[1], "as") && argc > 3)
		as_user((unsigned int)atoi(argv[2]), argv + 3);
	else
		CHECK(0, "arguments");
	return 0;
}
