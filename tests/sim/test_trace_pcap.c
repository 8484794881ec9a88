// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The capture, read back with a reader of pcapng written here and compared
 * packet by packet with what happened; Homa's with the engine's own codec.
 */
#include "trace_run.h"

static u32 word(const char *at)
{
	u32 v;

	memcpy(&v, at, 4);
	return v;
}

/** struct pcap - a capture being read. @frame .. @direction: of the present packet */
struct pcap {
	char *data;
	size_t size, at;
	u32 interfaces;
	u32 interface, captured, whole, direction;
	u64 ns;
	bool dropped;
	const u8 *frame;
};

/* Reads options from @at up to @end; what they say goes into @p. */
static void read_options(struct pcap *p, const char *at, const char *end,
			 bool packet)
{
	u16 code, len;

	while (at < end) {
		assert_true(end - at >= 4);
		memcpy(&code, at, 2);
		memcpy(&len, at + 2, 2);
		at += 4;
		assert_true(end - at >= len);
		if (code == 0) {
			assert_true(at == end);
			return;
		}
		if (packet && code == 2)
			p->direction = word(at) & 3;
		if (packet && code == 1)
			p->dropped = memcmp(at, "dropped at", 10) == 0;
		if (!packet && code == 9)
			assert_int_equal(*at, 9);
		at += (len + 3) & ~3;
	}
	fail_msg("options without an end");
}

/* The next packet; false at the end of the file. */
static bool pcap_next(struct pcap *p)
{
	while (p->at < p->size) {
		const char *block = p->data + p->at;
		u32 type = word(block), len = word(block + 4);

		assert_true(len % 4 == 0 && len >= 12 && len <= p->size - p->at);
		assert_int_equal(word(block + len - 4), len);
		p->at += len;
		if (type == 1) {
			assert_int_equal(word(block + 8), 1); /* Ethernet */
			read_options(p, block + 16, block + len - 4, false);
			p->interfaces++;
			continue;
		}
		assert_int_equal(type, 6);
		p->interface = word(block + 8);
		p->ns = (u64)word(block + 12) << 32 | word(block + 16);
		p->captured = word(block + 20);
		p->whole = word(block + 24);
		p->frame = (const u8 *)block + 28;
		p->dropped = false;
		p->direction = 0;
		assert_true(p->interface < p->interfaces &&
			    p->captured <= p->whole);
		read_options(p, block + 28 + ((p->captured + 3) & ~3u),
			     block + len - 4, true);
		return true;
	}
	return false;
}

static struct pcap *pcap_read(const char *path)
{
	struct pcap *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->data = slurp(path, &p->size);
	assert_true(p->size >= 28);
	assert_int_equal(word(p->data), 0x0a0d0d0a);
	assert_int_equal(word(p->data + 8), 0x1a2b3c4d);
	p->at = word(p->data + 4);
	return p;
}

static void pcap_done(struct pcap *p)
{
	free(p->data);
	free(p);
}

/* Ethernet and IPv4 in order, checksum and length right. Returns what follows. */
static const u8 *check_ip(const struct pcap *p, u8 protocol, u8 prio)
{
	const u8 *ip = p->frame + 14;
	u32 sum = 0, i;

	assert_true(p->captured >= 34);
	assert_true(p->frame[12] == 8 && p->frame[13] == 0);
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[1] >> 5, prio);
	assert_int_equal((ip[2] << 8 | ip[3]) + 14, p->whole);
	assert_int_equal(ip[9], protocol);
	for (i = 0; i < 20; i += 2)
		sum += (u32)ip[i] << 8 | ip[i + 1];
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	return ip + 20;
}

static void check_homa(const struct pcap *p, const struct note *n)
{
	const u8 *homa = check_ip(p, HOMA_IPPROTO, n->prio);
	struct homa_packet packet;
	u8 again[HOMA_MAX_HDR] = { 0 };
	u32 last = n->sent ? p->frame[14 + 15] : p->frame[14 + 19];

	assert_int_equal(last, n->host + 1); /* 10.0.0.1 is host 0 */
	assert_int_equal(p->captured, 34 + n->hdr_len);
	assert_int_equal(p->whole, 34 + n->hdr_len + n->payload);
	assert_memory_equal(homa, n->hdr, n->hdr_len);
	/* It decodes, and what was decoded is what was sent. */
	memcpy(again, homa, n->hdr_len);
	assert_int_equal(homa_packet_decode(&packet, homa, p->whole - 34), 0);
	assert_int_equal(homa_packet_encode(again, &packet), n->hdr_len);
	if (packet.hdr.type == HOMA_DATA)
		assert_int_equal(packet.data.payload_len, n->payload);
}

static void pcap__is_what_happened(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct pcap *p;
	u32 i;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .pcap = run->pcap });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	trace_close(run);
	p = pcap_read(run->pcap);
	for (i = 0; pcap_next(p); i++) {
		assert_true(i < run->num);
		assert_true(p->ns == sim_ns(run->notes[i].at));
		assert_int_equal(p->interface, run->notes[i].host);
		assert_int_equal(p->direction, run->notes[i].sent ? 2 : 1);
		check_homa(p, &run->notes[i]);
	}
	assert_int_equal(i, run->num);
	assert_int_equal(p->interfaces, HOSTS + 1);
	pcap_done(p);
	run_free(run);
}

static void pcap__drops_and_window(void **state)
{
	struct run *run = run_new(&sim_homa, 20000);
	u32 drops = 0;
	struct pcap *p;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .pcap = run->pcap,
						     .until = SIM_MS });
	run_send(run, MESSAGES);
	sim_run(run->sim, SIM_MS - 1);
	sim_run(run->sim, 1000 * SIM_MS);
	trace_close(run);
	for (p = pcap_read(run->pcap); pcap_next(p); drops += p->dropped) {
		assert_true(p->ns < SIM_MS / SIM_NS);
		assert_int_equal(p->dropped, p->interface == HOSTS);
	}
	assert_true(drops > 0 && drops <= run->drops);
	pcap_done(p);
	run_free(run);
}

/* A model has no header bytes: UDP with ours. */
static void pcap__model(void **state)
{
	struct run *run = run_new(&sim_ndp, 0);
	u32 data = 0, i;
	struct pcap *p;
	const u8 *udp;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .pcap = run->pcap });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	trace_close(run);
	p = pcap_read(run->pcap);
	for (i = 0; pcap_next(p); i++) {
		assert_true(i < run->num);
		udp = check_ip(p, 17, run->notes[i].prio);
		assert_int_equal((udp[4] << 8 | udp[5]) + 34, p->whole);
		assert_memory_equal(udp + 8, "HSM1", 4);
		data += p->whole > p->captured;
	}
	assert_int_equal(i, run->num);
	assert_true(data > 100);
	pcap_done(p);
	run_free(run);
}

/* What other people's programs make of it, if one is there. */
static void pcap__tcpdump_reads_it(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	char command[256], line[256];
	u32 lines = 0;
	FILE *out;

	(void)state;
	if (system("tcpdump --version >/dev/null 2>&1")) {
		run_free(run);
		skip();
	}
	trace_open(run, &(struct sim_trace_options){ .pcap = run->pcap });
	run_send(run, MESSAGES);
	trace_close(run);
	snprintf(command, sizeof(command),
		 "tcpdump -n -r %s --nano 'ip proto 146' 2>/dev/null", run->pcap);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out))
		lines++;
	assert_int_equal(pclose(out), 0);
	assert_int_equal(lines, run->num);
	run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pcap__is_what_happened),
		cmocka_unit_test(pcap__drops_and_window),
		cmocka_unit_test(pcap__model),
		cmocka_unit_test(pcap__tcpdump_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
