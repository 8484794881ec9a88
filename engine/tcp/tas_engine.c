// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The engine's beginning, its clock and its settings. */
#include "tas_impl.h"

#define TICK_NS TAS_MSEC  /* resolution of tas_engine.wheel, in ns */
#define PACE_TICK_NS 1024 /* resolution of tas_engine.pace, in ns */

/* A setting. */
struct setting {
	/* Name of the setting. */
	const char *name;
	/* Offset in struct tas_params in bytes, and default, least and greatest value. */
	u32 offset, value, least, most;
};

static const struct setting settings[] = {
#define X(name, value, least, most, unit, text) \
	{ #name, offsetof(struct tas_params, name), value, least, most },
#include "tas_params.def"
#undef X
};

static u32 *value_of(struct tas_engine *engine, const struct setting *setting)
{
	return (u32 *)((char *)&engine->params + setting->offset);
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

int tas_set(struct tas_engine *engine, const char *name, u64 value)
{
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(settings); i++) {
		if (!same(settings[i].name, name))
			continue;
		if (value < settings[i].least || value > settings[i].most)
			return TAS_EINVAL;
		*value_of(engine, &settings[i]) = (u32)value;
		return 0;
	}
	return TAS_EINVAL;
}

void tas_engine_init(struct tas_engine *engine, const u64 seed[6], u64 now,
		     u32 mtu)
{
	static const u32 no_places;
	/* Numbers that the generator shows must not lead back to the keys. */
	struct homa_siphash s = homa_siphash_begin(seed[2], seed[5]);
	u32 i;

	memset(engine, 0, sizeof(*engine));
	memcpy(engine->key, seed, sizeof(engine->key));
	homa_rng_init(&engine->rng, homa_siphash_end(&s));
	for (i = 0; i < HOMA_ARRAY_SIZE(engine->hash_key); i++) {
		s = homa_siphash_begin(seed[0], seed[1]);
		homa_siphash_word(&s, i);
		engine->hash_key[i] = homa_siphash_end(&s);
	}
	for (i = 0; i < HOMA_ARRAY_SIZE(settings); i++)
		*value_of(engine, &settings[i]) = settings[i].value;
	homa_table_init(&engine->table, engine->base, TAS_BUCKETS,
			engine->segment, TAS_SEGMENTS);
	for (i = 0; i < TAS_LISTEN_BUCKETS; i++)
		homa_list_init(&engine->listeners[i]);
	homa_wheel_init(&engine->wheel, TICK_NS, now);
	homa_wheel_init(&engine->pace, PACE_TICK_NS, now);
	homa_table_init(&engine->ended, engine->ended_base, TAS_BUCKETS,
			engine->ended_segment, TAS_SEGMENTS);
	homa_list_init(&engine->ended_order);
	homa_list_init(&engine->orphans);
	homa_list_init(&engine->spare_ended);
	homa_list_init(&engine->spare);
	homa_list_init(&engine->tx);
	homa_list_init(&engine->events);
	homa_list_init(&engine->news);
	homa_list_init(&engine->refused.ready);
	/* Bytes for its connections are dropped. */
	engine->refused.places = &no_places;
	engine->mtu = mtu;
	tas_set_now(engine, now, 0);
}

void tas_set_now(struct tas_engine *engine, u64 now, u32 exceptions)
{
	/* Times are subtracted everywhere, so a clock that goes back stands still here. */
	engine->now = homa_max_u64(engine->now, now);
	engine->clock_ms = (u32)homa_div64(engine->now, TAS_MSEC);
	engine->slow_left = exceptions;
}
