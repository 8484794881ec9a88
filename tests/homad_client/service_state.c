// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a handle knows of itself, into a file and out of it again: all of it arrives, and no
 * file, whatever stands in it, does harm. The handle that reads is a twin of the one that
 * wrote: it has the same memory of the fake homad's, and no connection.
 */
#include "client_test.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "state.h"

#define SERIAL 0x1122334455667788u

static struct homa_svc *c;

static int setup_host(void **state)
{
	struct homa_backend_options options = { .spin_us = 50,
						.flags = HOMA_OPEN_HANDOVER };
	char err[256];
	void *host;

	if (setup(state))
		return -1;
	f.features = HOMA_SHM_CAN_HANDOVER;
	f.id_key[0] = 11;
	f.id_key[1] = 12;
	if (homa_svc_open(&host, &options, err, sizeof(err)))
		fail_msg("%s", err);
	c = host;
	return 0;
}

static int teardown_host(void **state)
{
	homa_svc_close(c);
	return teardown(state);
}

static u64 ask(u32 length, unsigned int flags, u64 *token)
{
	struct iovec iov = { data, length };
	struct homa_message_out out = { .iov = &iov,
					.iovcnt = 1,
					.length = length };
	u64 id;

	assert_int_equal(homa_svc_request(c, (struct sockaddr *)&server, &out,
					  7 + length, flags, &id),
			 0);
	*token = fake_next(&f).token;
	return id;
}

/* Of everything something: open requests, some that are over and not taken, requests that were
 * taken and that were not, one of them answered. */
static void live(u64 *ids)
{
	struct homa_message msg;
	u64 token;
	int i;

	for (i = 0; i < 8; i++) {
		ids[i] = ask(i == 6 ? 500000 : 100 + (u32)i,
			     i & 1 ? HOMA_PRIVATE : 0, &token);
		if (i < 4)
			fake_put(&f,
				 (struct homa_cqe){
					 .kind = HOMA_CQE_RESPONSE,
					 .flags = i & 1 ? HOMA_CQE_PRIVATE : 0,
					 .token = token,
					 .length = 70000 },
				 data);
	}
	for (i = 1; i < 6; i++)
		fake_request(&f, (u64)i << 16 | (u64)i, data, 200 + (u32)i);
	for (i = 0; i < 2; i++) {
		assert_int_equal(homa_svc_receive(c, &msg, 0, HOMA_RECV_REQUEST,
						  20000000000),
				 0);
		assert_int_equal(homa_svc_release(c, &msg), 0);
	}
	assert_int_equal(homa_svc_reject(c, &msg, EIO), 0);
	fake_next(&f);
	assert_int_equal(homa_svc_poll(c), 0);
	assert_int_equal(homa_svc_abort(c, ids[5], 0), 0);
	homa_svc_show_releases(c);
}

/* ---- the twin ---- */

static struct homa_svc *new_twin(void)
{
	struct homa_backend_options options = { .spin_us = 50 };
	struct homa_svc_att *att = malloc(sizeof(*att));
	struct homa_svc *twin;
	char err[256];
	u32 i;

	assert_int_equal(homa_svc_new(&twin, &options, err, sizeof(err)), 0);
	*att = *c->att;
	att->pieces_taken = att->pieces_released = 0;
	att->out = calloc(1, att->pool_bytes / HOMA_SVC_GRANULE);
	for (i = 0; i < att->num_segs; i++)
		assert_int_equal(homa_svc_heap_init(&att->heap[i],
						    (u64)c->att->heap[i].units *
							    HOMA_SVC_UNIT),
				 0);
	homa_svc_adopt(twin, att);
	return twin;
}

static void end_twin(struct homa_svc *twin)
{
	struct homa_svc_att *att = twin->att;
	u32 i;

	twin->att = NULL;
	homa_svc_free(twin);
	for (i = 0; i < att->num_segs; i++)
		homa_svc_heap_free(&att->heap[i]);
	free(att->out);
	free(att);
}

static int to_file(const u8 *bytes, size_t length)
{
	int fd = memfd_create("state", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	return fd;
}

static size_t written(u8 **bytes)
{
	int fd = homa_svc_state_write(c, SERIAL);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(fstat(fd, &st), 0);
	*bytes = malloc((size_t)st.st_size);
	assert_int_equal(pread(fd, *bytes, (size_t)st.st_size, 0), st.st_size);
	close(fd);
	return (size_t)st.st_size;
}

static int read_into(struct homa_svc *twin, const u8 *bytes, size_t length,
		     u64 *serial)
{
	int fd = to_file(bytes, length);
	int rc = homa_svc_state_read(twin, fd, serial);

	close(fd);
	return rc;
}

static void state__all_of_it_arrives(void **state)
{
	struct homa_svc *twin;
	u64 ids[8], serial = 0;
	size_t length;
	u8 *bytes;
	u32 i;

	(void)state;
	live(ids);
	length = written(&bytes);
	twin = new_twin();
	assert_int_equal(read_into(twin, bytes, length, &serial), 0);
	assert_true(serial == SERIAL);
	for (i = 0; i < 8; i++)
		assert_true(homa_svc_token(twin, ids[i]) ==
			    homa_svc_token(c, ids[i]));
	for (i = 0; i < c->fresh; i++) {
		assert_true(twin->slots[i].token == c->slots[i].token);
		assert_int_equal(twin->slots[i].state, c->slots[i].state);
		assert_int_equal(twin->slots[i].gone, c->slots[i].gone);
		assert_true(twin->slots[i].cookie == c->slots[i].cookie);
		assert_true(homa_addr_equal(&twin->slots[i].peer,
					    &c->slots[i].peer));
	}
	assert_memory_equal(twin->requests, c->requests,
			    HOMA_SVC_SLOTS * sizeof(u64));
	assert_memory_equal(twin->att->out, c->att->out,
			    c->att->pool_bytes / HOMA_SVC_GRANULE);
	assert_memory_equal(twin->att->heap[0].tags, c->att->heap[0].tags,
			    c->att->heap[0].units * sizeof(u32));
	assert_int_equal(twin->att->heap[0].used, c->att->heap[0].used);
	assert_int_equal(twin->ready_count, c->ready_count);
	assert_true(twin->ready_count >= 5);
	assert_true(twin->numbers == c->numbers && twin->order == c->order);
	assert_true(twin->att->pieces_taken == c->att->pieces_taken);
	for (i = 0; i < HOMA_SHM_SQS; i++) {
		assert_int_equal(twin->rings[i].tail, c->rings[i].tail);
		assert_int_equal(twin->rings[i].stage_tail,
				 c->rings[i].stage_tail);
	}
	/* What one writes and the other writes is the same. */
	end_twin(twin);
	free(bytes);
}

/* A piece that homad had no room for goes along, and so does its answered request. */
static void state__a_second_file_is_the_same(void **state)
{
	struct homa_svc *twin, *first = c;
	size_t length, again;
	u64 ids[8], serial;
	u8 *bytes, *other;

	(void)state;
	live(ids);
	length = written(&bytes);
	twin = new_twin();
	assert_int_equal(read_into(twin, bytes, length, &serial), 0);
	c = twin;
	again = written(&other);
	c = first;
	assert_int_equal(again, length);
	assert_memory_equal(other, bytes, length);
	end_twin(twin);
	free(bytes);
	free(other);
}

static void state__cut_off_or_longer__is_refused(void **state)
{
	u64 ids[8], serial;
	size_t length, cut;
	u8 *bytes;

	(void)state;
	live(ids);
	length = written(&bytes);
	bytes = realloc(bytes, length + 8);
	memset(bytes + length, 0, 8);
	for (cut = 1; cut < length + 8; cut += cut < 2000 ? 1 : 97) {
		struct homa_svc *twin = new_twin();

		if (cut != length)
			assert_int_equal(read_into(twin, bytes, cut, &serial),
					 -EBADMSG);
		end_twin(twin);
	}
	free(bytes);
}

/* Each byte another one. What is taken all the same lets every message be received. */
static void state__any_byte_wrong__does_no_harm(void **state)
{
	static const u8 change[] = { 0xff, 0x01, 0x80 };
	u64 ids[8], serial;
	size_t length, at;
	u32 i, taken = 0, refused = 0;
	u8 *bytes;

	(void)state;
	live(ids);
	length = written(&bytes);
	for (at = 0; at < length; at += at < 4096 ? 1 : 37) {
		struct homa_svc *twin = new_twin();

		i = (u32)at % 3;
		bytes[at] ^= change[i];
		if (read_into(twin, bytes, length, &serial))
			refused++;
		else
			taken++;
		bytes[at] ^= change[i];
		end_twin(twin);
	}
	assert_true(taken > 0 && refused > 0);
	free(bytes);
}

static void state__another_version__is_told_apart(void **state)
{
	struct homa_svc *twin = NULL;
	u64 serial;
	size_t length;
	u8 *bytes;

	(void)state;
	length = written(&bytes);
	((struct homa_svc_state_head *)bytes)->version++;
	twin = new_twin();
	assert_int_equal(read_into(twin, bytes, length, &serial), -EPROTO);
	end_twin(twin);
	free(bytes);
}

static void heap__tags_from_elsewhere_are_checked(void **state)
{
	struct homa_svc_heap heap;
	u32 used;
	s64 a, b;

	(void)state;
	assert_int_equal(homa_svc_heap_init(&heap, 16 * HOMA_SVC_UNIT), 0);
	a = homa_svc_heap_get(&heap, 3 * HOMA_SVC_UNIT);
	b = homa_svc_heap_get(&heap, 2 * HOMA_SVC_UNIT);
	assert_true(a == 0 && b == 3 * HOMA_SVC_UNIT);
	used = heap.used;
	assert_int_equal(homa_svc_heap_check(&heap, heap.rover, used), 0);
	assert_int_equal(homa_svc_heap_check(&heap, 1, used), -EINVAL);
	assert_int_equal(homa_svc_heap_check(&heap, 0, used + 1), -EINVAL);
	heap.tags[3] = 0;
	assert_int_equal(homa_svc_heap_check(&heap, 0, used), -EINVAL);
	heap.tags[3] = 100 << 1 | 1;
	assert_int_equal(homa_svc_heap_check(&heap, 0, used), -EINVAL);
	homa_svc_heap_free(&heap);
}

#define H(name) cmocka_unit_test_setup_teardown(name, setup_host, teardown_host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		H(state__all_of_it_arrives),
		H(state__a_second_file_is_the_same),
		H(state__cut_off_or_longer__is_refused),
		H(state__any_byte_wrong__does_no_harm),
		H(state__another_version__is_told_apart),
		cmocka_unit_test(heap__tags_from_elsewhere_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
