// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's configuration file: what it takes, and what it says to what it does
 * not take. Each wrong file is a line here with the line number and a piece of
 * the sentence that must come, and nothing else may come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit.h"

#include "config_schema.h"
#include "log.h"

static struct homad_config config;
static char *said;

/* Read @text as a file; what was said is in @said. */
static int load(const char *text)
{
	char path[] = "/tmp/homa-unit-config-XXXXXX";
	int fd = mkstemp(path), rc;
	size_t length = strlen(text), size;
	FILE *errors;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	close(fd);
	free(said);
	said = NULL;
	errors = open_memstream(&said, &size);
	homad_config_default(&config);
	rc = homad_config_load(&config, path, errors);
	fclose(errors);
	unlink(path);
	return rc;
}

static u32 lines_said(void)
{
	u32 n = 0;
	char *p;

	for (p = said; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

static void config__defaults_are_what_the_schema_allows(void **state)
{
	struct homad_config *c = &config;
	char value[1024], text[2048], table[64];
	u32 i;

	(void)state;
	for (i = 0; i < homad_num_settings; i++) {
		const struct homad_setting *s = &homad_settings[i];
		const char *dot = strchr(s->key, '.');

		homad_config_default(c);
		homad_setting_value(s, c, value, sizeof(value));
		snprintf(table, sizeof(table), "%.*s", (int)(dot - s->key),
			 s->key);
		snprintf(text, sizeof(text), "[%s]\n%s = %s\n", table, dot + 1,
			 value);
		if (load(text))
			fail_msg("%s: %s", text, said);
		homad_setting_value(s, c, text, sizeof(text));
		assert_string_equal(text, value);
	}
}

static void config__every_setting_arrives(void **state)
{
	(void)state;
	assert_int_equal(
		load("[threads]\nmode = \"dedicated\"\ncores = [3, 5]\nspin_us = 70\n"
		     "spin_min_us = 7\nslice_us = 3000\nscale = false\nscale_idle = 1.5\nscale_busy = 0\n"
		     "[network]\ninterfaces = [\"eth7\", \"eth8\"]\nafxdp = \"on\"\n"
		     "xdp_mode = \"native\"\nudp_port = 4000\nbulk = \"on\"\n"
		     "[attach]\nsocket = \"/tmp/x\"\nmode = \"0640\"\n"
		     "[quota]\nrpcs = 17\nrcvbuf_default = \"1 MiB\"\nrcvbuf_max = 2097152\n"
		     "send_max = \"1GiB\"\n"
		     "[log]\nlevel = \"debug\"\nformat = \"json\"\n"
		     "[protocol]\nmax_overcommit = 3\n"),
		0);
	assert_int_equal(config.mode, HOMAD_DEDICATED);
	assert_int_equal(config.num_cores, 2);
	assert_int_equal(config.cores[1], 5);
	assert_int_equal(config.spin_us, 70);
	assert_int_equal(config.spin_min_us, 7);
	assert_int_equal(config.slice_us, 3000);
	assert_false(config.scale);
	assert_int_equal(config.scale_idle, 150);
	assert_int_equal(config.scale_busy, 0);
	assert_int_equal(config.interfaces.num, 2);
	assert_false(config.interfaces.automatic);
	assert_string_equal(config.interfaces.names[1], "eth8");
	assert_int_equal(config.afxdp, 2);
	assert_int_equal(config.xdp_mode, 2);
	assert_int_equal(config.udp_port, 4000);
	assert_int_equal(config.bulk, HOMAD_BULK_ON);
	assert_string_equal(config.socket, "/tmp/x");
	assert_int_equal(config.socket_mode, 0640);
	assert_int_equal(config.quota.rpcs, 17);
	assert_int_equal(config.quota.rcvbuf_default, 1 << 20);
	assert_int_equal(config.quota.rcvbuf_max, 2 << 20);
	assert_int_equal(config.quota.send_max, 1 << 30);
	assert_int_equal(config.log_level, HOMAD_DEBUG);
	assert_int_equal(config.log_format, HOMAD_LOG_JSON);
	assert_int_equal(config.params.max_overcommit, 3);
}

static void config__message_nics(void **state)
{
	(void)state;
	assert_int_equal(load("[network]\nmessage = [\"homa0\", \"homa1\"]\n"),
			 0);
	assert_int_equal(config.message.num, 2);
	assert_string_equal(config.message.names[1], "homa1");
	assert_true(config.interfaces.automatic);
	assert_null(homad_message_conflict(&config));
	assert_true(homad_names(&config.message, "homa1"));
	assert_false(homad_names(&config.message, "homa"));
	/* No AF_XDP and no UDP: the card is a way out. */
	assert_int_equal(load("[network]\nudp = false\ninterfaces = []\n"
			      "message = [\"homa0\"]\n"),
			 0);
}

static void config__what_is_not_named_follows(void **state)
{
	(void)state;
	assert_int_equal(load("[threads]\nspin_us = 1\n[quota]\n"
			      "rcvbuf_max = \"1 MiB\"\nuser_memory = \"16 MiB\"\n"),
			 0);
	assert_int_equal(config.spin_min_us, 1);
	assert_int_equal(config.quota.rcvbuf_default, 1 << 20);
}

static void config__tcp_rules_say_how_much(void **state)
{
	const struct homad_tcp_rule *rule = config.tcp_rules;

	(void)state;
	assert_int_equal(
		load("[[tcp_rule]]\nuser = 7\nconnect = [22, 22]\ndeny = true\n"
		     "[[tcp_rule]]\nlisten = [1, 9]\nsend = \"1.5 Gbit/s\"\n"
		     "receive = \"64 kbit/s\"\nconnections = 12\nlimits = \"rule\"\n"
		     "congestion = \"cubic\"\ndscp = 46\n"
		     "[[tcp_rule]]\nsend = 8000000\n"
		     "[[tcp_rule]]\ncongestion = \"dctcp-rate\"\n"
		     "[[tcp_rule]]\ncongestion = \"timely\"\n"
		     "[[tcp_rule]]\ncongestion = \"constant\"\nrate = \"8 Mbit/s\"\n"),
		0);
	assert_int_equal(config.num_tcp_rules, 6);
	assert_int_equal(rule[3].congestion, 3);
	assert_int_equal(rule[4].congestion, 4);
	assert_int_equal(rule[5].congestion, HOMAD_TCP_CONSTANT);
	assert_int_equal(rule[5].rate, 1000000);
	assert_true(rule[0].deny && !rule[0].send && !rule[0].connections);
	assert_int_equal(rule[0].congestion, -1);
	assert_int_equal(rule[1].send, 187500000);
	assert_int_equal(rule[1].receive, 8000);
	assert_int_equal(rule[1].connections, 12);
	assert_true(rule[1].together && !rule[1].deny);
	assert_int_equal(rule[1].congestion, 2);
	assert_int_equal(rule[1].dscp, 46);
	assert_int_equal(rule[2].send, 1000000);
	assert_false(rule[2].together);
}

static void config__rules_replace_the_default_ones(void **state)
{
	(void)state;
	assert_int_equal(load(""), 0);
	assert_int_equal(config.num_rules, 2);
	assert_int_equal(load("[[rule]]\nuser = \"root\"\nports = [1, 99]\n"
			      "[[rule]]\ngroup = 77\nports = []\n"
			      "[[rule]]\nallow = false\n"),
			 0);
	assert_int_equal(config.num_rules, 3);
	assert_int_equal(config.rules[0].who.id, 0);
	assert_false(config.rules[0].who.any);
	assert_true(config.rules[0].allow);
	assert_int_equal(config.rules[0].port_max, 99);
	assert_true(config.rules[1].who.by_gid);
	assert_int_equal(config.rules[1].who.id, 77);
	assert_int_equal(config.rules[1].port_min, 0);
	assert_true(config.rules[2].who.any);
	assert_false(config.rules[2].allow);
}

static const struct {
	const char *text;
	u32 line;
	const char *piece;
} wrong[] = {
	{ "[threads]\nmode = \"shred\"", 2, "\"shared\" or \"dedicated\"" },
	{ "[threads]\nmode = 1", 2, "threads.mode must be" },
	{ "[threads]\nspinus = 1", 2, "did you mean threads.spin_us?" },
	{ "[thread]\nspin_us = 1", 2, "did you mean threads.spin_us?" },
	{ "spin_us = 1", 1, "did you mean threads.spin_us?" },
	{ "[nothing]\nlike = \"this\"", 2, "--config-help" },
	{ "[nothing]", 1, "there is no setting nothing" },
	{ "[threads]\nspin_us = -1", 2, "from 0 to 1000000" },
	{ "[threads]\nspin_us = 1000001", 2, "from 0 to 1000000" },
	{ "[threads]\nspin_us = 1.5", 2, "whole number" },
	{ "[threads]\nspin_us = [1]", 2, "whole number" },
	{ "[threads]\nspin_us = 1\nspin_min_us = 2", 3, "not be above" },
	{ "[threads]\nscale_idle = nan", 2, "a number from" },
	{ "[threads]\nscale_busy = 1e300", 2, "a number from" },
	{ "[threads]\nscale_busy = 2.0", 2, "below threads.scale_idle" },
	{ "[threads]\ncores = 3", 2, "a list of" },
	{ "[threads]\ncores = [[3]]", 2, "a list of" },
	{ "[threads]\ncores = [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7]", 2,
	  "at most 16" },
	{ "[threads]\nmode = \"dedicated\"", 2, "threads.cores" },
	{ "[network]\ninterfaces = \"eth0\"", 2, "a list of" },
	{ "[network]\ninterfaces = [\"interface-name-too-long\"]", 2, "names" },
	{ "[network]\ninterfaces = [\"\"]", 2, "names" },
	{ "[network]\ninterfaces = [\"a\", \"b\", \"a\"]", 2, "named twice" },
	{ "[network]\nudp = false\nafxdp = \"off\"", 3, "without network.udp" },
	{ "[network]\nmessage = \"auto\"", 2, "interface names: of message NICs" },
	{ "[network]\nmessage = [\"a\"]\ninterfaces = [\"a\"]", 3,
	  "name it in one of them" },
	{ "[network]\nmessage = [\"a\", \"a\"]", 2, "named twice" },
	{ "[network]\nmessage = [\"a\", \"b\"]\naddress = \"10.0.0.1\"", 3,
	  "the address of one interface" },
	{ "[network]\nmessage = [\"a\"]\n[[tcp_rule]]\nconnect = [1, 2]", 3,
	  "serve no message NIC" },
	{ "[network]\nudp_port = 65536", 2, "from 1 to 65535" },
	{ "[attach]\nsocket = \"\"", 2, "must be a path" },
	{ "[attach]\nmode = 660", 2, "octal digits" },
	{ "[attach]\nmode = \"0888\"", 2, "octal digits" },
	{ "[attach]\nmode = \"4755\"", 2, "octal digits" },
	{ "[attach]\ngroup = \"no-such-group\"", 2, "name of a group" },
	{ "[quota]\nrcvbuf_default = \"1 MB\"", 2, "\"8 MiB\"" },
	{ "[quota]\nrcvbuf_default = \"99999999999999999999\"", 2, "bytes" },
	{ "[quota]\nsend_max = \"17592186044416 MiB\"", 2, "bytes" },
	{ "[quota]\nrcvbuf_default = 200000", 2, "multiple of 64 KiB" },
	{ "[quota]\nrcvbuf_default = \"512 MiB\"", 2, "not be above" },
	{ "[protocol]\nmax_overcommit = 0", 2, "from 1 to 32" },
	{ "[protocol]\nmax_overcomit = 1", 2, "protocol.max_overcommit?" },
	{ "[protocol]\nmax_overcommit = \"1\"", 2, "from 1 to 32" },
	{ "[[rule]]\nuser = \"no-such-user\"", 2, "there is no user" },
	{ "[[rule]]\nuser = -1", 2, "the number of a user" },
	{ "[[rule]]\ngroup = 1\nuser = 1", 3, "for a user or for a group" },
	{ "[[rule]]\nports = 5", 2, "[first, last]" },
	{ "[[rule]]\nports = [5]", 2, "[first, last]" },
	{ "[[rule]]\nports = [5, 4]", 2, "above the last" },
	{ "[[rule]]\nports = [0, 4]", 2, "within 1 to 32767" },
	{ "[[rule]]\nallow = 1", 2, "true or false" },
	{ "[[rule]]\nalow = true", 2, "did you mean rule.allow?" },
	{ "[rule]\nallow = true", 2, "[[rule]]" },
	{ "rule = 3", 1, "[[rule]]" },
	{ "[[tcp_rule]]\ndeny = 1\nlisten = [1, 2]", 2, "true or false" },
	{ "[[tcp_rule]]\ndeny = true", 1, "must say what" },
	{ "[[tcp_rule]]\nlisten = [1, 2]\ndeny = true\nsend = \"1 Mbit/s\"", 1,
	  "lets nothing through" },
	{ "[[tcp_rule]]\nsend = \"1 MB/s\"", 2,
	  "tcp_rule.send must be a rate such as \"100 Mbit/s\"" },
	{ "[[tcp_rule]]\nsend = \"100\"", 2, "a rate such as" },
	{ "[[tcp_rule]]\nsend = \"0x10 Mbit/s\"", 2, "a rate such as" },
	{ "[[tcp_rule]]\nsend = \"0x1p4 Mbit/s\"", 2, "a rate such as" },
	{ "[[tcp_rule]]\nsend = \"1e3 Mbit/s\"", 2, "a rate such as" },
	{ "[[tcp_rule]]\nsend = \"1.2.3 Mbit/s\"", 2, "a rate such as" },
	/* More than any address has, and an address in its first 63 bytes. */
	{ "[[tcp_rule]]\nto = \"10.0.0.0/0000000000000000000000000000000000000000000000000000008x\"",
	  2, "tcp_rule.to must be addresses" },
	{ "[[tcp_rule]]\nsend = -5", 2, "a rate such as" },
	{ "[[tcp_rule]]\nsend = 0", 2, "from 64 kbit/s" },
	{ "[[tcp_rule]]\nsend = \"101 Gbit/s\"", 2, "to 100 Gbit/s" },
	{ "[[tcp_rule]]\nsend = \"1e300 Gbit/s\"", 2, "a rate such as" },
	{ "[[tcp_rule]]\nreceive = [\"1 Mbit/s\"]", 2,
	  "tcp_rule.receive must be a rate" },
	{ "[[tcp_rule]]\nconnections = 0", 2, "from 1 to 1048576" },
	{ "[[tcp_rule]]\nconnections = \"many\"", 2, "from 1 to 1048576" },
	{ "[[tcp_rule]]\nlimits = \"all\"", 2,
	  "\"rule\", for all of them together" },
	{ "[[tcp_rule]]\ncongestion = \"reno\"", 2,
	  "\"dctcp-rate\", \"timely\" or \"constant\"" },
	{ "[[tcp_rule]]\ncongestion = \"constant\"", 1, "must say the rate" },
	{ "[[tcp_rule]]\nrate = \"1 Mbit/s\"", 1, "a limit, which other" },
	{ "[[tcp_rule]]\ncongestion = \"constant\"\nrate = \"99 kbit/s\"", 3,
	  "tcp_rule.rate must be at least 100 kbit/s" },
	{ "[[tcp_rule]]\ndscp = 64", 2, "from 0 to 63" },
	{ "[[tcp_rule]]\nsned = 1", 2, "did you mean tcp_rule.send?" },
	{ "[tcp]\nshare = 100", 2, "from 1 to 99" },
	{ "[log]\nlevel = \"all\"", 2, "\"debug\"" },
	{ "[log]\nlevel \"info\"", 2, "not TOML" },
	{ "[log\nlevel = \"info\"", 1, "not TOML" },
	{ "[log]\nlevel = \"info\"\nlevel = \"debug\"", 3, "not TOML" },
	{ "[process]\nuser = \"no-such-user\"", 2, "name of a user" },
};

static void config__each_mistake_has_its_line(void **state)
{
	char place[32];
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(wrong); i++) {
		int rc = load(wrong[i].text);

		snprintf(place, sizeof(place), ":%u: ", wrong[i].line);
		if (rc != 1 || lines_said() != 1 || !strstr(said, place) ||
		    !strstr(said, wrong[i].piece))
			fail_msg("<<%s>> gave %d: %s", wrong[i].text, rc, said);
	}
}

static void config__all_mistakes_are_told_in_the_order_of_lines(void **state)
{
	const char *p;

	(void)state;
	assert_int_equal(load("[threads]\nspin_us = \"x\"\nnonsense\n[quota]\n"
			      "rpcs = 0\n[log]\nlevel = 3\nalso nonsense\n"),
			 5);
	assert_int_equal(lines_said(), 5);
	p = strstr(said, ":2: ");
	assert_non_null(p);
	p = strstr(p, ":3: ");
	assert_non_null(p);
	p = strstr(p, ":5: ");
	assert_non_null(p);
	p = strstr(p, ":7: ");
	assert_non_null(p);
	assert_non_null(strstr(p, ":8: "));
}

static void config__mistakes_without_end_are_bounded(void **state)
{
	char *text = calloc(1, 200000);
	u32 i, used = 0;
	int rc;

	(void)state;
	assert_non_null(text);
	used += (u32)sprintf(text, "[threads]\n");
	for (i = 0; i < 5000; i++)
		used += (u32)sprintf(text + used, "wrong%u = 1\n", i);
	rc = load(text);
	assert_in_range(rc, 50, 100);
	assert_non_null(strstr(said, "perhaps more"));
	for (i = 0; i < used; i++)
		if (text[i] == '=')
			text[i] = ' ';
	assert_in_range(load(text), 10, 100);
	memset(text, '[', 190000);
	text[190000] = '\0';
	assert_in_range(load(text), 1, 2);
	free(text);
}

static void config__many_rules_are_refused(void **state)
{
	char text[4096] = "";
	int i;

	(void)state;
	for (i = 0; i < HOMAD_MAX_RULES + 3; i++)
		strcat(text, "[[rule]]\nuser = 1\n");
	assert_int_equal(load(text), 1);
	assert_non_null(strstr(said, "at most 64 rules"));
}

static void config__no_file_and_no_text(void **state)
{
	size_t size;
	FILE *errors;

	(void)state;
	free(said);
	said = NULL;
	errors = open_memstream(&said, &size);
	assert_int_equal(homad_config_load(&config, "/nonexistent", errors), 1);
	assert_int_equal(homad_config_load(&config, "/", errors), 1);
	assert_int_equal(homad_config_load(&config, "/dev/zero", errors), 1);
	fclose(errors);
	assert_int_equal(lines_said(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config__defaults_are_what_the_schema_allows),
		cmocka_unit_test(config__every_setting_arrives),
		cmocka_unit_test(config__message_nics),
		cmocka_unit_test(config__what_is_not_named_follows),
		cmocka_unit_test(config__tcp_rules_say_how_much),
		cmocka_unit_test(config__rules_replace_the_default_ones),
		cmocka_unit_test(config__each_mistake_has_its_line),
		cmocka_unit_test(
			config__all_mistakes_are_told_in_the_order_of_lines),
		cmocka_unit_test(config__mistakes_without_end_are_bounded),
		cmocka_unit_test(config__many_rules_are_refused),
		cmocka_unit_test(config__no_file_and_no_text),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	free(said);
	return rc;
}
