// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The program tcp_calls: finds the case and runs one end of it. See tcp_calls.h.
 */
#include <arpa/inet.h>
#include "tcp_calls.h"

static const struct tcp_case *const lists[] = {
	tcp_accept_cases,  tcp_bulk_cases,	 tcp_close_cases,
	tcp_connect_cases, tcp_descriptor_cases, tcp_epoll_cases,
	tcp_flag_cases,	   tcp_fork_cases,	 tcp_many_cases,
	tcp_mixed_cases,   tcp_option_cases,	 tcp_process_cases,
	tcp_reset_cases,   tcp_thread_cases,	 tcp_vector_cases,
	tcp_splice_cases,  tcp_wait_cases,	 tcp_end_cases,
	tcp_handler_cases, tcp_inherit_cases,	 tcp_number_cases,
	tcp_exec_cases,	   tcp_partial_cases,	 tcp_told_cases,
	tcp_cancel_cases,  tcp_set_cases,	 tcp_spawn_cases,
	tcp_room_cases,	   tcp_urgent_cases,	 tcp_wake_cases,
	tcp_race_cases,	   tcp_again_cases,
};

static const struct tcp_case *find(const char *name)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (const struct tcp_case *it = lists[i]; it->name; it++)
			if (!strcmp(it->name, name))
				return it;
	WRONG("no case is called %s", name);
}

static void list(void)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (const struct tcp_case *it = lists[i]; it->name; it++)
			printf("%s\n", it->name);
}

static void read_address(struct tcp_end *end, const char *address,
			 const char *port)
{
	unsigned short number = htons((unsigned short)atoi(port));

	if (strchr(address, ':')) {
		end->address.v6.sin6_family = AF_INET6;
		end->address.v6.sin6_port = number;
		end->length = sizeof(end->address.v6);
		SAME(inet_pton(AF_INET6, address, &end->address.v6.sin6_addr), 1);
	} else {
		end->address.v4.sin_family = AF_INET;
		end->address.v4.sin_port = number;
		end->length = sizeof(end->address.v4);
		SAME(inet_pton(AF_INET, address, &end->address.v4.sin_addr), 1);
	}
}

int main(int argc, char **argv)
{
	struct tcp_end end = { .program = argv[0], .sync = -1 };
	const struct tcp_case *it;

	/* A part of a case: what exec gave this program (process.c). */
	if (argc == 3 && !strcmp(argv[1], "--inherited")) {
		tcp_echo(atoi(argv[2]));
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "--part")) {
		alarm(60);
		tcp_exec_part(argv[2], atoi(argv[3]), atoi(argv[4]));
		/* A child's end is told by its status. */
		if (strcmp(argv[0], "tcp_calls"))
			printf("ok\n");
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		list();
		return 0;
	}
	if (argc < 5 || argc > 6) {
		fprintf(stderr,
			"usage: tcp_calls CASE --server|--client ADDRESS PORT [SYNC]\n");
		return 2;
	}
	alarm(getenv("TCP_ALARM") ? (unsigned int)atoi(getenv("TCP_ALARM")) : 60);
	it = find(argv[1]);
	end.server = !strcmp(argv[2], "--server");
	end.path = argv[5];
	read_address(&end, argv[3], argv[4]);
	(end.server ? it->server : it->client)(&end);
	printf("ok\n");
	return 0;
}
