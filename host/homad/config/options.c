// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The command line. It is read twice: first only for the name of the file, then,
 * when the file has been read, for everything that overrides it. Options are a
 * table, so that help and parser cannot disagree.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "homa_settings.h"
#include "log.h"
#include "homad_options.h"

#define DEFAULT_FILE "/etc/homa/homad.toml"
/* This in place of a path puts the monitoring socket beside the attach socket. */
#define BESIDE "\001"

/**
 * struct option - one option
 * @name: Its name without the dashes.
 * @value: What the help calls its value, or NULL if it takes none.
 * @text: What the help says of it.
 * @set: Writes @arg into @c; returns 0, or -EINVAL with what would be right in @err.
 */
struct option {
	const char *name;
	const char *value;
	const char *text;
	int (*set)(struct homad_config *c, const char *arg, char *err,
		   size_t errlen);
};

static int copy(char *to, size_t size, const char *arg, char *err, size_t errlen)
{
	if (strlen(arg) >= size) {
		snprintf(err, errlen, "at most %zu characters are possible",
			 size - 1);
		return -EINVAL;
	}
	memset(to, 0, size);
	memcpy(to, arg, strlen(arg));
	return 0;
}

static int set_socket(struct homad_config *c, const char *arg, char *err,
		      size_t errlen)
{
	if (!*arg) {
		snprintf(err, errlen, "it must be a path");
		return -EINVAL;
	}
	/* Nothing else checks the length, for which the socket's lock file has room, too. */
	return copy(c->socket, sizeof(c->socket), arg, err, errlen);
}

static int set_monitor(struct homad_config *c, const char *arg, char *err,
		       size_t errlen)
{
	return copy(c->monitor, sizeof(c->monitor), arg, err, errlen);
}

static int set_metrics(struct homad_config *c, const char *arg, char *err,
		       size_t errlen)
{
	return copy(c->metrics, sizeof(c->metrics), arg, err, errlen);
}

/* An --interface or a --message has been read; the first one replaces those of the file. */
static bool interface_read, message_read;

static int add_interface(struct homad_interfaces *in, bool *read,
			 const char *arg, char *err, size_t errlen)
{
	if (!*read)
		in->num = 0;
	*read = true;
	in->automatic = false;
	if (in->num == HOMA_ARRAY_SIZE(in->names)) {
		snprintf(err, errlen, "at most %zu interfaces are possible",
			 HOMA_ARRAY_SIZE(in->names));
		return -EINVAL;
	}
	return copy(in->names[in->num++], sizeof(in->names[0]), arg, err, errlen);
}

static int set_interface(struct homad_config *c, const char *arg, char *err,
			 size_t errlen)
{
	return add_interface(&c->interfaces, &interface_read, arg, err, errlen);
}

static int set_message(struct homad_config *c, const char *arg, char *err,
		       size_t errlen)
{
	return add_interface(&c->message, &message_read, arg, err, errlen);
}

static int set_udp_only(struct homad_config *c, const char *arg, char *err,
			size_t errlen)
{
	(void)arg;
	(void)err;
	(void)errlen;
	c->afxdp = 0;
	c->udp = true;
	c->interfaces.automatic = false;
	c->interfaces.num = 0;
	c->message.num = 0;
	return 0;
}

static int set_mode(struct homad_config *c, const char *arg, char *err,
		    size_t errlen)
{
	if (!strcmp(arg, "shared")) {
		c->mode = HOMAD_SHARED;
		return 0;
	}
	if (!strcmp(arg, "dedicated")) {
		c->mode = HOMAD_DEDICATED;
		return 0;
	}
	snprintf(err, errlen, "it must be shared or dedicated");
	return -EINVAL;
}

static int add_cores(struct homad_config *c, unsigned long first,
		     unsigned long last)
{
	for (; first <= last; first++) {
		if (c->num_cores == HOMAD_MAX_THREADS || first > 65535)
			return -EINVAL;
		c->cores[c->num_cores++] = (u32)first;
	}
	return 0;
}

static int set_cores(struct homad_config *c, const char *arg, char *err,
		     size_t errlen)
{
	unsigned long first, last;
	char *end;

	c->num_cores = 0;
	for (;; arg = end + 1) {
		first = last = strtoul(arg, &end, 10);
		if (isdigit((unsigned char)*arg) && *end == '-' &&
		    isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (!isdigit((unsigned char)*arg) || (*end && *end != ',') ||
		    last < first || add_cores(c, first, last))
			break;
		if (!*end)
			return 0;
	}
	snprintf(err, errlen,
		 "it must be a list of at most %d CPU numbers such as 2,3 or 4-7",
		 HOMAD_MAX_THREADS);
	return -EINVAL;
}

static int set_log_level(struct homad_config *c, const char *arg, char *err,
			 size_t errlen)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(names); i++) {
		if (strcmp(arg, names[i]) == 0) {
			c->log_level = (int)i;
			return 0;
		}
	}
	snprintf(err, errlen, "it must be error, warning, info or debug");
	return -EINVAL;
}

static int set_log_json(struct homad_config *c, const char *arg, char *err,
			size_t errlen)
{
	(void)arg;
	(void)err;
	(void)errlen;
	c->log_format = HOMAD_LOG_JSON;
	return 0;
}

static int set_param(struct homad_config *c, const char *arg, char *err,
		     size_t errlen)
{
	return homa_settings_parse(&c->params, arg, err, errlen);
}

static const struct option options[] = {
	{ "config", "FILE",
	  "read this file; without it " DEFAULT_FILE " if that exists", NULL },
	{ "check-config", NULL,
	  "check the file and the command line, say what is wrong, and end",
	  NULL },
	{ "config-help", NULL, "list everything that the file may set", NULL },
	{ "socket", "PATH", "where applications attach", set_socket },
	{ "monitor", "PATH",
	  "socket that ./homa ss, top and trace ask (default: beside --socket; \"\": none)",
	  set_monitor },
	{ "metrics", "ADDR",
	  "serve Prometheus metrics on unix:PATH or 127.0.0.1:PORT", set_metrics },
	{ "interface", "IF",
	  "use this interface with AF_XDP; may be given several times",
	  set_interface },
	{ "message", "IF",
	  "use this interface's message NIC; may be given several times",
	  set_message },
	{ "udp-only", NULL, "no AF_XDP: Homa in UDP only, which needs no root",
	  set_udp_only },
	{ "mode", "shared|dedicated",
	  "one thread that shares its core, or a spinning thread on each of --cores",
	  set_mode },
	{ "cores", "LIST", "CPUs for the dedicated mode, such as 2,3 or 4-7",
	  set_cores },
	{ "log-level", "LEVEL", "error, warning, info or debug", set_log_level },
	{ "log-json", NULL, "log JSON objects, one a line", set_log_json },
	{ "set", "NAME=VALUE",
	  "a setting of the protocol, such as max_overcommit=4, see homad.toml(5); may be given several times",
	  set_param },
	{ "version", NULL, "say the version and end", NULL },
	{ "help", NULL, "say this and end", NULL },
};

static void help(void)
{
	char left[48];
	u32 i;

	printf("usage: homad [OPTION]...\n"
	       "\n"
	       "The Homa transport as a service for all applications of this machine. Stays in the\n"
	       "foreground and logs to standard error. Options override the file:\n\n");
	for (i = 0; i < HOMA_ARRAY_SIZE(options); i++) {
		snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
			 options[i].value ? " " : "",
			 options[i].value ? options[i].value : "");
		printf("  %-26s %s\n", left, options[i].text);
	}
	printf("\n"
	       "Without root: homad --udp-only --socket $XDG_RUNTIME_DIR/homad.sock --monitor \"\"\n"
	       "SIGHUP reads the file again, SIGTERM ends. See homad(8) and homad.toml(5).\n");
}

static const struct option *find_option(const char *word, size_t length)
{
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == length &&
		    memcmp(options[i].name, word, length) == 0)
			return &options[i];
	return NULL;
}

/* Returns the option at argv[*i] and its value, and moves *i to what follows. */
static const struct option *next_option(char **argv, int argc, int *i,
					const char **arg, FILE *errors)
{
	const char *word = argv[*i], *equals = strchr(word, '=');
	const struct option *option = NULL;

	if (strcmp(word, "-h") == 0)
		word = "--help";
	if (strncmp(word, "--", 2) == 0)
		option = find_option(word + 2,
				     equals ? (size_t)(equals - word - 2) :
					      strlen(word + 2));
	if (!option) {
		fprintf(errors,
			"homad: unknown option '%.60s'; homad --help lists them all\n",
			word);
		return NULL;
	}
	*arg = NULL;
	(*i)++;
	if (!option->value && equals) {
		fprintf(errors, "homad: option --%s takes no value\n",
			option->name);
		return NULL;
	}
	if (!option->value)
		return option;
	*arg = equals ? equals + 1 : *i < argc ? argv[(*i)++] : NULL;
	if (!*arg) {
		fprintf(errors, "homad: option --%s needs a value: --%s %s\n",
			option->name, option->name, option->value);
		return NULL;
	}
	return option;
}

/* Finds what homad is asked to do, and which file it shall read. */
static int first_pass(int argc, char **argv, const char **file,
		      enum homad_action *action, FILE *errors)
{
	const struct option *option;
	const char *arg;
	int i = 1;

	*file = NULL;
	*action = HOMAD_RUN;
	while (i < argc) {
		option = next_option(argv, argc, &i, &arg, errors);
		if (!option)
			return 2;
		if (strcmp(option->name, "config") == 0)
			*file = arg;
		else if (strcmp(option->name, "check-config") == 0)
			*action = HOMAD_CHECK;
		else if (strcmp(option->name, "config-help") == 0)
			*action = HOMAD_CONFIG_HELP;
		else if (strcmp(option->name, "help") == 0) {
			help();
			*action = HOMAD_SAID;
			return 0;
		} else if (strcmp(option->name, "version") == 0) {
			printf("homad %s\n", HOMAD_VERSION);
			*action = HOMAD_SAID;
			return 0;
		}
	}
	return 0;
}

static int second_pass(struct homad_config *config, int argc, char **argv,
		       FILE *errors)
{
	const struct option *option;
	const char *arg, *why;
	char err[256];
	int i = 1;

	interface_read = message_read = false;
	while (i < argc) {
		option = next_option(argv, argc, &i, &arg, errors);
		if (!option)
			return 2;
		err[0] = '\0';
		if (!option->set || !option->set(config, arg, err, sizeof(err)))
			continue;
		fprintf(errors, "homad: --%s %s: %s\n", option->name,
			arg ? arg : "", err);
		return 2;
	}
	/* The file was checked alone, and the command line may have changed what it relies on. */
	why = homad_tcp_conflict(config);
	if (why) {
		fprintf(errors, "homad: [[tcp_rule]] of the file: %s\n", why);
		return 2;
	}
	why = homad_interfaces_conflict(config);
	if (!why)
		why = homad_message_conflict(config);
	if (why) {
		fprintf(errors, "homad: %s\n", why);
		return 2;
	}
	if (config->mode == HOMAD_DEDICATED && !config->num_cores) {
		fprintf(errors,
			"homad: dedicated mode needs CPUs of its own: give --cores, or cores in [threads] of the file\n");
		return 2;
	}
	return 0;
}

/* If nobody said where the monitoring socket is, it is in the folder of the attach socket. */
static int place_monitor(struct homad_config *config, FILE *errors)
{
	const char *slash = strrchr(config->socket, '/');
	int folder = slash ? (int)(slash - config->socket) + 1 : 0, n;

	if (strcmp(config->monitor, BESIDE) != 0)
		return 0;
	n = snprintf(config->monitor, sizeof(config->monitor),
		     "%.*smonitor.sock", folder, config->socket);
	if (n < (int)sizeof(config->monitor))
		return 0;
	fprintf(errors,
		"homad: the folder of %s has too long a name for the monitoring socket; give --monitor\n",
		config->socket);
	return 2;
}

static int read_all(struct homad_config *config, int argc, char **argv,
		    enum homad_action *action, FILE *errors)
{
	const char *file;
	int rc;

	homad_config_default(config);
	strcpy(config->monitor, BESIDE);
	rc = first_pass(argc, argv, &file, action, errors);
	if (rc || *action == HOMAD_SAID || *action == HOMAD_CONFIG_HELP)
		return rc;
	if (!file && access(DEFAULT_FILE, F_OK) == 0)
		file = DEFAULT_FILE;
	if (file && homad_config_load(config, file, errors))
		return 2;
	rc = second_pass(config, argc, argv, errors);
	return rc ? rc : place_monitor(config, errors);
}

int homad_options(struct homad_config *config, int argc, char **argv,
		  enum homad_action *action)
{
	return read_all(config, argc, argv, action, stderr);
}

int homad_options_again(struct homad_config *config, int argc, char **argv,
			FILE *errors)
{
	enum homad_action action;

	return read_all(config, argc, argv, &action, errors);
}
