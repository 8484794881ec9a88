// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A host behind a tap device; see tap.h. */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <sys/wait.h>
#include "tap.h"

int version = 4;
enum flavour flavour = TAP_PLAIN;
int tap_fd = -1;
int machine = 1;

static uint8_t machine_mac[6];
static const uint8_t our_mac[6] = { 2, 0, 0, 0, 9, 9 };
static const uint8_t net6[16] = { 0xfd, 9 };
/* Each check is a process: ids of its own, for a machine remembers those of requests that
 * it has executed for a second. */
static uint64_t last_id;

static char device[IFNAMSIZ];

void device_shell(const char *format)
{
	char command[512];

	snprintf(command, sizeof(command), format, device, device, device);
	CHECK(!system(command), "%s", command);
}

void tap_open(void)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	char command[256];
	int header = sizeof(struct virtio_net_hdr), i, s;

	tap_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	CHECK(tap_fd >= 0, "/dev/net/tun");
	if (flavour == TAP_NAPI)
		ifr.ifr_flags |= IFF_NAPI;
	if (flavour == TAP_FRAGS)
		ifr.ifr_flags |= IFF_NAPI | IFF_NAPI_FRAGS;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "hv%%d");
	CHECK(!ioctl(tap_fd, TUNSETIFF, &ifr), "TUNSETIFF");
	memcpy(device, ifr.ifr_name, sizeof(device));
	CHECK(!ioctl(tap_fd, TUNSETVNETHDRSZ, &header), "TUNSETVNETHDRSZ");
	device_shell("ip address add 10.9.0.1/24 dev %s && ip address add fd09::1/64 dev %s nodad && "
		     "ip link set %s up");
	/* Routing takes no deprecated address of its own accord. */
	device_shell("ip address add 10.9.0.200/24 dev %s && "
		     "ip address add fd09::c8/64 dev %s nodad preferred_lft 0");
	for (i = 2; i < 10; i++) {
		snprintf(command, sizeof(command),
			 "ip neigh replace 10.9.0.%d lladdr 02:00:00:00:09:09 dev %%s nud permanent "
			 "&& ip neigh replace fd09::%d lladdr 02:00:00:00:09:09 dev %%s nud permanent",
			 i, i);
		device_shell(command);
	}
	s = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(s >= 0 && !ioctl(s, SIOCGIFHWADDR, &ifr), "SIOCGIFHWADDR");
	memcpy(machine_mac, ifr.ifr_hwaddr.sa_data, 6);
	close(s);
}

uint64_t new_id(void)
{
	if (!last_id)
		last_id = 0x4a00000000ull + ((uint64_t)getpid() << 40);
	return last_id += 2;
}

union address peer_address(int peer, int port)
{
	char text[32];

	snprintf(text, sizeof(text), version == 4 ? "10.9.0.%d" : "fd09::%d",
		 peer);
	return address(version == 4 ? AF_INET : AF_INET6, text, port);
}

static void ip_header(uint8_t *ip, int peer, int proto)
{
	if (version == 4) {
		ip[0] = 0x45;
		ip[6] = 0x40; /* do not fragment */
		ip[8] = 64;
		ip[9] = (uint8_t)proto;
		memcpy(ip + 12, (uint8_t[]){ 10, 9, 0, (uint8_t)peer }, 4);
		memcpy(ip + 16, (uint8_t[]){ 10, 9, 0, (uint8_t)machine }, 4);
	} else {
		ip[0] = 0x60;
		ip[6] = (uint8_t)proto;
		ip[7] = 64;
		memcpy(ip + 8, net6, 16);
		ip[23] = (uint8_t)peer;
		memcpy(ip + 24, net6, 16);
		ip[39] = (uint8_t)machine;
	}
}

uint8_t *make(struct frame *f, int peer, int type, int sport, int dport,
	      uint64_t id, size_t bytes)
{
	struct homa_wire_common common = {
		.type = (uint8_t)type,
		.doff = (type == HOMA_DATA ? HOMA_DOFF_DATA : HOMA_DOFF_CONTROL)
			<< 4,
		.flags = HOMA_FLAGS,
	};
	uint8_t *homa;

	memset(&f->vnet, 0, sizeof(f->vnet));
	f->l4 = ETH + IP_HEADER;
	f->size = f->l4 + bytes;
	memset(f->bytes, 0, f->size + sizeof(common));
	memcpy(f->bytes, machine_mac, 6);
	memcpy(f->bytes + 6, our_mac, 6);
	put16(f->bytes + 12, version == 4 ? 0x0800 : 0x86dd);
	ip_header(f->bytes + ETH, peer, HOMA_IPPROTO);
	homa = f->bytes + f->l4;
	memcpy(homa, &common, sizeof(common));
	put16(homa, (uint32_t)sport);
	put16(homa + 2, (uint32_t)dport);
	put16(homa + 18, HOMA_URGENT);
	put64(homa + 20, id);
	return homa;
}

uint8_t *make_data(struct frame *f, int peer, int sport, int dport, uint64_t id,
		   uint32_t length, uint32_t offset, uint32_t payload)
{
	uint8_t *homa = make(f, peer, HOMA_DATA, sport, dport, id,
			     HOMA_DATA_HDR + payload);
	uint32_t i;

	put32(homa + 4, offset);
	put32(homa + 28, length);
	put32(homa + 32, length < 10000 ? length : 10000);
	put32(homa + 52, offset);
	for (i = 0; i < payload; i++)
		homa[HOMA_DATA_HDR + i] = byte_at(offset + i);
	return homa;
}

void seal(struct frame *f)
{
	uint8_t *ip = f->bytes + ETH;
	uint32_t sum = 0;
	size_t i, header;

	if (ip[0] >> 4 == 6) {
		put16(ip + 4, (uint32_t)(f->size - ETH - 40));
		return;
	}
	header = (ip[0] & 15) * 4u;
	put16(ip + 2, (uint32_t)(f->size - ETH));
	put16(ip + 10, 0);
	for (i = 0; i < header; i += 2)
		sum += get16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum);
}

static void write_pieces(struct iovec *iov, int n)
{
	double end = now() + 20;

	/* Refused frames (EINVAL and the like) are the device's decision. */
	while (writev(tap_fd, iov, n) < 0 && (errno == EAGAIN || errno == ENOBUFS))
		CHECK(now() < end, "the tap takes nothing");
}

void send_split(const struct frame *f, const size_t *cuts, int n)
{
	struct iovec iov[20] = { { (void *)(uintptr_t)&f->vnet,
				   sizeof(f->vnet) } };
	size_t at = 0;
	int i;

	for (i = 0; i < n && cuts[i] < f->size; i++) {
		iov[i + 1].iov_base = (void *)(uintptr_t)(f->bytes + at);
		iov[i + 1].iov_len = cuts[i] - at;
		at = cuts[i];
	}
	iov[i + 1].iov_base = (void *)(uintptr_t)(f->bytes + at);
	iov[i + 1].iov_len = f->size - at;
	write_pieces(iov, i + 2);
}

void send_frame(const struct frame *f)
{
	/* Fragments begin in the middle of the Homa header. */
	size_t cuts[] = { f->l4 + 10, f->l4 + 30 };

	send_split(f, cuts, flavour == TAP_FRAGS ? 2 : 0);
}

void send_packet(struct frame *f)
{
	seal(f);
	send_frame(f);
}

/* Where the Homa header is, if there is one; UDP encapsulation counts. */
static void parse(struct seen *p)
{
	const uint8_t *ip = p->frame + ETH, *l4;
	size_t header = ip[0] >> 4 == 4 ? (ip[0] & 15) * 4u : 40, total;

	p->homa = NULL;
	p->icmp = p->code = -1;
	if (p->size < ETH + header)
		return;
	l4 = ip + header;
	total = ip[0] >> 4 == 4 ? get16(ip + 2) : 40 + get16(ip + 4);
	p->proto = ip[0] >> 4 == 4 ? ip[9] : ip[6];
	p->tos = ip[0] >> 4 == 4 ? ip[1] : (ip[0] & 15) << 4 | ip[1] >> 4;
	p->peer = ip[0] >> 4 == 4 ? ip[19] : ip[39];
	p->from = ip[0] >> 4 == 4 ? ip[15] : ip[23];
	if (total < header || ETH + total > p->size)
		return;
	p->bytes = total - header;
	if (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6) {
		p->icmp = l4[0];
		p->code = l4[1];
	}
	if (p->proto == IPPROTO_UDP && p->bytes >= 8 &&
	    get16(l4) == HOMA_UDP_PORT) {
		l4 += 8;
		p->bytes -= 8;
	} else if (p->proto == IPPROTO_TCP &&
		   (p->bytes < 20 || l4[13] != HOMA_FLAGS ||
		    get16(l4 + 18) != HOMA_URGENT)) {
		return;
	} else if (p->proto != IPPROTO_TCP && p->proto != HOMA_IPPROTO) {
		return;
	}
	if (p->bytes < HOMA_COMMON_HDR)
		return;
	p->homa = l4;
	p->sport = (int)get16(l4);
	p->dport = (int)get16(l4 + 2);
	p->type = l4[11];
	p->id = get64(l4 + 20);
}

/* Neighbour discovery and group membership are of no interest. */
static bool interesting(const struct seen *p)
{
	return p->homa || (p->proto == IPPROTO_ICMP && p->icmp >= 0) ||
	       (p->proto == IPPROTO_ICMPV6 && p->icmp >= 0 && p->icmp < 128);
}

bool next_seen(struct seen *p, int ms)
{
	struct virtio_net_hdr vnet;
	struct iovec iov[2] = { { &vnet, sizeof(vnet) },
				{ p->frame, sizeof(p->frame) } };
	double end = now() + ms / 1e3;

	for (;;) {
		ssize_t n = readv(tap_fd, iov, 2);
		struct pollfd wait = { .fd = tap_fd, .events = POLLIN };

		if (n > (ssize_t)(sizeof(vnet) + ETH)) {
			uint32_t ethertype = get16(p->frame + 12);

			p->size = (size_t)n - sizeof(vnet);
			if (ethertype != 0x0800 && ethertype != 0x86dd)
				continue;
			parse(p);
			if (interesting(p))
				return true;
			continue;
		}
		if (now() > end)
			return false;
		poll(&wait, 1, 1 + (int)((end - now()) * 1e3));
	}
}

bool await(struct seen *p, int type, uint64_t id, int ms)
{
	double end = now() + ms / 1e3;

	do {
		int left = (int)((end - now()) * 1e3);

		if (!next_seen(p, left > 0 ? left : 0))
			return false;
		if (p->homa && p->type == type && (!id || p->id == id))
			return true;
	} while (now() < end);
	return false;
}

void quiet(void)
{
	static struct seen p;

	barrier(-1);
	while (next_seen(&p, 0))
		;
}

unsigned int barrier(int type)
{
	static struct frame f;
	static struct seen p;
	uint64_t id = new_id();
	unsigned int n = 0;
	double until;
	uint8_t *homa;
	int i;

	/* RESEND for an RPC that does not exist is answered by RPC_UNKNOWN. It is sent again after
	 * half a second, whatever else the machine sends meanwhile. */
	for (i = 0; i < 20 * patience(); i++) {
		homa = make(&f, 9, HOMA_RESEND, 5999, 5998, id | 1,
			    HOMA_RESEND_LEN);
		put32(homa + 32, 100);
		send_packet(&f);
		until = now() + 0.5;
		while (now() < until && next_seen(&p, 500)) {
			if (p.homa && p.peer == 9 &&
			    p.type == HOMA_RPC_UNKNOWN && p.id == id)
				return n;
			if (p.homa && p.peer == 9 && p.sport == 5998)
				continue;
			n += type == -1 || (p.homa && p.type == type);
		}
	}
	CHECK(0, "the machine does not answer RESEND for an unknown RPC");
}

uint32_t seen_offset(const struct seen *p)
{
	uint32_t seg = get32(p->homa + 52);

	return seg == HOMA_OFFSET_IN_SEQUENCE ? get32(p->homa + 4) : seg;
}
