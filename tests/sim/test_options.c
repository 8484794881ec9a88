// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The command line: units, every option, and one clear sentence for whatever
 * cannot be meant.
 */
#include "unit.h"

#include <errno.h>

#include "sim_options.h"
#include "units.h"

static char err[512];

/* Parses a line of words separated by blanks. */
static int parse(struct sim_options *o, const char *line)
{
	static char copy[2048];
	char *argv[96] = { "homa-sim" }, *word, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	memset(err, 0, sizeof(err));
	return sim_options_parse(o, argc, argv, err, sizeof(err));
}

static void good(struct sim_options *o, const char *line)
{
	if (parse(o, line))
		fail_msg("'%s' refused: %s", line, err);
}

/* ---- units ---- */

static void units__exact(void **state)
{
	u64 value;
	u32 mbps;

	(void)state;
	assert_true(sim_parse_time("250ns", &value) && value == 250000);
	assert_true(sim_parse_time("1.5ms", &value) && value == 1500000000);
	assert_true(sim_parse_time("0.1us", &value) && value == 100000);
	assert_true(sim_parse_time("1ps", &value) && value == 1);
	assert_true(sim_parse_time("0.000000000001s", &value) && value == 1);
	assert_true(sim_parse_time("0", &value) && value == 0);
	assert_true(sim_parse_time("100s", &value) && value == 100 * SIM_S);
	assert_true(sim_parse_rate("10gbit", &mbps) && mbps == 10000);
	assert_true(sim_parse_rate("2.5Gbps", &mbps) && mbps == 2500);
	assert_true(sim_parse_rate("400mbit", &mbps) && mbps == 400);
	assert_true(sim_parse_bytes("64kb", &value) && value == 64000);
	assert_true(sim_parse_bytes("64KiB", &value) && value == 65536);
	assert_true(sim_parse_bytes("36864", &value) && value == 36864);
	assert_true(sim_parse_bytes("1.5mb", &value) && value == 1500000);
	assert_true(sim_parse_number("007", 7, &value) && value == 7);
}

static void units__refused(void **state)
{
	static const char *const times[] = { "",
					     "ns",
					     "5",
					     "5 us",
					     "-5us",
					     "0.1ps",
					     "1e3ns",
					     "5min",
					     "1..5us",
					     ".us",
					     "99999999999999999999s",
					     "20000000s",
					     "5us ",
					     "+1us" };
	static const char *const rates[] = { "",	"10",	   "0gbit",
					     "0.1mbit", "gbit",	   "-1gbit",
					     "9tbit",	"10 gbit", "10gbits" };
	static const char *const bytes[] = {
		"",	     "kb",    "-1",  "1.5",
		"0.5b",	     "1kbit", "1e6", "99999999999999999999",
		"9999999gb", "nan"
	};
	static const char *const numbers[] = { "",   "1.0",  "-1", "x",
					       "1x", "0x10", "8" };
	double real;
	u64 value;
	u32 mbps, i;

	(void)state;
	for (i = 0; i < sizeof(times) / sizeof(*times); i++)
		if (sim_parse_time(times[i], &value))
			fail_msg("'%s' was taken for a time", times[i]);
	for (i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		if (sim_parse_rate(rates[i], &mbps))
			fail_msg("'%s' was taken for a rate", rates[i]);
	for (i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		if (sim_parse_bytes(bytes[i], &value))
			fail_msg("'%s' was taken for bytes", bytes[i]);
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (sim_parse_number(numbers[i], 7, &value))
			fail_msg("'%s' was taken for a number up to 7",
				 numbers[i]);
	assert_false(sim_parse_real("nan", 0, 1, &real));
	assert_false(sim_parse_real("", 0, 1, &real));
	assert_false(sim_parse_real("0.5x", 0, 1, &real));
	assert_false(sim_parse_real("1.01", 0, 1, &real));
}

/* ---- options ---- */

static void options__defaults_are_the_study(void **state)
{
	static struct sim_options o;

	(void)state;
	good(&o, "");
	assert_ptr_equal(o.cfg.transport, &sim_homa);
	assert_string_equal(o.cfg.preset, "sigcomm18");
	assert_string_equal(o.cfg.workload, "w4");
	assert_int_equal(o.cfg.hosts, 144);
	assert_int_equal(o.cfg.racks, 9);
	assert_int_equal(o.cfg.spines, 4);
	assert_int_equal(o.cfg.host_mbps, 10000);
	assert_int_equal(o.cfg.fabric_mbps, 40000);
	assert_true(o.cfg.load == 0.8 && o.cfg.sigcomm_headers && !o.cfg.rpc);
	assert_int_equal(o.progress, -1);
}

static void options__all_taken_in(void **state)
{
	static struct sim_options o;

	(void)state;
	good(&o,
	     "--topology one-switch --hosts 40 --link 25gbit --link-delay 10ns --switch-delay=300ns "
	     "--send-delay 2us --receive-delay 3us --cut-through --balance ecmp --queue trim "
	     "--port-buffer 100kb --shared-buffer 13mb --shared-alpha 0.5 --ecn 65kb "
	     "--trim-packets 9 --loss 0.001 --mtu 3000 --headers true --mode rpc --workload w2 "
	     "--cut 1mb --load 0.75 --load-kind payload --warmup 1ms --measure 2ms --drain 3ms "
	     "--cores 20 --cost copy=16 --cost sleep=0 --offload rss+lro --max-messages 99 --incast 32:20kb:1ms --seed 12345 --json - --progress 2");
	assert_int_equal(o.cfg.topology, SIM_ONE_SWITCH);
	assert_int_equal(o.cfg.hosts, 40);
	assert_int_equal(o.cfg.host_mbps, 25000);
	assert_int_equal(o.cfg.host_prop_ps, 10000);
	assert_int_equal(o.cfg.switch_ps, 300000);
	assert_int_equal(o.cfg.send_ps, 2000000);
	assert_int_equal(o.cfg.recv_ps, 3000000);
	assert_true(o.cfg.cut_through && o.cfg.balance == SIM_ECMP);
	assert_int_equal(o.cfg.queue, SIM_QUEUE_TRIM);
	assert_int_equal(o.cfg.port_bytes, 100000);
	assert_int_equal(o.cfg.shared_bytes, 13000000);
	assert_int_equal(o.cfg.shared_alpha, 128);
	assert_int_equal(o.cfg.ecn_bytes, 65000);
	assert_int_equal(o.cfg.trim_packets, 9);
	assert_int_equal(o.cfg.loss_ppm, 1000);
	assert_int_equal(o.cfg.mtu, 3000);
	assert_true(!o.cfg.sigcomm_headers && o.cfg.rpc && o.cfg.load == 0.75);
	assert_string_equal(o.cfg.workload, "w2");
	assert_int_equal(o.cfg.cut, 1000000);
	assert_int_equal(o.cfg.load_kind, SIM_LOAD_PAYLOAD);
	assert_int_equal(o.cfg.warmup_ps, SIM_MS);
	assert_int_equal(o.cfg.measure_ps, 2 * SIM_MS);
	assert_int_equal(o.cfg.drain_ps, 3 * SIM_MS);
	assert_int_equal(o.cfg.software.cores, 20);
	assert_int_equal(o.cfg.software.cost[SIM_COST_COPY], 16);
	assert_int_equal(o.cfg.software.cost[SIM_COST_SLEEP], 0);
	assert_int_equal(o.cfg.software.offload,
			 SIM_OFFLOAD_RSS | SIM_OFFLOAD_LRO);
	assert_int_equal(o.cfg.max_messages, 99);
	assert_int_equal(o.cfg.incast, 32);
	assert_int_equal(o.cfg.incast_bytes, 20000);
	assert_int_equal(o.cfg.incast_ps, SIM_MS);
	assert_int_equal(o.cfg.seed, 12345);
	assert_string_equal(o.json, "-");
	assert_int_equal(o.progress, 2);
}

static void options__topologies(void **state)
{
	static struct sim_options o;

	(void)state;
	good(&o,
	     "--racks 3 --hosts-per-rack 8 --spines 2 --fabric 100gbit --fabric-delay 5ns");
	assert_int_equal(o.cfg.hosts, 24);
	assert_int_equal(o.cfg.spines, 2);
	assert_int_equal(o.cfg.fabric_mbps, 100000);
	assert_int_equal(o.cfg.fabric_prop_ps, 5000);
	good(&o, "--racks 27");
	assert_int_equal(o.cfg.hosts, 27 * 16);
	good(&o, "--hosts 48 --hosts-per-rack 24");
	assert_int_equal(o.cfg.racks, 2);
	good(&o, "--hosts 18");
	assert_int_equal(o.cfg.hosts, 18);
	assert_int_equal(o.cfg.racks, 9);
	good(&o, "--topology fat-tree --k 16");
	assert_int_equal(o.cfg.hosts, 0); /* the network computes them */
	assert_int_equal(o.cfg.k, 16);
	good(&o, "--fail 144-153:1ms:2ms --fail 0-144:0:1us");
	assert_int_equal(o.cfg.num_failures, 2);
	assert_int_equal(o.cfg.failures[0].node, 144);
	assert_int_equal(o.cfg.failures[0].peer, 153);
	assert_int_equal(o.cfg.failures[1].until, SIM_US);
}

static void options__preset_before_flags_wherever_it_stands(void **state)
{
	static struct sim_options o;

	(void)state;
	good(&o, "--hosts 20 --link 10gbit --preset linux");
	assert_int_equal(o.cfg.hosts, 20);
	assert_int_equal(o.cfg.host_mbps, 10000);
	assert_true(o.cfg.rpc && !o.cfg.sigcomm_headers);
	good(&o, "--preset sigcomm18 --protocol tcp");
	assert_ptr_equal(o.cfg.transport, &sim_tcp);
}

static void options__settings(void **state)
{
	static struct sim_options o;
	const struct sim_option *options = sim_homa.options;

	(void)state;
	good(&o, "--set max_overcommit=3 --set scheduled-levels=5");
	assert_int_equal(o.cfg.homa.max_overcommit, 3);
	assert_string_equal(options[0].name, "scheduled-levels");
	assert_int_equal(o.cfg.option[0], 5);
}

static void options__recording_is_measured_whole(void **state)
{
	static struct sim_options o;

	(void)state;
	good(&o, "--arrivals x.csv");
	assert_true(o.cfg.warmup_ps == 0 && o.cfg.measure_ps == 0);
	good(&o, "--arrivals x.csv --warmup 1us --measure 1ms");
	assert_true(o.cfg.warmup_ps == SIM_US && o.cfg.measure_ps == SIM_MS);
}

static const struct {
	const char *line, *says;
} bad[] = {
	{ "--cores 0", "a whole number from 1 to 256" },
	{ "--cost copy", "NAME=VALUE" },
	{ "--cost copies=8", "--list shows them all" },
	{ "--cost mips=0", "a value that it can have" },
	{ "--offload tso", "one of none, rss" },
	{ "--lod 1", "unknown option '--lod'" },
	{ "-x", "unexpected argument '-x'" },
	{ "w4", "unexpected argument 'w4'" },
	{ "--load", "--load needs a value" },
	{ "--json --seed 1", "--json needs a value" },
	{ "--quiet=1", "takes no value" },
	{ "--protocol foo", "not one of homa" },
	{ "--preset foo", "homa has no preset 'foo', it has sigcomm18, " },
	{ "--protocol tcp --preset linux", "tcp has no preset 'linux'" },
	{ "--set", "--set needs a value" },
	{ "--set x", "NAME=VALUE" },
	{ "--set =1", "NAME=VALUE" },
	{ "--set x=", "NAME=VALUE" },
	{ "--set x=1", "no setting 'x'" },
	{ "--set max_overcommit=33",
	  "no setting 'max_overcommit' that can be 33" },
	{ "--set scheduled-levels=9", "9 is not from 0 to 8" },
	{ "--topology ring", "one of one-switch, leaf-spine, fat-tree" },
	{ "--balance x", "one of spray, ecmp" },
	{ "--queue x", "one of priority, rank, trim" },
	{ "--headers x", "one of true, sigcomm18" },
	{ "--mode x", "one of oneway, rpc" },
	{ "--load-kind x", "one of wire, payload" },
	{ "--hosts 1", "from 2 to 65535" },
	{ "--hosts x", "from 2 to 65535" },
	{ "--racks 0", "from 1 to 2048" },
	{ "--hosts-per-rack 0", "from 1 to 65535" },
	{ "--spines 0", "from 1 to 2048" },
	{ "--topology fat-tree --k 41", "from 2 to 40" },
	{ "--k 4", "--k belongs to" },
	{ "--topology one-switch --racks 3", "belong to --topology leaf-spine" },
	{ "--hosts 10 --racks 2 --hosts-per-rack 4", "leave one of them out" },
	{ "--link 10", "a rate such as" },
	{ "--fabric fast", "a rate such as" },
	{ "--link-delay 5", "a time such as" },
	{ "--fabric-delay x", "a time such as" },
	{ "--switch-delay x", "a time such as" },
	{ "--send-delay x", "a time such as" },
	{ "--receive-delay x", "a time such as" },
	{ "--warmup x", "a time such as" },
	{ "--measure x", "a time such as" },
	{ "--measure 0", "--measure must be more than 0" },
	{ "--drain x", "a time such as" },
	{ "--trace-from x", "a time such as" },
	{ "--warm-start x", "a time such as" },
	{ "--warm-start 1ms --mode rpc", "--warm-start is for --mode oneway" },
	{ "--warm-start 1ms --arrivals x", "--warm-start is for --mode oneway" },
	{ "--apart x", "the number of a host" },
	{ "--topology one-switch --hosts 3 --apart 3", "hosts are 0 to 2" },
	{ "--response-size 0", "a size from 1 to" },
	{ "--response-size 3gb", "a size from 1 to" },
	{ "--response-size 1kb --mode rpc", "--response-size is for" },
	{ "--response-size 1kb --arrivals x", "--response-size is for" },
	{ "--closed 0", "a whole number from 1" },
	{ "--closed 4", "--closed is for --mode rpc" },
	{ "--closed 4 --mode rpc --arrivals x", "without --arrivals" },
	{ "--closed 4 --mode rpc --against-oracle",
	  "without --arrivals and --against-oracle" },
	{ "--servers 2 --mode rpc", "--servers needs --closed" },
	{ "--closed 4 --mode rpc --servers 4 --topology one-switch --hosts 4",
	  "of 4 hosts at most 3" },
	{ "--warm-start 1ms --load 0", "--warm-start is for --mode oneway" },
	{ "--trace-until 1ms", "need --trace FILE or --pcap FILE" },
	{ "--trace x --trace-from 2ms --trace-until 1ms", "must be later" },
	{ "--htb-burst x", "a time such as" },
	{ "--htb-burst 1us", "--htb-burst needs --shaped" },
	{ "--port-buffer x", "a size such as" },
	{ "--shared-buffer x", "a size such as" },
	{ "--ecn x", "a size such as" },
	{ "--shared-alpha 0", "a number from" },
	{ "--trim-packets 0", "from 1 to" },
	{ "--loss 0.6", "a probability" },
	{ "--loss x", "a probability" },
	{ "--mtu 100", "from 256 to 9216" },
	{ "--load -1", "a number from 0 to 10" },
	{ "--load nan", "a number from 0 to 10" },
	{ "--cut 0", "a size from 1" },
	{ "--seed -1", "a whole number" },
	{ "--max-messages x", "a whole number" },
	{ "--progress x", "a file descriptor" },
	{ "--incast 5", "SENDERS:BYTES:PERIOD" },
	{ "--incast 0:1:1ms", "SENDERS:BYTES:PERIOD" },
	{ "--incast 5:0:1ms", "SENDERS:BYTES:PERIOD" },
	{ "--incast 5:1:0", "SENDERS:BYTES:PERIOD" },
	{ "--incast 5:1:1ms:2", "SENDERS:BYTES:PERIOD" },
	{ "--incast 144:1:1ms", "need more than 144 hosts" },
	{ "--fail 1:2:3", "NODE-NODE:FROM:UNTIL" },
	{ "--fail 1-2:1ms", "NODE-NODE:FROM:UNTIL" },
	{ "--fail 1-2:2ms:1ms", "the end after the beginning" },
	{ "--workload=", "a name" },
};

static void options__nonsense_refused_in_one_line(void **state)
{
	static struct sim_options o;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(&o, bad[i].line) != -EINVAL)
			fail_msg("'%s' was taken", bad[i].line);
		if (!strstr(err, bad[i].says) || strchr(err, '\n'))
			fail_msg("'%s' gave: %s", bad[i].line, err);
	}
}

static void options__too_many_failures_and_long_names(void **state)
{
	static struct sim_options o;
	char name[400], *argv[2 * SIM_MAX_FAILURES + 4] = { "homa-sim" };
	int i, argc = 1;

	(void)state;
	for (i = 0; i <= SIM_MAX_FAILURES; i++) {
		argv[argc++] = "--fail";
		argv[argc++] = "0-144:0:1ms";
	}
	assert_int_equal(sim_options_parse(&o, argc, argv, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "more than 32"));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	argv[1] = "--arrivals";
	argv[2] = name;
	assert_int_equal(sim_options_parse(&o, 3, argv, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "longer than"));
	argv[1] = name;
	assert_int_equal(sim_options_parse(&o, 2, argv, err, sizeof(err)),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units__exact),
		cmocka_unit_test(units__refused),
		cmocka_unit_test(options__defaults_are_the_study),
		cmocka_unit_test(options__all_taken_in),
		cmocka_unit_test(options__topologies),
		cmocka_unit_test(options__preset_before_flags_wherever_it_stands),
		cmocka_unit_test(options__settings),
		cmocka_unit_test(options__recording_is_measured_whole),
		cmocka_unit_test(options__nonsense_refused_in_one_line),
		cmocka_unit_test(options__too_many_failures_and_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
