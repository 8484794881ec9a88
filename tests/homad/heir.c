// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Programs that hand their handle over.
 *
 *	heir server HOW FILE PORT HOLD
 *		keep HOLD requests, answer all others at once
 *	heir client HOW FILE ADDRESS COUNT LENGTH FIRST
 *		send COUNT requests with numbers from FIRST on, and receive nothing for now
 *	heir resume FILE
 *		take over what FILE tells of, and be that server or client
 *
 * Each prints "ready" when the client has sent all, or the server has HOLD requests ("serving"
 * before that). After SIGUSR1 it hands over: HOW is "exec" (this process becomes "heir resume"),
 * "fork" (a child goes on, and this process waits for it) or "leave" (it prints "exported" and
 * waits to be killed). Who has taken over prints "resumed PID", and can be sent SIGUSR1 again.
 * After SIGUSR2 a server answers what it holds, and a client receives all and ends with
 *
 *	done 40 failed 0
 *
 * Every other request is private; they have LENGTH bytes and fewer. A message begins with its
 * number and its length, and every byte of it is checked. A server that gets a request twice
 * ends with a sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api_common.h"

enum { MOST = 2048, ANSWER = 0x40000000, FLAGS_HOW = 16 };

/* struct mark - how a message begins */
struct mark {
	unsigned int number, length;
};

/* struct story - what goes from one process to the next in FILE */
struct story {
	struct homa_handover handover;
	char how[FLAGS_HOW];
	int is_server;
	unsigned int hold, num, told, first;
	unsigned int failed;
	struct {
		struct homa_ticket ticket;
		struct mark mark;
		uint64_t id;
		int is_private;
	} rpc[MOST];
	unsigned char seen[MOST];
};

static struct story story;
static char message[HOMA_MAX_MESSAGE];
static volatile sig_atomic_t hand_over, go_on;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		hand_over = 1;
	else
		go_on = 1;
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void save(const char *file)
{
	int fd = open(file, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	API_CHECK(fd >= 0 && write(fd, &story, sizeof(story)) == sizeof(story) &&
			  !close(fd),
		  "%s: %s", file, strerror(errno));
}

static void load(const char *file)
{
	int fd = open(file, O_RDONLY);

	API_CHECK(fd >= 0 && read(fd, &story, sizeof(story)) == sizeof(story) &&
			  !close(fd),
		  "%s: %s", file, strerror(errno));
}

static void fill(struct mark mark)
{
	API_CHECK(mark.length >= sizeof(mark) && mark.length <= sizeof(message),
		  "a message of %u bytes", mark.length);
	api_fill(message, mark.length, mark.number);
	memcpy(message, &mark, sizeof(mark));
}

/* Whole and right? Its mark. */
static struct mark verify(const struct homa_message *msg)
{
	static char got[HOMA_MAX_MESSAGE];
	struct mark mark;

	API_CHECK(homa_copy(msg, got, sizeof(got)) == msg->length, "copy");
	memcpy(&mark, got, sizeof(mark));
	API_CHECK(mark.length == msg->length, "%zu bytes instead of %u",
		  msg->length, mark.length);
	fill(mark);
	API_CHECK(!memcmp(got, message, mark.length), "wrong bytes in %u",
		  mark.number);
	return mark;
}

/* ---- handing over ---- */

static struct homa *resume(void)
{
	struct homa *h;

	API_CHECK(!homa_import(&h, &story.handover, NULL), "%s",
		  homa_open_error());
	printf("resumed %d\n", (int)getpid());
	fflush(stdout);
	return h;
}

static struct homa *pass_on(struct homa *h, const char *file)
{
	pid_t child;
	int status;

	hand_over = 0;
	API_CHECK(!homa_export(h, &story.handover), "%s", homa_error(h));
	API_CHECK(homa_poll(h) == -ESHUTDOWN, "the old handle works");
	save(file);
	if (!strcmp(story.how, "exec")) {
		execl("/proc/self/exe", "heir", "resume", file, NULL);
		api_die("exec: %s", strerror(errno));
	}
	if (!strcmp(story.how, "leave")) {
		say("exported");
		for (;;)
			pause();
	}
	child = fork();
	API_CHECK(child >= 0, "fork: %s", strerror(errno));
	if (!child)
		return resume();
	homa_close(h);
	while (waitpid(child, &status, 0) < 0)
		API_CHECK(errno == EINTR, "wait: %s", strerror(errno));
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

/* ---- the server ---- */

static void answer_held(struct homa *h)
{
	unsigned int i;

	for (i = 0; i < story.num; i++) {
		struct mark mark = story.rpc[i].mark;

		mark.number |= ANSWER;
		fill(mark);
		API_CHECK(!homa_ticket_reply(h, &story.rpc[i].ticket, message,
					     mark.length),
			  "%s", homa_error(h));
		API_CHECK(homa_ticket_reply(h, &story.rpc[i].ticket, message,
					    1) == -EINVAL,
			  "answered twice");
	}
	story.num = story.hold = 0;
	go_on = 0;
}

static void got_request(struct homa *h, struct homa_message *msg)
{
	struct mark mark = verify(msg),
		    answer = { mark.number | ANSWER, mark.length };

	API_CHECK(mark.number < MOST && !story.seen[mark.number]++,
		  "request %u came twice", mark.number);
	if (story.num < story.hold) {
		API_CHECK(!homa_ticket_get(msg, &story.rpc[story.num].ticket),
			  "%s", homa_open_error());
		story.rpc[story.num++].mark = mark;
	} else {
		fill(answer);
		API_CHECK(!homa_reply(h, msg, message, answer.length), "%s",
			  homa_error(h));
	}
	homa_release(h, msg);
}

static int serve(struct homa *h, const char *file)
{
	struct homa_message msg;
	int rc;

	for (;;) {
		rc = homa_receive(h, &msg, HOMA_RECV_REQUEST, 50);
		API_CHECK(!rc || rc == -EINTR || rc == -EAGAIN, "%s",
			  homa_error(h));
		if (!rc)
			got_request(h, &msg);
		if (story.hold && story.num == story.hold && !story.told) {
			story.told = 1;
			say("ready");
		}
		if (hand_over)
			h = pass_on(h, file);
		if (go_on)
			answer_held(h);
	}
}

/* ---- the client ---- */

static void send_all(struct homa *h, const char *address, size_t length)
{
	struct sockaddr_storage to;
	unsigned int i;

	API_CHECK(!homa_parse_address(address, &to), "%s", homa_open_error());
	for (i = 0; i < story.num; i++) {
		struct mark mark = { story.first + i,
				     (unsigned int)(length -
						    length / 3 * (i % 3)) };

		story.rpc[i].is_private = i % 2;
		story.rpc[i].mark = mark;
		fill(mark);
		API_CHECK(!homa_request(h, (struct sockaddr *)&to, sizeof(to),
					message, mark.length, i,
					i % 2 ? HOMA_PRIVATE : 0,
					&story.rpc[i].id),
			  "%s", homa_error(h));
	}
}

static void got_response(struct homa *h, struct homa_message *msg)
{
	unsigned int number = (unsigned int)msg->cookie;
	struct mark mark;

	API_CHECK(number < story.num && msg->id == story.rpc[number].id,
		  "a response to nothing");
	API_CHECK(!story.seen[number]++, "response %u came twice", number);
	if (msg->kind == HOMA_RESPONSE) {
		mark = verify(msg);
		API_CHECK(mark.number == ((story.first + number) | ANSWER),
			  "another's response");
	} else {
		story.failed++;
	}
	homa_release(h, msg);
}

static int finish(struct homa *h)
{
	struct homa_message msg;
	unsigned int i;
	int rc;

	for (i = 0; i < story.num; i++) {
		if (story.seen[i])
			continue;
		do
			rc = story.rpc[i].is_private ?
				     homa_receive_id(h, &msg, story.rpc[i].id,
						     120000) :
				     homa_receive(h, &msg, HOMA_RECV_RESPONSE,
						  120000);
		while (rc == -EINTR);
		API_CHECK(!rc, "%s", homa_error(h));
		got_response(h, &msg);
		/* Shared ones come in any order. */
		if (!story.seen[i])
			i--;
	}
	printf("done %u failed %u\n", story.num, story.failed);
	homa_close(h);
	return 0;
}

static int ask(struct homa *h, const char *file)
{
	for (;;) {
		if (hand_over)
			h = pass_on(h, file);
		if (go_on)
			return finish(h);
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	struct homa_options options = { .flags = HOMA_OPEN_HANDOVER };
	struct sigaction action = { .sa_handler = on_signal };
	const char *file;
	struct homa *h;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	API_CHECK(argc > 2, "usage");
	if (!strcmp(argv[1], "resume")) {
		file = argv[2];
		load(file);
		h = resume();
		return story.is_server ? serve(h, file) : ask(h, file);
	}
	API_CHECK(argc > 5, "usage");
	snprintf(story.how, sizeof(story.how), "%s", argv[2]);
	file = argv[3];
	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
	story.is_server = !strcmp(argv[1], "server");
	if (story.is_server) {
		story.hold = (unsigned int)atoi(argv[5]);
		API_CHECK(!homa_bind(h, (uint16_t)atoi(argv[4])), "%s",
			  homa_error(h));
		say("serving");
		return serve(h, file);
	}
	story.num = (unsigned int)atoi(argv[5]);
	API_CHECK(argc > 7 && story.num <= MOST, "usage");
	story.first = (unsigned int)atoi(argv[7]);
	send_all(h, argv[4], (size_t)atol(argv[6]));
	say("ready");
	return ask(h, file);
}
