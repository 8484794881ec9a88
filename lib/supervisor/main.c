// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What homa-run starts for programs that make system calls themselves. */
#include <stdio.h>
#include <string.h>
#include "supervisor.h"

static int usage(FILE *to)
{
	fputs("usage: homa-supervisor PROGRAM [ARGUMENT...]\n"
	      "       homa-supervisor --ask FILE\n"
	      "\n"
	      "Run a program whose TCP connections homad takes where its rules say so, though it\n"
	      "makes system calls itself. homa-run --tcp does this.\n"
	      "  --ask FILE   does this program need it? The exit status is 0 if it does\n",
	      to);
	return to == stdout ? 0 : 2;
}

static int ask(const char *file)
{
	const char *why = "";
	int rc = homa_sv_which(file, &why);

	if (rc < 0) {
		fprintf(stderr, "homa-supervisor: %s: %s\n", file, strerror(-rc));
		return 2;
	}
	puts(why);
	return rc ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	if (argc == 3 && !strcmp(argv[1], "--ask"))
		return ask(argv[2]);
	if (argc < 2 || argv[1][0] == '-')
		return usage(stderr);
	return homa_sv_launch(argv + 1);
}
