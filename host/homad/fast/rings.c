// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The rings of applications. Everything in a ring is hostile: an entry is copied
 * out once and only the copy is looked at; an index that a correct library cannot
 * produce costs the application its attachment. A turn is bounded, so that an
 * application that submits without end slows itself only.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "streams.h"

#define TURN_RELEASES 256u

static u32 read_once(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Takes pages of the receive pool that the application gives back; returns how many. */
static u32 releases(struct homad_thread *t, struct homad_app *app)
{
	struct homa_shm_ring *ring = &app->queues->release;
	u32 tail = read_once(&ring->tail), i;
	u32 n = tail - app->release_head;

	if (likely(n == 0))
		return 0;
	if (n > app->rings.releases) {
		homad_app_evict(t, app, "release ring: impossible tail");
		return 0;
	}
	n = homa_min_u32(n, TURN_RELEASES);
	for (i = 0; i < n; i++) {
		u32 slot = app->release_head++ & (app->rings.releases - 1);
		u32 page = __atomic_load_n(&app->rings.released[slot],
					   __ATOMIC_RELAXED);

		if (homa_pool_release(&t->ctx, app->sock, &page, 1)) {
			homad_app_evict(t, app,
					"a page came back that was not out");
			return n;
		}
	}
	__atomic_store_n(&ring->head, app->release_head, __ATOMIC_RELEASE);
	return n;
}

/* The last command of a turn was not taken, or not to its end. Returns how many ordinary commands
 * are as much work as what was done of it. */
HOMA_RARE static u32 refused(struct homad_thread *t, struct homad_app *app,
			     u32 which, const char *why)
{
	if (why == homad_goes_on) {
		app->sq_head[which]--;
		return HOMAD_TURN;
	}
	if (why == homad_next_round) {
		app->sq_head[which]--;
		t->put_off = app;
	} else {
		homad_app_evict(t, app, why);
	}
	return 0;
}

/* Looks at peers that take as long as one command. */
#define LOOKS_PER_COMMAND 16u

/* Returns how many ordinary commands are as much work as @sqe was. @looks is what
 * homa_ctx.metrics[HOMA_M_peer_looks] was before it: for a user who has as many peers as he may
 * the engine searches for an idle one. */
static u32 cost_of(const struct homad_thread *t, const struct homa_sqe *sqe,
		   u64 looks)
{
	/* To end everything is a turn's work. */
	if (unlikely(sqe->op == HOMA_SQE_ABORT && !sqe->token))
		return HOMAD_TURN;
	return 1 + (u32)((t->ctx.metrics[HOMA_M_peer_looks] - looks) /
			 LOOKS_PER_COMMAND);
}

/* Takes off *@bytes a long message that homad has copied, if the command was a reply that went the
 * short way. Returns the commands that it is as much work as. */
HOMA_RARE static u32 charge_long_reply(struct homad_thread *t, u32 *bytes)
{
	u32 copied = t->long_replies;

	t->long_replies = 0;
	*bytes -= homa_min_u32(*bytes, copied);
	return copied / HOMAD_COMMAND_BYTES;
}

static u32 submissions(struct homad_thread *t, struct homad_app *app, u32 which,
		       u32 *budget, u32 *bytes)
{
	struct homa_shm_ring *ring = &app->queues->sq[which];
	u32 tail = read_once(&ring->tail), work = 0, cost;
	u32 n = tail - app->sq_head[which], entries;
	const struct homa_sqe *first;
	const char *wrong = NULL;

	if (n == 0)
		return 0;
	entries = app->rings.sq_entries;
	first = app->rings.sqe + which * entries;
	if (n > entries) {
		homad_app_evict(t, app, "submission ring: impossible tail");
		return 0;
	}
	while (n-- && *budget && *bytes) {
		u32 slot = app->sq_head[which]++ & (entries - 1);
		const struct homa_sqe *entry = &first[slot];
		u64 looks = t->ctx.metrics[HOMA_M_peer_looks];
		struct homa_sqe sqe;

		memcpy(&sqe, entry, sizeof(sqe));
		/* From here on only the copy counts: keep the compiler from
		 * reading the entry once more. */
		__asm__ volatile("" ::: "memory");
		wrong = homad_command(t, app, &sqe);
		if (unlikely(wrong))
			break;
		cost = cost_of(t, &sqe, looks);
		work += cost;
		*budget -= homa_min_u32(*budget, cost);
		if (likely(sqe.length <= HOMAD_DIRECT_MAX))
			*bytes -= homa_min_u32(*bytes, sqe.length);
		else
			work += charge_long_reply(t, bytes);
	}
	if (unlikely(wrong)) {
		work += refused(t, app, which, wrong);
		*budget = 0;
	}
	__atomic_store_n(&ring->head, app->sq_head[which], __ATOMIC_RELEASE);
	return work;
}

/* Returns how many rings the application says that it writes to, at most HOMA_SHM_SQS. Those
 * after the first @rings_backed have no memory behind them yet. */
static u32 rings_named(const struct homad_app *app)
{
	u32 sqs = __atomic_load_n(&app->queues->sqs, __ATOMIC_RELAXED);

	return sqs < 1 ? 1 : homa_min_u32(sqs, HOMA_SHM_SQS);
}

/* Looks whether a completion ring that was full has room now. */
static void look_at_full_ring(struct homad_thread *t, struct homad_app *app)
{
	u32 head = read_once(&app->queues->cq.head);

	homad_lock(app);
	if (app->cq_tail - head != app->rings.cq_entries) {
		homad_hold_back(app, HOMAD_CQ_FULL, false);
		homad_touch(t, app, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
	}
	homad_unlock(app);
}

static u32 streams(struct homad_thread *t, struct homad_app *app, u32 budget)
{
	const char *why;
	u32 done;

	why = homad_stream_commands(t, app->streams, budget, &done);
	if (likely(!why))
		return done;
	if (why != homad_next_round)
		homad_app_evict(t, app, why);
	else if (!app->streams->stuck)
		t->put_off = app;
	return done;
}

/* Is it enough to look at the first submission ring and the bell? */
static bool bell_says_all(const struct homad_app *app)
{
	return app->rings_bell ?
		       !app->look_again :
		       __atomic_load_n(&app->queues->sqs, __ATOMIC_RELAXED) <= 1;
}

/* Most looks at most attachments find nothing: those that ring the bell or have one
 * submission ring, without streams, for which nothing waits here. The others are looked at
 * in full. */
static bool nothing_new(const struct homad_app *app)
{
	const struct homa_shm_header *h = app->queues;

	return read_once(&h->sq[0].tail) == app->sq_head[0] &&
	       !read_once(&h->sq[0].bell) &&
	       read_once(&h->release.tail) == app->release_head &&
	       bell_says_all(app) && !app->streams &&
	       !HOMA_READ_ONCE(app->held_back);
}

/* Takes the bell back. An application that submits after this rings it again, and
 * everything submitted before is seen now. */
static void quiet_bell(struct homad_thread *t, struct homad_app *app)
{
	u32 *bell = &app->queues->sq[0].bell;

	if (!__atomic_load_n(bell, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(bell, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* The application has just asked to be told of room: heads may have moved after it asked,
	 * before homad knew. */
	if (unlikely(!app->asks_room &&
		     (__atomic_load_n(&app->queues->armed, __ATOMIC_RELAXED) &
		      HOMA_SHM_ARM_ROOM))) {
		app->asks_room = true;
		homad_tell_room(t, app);
	}
}

/* Completions wait for room: looks whether the application has made some. Returns what the
 * responses that homad copies then leave of @bytes. */
HOMA_RARE static u32 look_at_held_back(struct homad_thread *t,
				       struct homad_app *app, u32 bytes)
{
	u32 held_back = HOMA_READ_ONCE(app->held_back);

	if (held_back & HOMAD_CQ_FULL)
		look_at_full_ring(t, app);
	if (held_back & HOMAD_NO_ROOM)
		bytes = homad_direct_retry(t, app, bytes);
	return bytes;
}

/* Returns the number of commands that are as much of a turn as the bytes copied in one that
 * left @bytes. */
static u32 as_commands(u32 bytes)
{
	return (HOMAD_TURN_BYTES - bytes) / HOMAD_COMMAND_BYTES;
}

static __attribute__((noinline)) u32 look_closely(struct homad_thread *t,
						  struct homad_app *app)
{
	u32 budget = HOMAD_TURN, bytes = HOMAD_TURN_BYTES;
	u32 sqs, i, done;

	quiet_bell(t, app);
	app->look_again = app->retry_again = false;
	sqs = rings_named(app);
	if (unlikely(sqs > app->rings_backed)) {
		app->look_again = true;
		homad_want_memory(t, app, app->pool_backed);
		sqs = app->rings_backed;
	}
	done = releases(t, app);
	if (unlikely(HOMA_READ_ONCE(app->held_back))) {
		bytes = look_at_held_back(t, app, bytes);
		app->retry_again = !bytes;
	}
	for (i = 0; i < sqs && budget && bytes && !app->evicted; i++) {
		if (++app->sq_next >= sqs)
			app->sq_next = 0;
		done += submissions(t, app, app->sq_next, &budget, &bytes);
	}
	if (unlikely(app->asks_room))
		homad_tell_room(t, app);
	if (app->streams && budget && !app->evicted)
		done += streams(t, app, budget);
	if (!budget || !bytes) {
		app->counters.budget_out++;
		app->look_again = true;
	}
	return homa_max_u32(done, as_commands(bytes));
}

u32 homad_look_at_rings(struct homad_thread *t, struct homad_app *app)
{
	return nothing_new(app) ? 0 : look_closely(t, app);
}

int homad_turn_of(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;
	u32 i, done, sqs = homa_min_u32(rings_named(app), app->rings_backed);
	struct homad_polled *user = homad_polled_of(t, app);

	if (app->phase != HOMAD_APP_OPEN || app->evicted)
		return 0;
	homad_now(t);
	app->look_again = true;
	if (app->streams) {
		homad_tcp_enter(t, app->streams->tcp);
		homad_tcp_round(t);
	}
	done = homad_look_at_rings(t, app);
	homad_tx_early_end(t);
	/* The user pays for this turn, so that he gets no more than his part of the
	 * thread, also if this attachment has not kicked and others of his have. */
	if (user->num)
		user->credit -= homad_turn_cost(done);
	for (i = 0; i < sqs && !app->evicted; i++)
		if (read_once(&app->queues->sq[i].tail) != app->sq_head[i])
			return 1;
	return app->streams && !app->evicted &&
	       homad_stream_commands_waiting(app->streams);
}

/* The same, unless the user owes too much for a turn. */
static int turn_if_paid(struct homad_thread *t, void *arg)
{
	if (homad_owes_much(t, homad_polled_of(t, arg)))
		return 0;
	return homad_turn_of(t, arg);
}

u32 homad_turns_of_rings(struct homad_app *app, bool in_debt)
{
	u32 entries = HOMA_SHM_SQS * app->rings.sq_entries, turns;

	if (app->streams)
		entries += app->streams->entries * HOMAD_MOST_COMMANDS;
	for (turns = 0; turns < (entries + HOMAD_TURN - 1) / HOMAD_TURN; turns++)
		if (homad_call(app->thread,
			       in_debt ? homad_turn_of : turn_if_paid, app) <= 0)
			return turns;
	return turns;
}

/* Is there an entry in any submission ring, whether or not the bell was rung? */
static bool something_waits(const struct homad_app *app)
{
	const struct homa_shm_header *h = app->queues;
	u32 i, sqs = rings_named(app);

	if (read_once(&h->release.tail) != app->release_head)
		return true;
	if (app->retry_again && (HOMA_READ_ONCE(app->held_back) & HOMAD_NO_ROOM))
		return true;
	if (unlikely(sqs > app->rings_backed)) {
		/* Entries in that ring wait for memory that was not asked for yet. */
		if (!__atomic_load_n(&app->asked_memory, __ATOMIC_RELAXED))
			return true;
		sqs = app->rings_backed;
	}
	if ((HOMA_READ_ONCE(app->held_back) & HOMAD_CQ_FULL) &&
	    app->cq_tail - read_once(&h->cq.head) != app->rings.cq_entries)
		return true;
	for (i = 0; i < sqs; i++)
		if (read_once(&h->sq[i].tail) != app->sq_head[i])
			return true;
	return app->streams && homad_stream_commands_waiting(app->streams);
}

bool homad_rings_waiting(struct homad_app *app)
{
	/* Without this an application that does not ring would keep homad awake, and
	 * nothing would be done. */
	app->look_again = something_waits(app);
	return app->look_again;
}

void homad_ask_kick(struct homad_app *app)
{
	u32 want = HOMA_SHM_KICK_SUBMIT;

	if (HOMA_READ_ONCE(app->held_back) & HOMAD_CQ_FULL)
		want |= HOMA_SHM_KICK_CONSUME;
	if (homa_sock_starved(app->sock))
		want |= HOMA_SHM_KICK_RELEASE;
	if (HOMA_READ_ONCE(app->held_back) & HOMAD_NO_ROOM)
		want |= HOMA_SHM_KICK_RELEASE | HOMA_SHM_KICK_CONSUME;
	__atomic_store_n(&app->queues->need_kick, want, __ATOMIC_SEQ_CST);
}
