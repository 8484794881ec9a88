// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The Perfetto trace: read back with a JSON parser it says what happened. Then
 * files that end early: in the middle of a run, at their greatest size, on a
 * full disk. The capture has its tests in test_trace_pcap.c.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "json.h"
#include "trace_run.h"

#define TIDS 200000

/** struct seen - what a walk through the trace found */
struct seen {
	u32 begins, ends, delivered, packets, instants, drops, arrows, tips, peak;
	double first, last;
	u8 open[TIDS];
	double busy_until[TIDS];
};

static const char *member(const cJSON *event, const char *name)
{
	const cJSON *m = cJSON_GetObjectItem(event, name);

	return m && m->valuestring ? m->valuestring : "";
}

static void see_bar(struct seen *seen, const cJSON *event, u32 tid, double at)
{
	/* In nanoseconds, as whole numbers: no bar reaches into the next. */
	u64 begin = (u64)(at * 1000 + 0.5);
	u64 end = begin + (u64)(homa_json_number(event, "dur", -1) * 1000 + 0.5);

	assert_true(end > begin);
	assert_true(begin >= (u64)seen->busy_until[tid]);
	seen->busy_until[tid] = (double)end;
	seen->packets++;
}

static void see(struct seen *seen, const cJSON *event)
{
	const char phase = *member(event, "ph");
	const u32 tid = (u32)homa_json_number(event, "tid", 0);
	const double at = homa_json_number(event, "ts", -1);
	const cJSON *args = cJSON_GetObjectItem(event, "args");
	u32 bytes;

	assert_true(tid < TIDS && at >= 0 &&
		    homa_json_number(event, "pid", 0) >= 1);
	if (phase == 'M')
		return;
	if (seen->first < 0)
		seen->first = at;
	if (phase != 'X') {
		assert_true(at >= seen->last);
		seen->last = at;
	}
	switch (phase) {
	case 'B':
		assert_false(seen->open[tid]++);
		seen->begins++;
		break;
	case 'E':
		assert_true(seen->open[tid]--);
		seen->ends++;
		seen->delivered +=
			cJSON_IsTrue(cJSON_GetObjectItem(args, "delivered"));
		break;
	case 'X':
		see_bar(seen, event, tid, at);
		break;
	case 'i':
		if (!strcmp(member(event, "cat"), "drop"))
			seen->drops++;
		else
			assert_true(seen->open[tid] && ++seen->instants);
		break;
	case 's':
		assert_true(seen->open[tid] && ++seen->arrows);
		break;
	case 'f':
		assert_true(seen->open[tid] && ++seen->tips);
		break;
	case 'C':
		bytes = (u32)homa_json_number(args, "bytes", -1);
		if (bytes > seen->peak)
			seen->peak = bytes;
		break;
	default:
		fail_msg("a record of kind %c", phase);
	}
}

static struct seen *read_json(const char *path)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	const cJSON *event;
	cJSON *json = NULL;
	char err[256] = "";

	assert_non_null(seen);
	if (homa_json_read(&json, path, err, sizeof(err)))
		fail_msg("%s", err);
	seen->first = -1;
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents"))
		see(seen, event);
	cJSON_Delete(json);
	return seen;
}

static u32 count_sent(const struct run *run, u8 type)
{
	u32 i, n = 0;

	for (i = 0; i < run->num; i++)
		n += run->notes[i].sent &&
		     homa_peek_type(run->notes[i].hdr) == type;
	return n;
}

static void json__is_what_happened(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	const struct sim_port *port;
	struct seen *seen;
	u64 peak = 0;
	u32 i;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = run->json });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	assert_int_equal(run->delivered, MESSAGES);
	trace_close(run);
	for (i = 0; i < run->sim->num_ports; i++) {
		port = &run->sim->ports[i];
		if (port->stats.peak > peak)
			peak = port->stats.peak;
	}
	seen = read_json(run->json);
	assert_int_equal(seen->begins, 2 * MESSAGES);
	assert_int_equal(seen->ends, 2 * MESSAGES);
	assert_int_equal(seen->delivered, 2 * MESSAGES);
	assert_int_equal(seen->packets, run->num);
	assert_true(count_sent(run, HOMA_GRANT) > 20);
	assert_true(seen->instants >= count_sent(run, HOMA_GRANT));
	assert_true(seen->arrows >= seen->tips && seen->tips > 10);
	assert_true(peak > 0 && seen->peak == peak);
	free(seen);
	run_free(run);
}

/* Who gets a request answers it with as many bytes. */
static void answer(struct sim *sim, struct sim_msg *msg)
{
	struct sim_msg *response;

	if (msg->request)
		return;
	response = sim_msg_new(sim);
	assert_non_null(response);
	sim_msg_get(msg);
	response->request = msg;
	response->src = msg->dst;
	response->dst = msg->src;
	response->length = msg->length;
	sim_send(sim, response);
	sim_msg_put(sim, response);
}

static void json__responses(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct seen *seen;
	char *text, *at;
	u32 from = 0, to = 0;
	size_t size;

	(void)state;
	run->sim->cfg.rpc = true;
	run->sim->on_delivered = answer;
	trace_open(run, &(struct sim_trace_options){ .json = run->json });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	trace_close(run);
	seen = read_json(run->json);
	assert_int_equal(run->delivered, 2 * MESSAGES);
	assert_int_equal(seen->delivered, 4 * MESSAGES);
	free(seen);
	/* An arrow from each request to its response. */
	text = slurp(run->json, &size);
	for (at = text; (at = strstr(at, "\"name\":\"response\"")) != NULL; at++) {
		while (*at != '{')
			at--;
		from += at[7] == 's';
		to += at[7] == 'f';
		at = strstr(at, "\"name\":\"response\"");
	}
	assert_int_equal(from, MESSAGES);
	assert_int_equal(to, MESSAGES);
	free(text);
	run_free(run);
}

static void json__drops(void **state)
{
	struct run *run = run_new(&sim_homa, 20000);
	struct seen *seen;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = run->json });
	run_send(run, MESSAGES);
	sim_run(run->sim, 1000 * SIM_MS);
	trace_close(run);
	seen = read_json(run->json);
	assert_true(run->drops > 0);
	assert_int_equal(seen->drops, run->drops);
	free(seen);
	run_free(run);
}

/* A time in the middle: messages that began before are in it, ends are forced. */
static void json__window(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct seen *seen;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = run->json,
						     .from = 50 * SIM_US,
						     .until = 120 * SIM_US });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	trace_close(run);
	seen = read_json(run->json);
	assert_true(seen->first >= 48 && seen->last <= 120);
	assert_true(seen->begins > 10 && seen->begins == seen->ends);
	assert_true(seen->delivered < seen->ends);
	free(seen);
	run_free(run);
}

/* Like SIGINT: the run stops in the middle. And like SIGKILL: nobody closes it. */
static void json__stopped_in_the_middle(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct seen *seen;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = run->json });
	run_send(run, MESSAGES);
	seen = read_json(run->json);
	assert_true(seen->begins > seen->ends && seen->packets > 100);
	free(seen);
	run->sim->stop = true;
	sim_run(run->sim, SIM_NEVER);
	trace_close(run);
	seen = read_json(run->json);
	assert_true(seen->begins == seen->ends && seen->delivered < seen->ends);
	free(seen);
	run_free(run);
}

static void json__greatest_size(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct seen *seen;
	char err[256] = "";
	size_t size;

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = run->json,
						     .pcap = run->pcap,
						     .max_bytes = 40000 });
	run_send(run, MESSAGES);
	assert_int_equal(sim_trace_close(run->sim, err, sizeof(err)), -EFBIG);
	assert_non_null(strstr(err, "was cut"));
	seen = read_json(run->json);
	assert_true(seen->begins == seen->ends && seen->packets > 10);
	free(seen);
	free(slurp(run->json, &size));
	assert_in_range(size, 39000, 60000);
	run_free(run);
}

static u64 digest_of(bool traced)
{
	struct run *run = run_new(&sim_homa, 1000);
	u64 digest;

	if (traced)
		trace_open(run, &(struct sim_trace_options){
					.json = run->json, .pcap = run->pcap });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	if (traced)
		trace_close(run);
	digest = run->sim->digest;
	run_free(run);
	return digest;
}

static void trace__changes_nothing(void **state)
{
	(void)state;
	assert_true(digest_of(true) == digest_of(false));
}

/* ---- when it cannot be written ---- */

static void file__no_such_folder(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	char err[256] = "";

	(void)state;
	assert_int_equal(sim_trace_open(run->sim,
					&(struct sim_trace_options){
						.json = run->json,
						.pcap = "/nowhere/at/all.pcapng" },
					err, sizeof(err)),
			 -ENOENT);
	assert_non_null(strstr(err, "/nowhere/at/all.pcapng"));
	assert_ptr_equal(run->sim->taps, &run->tap);
	assert_int_equal(sim_trace_open(run->sim,
					&(struct sim_trace_options){
						.json = run->json,
						.from = 5,
						.until = 5 },
					err, sizeof(err)),
			 -EINVAL);
	assert_int_equal(sim_trace_close(run->sim, err, sizeof(err)), 0);
	run_free(run);
}

static void file__full_disk(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	char err[256] = "";

	(void)state;
	trace_open(run, &(struct sim_trace_options){ .json = "/dev/full",
						     .pcap = run->pcap });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	assert_int_equal(run->delivered, MESSAGES);
	assert_int_equal(sim_trace_close(run->sim, err, sizeof(err)), -ENOSPC);
	assert_non_null(strstr(err, "/dev/full"));
	run_free(run);
}

/* No room after 100,000 bytes: what was written before is a whole document. */
static void file__no_more_room(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	struct rlimit old, limit;
	struct seen *seen;
	char err[256] = "";

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 100000;
	trace_open(run, &(struct sim_trace_options){ .json = run->json });
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	assert_int_equal(sim_trace_close(run->sim, err, sizeof(err)), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(err, "ends early"));
	assert_int_equal(run->delivered, MESSAGES);
	seen = read_json(run->json);
	assert_true(seen->packets > 50);
	free(seen);
	run_free(run);
}

/* Into a program: the end comes once, at the end. */
static void file__pipe(void **state)
{
	struct run *run = run_new(&sim_homa, 0);
	char command[128];
	struct seen *seen;
	FILE *cat;
	char path[32];

	(void)state;
	snprintf(command, sizeof(command), "cat > %s", run->json);
	cat = popen(command, "w");
	assert_non_null(cat);
	snprintf(path, sizeof(path), "/dev/fd/%d", fileno(cat));
	trace_open(run, &(struct sim_trace_options){ .json = path });
	run_send(run, MESSAGES);
	sim_run(run->sim, 100 * SIM_MS);
	trace_close(run);
	assert_int_equal(pclose(cat), 0);
	seen = read_json(run->json);
	assert_int_equal(seen->delivered, 2 * MESSAGES);
	free(seen);
	run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__is_what_happened),
		cmocka_unit_test(json__responses),
		cmocka_unit_test(json__drops),
		cmocka_unit_test(json__window),
		cmocka_unit_test(json__stopped_in_the_middle),
		cmocka_unit_test(json__greatest_size),
		cmocka_unit_test(trace__changes_nothing),
		cmocka_unit_test(file__no_such_folder),
		cmocka_unit_test(file__full_disk),
		cmocka_unit_test(file__no_more_room),
		cmocka_unit_test(file__pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
