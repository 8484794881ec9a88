// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The order in which a configuration comes about: the simulator's defaults,
 * what protocol and preset want, the user's flags in their order, and what
 * follows from several of them together. Whatever cannot be meant is refused
 * here, in one line that says what is wrong and how to mend it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim_options.h"

const struct sim_transport *sim_transport_find(const char *name)
{
	u32 i;

	for (i = 0; sim_transports[i]; i++)
		if (!strcmp(sim_transports[i]->name, name))
			return sim_transports[i];
	return NULL;
}

void sim_transport_names(char *text, size_t size)
{
	size_t used = 0;
	u32 i;

	text[0] = '\0';
	for (i = 0; sim_transports[i] && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 sim_transports[i]->name);
}

static const struct sim_flag *flag_find(const char *word, size_t len)
{
	const struct sim_flag *flag;

	for (flag = sim_flags; flag->name; flag++)
		if (flag->set && strlen(flag->name) == len && !memcmp(flag->name, word, len))
			return flag;
	return NULL;
}

/*
 * Returns the flag at argv[*i], with its value in *@arg, and moves *i to what follows;
 * returns NULL with a sentence in @err if that is no flag.
 */
static const struct sim_flag *flag_next(int argc, char *const *argv, int *i,
					const char **arg, char *err, size_t errlen)
{
	const char *word = argv[*i], *equals;
	const struct sim_flag *flag;

	if (strncmp(word, "--", 2) != 0) {
		snprintf(err, errlen,
			 "unexpected argument '%.60s'; homa-sim --help lists all options",
			 word);
		return NULL;
	}
	equals = strchr(word, '=');
	flag = flag_find(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
	if (!flag) {
		snprintf(err, errlen,
			 "unknown option '%.60s'; homa-sim --help lists them all", word);
		return NULL;
	}
	*arg = NULL;
	(*i)++;
	if (!flag->value) {
		if (!equals)
			return flag;
		snprintf(err, errlen, "option --%s takes no value", flag->name);
		return NULL;
	}
	if (equals) {
		*arg = equals + 1;
	} else if (*i < argc && strncmp(argv[*i], "--", 2) != 0) {
		*arg = argv[(*i)++];
	} else {
		snprintf(err, errlen, "option --%s needs a value: --%s %s", flag->name,
			 flag->name, flag->value);
		return NULL;
	}
	return flag;
}

static bool preset_exists(const struct sim_transport *t, const char *name)
{
	u32 i;

	/* A protocol without presets takes the name of the study whose network is the
	 * default. */
	if (!t->presets)
		return !strcmp(name, "sigcomm18");
	for (i = 0; t->presets[i]; i++)
		if (!strcmp(t->presets[i], name))
			return true;
	return false;
}

/* Takes protocol and preset first, wherever they stand, and sets the defaults that
 * follow. */
static int defaults(struct sim_options *o, const char *protocol, const char *preset,
		    char *err, size_t errlen)
{
	const struct sim_transport *t = sim_transport_find(protocol);
	char names[256];
	size_t used;
	u32 i;

	if (!t) {
		sim_transport_names(names, sizeof(names));
		snprintf(err, errlen, "--protocol: '%.60s' is not one of %s", protocol,
			 names);
		return -EINVAL;
	}
	o->cfg.transport = t;
	if (!preset && t->presets)
		preset = t->presets[0];
	if (preset && !preset_exists(t, preset)) {
		used = (size_t)snprintf(err, errlen,
					"--preset: %s has no preset '%.60s', it has",
					t->name, preset);
		for (i = 0; t->presets && t->presets[i] && used < errlen; i++)
			used += (size_t)snprintf(err + used, errlen - used, "%s %s",
						 i ? "," : "", t->presets[i]);
		if (!t->presets)
			snprintf(err + used, errlen - used, " none: leave --preset out");
		return -EINVAL;
	}
	if (preset)
		snprintf(o->cfg.preset, sizeof(o->cfg.preset), "%s", preset);
	for (i = 0; t->options && t->options[i].name; i++)
		o->cfg.option[i] = t->options[i].def;
	if (t->defaults && t->defaults(&o->cfg)) {
		snprintf(err, errlen, "--preset: %s does not know '%s'", t->name,
			 o->cfg.preset);
		return -EINVAL;
	}
	return 0;
}

static int wrong(char *err, size_t errlen, const char *sentence)
{
	snprintf(err, errlen, "%s", sentence);
	return -EINVAL;
}

/* Checks --hosts, --racks, --hosts-per-rack, --spines and --k against the topology. */
static int check_topology(struct sim_options *o, char *err, size_t errlen)
{
	struct sim_config *cfg = &o->cfg;
	u32 per_rack = o->per_rack;

	if (cfg->topology != SIM_LEAF_SPINE && (o->racks_set || per_rack || o->spines_set))
		return wrong(err, errlen,
			     "--racks, --hosts-per-rack and --spines belong to --topology leaf-spine");
	if (cfg->topology != SIM_FAT_TREE && o->k_set)
		return wrong(err, errlen, "--k belongs to --topology fat-tree");
	switch (cfg->topology) {
	case SIM_ONE_SWITCH:
		if (o->hosts)
			cfg->hosts = o->hosts;
		return 0;
	case SIM_FAT_TREE:
		cfg->hosts = o->hosts;
		return 0;
	case SIM_LEAF_SPINE:
		break;
	}
	if (!o->hosts && !per_rack && o->racks_set)
		per_rack = 16;
	if (o->hosts && per_rack && !o->racks_set && o->hosts % per_rack == 0)
		cfg->racks = o->hosts / per_rack;
	if (per_rack)
		cfg->hosts = per_rack * cfg->racks;
	if (o->hosts && per_rack && cfg->hosts != o->hosts) {
		snprintf(err, errlen,
			 "--hosts %u is not --racks %u times --hosts-per-rack %u: leave one of them out",
			 o->hosts, cfg->racks, per_rack);
		return -EINVAL;
	}
	if (o->hosts)
		cfg->hosts = o->hosts;
	return 0;
}

static int check_times(struct sim_options *o, char *err, size_t errlen)
{
	struct sim_config *cfg = &o->cfg;

	/* A recording is measured from its beginning to its end. */
	if (cfg->arrivals[0]) {
		if (!o->warmup_set)
			cfg->warmup_ps = 0;
		if (!o->measure_set)
			cfg->measure_ps = 0;
	} else if (!cfg->measure_ps) {
		return wrong(err, errlen,
			     "--measure must be more than 0, or nothing is measured");
	}
	if (o->warm_start && (cfg->arrivals[0] || cfg->rpc || !(cfg->load > 0)))
		return wrong(err, errlen,
			     "--warm-start is for --mode oneway with a --workload and a --load");
	if (o->stop_growth > 0 && !o->against_oracle)
		return wrong(err, errlen, "--stop-growth needs --against-oracle");
	if (o->trace_until && o->trace_until <= o->trace_from)
		return wrong(err, errlen, "--trace-until must be later than --trace-from");
	if ((o->trace_from || o->trace_until) && !o->trace && !o->pcap)
		return wrong(err, errlen,
			     "--trace-from and --trace-until need --trace FILE or --pcap FILE");
	return 0;
}

static int check_closed(const struct sim_options *o, char *err, size_t errlen)
{
	const struct sim_config *cfg = &o->cfg;

	if (cfg->servers && !cfg->closed)
		return wrong(err, errlen, "--servers needs --closed");
	if (cfg->closed && (!cfg->rpc || cfg->arrivals[0] || o->against_oracle))
		return wrong(err, errlen,
			     "--closed is for --mode rpc, without --arrivals and --against-oracle");
	if (cfg->hosts && cfg->servers >= cfg->hosts) {
		snprintf(err, errlen, "--servers: of %u hosts at most %u can be servers",
			 cfg->hosts, cfg->hosts - 1);
		return -EINVAL;
	}
	return 0;
}

static int check(struct sim_options *o, char *err, size_t errlen)
{
	struct sim_config *cfg = &o->cfg;
	int res = check_topology(o, err, errlen);

	if (!res)
		res = check_times(o, err, errlen);
	if (!res)
		res = check_closed(o, err, errlen);
	if (res)
		return res;
	if (cfg->apart > cfg->hosts && cfg->hosts) {
		snprintf(err, errlen, "--apart: there is no host %u: hosts are 0 to %u",
			 cfg->apart - 1, cfg->hosts - 1);
		return -EINVAL;
	}
	if (cfg->burst_ps && !cfg->shaped)
		return wrong(err, errlen, "--htb-burst needs --shaped");
	if (cfg->response && !(cfg->rpc && cfg->arrivals[0]))
		return wrong(err, errlen,
			     "--response-size is for --mode rpc with --arrivals FILE");
	if (cfg->incast && cfg->hosts && cfg->incast >= cfg->hosts) {
		snprintf(err, errlen, "--incast: %u senders need more than %u hosts",
			 cfg->incast, cfg->hosts);
		return -EINVAL;
	}
	return 0;
}

int sim_options_parse(struct sim_options *o, int argc, char *const *argv, char *err,
		      size_t errlen)
{
	const char *protocol = "homa", *preset = NULL, *arg;
	const struct sim_flag *flag;
	int i, res;

	memset(o, 0, sizeof(*o));
	o->progress = -1;
	sim_config_default(&o->cfg);
	for (i = 1; i < argc;) {
		flag = flag_next(argc, argv, &i, &arg, err, errlen);
		if (!flag)
			return -EINVAL;
		if (!strcmp(flag->name, "protocol"))
			protocol = arg;
		else if (!strcmp(flag->name, "preset"))
			preset = arg;
		else if (!strcmp(flag->name, "help"))
			o->help = true;
		else if (!strcmp(flag->name, "list"))
			o->list = true;
		else if (!strcmp(flag->name, "version"))
			o->version = true;
	}
	if (o->help || o->list || o->version)
		return 0;
	res = defaults(o, protocol, preset, err, errlen);
	if (res)
		return res;
	for (i = 1; i < argc;) {
		flag = flag_next(argc, argv, &i, &arg, err, errlen);
		res = flag->set(o, arg, err, errlen);
		if (res)
			return res;
	}
	return check(o, err, errlen);
}
