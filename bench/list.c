/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `homa-bench list` and --help: what there is to choose from.
 */
#include <stdio.h>

#include "json.h"
#include "run.h"
#include "bench_transport.h"

static const char *const workloads[] = { "w1", "w2", "w3", "w4", "w5" };
static const char *const origins[] = {
	"memcached servers at Facebook",
	"a search application at Google",
	"all applications of a Google data center",
	"a Hadoop cluster at Facebook",
	"web search",
};

static void print_workload(const struct homa_workload *w, const char *origin)
{
	int i;

	printf("  %s  mean %6.0f B, deciles", w->name, homa_workload_mean(w));
	for (i = 1; i <= HOMA_DECILES; i++)
		printf(" %u", homa_workload_size(w, i / 10.0));
	printf("\n      %s\n", origin);
}

static cJSON *workload_json(const struct homa_workload *w, const char *origin)
{
	const struct homa_wire_format format = HOMA_WIRE_V4(1500);
	cJSON *item = cJSON_CreateObject(), *deciles;
	int i;

	cJSON_AddStringToObject(item, "name", w->name);
	cJSON_AddStringToObject(item, "origin", origin);
	homa_json_round(item, "mean_bytes", homa_workload_mean(w), 2);
	homa_json_round(item, "mean_wire_bytes",
			homa_workload_wire_mean(w, &format), 2);
	deciles = cJSON_AddArrayToObject(item, "deciles");
	for (i = 0; i <= HOMA_DECILES; i++)
		cJSON_AddItemToArray(deciles,
				     cJSON_CreateNumber(
					     homa_workload_size(w, i / 10.0)));
	return item;
}

static void list_transports(cJSON *list)
{
	size_t i;

	for (i = 0; bench_transports[i]; i++) {
		const struct bench_transport *t = bench_transports[i];
		cJSON *item;

		if (!list) {
			printf("  %-11s %s\n", t->name, t->summary);
			continue;
		}
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", t->name);
		cJSON_AddStringToObject(item, "summary", t->summary);
		cJSON_AddItemToArray(list, item);
	}
}

int bench_list(bool as_json)
{
	cJSON *json = cJSON_CreateObject(), *list;
	struct homa_workload w;
	char err[256];
	int i, code = 0;

	if (!as_json)
		printf("transports:\n");
	list_transports(as_json ? cJSON_AddArrayToObject(json, "transports") :
				  NULL);
	list = cJSON_AddArrayToObject(json, "workloads");
	if (!as_json)
		printf("workloads (messages cut at %u bytes):\n",
		       BENCH_MAX_MESSAGE);
	for (i = 0; i < 5; i++) {
		if (homa_workload_parse(&w, workloads[i], BENCH_MAX_MESSAGE,
					err, sizeof(err)))
			continue;
		if (as_json)
			cJSON_AddItemToArray(list, workload_json(&w, origins[i]));
		else
			print_workload(&w, origins[i]);
		homa_workload_free(&w);
	}
	if (as_json && homa_json_write(json, "-", err, sizeof(err))) {
		bench_complain("%s", err);
		code = BENCH_EXIT_RUNTIME;
	}
	if (!as_json)
		printf("  fixed:BYTES, or a CSV file: one size per line, or size_bytes,cumulative_probability\n");
	cJSON_Delete(json);
	return code;
}

void bench_help(void)
{
	/* clang-format off */
	fputs(
"usage: homa-bench server [--transport T] [--bind ADDRESS:PORT] [options]\n"
"       homa-bench client --peer ADDRESS:PORT... WHAT [options]\n"
"       homa-bench node --bind ADDRESS:PORT --peer ADDRESS:PORT... WHAT [options]\n"
"       homa-bench list [--json]\n"
"\n"
"A server answers requests; a client sends them and measures; a node does both,\n"
"as every host does in the Homa papers' experiments.\n"
"\n"
"WHAT is sent:\n"
"  --workload W        message sizes: w1 .. w5, fixed:BYTES or a CSV file\n"
"  --size BYTES        all messages have this size (1 .. 1000000)\n"
"  --response-size B   responses of B bytes; default: as long as the request\n"
"  --outstanding N     closed loop: N requests in flight (default 1)\n"
"  --load F --link R   open loop: Poisson arrivals that use the fraction F of a link\n"
"                      of R (200mbit, 25gbit), counting all bytes on the wire\n"
"  --gbps G            open loop: G Gbps of payload in each direction\n"
"  --rate N            open loop: N requests per second\n"
"  --max-outstanding N open loop: beyond N in flight arrivals fail (20000)\n"
"  --burst             open loop: a request to each peer at once, at equal intervals\n"
"  --mode M            rtt (100 B, 1 outstanding), rate (100 B, 64 outstanding),\n"
"                      goodput (500 KB requests, 100 B responses, 8 outstanding)\n"
"  --unloaded          one RPC at a time over sizes that span --workload; the result\n"
"                      is a file for --denominators\n"
"  --sizes N,N,...     --unloaded with these sizes;  --samples N  RPCs of each (100)\n"
"  --pause US          --unloaded: so long from the end of an RPC to the next one (0)\n"
"  --denominators FILE report slowdowns: latency over unloaded latency of that size\n"
"  --apart ADDR:PORT   RPCs with this peer are counted apart, in no decile\n"
"  --check             homa: contents of messages are checked\n"
"  --mtu N             for counting packets and the size of a datagram (1500)\n"
"\n"
"WHEN:\n"
"  --duration S  --warmup S   measured and unmeasured seconds (5, 0); a server's\n"
"                      duration is how long it serves (default: until a signal)\n"
"  --start-at T        Unix time in seconds, or mono:SECONDS, for several hosts at once\n"
"  --seed N  --host-index N   the same pair gives the same arrivals (1, 0)\n"
"  --timeout S         an RPC older than S has failed (10)\n"
"  --drain S           wait at the end for RPCs in flight, at most (5)\n"
"  --stay S            a node that is done serves others until it is asked nothing for\n"
"                      S seconds, within --drain (0.5)\n"
"  --any-source        TCP: requests come from whichever address leads to the peer, not from\n"
"                      --bind's; programs under homa-run --tcp need it (homa-run(1))\n"
"  --connect-timeout S wait for the peers to answer, at most (5)\n"
"  --give-up S         end when only failures happened for S seconds (5)\n"
"\n"
"HOW:\n"
"  --transport T       see homa-bench list\n"
"  --bind ADDR:PORT    where to serve (:4000); a client's own address\n"
"  --wait W            epoll, block (in the read of the only connection), spin,\n"
"                      yield (poll, but give up the core);  --spin is --wait spin\n"
"  --pin CPU           run on this CPU only\n"
"  --cc NAME           TCP congestion control\n"
"  --connections N     tcp: streams per peer (1); tcp-pool: opened beforehand (16)\n"
"  --coalesce          tcp: let several messages share a write (default: one each)\n"
"  --via V  --interface I  --udp-port N  --spin-us N  --rcvbuf BYTES  --homa-config S\n"
"                      homa: see homa_open(3)\n"
"\n"
"  --lead US           open loop: poll from so long before an arrival on; 0: sleep until\n"
"                      it is due (default 60)\n"
"\n"
"RESULT:\n"
"  --json FILE         write the whole result (- : standard output); docs/homa-bench.md\n"
"  --no-histograms     without the histograms\n"
"  --label TEXT        kept in the result\n"
"  --lag-limit US      flag the run if requests left later than this at P99 (default:\n"
"                      100 us or a tenth of the short messages' P99, whichever is more)\n"
"  --quiet             print nothing but complaints\n"
"  --help  --version\n"
"\n"
"Exit status: 0 measured; 1 failed while running; 2 the request made no sense.\n",
		stdout);
	/* clang-format on */
}
