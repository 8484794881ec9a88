// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Sockets that are bound to addresses and devices: who gets what, and who may be where. */
#include <net/if.h>
#include <sys/ioctl.h>
#include "life.h"

#define OTHER4 "127.0.0.2"
#define OTHER6 "fd77::2"
#define THIRD4 "127.0.0.3"
#define THIRD6 "fd77::3"
#define FOREIGN4 "192.0.2.77"
#define FOREIGN6 "2001:db8::77"

static const char *of(const char *v4, const char *v6)
{
	return family == AF_INET ? v4 : v6;
}

/* Runs a command of the guest. */
static void must(const char *command)
{
	int status = system(command);

	CHECK(!status, "%s: %x", command, status);
}

static void may(const char *command)
{
	int status = system(command);

	(void)status;
}

/* The machine has these addresses, besides its own (of 127.0.0.0/8 all are its own). */
static void more_addresses(void)
{
	may("ip link set lo up; ip addr add fd77::2/128 dev lo nodad 2>/dev/null");
	may("ip addr add fd77::3/128 dev lo nodad 2>/dev/null");
}

/* A pair of devices that nothing else uses. */
static void more_devices(void)
{
	may("ip link del homav0 2>/dev/null");
	must("ip link add homav0 type veth peer name homav1");
	must("ip link set homav0 up && ip link set homav1 up");
}

/* Binds to @at and @port (0: the one that it has); 0 or the errno. */
static int bind_at(const struct sock *s, const char *at, int port)
{
	union address a = address(s->family, at, port);

	return bind(s->fd, &a.sa, size_of(s->family)) ? errno : 0;
}

static void must_bind_at(const struct sock *s, const char *at, int port)
{
	int err = bind_at(s, at, port);

	CHECK(!err, "%s port %d: %s", at, port, strerror(err));
}

static struct sock bound(const char *at, int port)
{
	struct sock s = open_sock(family, 0);

	must_bind_at(&s, at, port);
	return s;
}

/* What a new socket hears that binds to @at; @reuse is its SO_REUSEADDR, -1: as it was made. */
static void refused_at(const char *at, int port, int reuse, int want)
{
	struct sock s = open_bare(family, 0);
	int err;

	CHECK(reuse < 0 || !setsockopt(s.fd, SOL_SOCKET, SO_REUSEADDR, &reuse,
				       sizeof(reuse)),
	      "SO_REUSEADDR");
	err = bind_at(&s, at, port);
	CHECK(err == want, "%s: %s, not %s", at ? at : "any", strerror(err),
	      strerror(want));
	close_sock(&s);
}

static void set_int(const struct sock *s, int level, int name, int value)
{
	CHECK(!setsockopt(s->fd, level, name, &value, sizeof(value)),
	      "option %d of %d", name, level);
}

static void on_device(const struct sock *s, const char *name)
{
	CHECK(!setsockopt(s->fd, SOL_SOCKET, SO_BINDTODEVICE, name,
			  (socklen_t)strlen(name)),
	      "SO_BINDTODEVICE %s", name);
}

static bool same_ip(const union address *a, const union address *b)
{
	return a->sa.sa_family == AF_INET ?
		       a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr :
		       !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16);
}

static void has_name(const struct sock *s, const char *at, int port)
{
	union address name, want = address(family, at, port);
	socklen_t len = sizeof(name);

	CHECK(!getsockname(s->fd, &name.sa, &len) && len == size_of(family),
	      "getsockname");
	CHECK(same_ip(&name, &want) &&
		      (!port || name.in4.sin_port == want.in4.sin_port),
	      "another name than %s", at ? at : "any");
}

/* A request of @s to @at and @port reaches @t, from @from (NULL: no matter), and is answered. */
static void reaches(struct sock *s, struct sock *t, const char *at, int port,
		    const char *from)
{
	union address to = address(family, at, port),
		      src = address(family, from, 0);
	struct homa_sendmsg_args args = { 0 };
	uint64_t id = request(s, &to, "x", 1, 0, 0);

	CHECK(readable(t->fd, 60000), "%s: nothing came", at);
	CHECK(receive(t, 0, MSG_DONTWAIT) == 1, "%s: no request", at);
	CHECK(!from || same_ip(&t->from, &src), "%s: it is not from %s", at,
	      from);
	args.id = t->args.id;
	CHECK(!send_raw(t->fd, &t->from, t->from_size, "yes", 3, &args, 0),
	      "response");
	CHECK(receive(s, 0, 0) == 3 && s->args.id == id, "response");
	CHECK(same_ip(&s->from, &to), "the response is not from %s", at);
}

/* A request to @at and @port is nobody's. */
static void reaches_nobody(struct sock *s, const char *at, int port)
{
	union address to = address(family, at, port);

	request(s, &to, "x", 1, 0, 0);
	FAILS(receive(s, 0, 0), ENOTCONN);
	s->args.num_bpages = 0;
}

/* Several sockets have a port, each at its address; packets leave from there. */
void life_addresses(void)
{
	const char *other = of(OTHER4, OTHER6), *third = of(THIRD4, THIRD6);
	struct sock s = open_sock(family, 0), a, b, c;

	more_addresses();
	a = bound(ip, 4030);
	b = bound(other, 4030);
	has_name(&a, ip, 4030);
	has_name(&b, other, 4030);
	has_name(&s, NULL, 0);
	reaches(&s, &a, ip, 4030, NULL);
	reaches(&s, &b, other, 4030, NULL);
	reaches_nobody(&s, third, 4030);
	/* A client keeps its port, and its requests leave from its address. */
	c = bound(third, 0);
	has_name(&c, third, 0);
	reaches(&c, &a, ip, 4030, third);
	reaches(&c, &b, other, 4030, third);
	reaches(&a, &b, other, 4030, ip);
	close_sock(&a);
	reaches_nobody(&s, ip, 4030);
	reaches(&s, &b, other, 4030, NULL);
	/* It may move to another address, and to any. */
	must_bind_at(&b, ip, 4030);
	reaches_nobody(&s, other, 4030);
	reaches(&s, &b, ip, 4030, NULL);
	must_bind_at(&b, NULL, 4030);
	has_name(&b, NULL, 4030);
	reaches(&s, &b, other, 4030, NULL);
	reaches(&s, &b, ip, 4030, NULL);
	close_sock(&b);
	close_sock(&c);
	close_sock(&s);
}

/* Who may be at a port beside whom. */
void life_address_rules(void)
{
	const char *other = of(OTHER4, OTHER6), *third = of(THIRD4, THIRD6);
	struct sock s = open_sock(family, 0), a, any;

	more_addresses();
	a = open_sock(family, 0);
	set_int(&a, SOL_SOCKET, SO_REUSEADDR, 1);
	must_bind_at(&a, ip, 4031);
	refused_at(ip, 4031, 0, EADDRINUSE);
	refused_at(ip, 4031, 1, EADDRINUSE);
	refused_at(NULL, 4031, 0, EADDRINUSE);
	refused_at(NULL, 4031, -1, EADDRINUSE);
	refused_at(other, 4031, 0, 0);
	any = open_sock(family, 0);
	set_int(&any, SOL_SOCKET, SO_REUSEADDR, 1);
	must_bind_at(&any, NULL, 4031);
	refused_at(other, 4031, 0, EADDRINUSE);
	refused_at(other, 4031, 1, 0);
	/* Whose name says more gets it. */
	reaches(&s, &a, ip, 4031, NULL);
	reaches(&s, &any, other, 4031, NULL);
	reaches(&s, &any, third, 4031, NULL);
	close_sock(&a);
	reaches(&s, &any, ip, 4031, NULL);
	close_sock(&any);
	close_sock(&s);
}

/* Addresses that this machine does not have. */
void life_address_foreign(void)
{
	const char *foreign = of(FOREIGN4, FOREIGN6);
	const char *setting = of("/proc/sys/net/ipv4/ip_nonlocal_bind",
				 "/proc/sys/net/ipv6/ip_nonlocal_bind");
	const char *add = of("ip addr add 192.0.2.77/32 dev lo",
			     "ip addr add 2001:db8::77/128 dev lo nodad");
	const char *del = of("ip addr del 192.0.2.77/32 dev lo",
			     "ip addr del 2001:db8::77/128 dev lo");
	int level = family == AF_INET ? SOL_IP : SOL_IPV6;
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address to = address(family, ip, 4033);
	struct homa_sendmsg_args args = { 0 };
	socklen_t len = sizeof(int);
	int value = 0;

	refused_at(foreign, 4032, 0, EADDRNOTAVAIL);
	refused_at(of("224.0.0.1", "ff02::1"), 4032, 0, EADDRNOTAVAIL);
	CHECK(!write_file(setting, "1"), "setting");
	refused_at(foreign, 4032, 0, 0);
	CHECK(!write_file(setting, "0"), "setting");
	CHECK(bind_at(&s, foreign, 4032) == EADDRNOTAVAIL, "it is foreign");
	/* IP_FREEBIND and IPV6_FREEBIND */
	set_int(&s, level, family == AF_INET ? 15 : 78, 1);
	CHECK(!getsockopt(s.fd, level, family == AF_INET ? 15 : 78, &value, &len) &&
		      value == 1,
	      "the option");
	must_bind_at(&s, foreign, 4032);
	has_name(&s, foreign, 4032);
	/* Nothing leaves from there until the address is ours. */
	must_bind_at(&t, ip, 4033);
	FAILS(send_raw(s.fd, &to, size_of(family), "x", 1, &args, 0),
	      EADDRNOTAVAIL);
	must(add);
	reaches(&s, &t, ip, 4033, foreign);
	reaches(&t, &s, foreign, 4032, ip);
	must(del);
	FAILS(send_raw(s.fd, &to, size_of(family), "x", 1, &args, 0),
	      EADDRNOTAVAIL);
	close_sock(&s);
	close_sock(&t);
}

/* IPv6's own: both families at a port, mapped and link-local addresses. */
void life_address_v6(void)
{
	struct sock s = open_sock(AF_INET6, 0), four = open_sock(AF_INET, 0), a,
		    b, c;
	union address mapped = address(AF_INET6, "127.0.0.1", 4034), local;
	struct homa_sendmsg_args args = { 0 };
	int on = 1;

	if (family == AF_INET)
		skip("it is for IPv6");
	/* A port for IPv4 and the same one for IPv6 only. */
	a = open_sock(AF_INET, 0);
	must_bind_at(&a, NULL, 4034);
	refused_at(NULL, 4034, 0, EADDRINUSE);
	b = open_sock(AF_INET6, 0);
	set_int(&b, SOL_IPV6, IPV6_V6ONLY, 1);
	must_bind_at(&b, NULL, 4034);
	reaches(&s, &b, ip, 4034, NULL);
	family = AF_INET;
	reaches(&four, &a, "127.0.0.1", 4034, "127.0.0.1");
	family = AF_INET6;
	close_sock(&a);
	FAILS(bind(b.fd, &mapped.sa, sizeof(mapped.in6)), EINVAL);
	/* A mapped address is IPv4's, and an IPv6 address is not for IPv4 peers. */
	c = bound("127.0.0.1", 4034);
	has_name(&c, "127.0.0.1", 4034);
	reaches(&s, &c, "127.0.0.1", 4034, NULL);
	reaches_nobody(&s, "127.0.0.2", 4034);
	mapped = address(AF_INET6, ip, 4034);
	FAILS(send_raw(c.fd, &mapped, sizeof(mapped.in6), "x", 1, &args, 0),
	      EAFNOSUPPORT);
	close_sock(&c);
	close_sock(&b);
	b = bound(ip, 4034);
	mapped = address(AF_INET6, "127.0.0.1", 4034);
	FAILS(send_raw(b.fd, &mapped, sizeof(mapped.in6), "x", 1, &args, 0),
	      ENETUNREACH);
	FAILS(setsockopt(b.fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof(on)), EINVAL);
	must_bind_at(&b, NULL, 4034);
	family = AF_INET;
	c = b;
	c.family = AF_INET6;
	family = AF_INET6;
	reaches(&s, &c, "127.0.0.1", 4034, "127.0.0.1");
	close_sock(&b);
	/* Link-local ones need their device. */
	must("ip addr add fe80::77/64 dev lo nodad");
	local = address(AF_INET6, "fe80::77", 4034);
	b = open_sock(AF_INET6, 0);
	FAILS(bind(b.fd, &local.sa, sizeof(local.in6)), EINVAL);
	local.in6.sin6_scope_id = 9999;
	FAILS(bind(b.fd, &local.sa, sizeof(local.in6)), ENODEV);
	local.in6.sin6_scope_id = if_nametoindex("lo");
	CHECK(!bind(b.fd, &local.sa, sizeof(local.in6)), "link-local");
	has_name(&b, "fe80::77", 4034);
	request(&s, &local, "x", 1, 0, 0);
	CHECK(receive(&b, 0, 0) == 1, "link-local");
	must("ip addr del fe80::77/64 dev lo");
	close_sock(&b);
	close_sock(&four);
	close_sock(&s);
}

/* A port has room for 64 of them. */
void life_address_many(void)
{
	enum { N = 64 };
	static struct sock at[N];
	struct sock s = open_sock(AF_INET, 0);
	char name[32];
	int i;

	if (family == AF_INET6)
		skip("one family is enough");
	for (i = 0; i < N; i++) {
		at[i] = open_bare(family, 0);
		snprintf(name, sizeof(name), "127.1.0.%d", i + 1);
		must_bind_at(&at[i], name, 4035);
	}
	refused_at("127.2.0.1", 4035, 0, ENOBUFS);
	give_region(&at[40], REGION);
	reaches(&s, &at[40], "127.1.0.41", 4035, NULL);
	for (i = 0; i < N; i++)
		close_sock(&at[i]);
	refused_at("127.2.0.1", 4035, 0, 0);
	close_sock(&s);
}

/* A socket on a device gets nothing from others. */
void life_device(void)
{
	struct sock s = open_sock(family, 0), here, there;
	double end = now() + 60 * patience();
	struct homa_sendmsg_args args = { 0 };
	long long before;
	union address to;

	more_devices();
	there = open_sock(family, 0);
	on_device(&there, "homav0");
	must_bind_at(&there, NULL, 4036);
	reaches_nobody(&s, ip, 4036);
	here = open_sock(family, 0);
	on_device(&here, "lo");
	must_bind_at(&here, NULL, 4036);
	reaches(&s, &here, ip, 4036, NULL);
	close_sock(&there);
	/* The option also counts if it comes later, and it can be taken back. */
	on_device(&here, "homav0");
	reaches_nobody(&s, ip, 4036);
	on_device(&here, "");
	reaches(&s, &here, ip, 4036, NULL);
	close_sock(&here);
	/* Responses are packets, too. */
	here = bound(ip, 4037);
	to = address(family, ip, 4037);
	before = metric("host_rx_refused");
	CHECK(before >= 0, "no counter");
	request(&s, &to, "x", 1, 0, 0);
	CHECK(receive(&here, 0, 0) == 1, "request");
	on_device(&s, "homav0");
	args.id = here.args.id;
	CHECK(!send_raw(here.fd, &here.from, here.from_size, "yes", 3, &args, 0),
	      "response");
	while (metric("host_rx_refused") == before) {
		CHECK(now() < end, "no packet is refused");
		usleep(5000);
	}
	CHECK(!readable(s.fd, 0), "it came all the same");
	on_device(&s, "");
	CHECK(receive(&s, 0, 0) == 3, "the response");
	close_sock(&here);
	close_sock(&s);
	must("ip link del homav0");
}
