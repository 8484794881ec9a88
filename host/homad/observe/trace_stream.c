// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From the rings of the recorder to whoever asked for a trace on the monitoring
 * socket:
 *
 *	{"op": "trace", "format": "pcapng" | "records", "snap": BYTES,
 *	 "app": ID | "NAME", "peer": "IP", "port": N}
 *
 * is answered by one line of JSON and then by bytes without end: a capture as
 * pcapng, or records (homad_trace.h). {"op": "stop"} ends it properly, with what was
 * still in the rings and the number of records lost; closing the connection
 * ends it at once. Other requests on this connection are ignored meanwhile. A viewer
 * that reads too slowly loses records, nobody waits.
 *
 * One trace at a time: two would have to share the rings or double their cost.
 * The only timer of the slow path that ticks runs here, while a trace does.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "admin.h"
#include "monitor.h"
#include "pcapng.h"
#include "homad_trace.h"

#define TICK_NS 5000000u
/* The most records that are written in a tick, which makes four million a second. */
#define RECORDS_AT_ONCE 20000u
/* The most bytes that a viewer may be behind. */
#define BEHIND (4u << 20)
#define BLOCK_MAX (HOMAD_TRACE_SNAP_MAX + 512)
#define SOURCES 64u

/* struct source - the local address of packets to @dst, for sockets that have none */
struct source {
	/* The destination, and the local address from which packets go there. */
	u8 dst[16], src[16];
};

/**
 * struct stream - a trace being sent
 * @task: The answer as the viewer knows it.
 * @v: The viewer that asked for the trace.
 * @timer: A timer that ticks while the trace runs.
 * @want: Which packets the fast path records.
 * @ring: The ring of each fast-path thread, which the thread writes its records to.
 * @told: For each ring, the number of lost records that the viewer has been told of.
 * @num_rings: The number of entries of @ring.
 * @offset: Added to homa_clock_ns(), this gives the time of day, ns.
 * @seen: The number of records sent to the viewer.
 * @app: If @want.by_app is set, the number of the attachment that is traced, or 0.
 * @app_name: If @app is 0, the name of the attachments that are traced. They are looked up at
 *	every tick.
 * @pcapng: The trace is sent as a capture, not as records.
 * @stopped: The threads write no more records; what is left in the rings is still sent.
 * @sources: The local addresses that were looked up so far.
 */
static struct stream {
	struct homad_task task;
	struct homad_viewer *v;
	struct homad_source timer;
	struct homad_trace_want want;
	struct homad_trace *ring[HOMAD_MAX_THREADS];
	u64 told[HOMAD_MAX_THREADS];
	u32 num_rings;
	u64 offset, seen;
	u64 app;
	char app_name[32];
	bool pcapng, stopped;
	struct source sources[SOURCES];
} *running;

/* ---- applications by name ---- */

/* An errand for the control thread: it finds the attachments that are traced. */
static void find_those(struct homad *d, void *arg)
{
	struct stream *s = arg;
	struct homa_list *pos;
	u32 n = 0;

	homa_list_for_each(pos, &homad_slow(d)->apps) {
		const struct homad_app *app =
			homa_list_entry(pos, struct homad_attached, list)->app;

		if (s->app ? app->id != s->app :
			     strcmp(app->name, s->app_name) != 0)
			continue;
		if (n == HOMAD_TRACE_APPS || !app->sock)
			continue;
		HOMA_WRITE_ONCE(s->want.app[n], app->id);
		HOMA_WRITE_ONCE(s->want.app_port[n], homa_sock_port(app->sock));
		n++;
	}
	HOMA_WRITE_ONCE(s->want.num_apps, n);
}

static void find_apps(struct homad *d, struct stream *s)
{
	if (s->want.by_app)
		homad_control(d, find_those, s);
}

/* ---- as a capture ---- */

/* Finds the local address of packets to @dst by the kernel's routes. */
static void find_source(const u8 dst[16], u8 src[16])
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_port = 9 };
	socklen_t size = sizeof(addr);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(src, 0, 16);
	memcpy(&addr.sin6_addr, dst, 16);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&addr, size) &&
	    !getsockname(fd, (struct sockaddr *)&addr, &size))
		memcpy(src, &addr.sin6_addr, 16);
	else
		/* an unspecified address of the same family */
		memcpy(src, dst, 12);
	if (fd >= 0)
		close(fd);
}

static const u8 *source_for(struct stream *s, const u8 src[16], const u8 dst[16])
{
	static const u8 none[16], none4[16] = { [10] = 0xff, [11] = 0xff };
	struct source *known = &s->sources[(dst[15] ^ dst[14]) % SOURCES];

	if (memcmp(src, none, 16) && memcmp(src, none4, 16))
		return src;
	if (memcmp(known->dst, dst, 16)) {
		memcpy(known->dst, dst, 16);
		find_source(dst, known->src);
	}
	return known->src;
}

static void capture_begin(struct homad *d, struct stream *s)
{
	u8 block[1024];
	u32 i, len;

	len = homa_pcapng_section(
		block, sizeof(block), "homad",
		"packets as homad's fast path saw them; IP and UDP headers are made up, and TCP segments that leave have no checksum yet");
	homad_viewer_send(s->v, block, len);
	for (i = 0; i < d->num_ports; i++) {
		const struct homad_port *port = &d->ports[i];
		struct homa_pcapng_interface face = {
			.link = HOMA_PCAPNG_RAW_IP,
			.snap = s->want.snap + HOMA_PCAPNG_IP_MAX,
			.name = port->name,
			.description = port->info ? port->info->detail :
						    "within this host",
			.bits_per_s = port->info ?
					      port->info->link_mbps * 1000000ull :
					      0,
		};

		len = homa_pcapng_interface(block, sizeof(block), &face);
		homad_viewer_send(s->v, block, len);
	}
}

static u16 udp_port_of(const struct homad *d, const struct homad_port *port)
{
	return port->info && port->info->address.encap ?
		       port->info->address.encap :
		       d->config.udp_port;
}

static void capture_packet(struct homad *d, struct stream *s,
			   const struct homad_trace_record *r)
{
	const struct homad_port *port =
		&d->ports[r->port < d->num_ports ? r->port : 0];
	const bool in = r->kind == HOMAD_TRACE_RX;
	const bool tcp = r->flags & HOMAD_TRACE_TCP;
	struct homa_pcapng_ip ip = {
		.src = in ? r->src : source_for(s, r->src, r->dst),
		.dst = in ? source_for(s, r->dst, r->src) : r->dst,
		.protocol = tcp ? IPPROTO_TCP : HOMA_IPPROTO,
		.tos = tcp ? r->prio : (u8)(r->prio << 5),
		.ttl = 64,
		.payload = r->length,
	};
	u8 frame[HOMAD_TRACE_SNAP_MAX + HOMA_PCAPNG_IP_MAX], block[BLOCK_MAX];
	struct homa_pcapng_packet packet = {
		.interface = r->port,
		.ns = r->at_ns + s->offset,
		.frame = frame,
		.direction = in			       ? HOMA_PCAPNG_IN :
			     r->kind == HOMAD_TRACE_TX ? HOMA_PCAPNG_OUT :
							 0,
	};
	u32 len;

	if (port->encap) {
		ip.udp_src = r->src_encap ? r->src_encap : udp_port_of(d, port);
		ip.udp_dst = r->dst_encap ? r->dst_encap : udp_port_of(d, port);
	}
	len = homa_pcapng_ip_header(frame, &ip);
	memcpy(frame + len, r + 1, r->captured);
	packet.captured = len + r->captured;
	packet.length = len + r->length;
	len = homa_pcapng_packet(block, sizeof(block), &packet);
	homad_viewer_send(s->v, block, len);
}

/* ---- as records ---- */

static void send_record(struct stream *s, const struct homad_trace_record *r)
{
	static const u8 zero[8];
	struct homad_trace_record out = *r;

	out.at_ns += s->offset;
	homad_viewer_send(s->v, &out, sizeof(out));
	homad_viewer_send(s->v, r + 1, r->captured);
	homad_viewer_send(s->v, zero, -r->captured & 7);
}

static void tell_lost(struct stream *s)
{
	u32 i;

	for (i = 0; i < s->num_rings; i++) {
		const u64 lost = HOMA_READ_ONCE(s->ring[i]->lost);
		struct homad_trace_record r = {
			.at_ns = homa_clock_ns() + s->offset,
			.kind = HOMAD_TRACE_LOST,
			.thread = (u16)i,
			.rpc = lost - s->told[i],
		};

		if (lost == s->told[i])
			continue;
		s->told[i] = lost;
		if (!s->pcapng)
			homad_viewer_send(s->v, &r, sizeof(r));
	}
}

/* ---- draining ---- */

/* Returns the ring with the oldest record, or NULL if all are empty. */
static struct homad_trace *oldest(const struct stream *s)
{
	struct homad_trace *found = NULL;
	u64 at = HOMA_NEVER;
	u32 i;

	for (i = 0; i < s->num_rings; i++) {
		const struct homad_trace_record *r = homad_trace_peek(s->ring[i]);

		if (r && r->at_ns < at) {
			at = r->at_ns;
			found = s->ring[i];
		}
	}
	return found;
}

/* Returns true if the rings are empty. */
static bool drain(struct homad *d, struct stream *s)
{
	struct homad_viewer *v = s->v;
	struct homad_trace *ring = NULL;
	u32 n;

	for (n = 0; n < RECORDS_AT_ONCE; n++) {
		ring = oldest(s);
		if (!ring || v->out_len - v->out_sent > BEHIND)
			break;
		if (s->pcapng)
			capture_packet(d, s, homad_trace_peek(ring));
		else
			send_record(s, homad_trace_peek(ring));
		homad_trace_pop(ring);
		s->seen++;
	}
	tell_lost(s);
	return !ring;
}

static void send_statistics(struct stream *s)
{
	u64 lost = 0;
	u8 block[128];
	u32 i, len;

	if (!s->pcapng)
		return;
	for (i = 0; i < s->num_rings; i++)
		lost += s->told[i];
	len = homa_pcapng_stats(block, sizeof(block), 0,
				homa_clock_ns() + s->offset, s->seen + lost,
				lost);
	homad_viewer_send(s->v, block, len);
}

static void stop_recording(struct homad *d, struct stream *s)
{
	u32 i;

	if (s->stopped)
		return;
	s->stopped = true;
	for (i = 0; i < s->num_rings; i++)
		homad_call(d->threads[i], homad_trace_attach, NULL);
}

static void tick(struct homad *d, struct homad_source *source, u32 events)
{
	struct stream *s = homa_container_of(source, struct stream, timer);
	struct homad_viewer *v = s->v;
	u64 expired;

	(void)events;
	if (read(source->fd, &expired, sizeof(expired)) < 0)
		return;
	find_apps(d, s);
	if (drain(d, s) && s->stopped) {
		send_statistics(s);
		v->task = NULL;
		v->idle = false;
		v->ending = true;
		s->task.free(v, &s->task);
	}
	homad_viewer_push(v);
}

/* ---- beginning and end ---- */

static bool nothing_more(struct homad_viewer *v, struct homad_task *task)
{
	(void)v;
	(void)task;
	return true;
}

static void stop(struct homad_viewer *v, struct homad_task *task,
		 const cJSON *request)
{
	const cJSON *op = cJSON_GetObjectItemCaseSensitive(request, "op");

	/* Other requests get no answer: whoever reads the trace would take it for a part of it. */
	if (cJSON_IsString(op) && !strcmp(op->valuestring, "stop"))
		stop_recording(v->d,
			       homa_container_of(task, struct stream, task));
}

static void stream_free(struct homad_viewer *v, struct homad_task *task)
{
	struct stream *s = homa_container_of(task, struct stream, task);
	u32 i;

	if (s->num_rings)
		stop_recording(v->d, s);
	if (s->timer.fd >= 0) {
		homad_unwatch(v->d, &s->timer);
		close(s->timer.fd);
	}
	for (i = 0; i < s->num_rings; i++)
		homad_trace_free(s->ring[i]);
	free(s);
	running = NULL;
	v->d->tracing = 0;
}

static bool parse_peer(struct homad_trace_want *want, const char *text)
{
	memset(want->peer, 0, sizeof(want->peer));
	want->by_peer = true;
	if (inet_pton(AF_INET6, text, want->peer) == 1)
		return true;
	want->peer[10] = want->peer[11] = 0xff;
	return inet_pton(AF_INET, text, want->peer + 12) == 1;
}

/* Reads the request; returns what is wrong with it, or NULL. */
static const char *parse(struct stream *s, const cJSON *request)
{
	const cJSON *format = cJSON_GetObjectItem(request, "format");
	const cJSON *snap = cJSON_GetObjectItem(request, "snap");
	const cJSON *app = cJSON_GetObjectItem(request, "app");
	const cJSON *peer = cJSON_GetObjectItem(request, "peer");
	const cJSON *port = cJSON_GetObjectItem(request, "port");

	s->want.snap = HOMAD_TRACE_SNAP;
	s->want.packets = true;
	if (!cJSON_IsString(format))
		return "a trace needs a format: pcapng or records";
	s->pcapng = !strcmp(format->valuestring, "pcapng");
	s->want.rpcs = !s->pcapng;
	if (!s->pcapng && strcmp(format->valuestring, "records"))
		return "unknown format; ask for pcapng or records";
	if (snap) {
		if (!cJSON_IsNumber(snap) || snap->valuedouble < 28 ||
		    snap->valuedouble > HOMAD_TRACE_SNAP_MAX)
			return "snap is a number of bytes, 28 to 16384";
		s->want.snap = (u32)snap->valuedouble;
	}
	s->want.by_app = app != NULL;
	if (cJSON_IsNumber(app) && app->valuedouble >= 1)
		s->app = (u64)app->valuedouble;
	else if (cJSON_IsString(app))
		snprintf(s->app_name, sizeof(s->app_name), "%s",
			 app->valuestring);
	else if (app)
		return "app is an attachment's number or name";
	if (peer &&
	    (!cJSON_IsString(peer) || !parse_peer(&s->want, peer->valuestring)))
		return "peer is an IPv4 or IPv6 address";
	if (port && (!cJSON_IsNumber(port) || port->valuedouble < 1 ||
		     port->valuedouble > 65535))
		return "port is a Homa or TCP port, 1 to 65535";
	s->want.port = port ? (u16)port->valuedouble : 0;
	return NULL;
}

static bool start(struct homad *d, struct stream *s)
{
	struct timespec day;
	u32 i;

	s->timer.ready = tick;
	s->timer.admin = true;
	s->timer.fd = homad_timer_open();
	if (s->timer.fd < 0 || homad_timer_set(s->timer.fd, TICK_NS) ||
	    homad_watch(d, &s->timer, EPOLLIN))
		return false;
	clock_gettime(CLOCK_REALTIME, &day);
	s->offset = (u64)day.tv_sec * 1000000000u + (u64)day.tv_nsec -
		    homa_clock_ns();
	find_apps(d, s);
	for (i = 0; i < d->num_threads; i++) {
		s->ring[i] = homad_trace_new(&s->want, HOMAD_TRACE_MEMORY);
		if (!s->ring[i])
			return false;
		s->num_rings++;
	}
	for (i = 0; i < s->num_rings; i++)
		homad_call(d->threads[i], homad_trace_attach, s->ring[i]);
	return true;
}

static void send_head(struct homad *d, struct stream *s)
{
	cJSON *json = cJSON_CreateObject(), *ports;
	u32 i;

	cJSON_AddStringToObject(json, "trace", s->pcapng ? "pcapng" : "records");
	cJSON_AddNumberToObject(json, "record_bytes",
				sizeof(struct homad_trace_record));
	ports = cJSON_AddArrayToObject(json, "ports");
	for (i = 0; i < d->num_ports; i++)
		cJSON_AddItemToArray(ports, cJSON_CreateString(d->ports[i].name));
	homad_viewer_json(s->v, json);
	if (s->pcapng)
		capture_begin(d, s);
}

void homad_trace_begin(struct homad_viewer *v, const cJSON *request)
{
	struct stream *s;
	const char *wrong;

	if (running) {
		homad_viewer_error(v,
				   "process %d is tracing already; one trace runs at a time",
				   (int)running->v->pid);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		homad_viewer_error(v, "homad is out of memory; try again");
		return;
	}
	running = s;
	v->d->tracing = v->pid;
	s->v = v;
	s->timer.fd = -1;
	s->task = (struct homad_task){ nothing_more, stop, stream_free };
	wrong = parse(s, request);
	if (!wrong && !start(v->d, s))
		wrong = "homad is out of memory or descriptors for a trace";
	if (wrong) {
		homad_viewer_error(v, "%s", wrong);
		stream_free(v, &s->task);
		return;
	}
	v->task = &s->task;
	v->idle = true;
	send_head(v->d, s);
}
