// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What programs do wrong with libhoma: each mistake gives the stated errno and
 * a sentence that names the mistake. Needs no privilege and no peer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api_common.h"

static struct homa *h;
static int failed;

static void expected(int rc, int code, const char *text, const char *words,
		     const char *what)
{
	const char *newline = strchr(text, '\n');

	if (rc == code && strstr(text, words) && strlen(text) > 15 && !newline)
		return;
	fprintf(stderr, "%s: %d instead of %d, \"%s\" should contain \"%s\"\n",
		what, rc, code, text, words);
	failed++;
}

/* The call first, then the sentence about it. */
#define expect(call, code, text, words, what)           \
	do {                                            \
		int rc_ = (call);                       \
		expected(rc_, code, text, words, what); \
	} while (0)

static void bad_open(struct homa_options options, int code, const char *words)
{
	struct homa *none = (struct homa *)&options;
	int rc = homa_open(&none, &options);

	expect(rc, code, homa_open_error(), words, "homa_open");
	API_CHECK(!none, "a handle in spite of the error");
}

static void opening(void)
{
	struct homa_options o = { 0 };

	expect(homa_open(NULL, NULL), -EINVAL, homa_open_error(), "handle",
	       "homa_open");
	o = (struct homa_options){ .via = "carrier-pigeon" };
	bad_open(o, -EINVAL, "'carrier-pigeon'");
	if (access("/proc/net/homa_metrics", F_OK)) {
		o = (struct homa_options){ .via = "kernel" };
		bad_open(o, -EOPNOTSUPP, "load its module");
	}
	setenv("HOMA_SERVICE_SOCKET", "/nonexistent/homad.sock", 1);
	o = (struct homa_options){ .via = "service" };
	bad_open(o, -ECONNREFUSED, "start homad");
	o = (struct homa_options){ .via = "afxdp" };
	bad_open(o, -EINVAL, "network device");
	o = (struct homa_options){ .via = "afxdp", .interface = "nosuch0" };
	bad_open(o, -ENODEV, "'nosuch0'");
	o = (struct homa_options){ .via = "udp", .address = "192.0.2.77" };
	bad_open(o, -EADDRNOTAVAIL, "192.0.2.77");
	o = (struct homa_options){ .via = "udp", .address = "not-an-address" };
	bad_open(o, -EINVAL, "not-an-address");
	o = (struct homa_options){ .via = "udp", .rcvbuf = 100000 };
	bad_open(o, -EINVAL, "65536");
	o = (struct homa_options){ .via = "udp", .rcvbuf = 65536 };
	bad_open(o, -EINVAL, "2097152");
	o = (struct homa_options){ .via = "udp", .spin_us = -2 };
	bad_open(o, -EINVAL, "spin_us");
	o = (struct homa_options){ .via = "udp", .flags = 0x80 };
	bad_open(o, -EINVAL, "0x80");
	o = (struct homa_options){ .via = "udp", .flags = HOMA_OPEN_SHARED_PORT };
	bad_open(o, -EOPNOTSUPP, "over homad only, not over \"udp\"");
	o = (struct homa_options){ .via = "kernel",
				   .flags = HOMA_OPEN_SHARED_PORT };
	bad_open(o, -EOPNOTSUPP, "over homad only, not over \"kernel\"");
	o = (struct homa_options){ .via = "udp", .config = "no_such_setting=1" };
	bad_open(o, -EINVAL, "no_such_setting");
	o = (struct homa_options){ .via = "udp", .config = "num_priorities=9" };
	bad_open(o, -EINVAL, "1 to 8");
	o = (struct homa_options){ .via = "udp", .config = "num_priorities=many" };
	bad_open(o, -EINVAL, "many");
	o = (struct homa_options){ .via = "udp", .config = "num_priorities" };
	bad_open(o, -EINVAL, "name=value");
	setenv("HOMA_LINK_MBPS", "fast", 1);
	o = (struct homa_options){ .via = "udp" };
	bad_open(o, -EINVAL, "HOMA_LINK_MBPS");
	unsetenv("HOMA_LINK_MBPS");
	setenv("HOMA_VIA", "smoke", 1);
	bad_open((struct homa_options){ .via = "auto" }, -EINVAL, "'smoke'");
	unsetenv("HOMA_VIA");
}

/* A program of another version: what it does not have is not looked at. */
static void versions(void)
{
	struct {
		struct homa_options known;
		char more[64];
	} newer = { .known = { .via = "udp", .address = "127.0.0.1" } };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t older = offsetof(struct homa_options, interface);
	struct homa_options first = { .size = older, .via = "udp" };
	char *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct homa *one;

	API_CHECK(homa_version() == HOMA_VERSION, "%x", homa_version());
	API_CHECK(mem != MAP_FAILED && !mprotect(mem + page, page, PROT_NONE),
		  "no memory");
	memcpy(mem + page - older, &first, older);
	API_CHECK(!homa_open(&one,
			     (struct homa_options *)(void *)(mem + page - older)),
		  "%s", homa_open_error());
	API_CHECK(!strcmp(homa_via(one), "udp"), "%s", homa_via(one));
	homa_close(one);
	munmap(mem, 2 * page);

	newer.known.size = sizeof(newer);
	API_CHECK(!homa_open(&one, &newer.known), "%s", homa_open_error());
	homa_close(one);
	newer.more[63] = 1;
	expect(homa_open(&one, &newer.known), -E2BIG, homa_open_error(),
	       "newer", "homa_open");
	newer.known.size = sizeof(newer.known);
	API_CHECK(!homa_open(&one, &newer.known), "%s", homa_open_error());
	homa_close(one);
	newer.known.size = 4;
	bad_open(newer.known, -EINVAL, "size");
	newer.known.size = (size_t)-1;
	bad_open(newer.known, -EINVAL, "size");
}

static void addresses(void)
{
	static const char *const good[] = {
		"10.1.2.3:4000",	 "10.1.2.3:4000/40001", "[fd00::1]:1",
		"[fd00::1]:32767/65535", "[::1]:4000",
	};
	static const char *const bad[] = {
		"",
		"10.1.2.3",
		"10.1.2:4000",
		"10.1.2.3:0",
		"10.1.2.3:65536",
		"10.1.2.3:40x",
		"10.1.2.3:4000/",
		"10.1.2.3:4000/0",
		"fd00::1:4000",
		"[fd00::1]",
		"[fd00::1]4000",
		"[fd00::g]:4000",
		"[fe80::1%nosuch0]:1",
		"host:4000",
		"10.1.2.3:-4",
		"10.1.2.3:4000/99999",
		"10.1.2.3: 40",
		"[::1]:4000/54321x",
	};
	struct sockaddr_storage a, b;
	char text[100];
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		API_CHECK(!homa_parse_address(good[i], &a), "%s", good[i]);
		b = a;
		API_CHECK(!strcmp(homa_format_address(&b, text, sizeof(text)),
				  good[i]),
			  "%s became %s", good[i], text);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect(homa_parse_address(bad[i], &a), -EINVAL,
		       homa_open_error(), bad[i], "homa_parse_address");
	/* The usual encapsulation port is not worth mentioning. */
	API_CHECK(!homa_parse_address("10.1.2.3:4000/54321", &a), "54321");
	API_CHECK(!strcmp(homa_format_address(&a, text, sizeof(text)),
			  "10.1.2.3:4000"),
		  "%s", text);
	/* A short buffer is filled as far as it goes, with an end. */
	homa_format_address(&a, text, 5);
	API_CHECK(!strcmp(text, "10.1"), "%s", text);
}

/* Memory of homa_alloc(), where the host copies. */
static void allocating(void)
{
	struct sockaddr_storage to;
	struct sockaddr *sa = (struct sockaddr *)&to;
	void *bufs[64], *buf;
	int n = 0;

	homa_parse_address("127.0.0.1:4000", &to);
	expect(homa_alloc(h, 0, &buf), -EINVAL, homa_error(h), "length",
	       "homa_alloc");
	expect(homa_alloc(h, 10, NULL), -EINVAL, homa_error(h), "no place",
	       "homa_alloc");
	expect(homa_alloc(h, HOMA_MAX_MESSAGE + 1, &buf), -EMSGSIZE,
	       homa_error(h), "1000001", "homa_alloc");
	expect(homa_free(h, NULL), -EINVAL, homa_error(h), "no memory",
	       "homa_free");
	while (n < 64 && !homa_alloc(h, HOMA_MAX_MESSAGE, &bufs[n]))
		n++;
	API_CHECK(n > 8 && n < 64, "%d buffers", n);
	expect(homa_alloc(h, HOMA_MAX_MESSAGE, &buf), -ENOBUFS, homa_error(h),
	       "memory to send from", "homa_alloc");
	memset(bufs[0], 1, HOMA_MAX_MESSAGE);
	expect(homa_request(h, sa, sizeof(to), bufs[0], 5, 0, HOMA_BORROW, NULL),
	       0, "                ", "", "request");
	expect(homa_request(h, sa, sizeof(to), bufs[0], 5, 0, 0, NULL), -EINVAL,
	       homa_error(h), "sent or freed", "request");
	expect(homa_free(h, bufs[0]), -EINVAL, homa_error(h), "sent or freed",
	       "homa_free");
	API_CHECK(!homa_abort(h, 0, 0), "%s", homa_error(h));
	while (--n)
		API_CHECK(!homa_free(h, bufs[n]), "%s", homa_error(h));
}

static void sending(void)
{
	static char big[HOMA_MAX_MESSAGE + 1];
	struct sockaddr_storage to;
	struct sockaddr *sa = (struct sockaddr *)&to;
	struct iovec twice[2] = { { big, 600000 }, { big, 600000 } };
	struct homa_message msg;

	homa_parse_address("127.0.0.1:4000", &to);
	expect(homa_request(NULL, sa, sizeof(to), "x", 1, 0, 0, NULL), -EINVAL,
	       homa_open_error(), "no handle", "request");
	expect(homa_request(h, sa, sizeof(to), "x", 0, 0, 0, NULL), -EINVAL,
	       homa_error(h), "at least 1 byte", "request");
	expect(homa_request(h, sa, sizeof(to), big, sizeof(big), 0, 0, NULL),
	       -EMSGSIZE, homa_error(h), "1000001", "request");
	expect(homa_requestv(h, sa, sizeof(to), twice, 2, 0, 0, NULL),
	       -EMSGSIZE, homa_error(h), "1200000", "request");
	expect(homa_request(h, sa, sizeof(to), NULL, 5, 0, 0, NULL), -EINVAL,
	       homa_error(h), "NULL", "request");
	expect(homa_request(h, sa, sizeof(to), "x", 1, 0, 0x70, NULL), -EINVAL,
	       homa_error(h), "0x70", "request");
	expect(homa_request(h, NULL, 0, "x", 1, 0, 0, NULL), -EINVAL,
	       homa_error(h), "destination", "request");
	expect(homa_request(h, sa, 4, "x", 1, 0, 0, NULL), -EINVAL,
	       homa_error(h), "cut off", "request");
	to.ss_family = AF_UNIX;
	expect(homa_request(h, sa, sizeof(to), "x", 1, 0, 0, NULL), -EINVAL,
	       homa_error(h), "AF_INET", "request");
	to.ss_family = AF_INET;
	((struct sockaddr_in *)&to)->sin_port = 0;
	expect(homa_request(h, sa, sizeof(to), "x", 1, 0, 0, NULL), -EINVAL,
	       homa_error(h), "port is 0", "request");
	expect(homa_call(h, sa, sizeof(to), "x", 1, NULL, 10), -EINVAL,
	       homa_error(h), "response", "call");

	memset(&msg, 0, sizeof(msg));
	expect(homa_reply(h, &msg, "x", 1), -EINVAL, homa_error(h),
	       "not a request", "reply");
	msg.kind = HOMA_REQUEST;
	expect(homa_reply(h, &msg, "x", 1), -EINVAL, homa_error(h),
	       "not a request", "reply");
	homa_release(h, &msg);
	homa_release(h, NULL);
	homa_release(NULL, &msg);
}

static void the_rest(void)
{
	struct homa_options udp = { .via = "udp", .address = "127.0.0.1" };
	struct homa_message msg;
	struct homa *other;

	expect(homa_bind(h, 0), -EINVAL, homa_error(h), "1 to 32767", "bind");
	expect(homa_bind(h, 40000), -EINVAL, homa_error(h), "1 to 32767", "bind");
	API_CHECK(!homa_bind(h, 123), "%s", homa_error(h));
	expect(homa_bind(h, 124), -EINVAL, homa_error(h), "bound", "bind");
	expect(homa_receive(h, NULL, 0, 0), -EINVAL, homa_error(h), "message",
	       "receive");
	expect(homa_receive(h, &msg, 0x100, 0), -EINVAL, homa_error(h), "0x100",
	       "receive");
	expect(homa_receive(h, &msg, 0, 10), -EAGAIN, homa_error(h), "nothing",
	       "receive");
	expect(homa_receive_id(h, &msg, 0, 10), -ENOENT, homa_error(h), "id",
	       "receive_id");
	expect(homa_receive_id(h, &msg, 12345678, 10), -ENOENT, homa_error(h),
	       "no such RPC", "receive_id");
	expect(homa_abort(h, 12345678, 5), -EINVAL, homa_error(h),
	       "no such RPC", "abort");
	expect(homa_abort(h, 12345678, -5), -EINVAL, homa_error(h), "-5",
	       "abort");
	expect(homa_getsockname(h, NULL), -EINVAL, homa_error(h), "address",
	       "getsockname");

	/* Errors belong to their handle and their thread. */
	API_CHECK(!homa_open(&other, &udp), "%s", homa_open_error());
	API_CHECK(!*homa_error(other), "%s", homa_error(other));
	API_CHECK(strstr(homa_error(h), "getsockname"), "%s", homa_error(h));
	homa_close(other);
	homa_close(NULL);
}

/* Open RPCs are limited; failed ones count until they are received. */
static void rejecting(void)
{
	struct homa_message msg = { .kind = HOMA_RESPONSE };

	expect(homa_reject(h, NULL, EIO), -EINVAL, homa_error(h),
	       "not a request", "reject");
	expect(homa_reject(h, &msg, EIO), -EINVAL, homa_error(h),
	       "not a request", "reject");
	expect(homa_discard(h, &msg), -EINVAL, homa_error(h), "not a request",
	       "discard");
	expect(homa_alive(h, &msg), -EINVAL, homa_error(h), "not a request",
	       "alive");
	expect(homa_alive(NULL, &msg), -EINVAL, homa_open_error(), "no handle",
	       "alive");
	/* One of another handle is none of this. */
	msg.kind = HOMA_REQUEST;
	expect(homa_reject(h, &msg, EIO), -EINVAL, homa_error(h),
	       "not a request", "reject");
}

static void too_many(void)
{
	struct homa_options o = { .via = "udp",
				  .address = "127.0.0.1",
				  .config = "max_rpcs=16" };
	struct sockaddr_storage to;
	struct homa_message msg;
	struct homa *few;
	int i, rc = 0;

	API_CHECK(!homa_open(&few, &o), "%s", homa_open_error());
	homa_parse_address("127.0.0.1:4000/9", &to);
	for (i = 0; i < 100 && !rc; i++)
		rc = homa_request(few, (struct sockaddr *)&to, sizeof(to), "x",
				  1, 0, 0, NULL);
	API_CHECK(i == 17, "%d RPCs with max_rpcs=16", i - 1);
	expect(rc, -ENOBUFS, homa_error(few), "too many RPCs", "request");
	API_CHECK(!homa_receive(few, &msg, 0, 10000), "%s", homa_error(few));
	API_CHECK(msg.kind == HOMA_ERROR, "kind %d", msg.kind);
	API_CHECK(!homa_request(few, (struct sockaddr *)&to, sizeof(to), "x", 1,
				0, 0, NULL),
		  "%s", homa_error(few));
	homa_close(few);
}

/* Addresses that the handle cannot send to. */
static void wrong_family(void)
{
	struct sockaddr_storage to;

	homa_parse_address("[::1]:4000", &to);
	expect(homa_request(h, (struct sockaddr *)&to, sizeof(to), "x", 1, 0, 0,
			    NULL),
	       -EAFNOSUPPORT, homa_error(h), "AF_INET", "request");
}

/* An encapsulation port that is asked for and taken is an error. */
static void port_taken(void)
{
	struct homa_options o = { .via = "udp", .address = "127.0.0.1" };
	char port[16];
	struct homa *other;

	o.udp_port = homa_udp_port(h);
	API_CHECK(o.udp_port, "no port");
	snprintf(port, sizeof(port), "%u", o.udp_port);
	expect(homa_open(&other, &o), -EADDRINUSE, homa_open_error(), port,
	       "open");
}

int main(void)
{
	struct homa_options udp = { .via = "udp", .address = "127.0.0.1" };

	unsetenv("HOMA_VIA");
	unsetenv("HOMA_INTERFACE");
	unsetenv("HOMA_ADDRESS");
	opening();
	versions();
	addresses();
	API_CHECK(!homa_open(&h, &udp), "%s", homa_open_error());
	sending();
	allocating();
	the_rest();
	rejecting();
	port_taken();
	wrong_family();
	too_many();
	homa_close(h);
	if (!failed)
		printf("ok\n");
	return failed ? 1 : 0;
}
