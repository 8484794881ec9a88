// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Lists of what each attachment has to be told, which stream_events.c works off. All
 * holders of a stream hear of it.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_stream.h"

void homad_streams_touch(struct homad_thread *t, struct homad_streams *s)
{
	if (!homa_list_linked(&s->touched))
		homa_list_add_tail(&t->tcp->touched, &s->touched);
}

void homad_alias_news(struct homad_thread *t, struct homad_alias *alias)
{
	if (!homa_list_linked(&alias->pending))
		homa_list_add_tail(&alias->s->alias_news, &alias->pending);
	homad_streams_touch(t, alias->s);
}

void homad_hold_news(struct homad_thread *t, struct homad_hold *hold)
{
	if (!homa_list_linked(&hold->pending))
		homa_list_add_tail(&hold->s->hold_news, &hold->pending);
	homad_streams_touch(t, hold->s);
}

void homad_stream_no_news(struct homad_streams *s, struct homad_stream *stream)
{
	s->unseen -= (stream->news & HOMAD_NEWS_ACCEPTED) != 0;
	stream->news = 0;
}

void homad_stream_news(struct homad_thread *t, struct homad_stream *stream,
		       u32 news)
{
	struct homa_list *node;

	if (unlikely(stream->holds))
		homa_list_for_each(node, &stream->aliases)
			homad_alias_news(t, homa_container_of(node,
							      struct homad_alias,
							      of_stream));
	/* The application of the stream's home does not know it any more, or not yet. */
	if (unlikely(stream->left || stream->parked))
		return;
	stream->home->unseen += (news & ~stream->news & HOMAD_NEWS_ACCEPTED) != 0;
	stream->news |= news;
	if (!homa_list_linked(&stream->pending))
		homa_list_add_tail(&stream->home->news, &stream->pending);
	homad_streams_touch(t, stream->home);
}
