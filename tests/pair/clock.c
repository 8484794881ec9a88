/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What time a host thinks it is. Virtual time is one for all; a host's clock starts
 * anywhere, runs a little too fast or too slow and may leap forward, as that of a
 * virtual machine does that was moved. It never goes back: homa_ctx.now must not.
 *
 * A host that is paused does nothing at all - no packet, no timer, no application -
 * while its device goes on to fill the receive ring. Then everything comes at once.
 */
#include "harness.h"

/* Whole microseconds by the rate, the rest as it is: never backwards for a rate within
 * 1000 ppm, and no overflow for half a year. */
static u64 clock_at(const struct pair_clock *c, u64 at)
{
	u64 d = at - c->since;

	return c->base + d / 1000 * (u64)(1000000 + c->ppm) / 1000 + d % 1000;
}

u64 pair_now(const struct pair_host *h)
{
	return h->clock.on ? clock_at(&h->clock, h->world->now) : h->world->now;
}

u64 pair_when(const struct pair_host *h, u64 time)
{
	const struct pair_clock *c = &h->clock;
	u64 rate = (u64)(1000000 + c->ppm), d, at;

	if (!c->on || time == HOMA_NEVER)
		return time;
	if (time <= c->base)
		return c->since;
	d = time - c->base;
	at = c->since + d / rate * 1000000 + d % rate * 1000000 / rate;
	while (clock_at(c, at) < time)
		at++;
	return at;
}

void pair_clock_set(struct pair_host *h, u64 leap, s32 ppm)
{
	struct pair_clock *c = &h->clock;

	pair_check(h->world, ppm > -1000 && ppm < 1000,
		   "test: a clock that drifts by %d ppm", ppm);
	c->base = pair_now(h) + leap;
	c->since = h->world->now;
	c->ppm = ppm;
	c->on = true;
	c->leaps += leap != 0;
	h->world->did[PAIR_DID_LEAP] += leap != 0;
	/* What was to happen meanwhile is due. */
	if (h->up && h->paused_until <= h->world->now)
		pair_poll(h);
}

void pair_pause(struct pair_host *h, u64 ns)
{
	if (h->paused_until < h->world->now + ns)
		h->paused_until = h->world->now + ns;
	h->world->did[PAIR_DID_PAUSE]++;
}
