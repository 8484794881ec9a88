// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A host whose TCP is lwIP's, for tests of interoperation: it takes all frames of a device
 * to which the kernel gave no address, and does with one connection what its arguments say.
 *
 *	peer_lwip DEVICE ADDRESS serve|connect PEER PORT ACTION...
 *
 * The actions, and what is said on standard output, are those of talker.py. It goes on until
 * it is killed, because the last acknowledgement may have to be sent again.
 *
 * lwIP's own thread runs its timers, ours everything else, with the lock of lwIP's core.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <netif/ethernet.h>

#define PERIOD 251
#define CHUNK (PERIOD * 64)
#define FRAMES 64 /* taken before the connection has its turn */

struct action {
	const char *name;
	u64_t left; /* bytes to send and to read, or milliseconds */
	u64_t unread;
	bool begun;
	u64_t until;
};

static struct {
	int wire;
	struct netif netif;
	struct tcp_pcb *pcb;
	struct pbuf *arrived; /* and not read: the window stays closed for it */
	u64_t wrote, read;
	bool open, ended;
	err_t error;
	u8_t pattern[CHUNK + PERIOD];
} peer;

static void die(const char *format, ...)
{
	va_list words;

	va_start(words, format);
	printf("failed: ");
	vprintf(format, words);
	printf("\n");
	va_end(words);
	exit(1);
}

static u64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64_t)ts.tv_sec * 1000 + (u64_t)ts.tv_nsec / 1000000;
}

/* The wire. */

static err_t wire_out(struct netif *netif, struct pbuf *p)
{
	u8_t frame[2048];
	u16_t length = pbuf_copy_partial(p, frame, sizeof(frame), 0);

	(void)netif;
	/* A full device loses the frame, as a wire does. */
	if (send(peer.wire, frame, length, 0) < 0 && errno != ENOBUFS &&
	    errno != EAGAIN)
		return ERR_IF;
	return ERR_OK;
}

static void wire_in(void)
{
	u8_t frame[2048];
	struct pbuf *p;
	ssize_t length;
	int i;

	for (i = 0; i < FRAMES; i++) {
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);

		length = recvfrom(peer.wire, frame, sizeof(frame),
				  MSG_DONTWAIT | MSG_TRUNC,
				  (struct sockaddr *)&from, &size);
		if (length < 0)
			return;
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		if ((size_t)length > sizeof(frame))
			die("a frame of %zd bytes: switch segmentation off at the other end",
			    length);
		p = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
		if (!p)
			continue;
		pbuf_take(p, frame, (u16_t)length);
		if (peer.netif.input(p, &peer.netif) != ERR_OK)
			pbuf_free(p);
	}
}

static err_t wire_start(struct netif *netif)
{
	const char *device = netif->state;
	struct sockaddr_ll where = { .sll_family = AF_PACKET,
				     .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq request = { 0 };
	int size = 8 << 20;

	peer.wire = socket(AF_PACKET, SOCK_RAW, 0);
	if (peer.wire < 0)
		die("AF_PACKET: %s", strerror(errno));
	setsockopt(peer.wire, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	where.sll_ifindex = (int)if_nametoindex(device);
	if (bind(peer.wire, (struct sockaddr *)&where, sizeof(where)) ||
	    ioctl(peer.wire, SIOCGIFHWADDR, &request))
		die("%s: %s", device, strerror(errno));
	memcpy(netif->hwaddr, request.ifr_hwaddr.sa_data, ETH_HWADDR_LEN);
	netif->hwaddr_len = ETH_HWADDR_LEN;
	netif->mtu = 1500;
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP |
		       NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP |
		       NETIF_FLAG_MLD6;
	netif->output = etharp_output;
	netif->output_ip6 = ethip6_output;
	netif->linkoutput = wire_out;
	return ERR_OK;
}

static void add_address(char *device, const char *text)
{
	ip4_addr_t none = { 0 }, mask;
	ip_addr_t own;

	if (!ipaddr_aton(text, &own))
		die("no address: %s", text);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	if (!netif_add(&peer.netif, IP_IS_V4(&own) ? ip_2_ip4(&own) : &none,
		       &mask, &none, device, wire_start, ethernet_input))
		die("no interface");
	if (IP_IS_V6(&own)) {
		netif_create_ip6_linklocal_address(&peer.netif, 1);
		netif_ip6_addr_set_state(&peer.netif, 0, IP6_ADDR_PREFERRED);
		netif_ip6_addr_set(&peer.netif, 1, ip_2_ip6(&own));
		netif_ip6_addr_set_state(&peer.netif, 1, IP6_ADDR_PREFERRED);
	}
	netif_set_default(&peer.netif);
	netif_set_up(&peer.netif);
}

/* What lwIP tells of the connection. */

static err_t on_data(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
	(void)arg, (void)pcb, (void)error;
	if (!p)
		peer.ended = true;
	else if (peer.arrived)
		pbuf_cat(peer.arrived, p);
	else
		peer.arrived = p;
	return ERR_OK;
}

static void on_error(void *arg, err_t error)
{
	(void)arg;
	peer.pcb = NULL;
	peer.error = error;
}

static void take(struct tcp_pcb *pcb)
{
	peer.pcb = pcb;
	peer.open = true;
	tcp_recv(pcb, on_data);
	tcp_err(pcb, on_error);
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t error)
{
	(void)arg;
	if (error != ERR_OK || !pcb || peer.open)
		return ERR_VAL;
	take(pcb);
	return ERR_OK;
}

static err_t on_connect(void *arg, struct tcp_pcb *pcb, err_t error)
{
	(void)arg, (void)error;
	take(pcb);
	return ERR_OK;
}

static void begin(const char *how, const char *other, const char *number)
{
	struct tcp_pcb *pcb;
	ip_addr_t address;
	int port = atoi(number);

	if (!ipaddr_aton(other, &address) || port < 1 || port > 65535)
		die("no address and port: %s %s", other, number);
	pcb = tcp_new_ip_type(IP_GET_TYPE(&address));
	if (!pcb)
		die("no connection");
	if (!strcmp(how, "serve")) {
		if (tcp_bind(pcb, IP_ANY_TYPE, (u16_t)port) != ERR_OK)
			die("port %d is not free", port);
		pcb = tcp_listen(pcb);
		tcp_accept(pcb, on_accept);
		return;
	}
	tcp_err(pcb, on_error);
	if (tcp_connect(pcb, &address, (u16_t)port, on_connect) != ERR_OK)
		die("cannot connect to %s port %d", other, port);
}

/* Actions: each is called until it says that it is done. */

static void send_some(u64_t *left)
{
	while (*left && peer.pcb) {
		u64_t length = *left < CHUNK ? *left : CHUNK;
		u64_t room = tcp_sndbuf(peer.pcb);

		if (length > room)
			length = room;
		if (!length ||
		    tcp_write(peer.pcb, peer.pattern + peer.wrote % PERIOD,
			      (u16_t)length, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
		peer.wrote += length;
		*left -= length;
	}
	if (peer.pcb)
		tcp_output(peer.pcb);
}

static void read_some(u64_t *left)
{
	u8_t bytes[CHUNK];

	while (*left && peer.arrived) {
		u16_t length = peer.arrived->len;

		if (length > CHUNK)
			length = CHUNK;
		if (length > *left)
			length = (u16_t)*left;
		pbuf_copy_partial(peer.arrived, bytes, length, 0);
		if (memcmp(bytes, peer.pattern + peer.read % PERIOD, length))
			die("wrong bytes from %llu on",
			    (unsigned long long)peer.read);
		peer.arrived = pbuf_free_header(peer.arrived, length);
		if (peer.pcb)
			tcp_recved(peer.pcb, length);
		peer.read += length;
		*left -= length;
	}
}

static bool is(const struct action *action, const char *name)
{
	return !strcmp(action->name, name);
}

static bool broken(bool sends)
{
	u64_t all = ~0ULL;

	if (sends)
		send_some(&all);
	else
		read_some(&all);
	if (peer.ended)
		die("an end instead of a reset");
	return peer.error == ERR_RST;
}

static bool end(void)
{
	if (peer.arrived)
		die("more bytes than %llu", (unsigned long long)peer.read);
	return peer.ended;
}

static bool act(struct action *action)
{
	bool sends = is(action, "send") || is(action, "both");
	bool reads = is(action, "read") || is(action, "both");

	if (peer.error != ERR_OK && peer.error != ERR_CLSD &&
	    !is(action, "broken") && !is(action, "flood"))
		die("%s: lwIP's error %d after %llu bytes out and %llu in",
		    action->name, peer.error, (unsigned long long)peer.wrote,
		    (unsigned long long)peer.read);
	if (sends || reads) {
		if (sends)
			send_some(&action->left);
		if (reads)
			read_some(&action->unread);
		if (reads && action->unread && peer.ended && !peer.arrived)
			die("the end after %llu bytes",
			    (unsigned long long)peer.read);
		return !(sends && action->left) && !(reads && action->unread);
	}
	if (is(action, "half"))
		return tcp_shutdown(peer.pcb, 0, 1) == ERR_OK;
	if (is(action, "end"))
		return end();
	if (is(action, "reset")) {
		tcp_err(peer.pcb, NULL);
		tcp_abort(peer.pcb);
		peer.pcb = NULL;
		return true;
	}
	if (is(action, "broken") || is(action, "flood"))
		return broken(is(action, "flood"));
	if (is(action, "pause")) {
		if (!action->begun)
			action->until = now_ms() + action->left;
		action->begun = true;
		return now_ms() >= action->until;
	}
	die("no action: %s", action->name);
	return false;
}

/* The connection is closed; it is lwIP's until the peer has all. */
static bool closed(struct tcp_pcb *ours)
{
	struct tcp_pcb *pcb;

	for (pcb = tcp_active_pcbs; pcb; pcb = pcb->next)
		if (pcb == ours)
			return false;
	return true;
}

static int parse(char **words, struct action *actions, int most)
{
	int count = 0;

	for (; *words && count < most; words++, count++) {
		struct action *action = &actions[count];

		*action = (struct action){ .name = *words };
		if (is(action, "send") || is(action, "read") ||
		    is(action, "both") || is(action, "pause")) {
			if (!words[1])
				die("%s how much?", *words);
			action->left = action->unread =
				strtoull(*++words, NULL, 10);
		}
	}
	if (*words)
		die("more than %d actions", most);
	return count;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct action actions[32];
	int i, count, at = -1;
	struct tcp_pcb *last = NULL;

	if (argc < 6)
		die("peer_lwip DEVICE ADDRESS serve|connect PEER PORT ACTION...");
	count = parse(argv + 6, actions, 32);
	for (i = 0; i < CHUNK + PERIOD; i++)
		peer.pattern[i] = (u8_t)(i % PERIOD);
	tcpip_init(NULL, NULL);
	LOCK_TCPIP_CORE();
	add_address(argv[1], argv[2]);
	begin(argv[3], argv[4], argv[5]);
	UNLOCK_TCPIP_CORE();
	if (!strcmp(argv[3], "serve"))
		say("ready");
	for (;;) {
		struct pollfd in = { .fd = peer.wire, .events = POLLIN };

		poll(&in, 1, 1);
		LOCK_TCPIP_CORE();
		wire_in();
		if (at < 0 && peer.error != ERR_OK)
			die("connect: lwIP's error %d", peer.error);
		if (at < 0 && peer.open) {
			say("open");
			at = 0;
		}
		while (at >= 0 && at < count && act(&actions[at]))
			at++;
		if (at == count) {
			last = peer.pcb;
			if (last && tcp_close(last) == ERR_OK)
				tcp_err(last, NULL);
			at++;
		}
		if (at == count + 1 && closed(last)) {
			say("done");
			at++;
		}
		UNLOCK_TCPIP_CORE();
	}
}
