// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One thing about the attach socket, said in one line, for tests in Python:
 *
 *	probe attach		"ok PORT MAX_RPCS" or "error ERRNO TEXT"
 *	probe version N		attach with another version of the ABI
 *	probe magic		attach with another magic number
 *	probe bind PORT...	"ok" or "error ERRNO" for each, a line each
 *	probe pool BYTES	attach with a receive pool of that size
 *	probe segments BYTES	data segments until refused: "COUNT ERRNO TEXT"
 *	probe attachments N	up to N attachments at once: "COUNT ERRNO TEXT"
 *	probe hold		attach, print "held", and stay until killed
 *	probe spray N		N attachments that each ask themselves, at as many
 *				addresses of this host as they may have RPCs, and
 *				never answer; print "sprayed", stay until killed
 *	probe early		ask before attaching
 *	probe twice		attach twice over one connection
 *	probe rings S C R [V]	attach as one of version V with so many ring entries, and ask
 *				itself through each submission ring until all have wrapped
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "raw.h"

static int say(int rc, const struct homa_ctl_answer *answer)
{
	if (rc)
		printf("error %d %s\n", -rc, answer->text);
	else
		printf("ok %u %u\n", answer->port, answer->max_rpcs);
	fflush(stdout);
	return 0;
}

static int attach_as(uint32_t magic, uint16_t version)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	struct homa_ctl_answer answer;
	int fds[HOMA_CTL_ATTACH_FDS], sock = raw_connect(), rc;

	request.magic = magic;
	request.version = version;
	rc = sock < 0 ?
		     sock :
		     raw_ask(sock, &request, &answer, fds, HOMA_CTL_ATTACH_FDS);
	if (sock >= 0 && rc && answer.version != HOMA_SHM_VERSION)
		printf("answer of version %u; ", answer.version);
	return say(rc, &answer);
}

static void must_come(struct raw *r, struct homa_cqe *cqe, uint8_t kind)
{
	if (!raw_next(r, cqe, 20000) || cqe->kind != kind)
		raw_die("no completion of kind %u", kind);
	raw_release(r, cqe);
}

static void ask_itself(struct raw *r, uint32_t times)
{
	static const uint8_t here[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct homa_cqe cqe;
	uint32_t i;

	if (raw_bind(r, 4000))
		raw_die("no port");
	for (i = 0; i < times; i++) {
		struct homa_sqe sqe = raw_sqe(r, here, 4000, 64, 100);

		/* Of the ring's own stage. */
		sqe.flags = HOMA_SQE_COPY;
		sqe.offset += i % HOMA_SHM_SQS * HOMA_SHM_STAGE;
		if (!raw_push(r, i % HOMA_SHM_SQS, &sqe))
			raw_die("a ring is full");
		must_come(r, &cqe, HOMA_CQE_REQUEST);
		sqe.op = HOMA_SQE_REPLY;
		sqe.token = cqe.token;
		raw_push(r, i % HOMA_SHM_SQS, &sqe);
		must_come(r, &cqe, HOMA_CQE_RESPONSE);
	}
}

/* It says that it rings the bell, and then it does not, or writes to it what nobody does. */
static int attach_mute(void)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	struct raw r;
	int rc;

	request.features = HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_BELL;
	rc = raw_attach_as(&r, &request);
	if (rc)
		return say(rc, &r.answer);
	r.mute = true;
	__atomic_store_n(&r.submit[0].index->bell, 0x80000001, __ATOMIC_SEQ_CST);
	ask_itself(&r, 10 * HOMA_SHM_SQS);
	return say(rc, &r.answer);
}

static int attach_sized(int argc, char **argv)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	struct raw r;
	int rc;

	if (argc < 5)
		raw_die("probe: rings of which sizes?");
	request.features = ~0u; /* all that will ever be, too */
	request.rings.submit = (uint32_t)strtoul(argv[2], NULL, 0);
	request.rings.complete = (uint32_t)strtoul(argv[3], NULL, 0);
	request.rings.release = (uint32_t)strtoul(argv[4], NULL, 0);
	if (argc > 5)
		request.version = (uint16_t)strtoul(argv[5], NULL, 0);
	rc = raw_attach_as(&r, &request);
	if (!rc && (r.submit[7].entries != r.answer.rings.submit ||
		    r.complete.entries != r.answer.rings.complete ||
		    r.release.entries != r.answer.rings.release))
		raw_die("the answer says another thing than the table");
	if (!rc)
		ask_itself(&r, HOMA_SHM_SQS * (r.submit[0].entries + 2));
	return say(rc, &r.answer);
}

static int segments(struct raw *r, uint64_t bytes)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_SEGMENT);
	struct homa_ctl_answer answer;
	int n, fd, rc = 0;

	request.bytes = bytes;
	for (n = 0; n < 1000; n++) {
		rc = raw_ask(r->sock, &request, &answer, &fd, 1);
		if (rc)
			break;
		close(fd);
	}
	printf("%d %d %s\n", n, -rc, answer.text);
	return 0;
}

static int attachments(int most)
{
	struct raw r = { .sock = -1 };
	int n, rc = 0;

	for (n = 0; n < most; n++) {
		rc = raw_attach(&r, 2 << 20);
		if (rc)
			break;
	}
	printf("%d %d %s\n", n, -rc, rc ? r.answer.text : "");
	return 0;
}

static int spray(int most)
{
	uint8_t ip[16] = { [10] = 0xff, 0xff, 127 };
	uint32_t i, address = 256;
	int n, wait;

	for (n = 0; n < most; n++) {
		struct raw r;
		int rc = raw_attach(&r, 2 << 20);

		if (rc || raw_bind(&r, (uint16_t)(22000 + n)))
			raw_die("cannot attach and bind: %s", r.answer.text);
		for (i = 0; i < r.answer.max_rpcs; i++, address++) {
			struct homa_sqe sqe;

			ip[13] = (uint8_t)(address >> 16);
			ip[14] = (uint8_t)(address >> 8);
			ip[15] = (uint8_t)address;
			sqe = raw_sqe(&r, ip, (uint16_t)(22000 + n), 0, 10);
			sqe.flags = HOMA_SQE_COPY;
			for (wait = 0; !raw_push(&r, 0, &sqe); wait++) {
				if (wait > 100000)
					raw_die("homad takes no commands");
				usleep(100);
			}
		}
		/* Left open, not given back. */
	}
	printf("sprayed\n");
	fflush(stdout);
	pause();
	return 0;
}

static int twice(struct raw *r)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	struct homa_ctl_answer answer;
	int fds[HOMA_CTL_ATTACH_FDS];

	return say(raw_ask(r->sock, &request, &answer, fds, HOMA_CTL_ATTACH_FDS),
		   &answer);
}

static int early(void)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_BIND);
	struct homa_ctl_answer answer;
	int sock = raw_connect();

	request.port = 4000;
	return say(sock < 0 ? sock : raw_ask(sock, &request, &answer, NULL, 0),
		   &answer);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	struct raw r;
	int i, rc;

	if (!strcmp(what, "version"))
		return attach_as(HOMA_SHM_MAGIC, (uint16_t)number);
	if (!strcmp(what, "magic"))
		return attach_as(0x12345678, HOMA_SHM_VERSION);
	if (!strcmp(what, "attachments"))
		return attachments((int)number);
	if (!strcmp(what, "spray"))
		return spray((int)number);
	if (!strcmp(what, "rings"))
		return attach_sized(argc, argv);
	if (!strcmp(what, "mute"))
		return attach_mute();
	if (!strcmp(what, "early"))
		return early();
	rc = raw_attach(&r, !strcmp(what, "pool") ? number : 2 << 20);
	if (rc || !strcmp(what, "attach") || !strcmp(what, "pool"))
		return say(rc, &r.answer);
	if (!strcmp(what, "segments"))
		return segments(&r, number);
	if (!strcmp(what, "twice"))
		return twice(&r);
	if (!strcmp(what, "hold")) {
		printf("held\n");
		fflush(stdout);
		pause();
	}
	if (strcmp(what, "bind"))
		raw_die("probe: what?");
	for (i = 2; i < argc; i++) {
		rc = raw_bind(&r, (uint16_t)atoi(argv[i]));
		printf(rc ? "error %d\n" : "ok\n", -rc);
	}
	return 0;
}
