// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa-card: the loop. The clock of the card runs while there is something in it or to do for it;
 * else the process sleeps, and the card's time stands still.
 */
#include "card.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "homa_nic_regs.h"

/* The cycles for which large receive waits for the next packet of a unit. A frame takes 24 cycles
 * at 512 bits, and comes when a process is scheduled, so this is no setting of a real card. */
#define PATIENCE 1500u
/* The cycles without anything after which nothing is in the card. */
#define QUIET (PATIENCE + 1000u)
/* The cycles between two looks at kernel and cable, and at the sockets. */
#define LOOK 8u
#define LOOK_SOCKETS 512u
/* The cycles after a reset until the card's table is filled. */
#define FILLING 300u

static volatile sig_atomic_t ending, asked;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		asked = 1;
	else
		ending = 1;
}

static void left(void *arg, const uint8_t *frame, uint32_t len)
{
	card_to_link(arg, frame, len);
}

static void got(void *arg, const uint8_t *frame, uint32_t len,
		const struct model_got *said, const struct model_piece *list)
{
	struct card *c = arg;

	if (said->class_ == MNIC_CLASS_HOMA && c->driver >= 0)
		card_got(c, frame, len, said, list);
	else if (said->pieces <= 1)
		card_to_kernel(c, frame, len);
}

static void done(void *arg, uint32_t tag, uint32_t status, uint32_t packets)
{
	card_done(arg, tag, status, packets);
}

static bool configure(struct card *c)
{
	uint32_t control = 0;
	bool ok = true;

	for (uint32_t i = 0; i < FILLING; i++)
		model_cycle(c->model);
	control |= c->options.features & MNIC_FEATURE_LSO ? HOMA_NIC_CONTROL_LSO :
							    0;
	control |= c->options.features & MNIC_FEATURE_LRO ? HOMA_NIC_CONTROL_LRO :
							    0;
	control |= c->options.features & MNIC_FEATURE_RSS ? HOMA_NIC_CONTROL_RSS :
							    0;
	ok &= model_write(c->model, HOMA_NIC_CONTROL, control);
	ok &= model_write(c->model, HOMA_NIC_LRO_PATIENCE, PATIENCE);
	for (uint32_t i = 0; i < HOMA_NIC_RSS_TABLE_ENTRIES; i++)
		ok &= model_write(c->model, HOMA_NIC_RSS_TABLE(i),
				  i % c->hello.queues);
	if (!ok)
		fprintf(stderr, "homa-card: the card refuses its settings\n");
	return ok;
}

static const char *const names[] = {
#define N(number, name) [HOMA_NIC_COUNT_##number] = name
	N(TX_BYTES, "tx_bytes"),       N(RX_BYTES, "rx_bytes"),
	N(TX_FRAMES, "tx_frames"),     N(RX_FRAMES, "rx_frames"),
	N(LSO_SENT, "lso_sent"),       N(LSO_REFUSED, "lso_refused"),
	N(LSO_CUT, "lso_cut"),	       N(LSO_OTHER, "lso_other"),
	N(LRO_FRAME, "lro_frame"),     N(LRO_PASSED, "lro_passed"),
	N(LRO_MERGED, "lro_merged"),   N(LRO_OPENED, "lro_opened"),
	N(LRO_ENDED, "lro_ended"),     N(LRO_FULL, "lro_full"),
	N(LRO_URGENT, "lro_urgent"),   N(LRO_DIFFERS, "lro_differs"),
	N(LRO_TIMED, "lro_timed"),     N(LRO_EVICTED, "lro_evicted"),
	N(LRO_BAD, "lro_bad"),	       N(RSS_HOMA, "rss_homa"),
	N(RSS_NOT_IP, "rss_not_ip"),   N(RSS_BAD, "rss_bad"),
	N(RSS_PORTS, "rss_ports"),     N(RSS_UNDECODED, "rss_undecoded"),
	N(PACE_WAITED, "pace_waited"),
#undef N
};

/* One line: the counters of the process, then those of the card, as name=value. */
static void report(struct card *c)
{
#define X(name, text) \
	printf("%s=%llu ", #name, (unsigned long long)c->counts.name);
	CARD_COUNTS(X)
#undef X
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uint32_t low, high;

		if (names[i] && model_read(c->model, HOMA_NIC_COUNTER(i), &low) &&
		    model_read(c->model, HOMA_NIC_COUNTER(i) + 4, &high))
			printf("%s=%llu ", names[i],
			       (unsigned long long)high << 32 | low);
	}
	printf("cycles=%llu\n", (unsigned long long)model_cycles(c->model));
	fflush(stdout);
}

/* Look at the sockets; sleep there if @sleep until something is to be done. */
static void look_at_sockets(struct card *c, bool sleep)
{
	struct pollfd fds[4 + MNIC_QUEUES_MAX] = {
		{ .fd = c->listener, .events = POLLIN },
		{ .fd = c->driver, .events = POLLIN | POLLRDHUP },
		{ .fd = c->tap, .events = POLLIN },
		{ .fd = c->link, .events = POLLIN },
	};
	nfds_t n = sleep ? 4 : 2;
	uint64_t count;

	for (uint32_t i = 0; sleep && c->driver >= 0 && i < c->hello.queues; i++)
		fds[n++] =
			(struct pollfd){ .fd = c->q[i].bell, .events = POLLIN };
	/* A signal that comes right before this is noticed after a second. */
	if (poll(fds, n, sleep ? 1000 : 0) <= 0)
		return;
	for (nfds_t i = 4; i < n; i++)
		if (fds[i].revents & POLLIN &&
		    read(fds[i].fd, &count, sizeof(count)) < 0)
			count = 0; /* It was read already. */
	/* A driver says nothing, so this is its end. */
	if (fds[1].revents)
		card_leave(c);
	if (fds[0].revents & POLLIN)
		card_accept(c);
}

static void leave_if_spoiled(struct card *c)
{
	if (!c->spoiled)
		return;
	c->counts.broken++;
	card_leave(c);
}

/* The waveform has all from the first frame of a driver until the card is at rest again. */
static void record(struct card *c, bool resting)
{
	static int state;

	if (!c->options.wave || state == 2)
		return;
	if (!state && c->counts.sent + c->counts.got) {
		model_record(c->model, true);
		state = 1;
	} else if (state == 1 && resting) {
		model_record(c->model, false);
		state = 2;
	}
}

static void run(struct card *c)
{
	uint32_t idle = 0;

	for (uint32_t turn = 0; !ending; turn++) {
		bool moved = false;

		if (!(turn % LOOK_SOCKETS))
			look_at_sockets(c, false);
		if (!(turn % LOOK))
			moved = card_take(c);
		if (c->driver >= 0)
			moved |= card_send(c);
		record(c, false);
		moved |= model_cycle(c->model);
		leave_if_spoiled(c);
		idle = moved ? 0 : idle + 1;
		if (asked) {
			asked = 0;
			report(c);
		}
		if (idle < QUIET || !card_may_sleep(c))
			continue;
		record(c, true);
		look_at_sockets(c, true);
		idle = QUIET - LOOK; /* Without work it sleeps again soon. */
	}
}

static const char usage[] =
	"usage: homa-card --tap NAME --link NAME [options]\n"
	"A message NIC: the Verilated homa_nic between drivers, the kernel and a cable.\n"
	"  --tap NAME    the interface to make; drivers find the device by its name\n"
	"  --link NAME   the interface that is the cable: up, no addresses, ARP off\n"
	"  --mac ADDRESS the first one's Ethernet address (02:00:00:00:00:01)\n"
	"  --queues N    queues, 1 to 16 (1)\n"
	"  --slots N     slots of each direction of a queue, 1 to 64 (64)\n"
	"  --mbps N      the link rate that drivers are told, in Mbit/s (20)\n"
	"  --no-lso, --no-lro, --no-rss   the device does not have this\n"
	"  --wave FILE   write a waveform (VCD) from the first frame of a driver until\n"
	"                the card is at rest\n"
	"It says \"ready\", and writes its counters at the end and on SIGUSR1.\n";

static bool number(const char *text, uint32_t most, uint32_t *out)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*out = (uint32_t)value;
	return *text && !*end && value >= 1 && value <= most;
}

static bool parse_mac(const char *text, uint8_t *mac)
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
		      &mac[2], &mac[3], &mac[4], &mac[5]) == 6;
}

static bool parse(int argc, char **argv, struct card_options *o)
{
	static const struct option options[] = {
		{ "tap", 1, NULL, 't' },    { "link", 1, NULL, 'l' },
		{ "mac", 1, NULL, 'm' },    { "queues", 1, NULL, 'q' },
		{ "slots", 1, NULL, 's' },  { "mbps", 1, NULL, 'b' },
		{ "wave", 1, NULL, 'w' },   { "no-lso", 0, NULL, 'S' },
		{ "no-lro", 0, NULL, 'R' }, { "no-rss", 0, NULL, 'H' },
		{ "help", 0, NULL, 'h' },   { NULL, 0, NULL, 0 },
	};
	bool ok = true;
	int option;

	while (ok && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			o->tap = optarg;
			break;
		case 'l':
			o->link = optarg;
			break;
		case 'm':
			ok = parse_mac(optarg, o->mac);
			break;
		case 'q':
			ok = number(optarg, MNIC_QUEUES_MAX, &o->queues);
			break;
		case 's':
			ok = number(optarg, MNIC_ENTRIES, &o->slots);
			break;
		case 'b':
			ok = number(optarg, 1000000, &o->mbps);
			break;
		case 'w':
			o->wave = optarg;
			break;
		case 'S':
			o->features &= ~MNIC_FEATURE_LSO;
			break;
		case 'R':
			o->features &= ~MNIC_FEATURE_LRO;
			break;
		case 'H':
			o->features &= ~MNIC_FEATURE_RSS;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			ok = false;
		}
	}
	if (ok && o->tap && o->link && optind == argc)
		return true;
	fputs(usage, stderr);
	return false;
}

int main(int argc, char **argv)
{
	static const struct model_calls calls = { left, got, done };
	static struct card c = { .options = { .mac = { 2, 0, 0, 0, 0, 1 },
					      .features = MNIC_FEATURES_ALL,
					      .queues = 1,
					      .slots = MNIC_ENTRIES,
					      .mbps = 20 } };

	if (!parse(argc, argv, &c.options))
		return 2;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_signal);
	c.hello = (struct mnic_hello){ MNIC_MAGIC, MNIC_VERSION,
				       c.options.queues, c.options.slots };
	c.driver = -1;
	c.model = model_new(&calls, &c, c.options.wave);
	if (!c.model || card_open_link(&c) || !configure(&c) || card_listen(&c))
		return 1;
	puts("ready");
	fflush(stdout);
	run(&c);
	card_leave(&c);
	report(&c);
	card_close_link(&c);
	model_free(c.model);
	return 0;
}
