// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Tests: bytes of outgoing messages (msg.c) - filled in any steps, they come out of
 * any part of the message unchanged, in copies and in page fragments; and what the
 * socket is charged with is given back.
 */
#include <linux/net.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "homa_kunit.h"
#include "homa_sockets.h"

#define MSG_MAX 300000u

/*
 * struct msg_env - what a test needs
 * @bytes: a pattern, from which messages are filled.
 * @back: bytes that came out of a message.
 */
struct msg_env {
	/* a Homa socket that pays for messages. */
	struct socket *sock;
	u8 *bytes, *back;
};

static u8 pattern(u32 i)
{
	return (u8)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

static void msg_exit(struct kunit *test)
{
	struct msg_env *env = test->priv;

	if (!env)
		return;
	if (env->sock)
		sock_release(env->sock);
	vfree(env->bytes);
	vfree(env->back);
	kfree(env);
	test->priv = NULL;
}

static int msg_init(struct kunit *test)
{
	struct msg_env *env = kzalloc(sizeof(*env), GFP_KERNEL);
	int err = -ENOMEM;
	u32 i;

	test->priv = env;
	if (!env)
		return err;
	env->bytes = vmalloc(MSG_MAX);
	env->back = vmalloc(MSG_MAX);
	if (env->bytes && env->back)
		err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM,
				       IPPROTO_HOMA, &env->sock);
	if (err) {
		msg_exit(test);
		return err;
	}
	for (i = 0; i < MSG_MAX; i++)
		env->bytes[i] = pattern(i);
	return 0;
}

/* Makes a message of @length, which is filled in steps of @step. */
static struct homak_msg *msg_make(struct msg_env *env, u32 length, u32 step)
{
	struct homak_msg *msg = homak_msg_new(homak_sk(env->sock->sk), length);
	struct kvec vec = { .iov_base = env->bytes, .iov_len = length };
	struct iov_iter from;
	u32 upto;
	int err = 0;

	if (IS_ERR(msg))
		return msg;
	iov_iter_kvec(&from, ITER_SOURCE, &vec, 1, length);
	for (upto = min(step, length); !err; upto = min(upto + step, length)) {
		err = homak_msg_fill(msg, &from, upto);
		if (upto == length)
			break;
	}
	if (!err)
		return msg;
	homak_msg_free(msg);
	return ERR_PTR(err);
}

/* Do the bytes [offset, offset + length) arrive in a buffer with @room to copy to? */
static bool msg_part(struct msg_env *env, struct homak_msg *msg, u32 offset,
		     u32 length, u32 room)
{
	struct sk_buff *skb = alloc_skb(room + 64, GFP_KERNEL);
	bool ok;

	if (!skb)
		return false;
	skb_put_zero(skb, 56);
	ok = !homak_msg_to_skb(msg, skb, offset, length) &&
	     skb->len == 56 + length &&
	     !skb_copy_bits(skb, 56, env->back, (int)length) &&
	     !memcmp(env->back, env->bytes + offset, length);
	kfree_skb(skb);
	return ok;
}

static void msg_parts(struct kunit *test)
{
	static const u32 lengths[] = { 1,     55,     1404,   1536,  1537,
				       4096,  4097,   32767,  32768, 32769,
				       65536, 100000, MSG_MAX };
	struct msg_env *env = test->priv;
	u32 i, offset, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		const u32 length = lengths[i];
		struct homak_msg *msg = msg_make(env, length, length);

		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, msg);
		KUNIT_EXPECT_EQ(test, homak_msg_length(msg), length);
		for (offset = 0; offset < length; offset += 1404) {
			n = min(length - offset, 1404u);
			KUNIT_EXPECT_TRUE(test,
					  msg_part(env, msg, offset, n, 2048));
			if (length > 2048)
				KUNIT_EXPECT_TRUE(test, msg_part(env, msg,
								 offset, n, 0));
		}
		homak_msg_free(msg);
	}
}

static void msg_long_parts(struct kunit *test)
{
	struct msg_env *env = test->priv;
	struct homak_msg *msg = msg_make(env, MSG_MAX, MSG_MAX);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, msg);
	KUNIT_EXPECT_TRUE(test, msg_part(env, msg, 0, 65000, 0));
	KUNIT_EXPECT_TRUE(test, msg_part(env, msg, 32700, 100, 0));
	KUNIT_EXPECT_TRUE(test, msg_part(env, msg, 31999, 64001, 0));
	KUNIT_EXPECT_TRUE(test, msg_part(env, msg, MSG_MAX - 1, 1, 0));
	homak_msg_free(msg);
}

static void msg_filled_in_steps(struct kunit *test)
{
	static const u32 steps[] = { 1000, 1404, 32768, 50001 };
	struct msg_env *env = test->priv;
	u32 i, offset;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct homak_msg *msg = msg_make(env, 150000, steps[i]);

		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, msg);
		for (offset = 0; offset < 150000; offset += 15000)
			KUNIT_EXPECT_TRUE(test,
					  msg_part(env, msg, offset, 15000, 0));
		homak_msg_free(msg);
	}
}

static void msg_charge_comes_back(struct kunit *test)
{
	static const u32 lengths[] = { 1, 1536, 1537, 40000, MSG_MAX };
	struct msg_env *env = test->priv;
	struct homak_sock *hsk = homak_sk(env->sock->sk);
	const s64 before = atomic64_read(&hsk->tx_bytes);
	const int wmem = refcount_read(&env->sock->sk->sk_wmem_alloc);
	struct homak_msg *msgs[ARRAY_SIZE(lengths)];
	s64 sum = 0;
	u32 i, made;

	for (made = 0; made < ARRAY_SIZE(lengths); made++) {
		msgs[made] = msg_make(env, lengths[made], MSG_MAX);
		if (IS_ERR(msgs[made]))
			break;
		sum += lengths[made];
	}
	KUNIT_EXPECT_EQ(test, made, (u32)ARRAY_SIZE(lengths));
	KUNIT_EXPECT_GE(test, atomic64_read(&hsk->tx_bytes) - before, sum);
	for (i = 0; i < made; i++)
		homak_msg_free(msgs[i]);
	KUNIT_EXPECT_EQ(test, (s64)atomic64_read(&hsk->tx_bytes), before);
	KUNIT_EXPECT_EQ(test, (int)refcount_read(&env->sock->sk->sk_wmem_alloc),
			wmem);
}

/* Fewer bytes come than were announced: those that are there stay, and can be read. */
static void msg_too_little(struct kunit *test)
{
	struct msg_env *env = test->priv;
	struct homak_msg *msg = homak_msg_new(homak_sk(env->sock->sk), 5000);
	struct kvec vec = { .iov_base = env->bytes, .iov_len = 3000 };
	struct iov_iter from;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, msg);
	iov_iter_kvec(&from, ITER_SOURCE, &vec, 1, 3000);
	KUNIT_EXPECT_EQ(test, homak_msg_fill(msg, &from, 2000), 0);
	KUNIT_EXPECT_TRUE(test, msg_part(env, msg, 0, 2000, 0));
	KUNIT_EXPECT_EQ(test, homak_msg_fill(msg, &from, 5000), -EFAULT);
	homak_msg_free(msg);
}

/* A socket that has almost as many bytes as an int counts gets no further message. */
static void msg_charge_has_a_bound(struct kunit *test)
{
	const int most = INT_MAX - 50000;
	struct msg_env *env = test->priv;
	struct sock *sk = env->sock->sk;
	struct homak_sock *hsk = homak_sk(sk);
	const int wmem = refcount_read(&sk->sk_wmem_alloc);
	struct homak_msg *msg;

	atomic64_add(most, &hsk->tx_bytes);
	refcount_add(most, &sk->sk_wmem_alloc);
	msg = homak_msg_new(hsk, 100000);
	KUNIT_EXPECT_TRUE(test, IS_ERR(msg) && PTR_ERR(msg) == -ENOBUFS);
	if (!IS_ERR(msg))
		homak_msg_free(msg);
	KUNIT_EXPECT_EQ(test, (s64)atomic64_read(&hsk->tx_bytes), (s64)most);
	KUNIT_EXPECT_EQ(test, (int)refcount_read(&sk->sk_wmem_alloc),
			wmem + most);
	KUNIT_EXPECT_FALSE(test, homak_sock_room(hsk));
	atomic64_sub(most, &hsk->tx_bytes);
	KUNIT_EXPECT_FALSE(test, refcount_sub_and_test(most, &sk->sk_wmem_alloc));
}

/* Nor does it pay for more. */
static void msg_pay_has_a_bound(struct kunit *test)
{
	struct msg_env *env = test->priv;
	struct homak_sock *hsk = homak_sk(env->sock->sk);
	const int paid = hsk->paid;
	static const s64 bytes[] = { INT_MAX - 20000, 1ll << 31, 3ll << 30,
				     1ll << 32, 5ll << 32 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		atomic64_set(&hsk->ring_bytes, bytes[i]);
		KUNIT_EXPECT_FALSE(test, homak_pay(hsk));
		KUNIT_EXPECT_EQ(test, hsk->paid, paid);
	}
	atomic64_set(&hsk->ring_bytes, 0);
}

static struct kunit_case msg_cases[] = { KUNIT_CASE(msg_parts),
					 KUNIT_CASE(msg_long_parts),
					 KUNIT_CASE(msg_filled_in_steps),
					 KUNIT_CASE(msg_charge_comes_back),
					 KUNIT_CASE(msg_charge_has_a_bound),
					 KUNIT_CASE(msg_pay_has_a_bound),
					 KUNIT_CASE(msg_too_little),
					 {} };

struct kunit_suite homak_kunit_msg = {
	.name = "homa_msg",
	.init = msg_init,
	.exit = msg_exit,
	.test_cases = msg_cases,
};
