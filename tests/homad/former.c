// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * An application that was built before homad's header had a table of places: it knows one
 * version, one size of each ring, where each of them is, and compares all for equality. What
 * it needs of that interface stands here as numbers, and abi/shm.h is not included, so that
 * no change there can change it.
 *
 *	former N	attach, bind port 4000, ask itself N times; "ok" and the sum
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	MAGIC = 0x616d6f48,
	VERSION = 1,
	ATTACH = 1,
	BIND = 2,
	REQUEST = 1, /* of either direction */
	REPLY = 2,
	RESPONSE = 2,
	COPY = 2,
	SQ = 256, /* entries */
	CQ = 1024,
	RELEASES = 8192,
	STAGE = 65536,
	PORT = 4000,
	/* Where what is, bytes. */
	NEED_KICK = 128,
	SQ_TAIL = 192,
	SQ_HEAD = SQ_TAIL + 64,
	RELEASE_TAIL = 192 + 8 * 128,
	CQ_TAIL = RELEASE_TAIL + 128,
	CQ_HEAD = CQ_TAIL + 64,
	SQES = 1472,
	CQES = SQES + 8 * SQ * 64,
	RELEASED = CQES + CQ * 128,
	END = RELEASED + RELEASES * 4,
};

struct former_question {
	uint32_t magic;
	uint16_t version, op;
	uint64_t bytes;
	uint16_t port, encap;
	uint32_t reserved;
	uint8_t ip[16];
	char name[32];
};

struct former_answer {
	int32_t error;
	uint16_t version, op, port, encap;
	uint32_t native;
	uint8_t ip[16];
	uint64_t queues_bytes, data_bytes, pool_bytes;
	uint32_t max_rpcs, max_segments, segment, total;
	char text[224];
};

struct former_command {
	uint8_t op, flags;
	uint16_t port;
	uint32_t length, offset;
	uint16_t segment, encap;
	uint8_t ip[16];
	uint64_t cookie, token, reserved[2];
};

struct former_event {
	uint8_t kind, flags;
	uint16_t port;
	uint32_t error, length, num_pages;
	uint64_t id, cookie, token;
	uint8_t ip[16];
	uint16_t encap, reserved[3];
	uint32_t pages[16];
};

_Static_assert(sizeof(struct former_question) == 72 &&
		       sizeof(struct former_answer) == 296 &&
		       sizeof(struct former_command) == 64 &&
		       sizeof(struct former_event) == 128,
	       "as they were");

static uint8_t *queues, *data, *pool;
static int sock, fds[5];
static uint32_t submitted, taken, released;

static void die(const char *what)
{
	fprintf(stderr, "former: %s (errno %d)\n", what, errno);
	exit(1);
}

static uint32_t *word(uint32_t at)
{
	return (uint32_t *)(queues + at);
}

static struct former_answer ask(uint16_t op, uint16_t port)
{
	struct former_question question = { .magic = MAGIC,
					    .version = VERSION,
					    .op = op,
					    .port = port,
					    .name = "former" };
	struct former_answer answer = { 0 };
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control) };

	if (send(sock, &question, sizeof(question), 0) != sizeof(question))
		die("cannot ask");
	if (recvmsg(sock, &msg, 0) != sizeof(answer))
		die("an answer of another length");
	if (answer.version != VERSION || answer.op != op || answer.error) {
		fprintf(stderr, "%s\n", answer.text);
		die("refused, or another version");
	}
	if (op == ATTACH)
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fds));
	return answer;
}

static void attach(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct former_answer answer;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s",
		 getenv("HOMA_SERVICE_SOCKET"));
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (connect(sock, (struct sockaddr *)&to, sizeof(to)))
		die("cannot connect");
	answer = ask(ATTACH, 0);
	if (answer.queues_bytes < END || answer.data_bytes < 8 * STAGE)
		die("too little memory");
	queues = mmap(NULL, answer.queues_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED, fds[0], 0);
	data = mmap(NULL, answer.data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		    fds[1], 0);
	pool = mmap(NULL, answer.pool_bytes, PROT_READ, MAP_SHARED, fds[2], 0);
	if (queues == MAP_FAILED || data == MAP_FAILED || pool == MAP_FAILED)
		die("cannot map");
	if (*word(0) != MAGIC || *word(4) != VERSION)
		die("another header");
}

static void kick(void)
{
	uint64_t one = 1;

	if (__atomic_load_n(word(NEED_KICK), __ATOMIC_SEQ_CST) &&
	    write(fds[4], &one, 8) != 8)
		die("cannot kick");
}

static void submit(struct former_command command, uint32_t number)
{
	command.flags = COPY;
	command.length = sizeof(number);
	command.offset = submitted % 512 * 64;
	memcpy(data + command.offset, &number, sizeof(number));
	((struct former_command *)(queues + SQES))[submitted % SQ] = command;
	__atomic_store_n(word(SQ_TAIL), ++submitted, __ATOMIC_SEQ_CST);
	kick();
}

static struct former_event next(uint32_t *number)
{
	struct former_event event;

	while (__atomic_load_n(word(CQ_TAIL), __ATOMIC_ACQUIRE) == taken)
		usleep(10);
	event = ((struct former_event *)(queues + CQES))[taken % CQ];
	__atomic_store_n(word(CQ_HEAD), ++taken, __ATOMIC_SEQ_CST);
	if (event.num_pages != 1 || event.length != sizeof(*number))
		die("no such message");
	memcpy(number, pool + event.pages[0], sizeof(*number));
	word(RELEASED)[released % RELEASES] = event.pages[0];
	__atomic_store_n(word(RELEASE_TAIL), ++released, __ATOMIC_SEQ_CST);
	kick();
	return event;
}

int main(int argc, char **argv)
{
	struct former_command request = {
		.op = REQUEST,
		.port = PORT,
		.ip = { [10] = 0xff, 0xff, 127, 0, 0, 1 }
	};
	struct former_command reply = { .op = REPLY };
	uint32_t i, got, n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
	uint64_t sum = 0;

	attach();
	ask(BIND, PORT);
	for (i = 1; i <= n; i++) {
		struct former_event event;

		request.token = (uint64_t)i << 16;
		submit(request, i);
		event = next(&got);
		if (event.kind != REQUEST || got != i)
			die("not the request");
		reply.token = event.token;
		submit(reply, 2 * got);
		event = next(&got);
		if (event.kind != RESPONSE || event.token != request.token ||
		    got != 2 * i)
			die("not the response");
		sum += got;
	}
	printf("ok %llu\n", (unsigned long long)sum);
	return 0;
}
