// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Ports drawn at random. The kernel looks for a free port one after the other, so with 14,000
 * taken each more cost it up to 14,000 steps, and the thread that takes ports for connections
 * took all of a core. A port that is drawn is free or not by one look.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "port_choice.h"

static void reserve(struct homad_port_choice *choice, unsigned int from,
		    unsigned int to)
{
	for (; from <= to && from < 65536; from++)
		choice->reserved[from / 64] |= 1ull << from % 64;
}

/* Reads a list such as "8080,9000-9010". */
static void read_reserved(struct homad_port_choice *choice, FILE *file)
{
	unsigned int from, to;
	int next;

	while (fscanf(file, "%u", &from) == 1) {
		to = from;
		next = fgetc(file);
		if (next == '-') {
			if (fscanf(file, "%u", &to) != 1)
				return;
			next = fgetc(file);
		}
		reserve(choice, from, to);
		if (next != ',')
			return;
	}
}

void homad_port_choice_read(struct homad_port_choice *choice)
{
	unsigned int first = 0, last = 0;
	FILE *file;

	memset(choice, 0, sizeof(*choice));
	file = fopen("/proc/sys/net/ipv4/ip_local_reserved_ports", "re");
	/* Without the list nobody knows which ports may be had unasked. */
	if (!file)
		return;
	read_reserved(choice, file);
	fclose(file);
	file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	if (!file)
		return;
	if (fscanf(file, "%u %u", &first, &last) == 2 && first &&
	    first <= last && last < 65536) {
		choice->first = (u16)first;
		choice->last = (u16)last;
	}
	fclose(file);
}

static bool more_random(struct homad_port_choice *choice)
{
	if (getrandom(choice->random, sizeof(choice->random), 0) !=
	    (ssize_t)sizeof(choice->random))
		return false;
	choice->num_random = HOMAD_PORT_DRAWS;
	return true;
}

u16 homad_port_choice_draw(struct homad_port_choice *choice)
{
	u32 size = choice->last - choice->first + 1u;
	u32 i, port;

	for (i = 0; choice->first && i < HOMAD_PORT_DRAWS; i++) {
		if (!choice->num_random && !more_random(choice))
			return 0;
		port = choice->first +
		       choice->random[--choice->num_random] * size / 65536;
		if (!(choice->reserved[port / 64] >> port % 64 & 1))
			return (u16)port;
	}
	return 0;
}
