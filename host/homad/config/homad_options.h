/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* homad's command line. */
#ifndef HOMAD_OPTIONS_H
#define HOMAD_OPTIONS_H

#include "config.h"

enum homad_action {
	HOMAD_RUN,
	HOMAD_CHECK,	   /* --check-config: only say whether it is right */
	HOMAD_CONFIG_HELP, /* --config-help: every setting of the file */
	HOMAD_SAID,	   /* --help, --version: done */
};

/**
 * homad_options() - defaults, the file, the command line, in this order
 * @config: filled in.
 * @action: what is wanted.
 * Returns 0, or the exit status 2 after having said on standard error what is
 * wrong.
 */
int homad_options(struct homad_config *config, int argc, char **argv,
		  enum homad_action *action);
/** homad_options_again() - the same for a reload: @errors instead of standard
 *  error; the command line was right before. */
int homad_options_again(struct homad_config *config, int argc, char **argv,
			FILE *errors);

#endif
