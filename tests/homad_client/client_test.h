/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One handle and one fake homad for each test of this folder. */
#ifndef CLIENT_TEST_H
#define CLIENT_TEST_H

#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "fake.h"
#include "libhoma_preload.h"

static struct fake f;
static struct homa *h;
static struct sockaddr_storage server;
static u8 data[HOMA_MAX_MESSAGE];

static inline int setup(void **state)
{
	u32 i;

	(void)state;
	memset(&f, 0, sizeof(f));
	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 7 + i / 251);
	fake_start(&f);
	return homa_parse_address("10.1.2.3:4000", &server);
}

static inline int teardown(void **state)
{
	(void)state;
	homa_close(h);
	h = NULL;
	fake_kill(&f);
	return 0;
}

static inline void open_handle(void)
{
	struct homa_options options = { .via = "service" };

	if (homa_open(&h, &options))
		fail_msg("%s", homa_open_error());
}

static inline u64 request(const void *buf, u32 length, unsigned int flags)
{
	u64 id;

	if (homa_request(h, (struct sockaddr *)&server, sizeof(server), buf,
			 length, 7, flags, &id))
		fail_msg("%s", homa_error(h));
	return id;
}

static inline int try_request(u32 length)
{
	return homa_request(h, (struct sockaddr *)&server, sizeof(server), data,
			    length, 7, 0, NULL);
}

static inline void receive(struct homa_message *msg, int kind)
{
	if (homa_receive(h, msg, 0, 20000))
		fail_msg("%s", homa_error(h));
	assert_int_equal(msg->kind, kind);
}

struct wanted {
	const char *name;
	u64 value;
};

static inline void match(void *arg, const char *name, const char *text,
			 uint64_t value)
{
	struct wanted *w = arg;

	(void)text;
	if (!strcmp(name, w->name))
		w->value = value;
}

/* Of homa_metrics(); ~0: there is none of that name. */
static inline u64 counter(const char *name)
{
	struct wanted w = { name, ~0ull };

	homa_metrics(h, match, &w);
	return w.value;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
