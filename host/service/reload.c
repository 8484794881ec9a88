// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Reading the configuration again. */
#include "log.h"
#include "reload.h"

void homad_reload(struct homad *d, int argc, char **argv)
{
	(void)d;
	(void)argc;
	(void)argv;
	homad_log(HOMAD_WARNING, "reload: not yet");
}
