/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* homad's command line. */
#ifndef HOMAD_OPTIONS_H
#define HOMAD_OPTIONS_H

#include "config.h"

/* What the command line asks homad to do. */
enum homad_action {
	HOMAD_RUN,	   /* homad serves */
	HOMAD_CHECK,	   /* --check-config: homad only checks the settings */
	HOMAD_CONFIG_HELP, /* --config-help: homad prints every setting of the file */
	HOMAD_SAID, /* --help, --version: the text has been printed already */
};

/**
 * homad_options() - read the defaults, the file and the command line, in this order
 * @config: Receives the settings.
 * @action: Receives what homad is asked to do.
 * Returns 0, or the exit status 2 after having said on standard error what is
 * wrong.
 */
int homad_options(struct homad_config *config, int argc, char **argv,
		  enum homad_action *action);
/** homad_options_again() - read them again for a reload, and write to @errors what is wrong */
int homad_options_again(struct homad_config *config, int argc, char **argv,
			FILE *errors);

#endif
