/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the tests of the traces share: a run on a small network that sends
 * random messages to few hosts, and a tap of our own that notes what happens,
 * to be compared with what is in the files.
 */
#ifndef SIM_TRACE_RUN_H
#define SIM_TRACE_RUN_H

#include <unistd.h>

#include "unit.h"

#include "homa_codec.h"
#include "sim_trace.h"
#include "sim_transport.h"

#define MESSAGES 60
#define HOSTS 6
#define NOTES 8192

struct note {
	u64 at;
	u32 host;
	bool sent;
	u8 prio, hdr_len;
	u32 payload;
	u8 hdr[SIM_MAX_HDR];
};

struct run {
	struct sim *sim;
	struct sim_tap tap;
	struct note *notes;
	u32 num, drops, delivered;
	char json[64], pcap[64];
};

static inline void note(struct run *run, const struct sim_pkt *pkt, bool sent)
{
	struct note *n = &run->notes[run->num++];

	assert_true(run->num < NOTES);
	n->at = run->sim->now;
	n->host = sent ? pkt->src : pkt->dst;
	n->sent = sent;
	n->prio = pkt->prio;
	n->payload = pkt->flags & SIM_CONTROL ? 0 : pkt->payload;
	n->hdr_len = pkt->hdr_len;
	memcpy(n->hdr, pkt->hdr, pkt->hdr_len);
}

static inline void run_sent(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	note(arg, pkt, true);
}

static inline void run_received(void *arg, struct sim *sim,
				const struct sim_pkt *pkt)
{
	(void)sim;
	note(arg, pkt, false);
}

static inline void run_dropped(void *arg, struct sim *sim,
			       const struct sim_port *port,
			       const struct sim_pkt *pkt)
{
	(void)sim;
	(void)port;
	(void)pkt;
	((struct run *)arg)->drops++;
}

static inline void run_delivered(void *arg, struct sim *sim,
				 const struct sim_msg *msg)
{
	(void)sim;
	(void)msg;
	((struct run *)arg)->delivered++;
}

static inline struct run *run_new(const struct sim_transport *transport,
				  u32 loss_ppm)
{
	struct run *run = calloc(1, sizeof(*run));
	struct sim_config cfg;
	char err[256] = "";
	int fd;

	assert_non_null(run);
	run->notes = calloc(NOTES, sizeof(*run->notes));
	assert_non_null(run->notes);
	strcpy(run->json, "/tmp/homa-trace-XXXXXX");
	fd = mkstemp(run->json);
	assert_true(fd >= 0);
	close(fd);
	strcpy(run->pcap, "/tmp/homa-trace-XXXXXX");
	fd = mkstemp(run->pcap);
	assert_true(fd >= 0);
	close(fd);
	sim_config_default(&cfg);
	cfg.transport = transport;
	assert_int_equal(transport->defaults(&cfg), 0);
	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = HOSTS;
	cfg.loss_ppm = loss_ppm;
	run->sim = sim_new(&cfg, err, sizeof(err));
	if (!run->sim)
		fail_msg("%s", err);
	run->tap.arg = run;
	run->tap.sent = run_sent;
	run->tap.received = run_received;
	run->tap.dropped = run_dropped;
	run->tap.delivered = run_delivered;
	run->sim->taps = &run->tap;
	return run;
}

static inline void run_free(struct run *run)
{
	sim_free(run->sim);
	unlink(run->json);
	unlink(run->pcap);
	free(run->notes);
	free(run);
}

/* Everybody sends to few, so that there are queues, grants and SRPT. */
static inline void run_send(struct run *run, u32 messages)
{
	struct homa_rng rng;
	u32 i;

	homa_rng_init(&rng, unit_seed());
	for (i = 0; i < messages; i++) {
		struct sim_msg *msg = sim_msg_new(run->sim);
		u32 src = homa_rng_below(&rng, HOSTS);

		assert_non_null(msg);
		msg->src = (u16)src;
		msg->dst = (u16)(src == 0 ? 1 : 0);
		msg->length = 1 + homa_rng_below(&rng, i % 4 ? 3000 : 60000);
		sim_send(run->sim, msg);
		sim_msg_put(run->sim, msg);
		sim_run(run->sim, run->sim->now + 3 * SIM_US);
	}
}

static inline void trace_open(struct run *run, const struct sim_trace_options *o)
{
	char err[256] = "";

	if (sim_trace_open(run->sim, o, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline void trace_close(struct run *run)
{
	char err[256] = "";

	if (sim_trace_close(run->sim, err, sizeof(err)))
		fail_msg("%s", err);
}

static inline char *slurp(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *text;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	text = malloc(*size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *size, file), *size);
	text[*size] = '\0';
	fclose(file);
	return text;
}

#endif
