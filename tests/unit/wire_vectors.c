/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The codec against packets that the Linux module sent (tests/data/
 * wire-vectors): each must decode to the fields stated beside it and encode
 * again to its bytes, and its checksum must be what its file says it is.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <cjson/cJSON.h>

#include "homa_wire_raw.h"
#include "ip_frame.h"

#define VECTORS HOMA_TEST_DATA "/wire-vectors"
#define MAX_FRAME 16384

struct vector {
	char name[300];
	char checksum[256];
	cJSON *json;
	u8 bytes[MAX_FRAME];
	size_t len;
	struct ip_frame ip;
};

static size_t unhex(u8 *out, size_t room, const char *text)
{
	size_t n = 0;
	unsigned int v;

	for (; n < room && sscanf(text, "%2x", &v) == 1; text += 2)
		out[n++] = (u8)v;
	return n;
}

/* A number of the expected decode, which must be there. */
static u64 want(const struct vector *v, const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	if (!item)
		fail_msg("%s: no field %s in the expected decode", v->name, key);
	if (cJSON_IsBool(item))
		return cJSON_IsTrue(item);
	return (u64)item->valuedouble;
}

static bool states(const cJSON *json, const char *key)
{
	return cJSON_HasObjectItem(json, key);
}

static void same(const struct vector *v, const char *key, u64 got, u64 stated)
{
	if (got != stated)
		fail_msg("%s: %s is %llu, stated %llu", v->name, key,
			 (unsigned long long)got, (unsigned long long)stated);
}

#define SAME(v, json, key, got) same(v, key, got, want(v, json, key))

static void check_ip(const struct vector *v, const cJSON *json)
{
	const struct ip_frame *ip = &v->ip;
	const char *const ends[] = { "src", "dst" };
	u8 addr[16];
	int i;

	SAME(v, json, "version", (u64)ip->version);
	SAME(v, json, "proto", ip->proto);
	if (ip->version == 4) {
		SAME(v, json, "tos", ip->tos);
		SAME(v, json, "total_length", ip->length);
		SAME(v, json, "id", ip->id);
		SAME(v, json, "df", ip->df);
		SAME(v, json, "ttl", ip->hops);
	} else {
		SAME(v, json, "traffic_class", ip->tos);
		SAME(v, json, "payload_length", ip->length);
		SAME(v, json, "flow_label", ip->id);
		SAME(v, json, "hop_limit", ip->hops);
	}
	for (i = 0; i < 2; i++) {
		const cJSON *text = cJSON_GetObjectItem(json, ends[i]);

		assert_int_equal(inet_pton(ip->version == 4 ? AF_INET : AF_INET6,
					   text->valuestring, addr),
				 1);
		assert_memory_equal(addr, i ? ip->dst : ip->src, ip->addr_len);
	}
}

static void check_ack(const struct vector *v, const cJSON *json,
		      const struct homa_ack *ack)
{
	SAME(v, json, "client_id", ack->client_id);
	SAME(v, json, "server_port", ack->server_port);
}

static void check_acks(const struct vector *v, const struct homa_packet *p)
{
	const cJSON *list = cJSON_GetObjectItem(v->json, "acks");
	int i;

	SAME(v, v->json, "num_acks", p->ack.num);
	assert_int_equal(cJSON_GetArraySize(list), HOMA_MAX_ACKS);
	for (i = 0; i < p->ack.num; i++)
		check_ack(v, cJSON_GetArrayItem(list, i), &p->ack.ack[i]);
}

static void check_data(const struct vector *v, const struct homa_packet *p)
{
	const cJSON *json = v->json;

	SAME(v, json, "message_length", p->data.length);
	SAME(v, json, "incoming", p->data.incoming);
	SAME(v, json, "data_offset", p->data.offset);
	SAME(v, json, "payload_length", p->data.payload_len);
	SAME(v, json, "cutoff_version", p->data.cutoff_version);
	SAME(v, json, "retransmit", p->data.retransmit);
	check_ack(v, cJSON_GetObjectItem(json, "ack"), &p->data.ack);
	assert_false(p->data.incast);
	assert_false(p->data.sender_congested);
	assert_false(p->data.may_reject);
	assert_int_equal(p->data.error, 0);
	assert_int_equal(p->data.left, 0);
	assert_int_equal(p->data.resp_limit_kib, 0);
}

static void check_body(const struct vector *v, const struct homa_packet *p)
{
	const cJSON *json = v->json, *list;
	int i;

	switch (p->hdr.type) {
	case HOMA_DATA:
		check_data(v, p);
		break;
	case HOMA_GRANT:
		SAME(v, json, "offset", p->grant.offset);
		SAME(v, json, "priority", p->grant.priority);
		break;
	case HOMA_RESEND:
		SAME(v, json, "offset", p->resend.offset);
		SAME(v, json, "length", p->resend.length);
		SAME(v, json, "priority", p->resend.priority);
		break;
	case HOMA_CUTOFFS:
		list = cJSON_GetObjectItem(json, "unsched_cutoffs");
		for (i = 0; i < HOMA_PRIORITIES; i++)
			same(v, "cutoff", p->cutoffs.cutoff[i],
			     (u64)cJSON_GetArrayItem(list, i)->valuedouble);
		SAME(v, json, "cutoff_version", p->cutoffs.version);
		break;
	case HOMA_ACK:
		check_acks(v, p);
		break;
	}
}

static void check_raw(const struct vector *v, const struct homa_wire_raw *raw)
{
	const cJSON *json = v->json;

	SAME(v, json, "sequence", raw->sequence);
	SAME(v, json, "doff", raw->doff >> 4);
	same(v, "flags", raw->flags,
	     states(json, "flags") ? want(v, json, "flags") : HOMA_FLAGS);
	same(v, "urgent", raw->urgent,
	     states(json, "urgent") ? want(v, json, "urgent") : HOMA_URGENT);
	if (states(json, "window"))
		SAME(v, json, "window", raw->window);
	if (states(json, "checksum"))
		SAME(v, json, "checksum", raw->checksum);
	if (states(json, "seg_offset"))
		SAME(v, json, "seg_offset", raw->seg_offset);
}

/* Decode @len bytes at @packet, compare everything, encode them again. */
static void check_packet(const struct vector *v, const u8 *packet, u32 len)
{
	u8 again[HOMA_MAX_HDR];
	struct homa_packet p;
	struct homa_wire_raw raw;
	int err;

	err = homa_packet_decode(&p, packet, len);
	if (err)
		fail_msg("%s: %s", v->name, homa_wire_error_text(-err));
	assert_string_equal(homa_type_name(p.hdr.type),
			    cJSON_GetObjectItem(v->json, "type")->valuestring);
	SAME(v, v->json, "sport", p.hdr.sport);
	SAME(v, v->json, "dport", p.hdr.dport);
	SAME(v, v->json, "sender_id", p.hdr.sender_id);
	check_body(v, &p);
	homa_wire_raw_get(&raw, packet);
	check_raw(v, &raw);

	memset(again, 0xa5, sizeof(again));
	assert_int_equal(homa_packet_encode(again, &p), p.hdr.hdr_len);
	if (p.hdr.type == HOMA_DATA)
		assert_int_equal(p.hdr.hdr_len + p.data.payload_len, len);
	else
		assert_int_equal(p.hdr.hdr_len, len);
	homa_wire_raw_put(again, &raw);
	assert_memory_equal(again, packet, p.hdr.hdr_len);
}

static void check_checksum(const struct vector *v)
{
	const struct ip_frame *ip = &v->ip;
	struct homa_wire_raw raw;
	const char *of;
	u16 full, pseudo;
	unsigned int whole;

	homa_wire_raw_get(&raw, ip->homa);
	full = homa_wire_checksum(ip->homa, ip->homa_len, ip->src, ip->dst,
				  ip->addr_len);
	pseudo = homa_wire_pseudo_sum(ip->homa_len, ip->src, ip->dst,
				      ip->addr_len);
	if (!strncmp(v->checksum, "valid", 5)) {
		same(v, "valid checksum", raw.checksum, full);
	} else if (!strncmp(v->checksum, "NOT completed", 13)) {
		same(v, "pseudo-header sum", raw.checksum, pseudo);
	} else {
		/* "... of the N-byte packet before segmentation ..." */
		of = strstr(v->checksum, "of the ");
		assert_non_null(of);
		assert_int_equal(sscanf(of, "of the %u-byte", &whole), 1);
		same(v, "stale pseudo-header sum", raw.checksum,
		     homa_wire_pseudo_sum(whole, ip->src, ip->dst, ip->addr_len));
	}
}

static void check_payload(const struct vector *v, const u8 *payload, u32 len,
			  u32 offset)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (payload[i] != (offset + i) % 251)
			fail_msg("%s: payload byte %u", v->name, offset + i);
	}
}

static void vector_read(struct vector *v, const char *file)
{
	char path[512], line[8192];
	FILE *in;

	snprintf(v->name, sizeof(v->name), "%s", file);
	snprintf(path, sizeof(path), VECTORS "/%s", file);
	in = fopen(path, "r");
	assert_non_null(in);
	v->json = NULL;
	v->len = 0;
	while (fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "# json: ", 8))
			v->json = cJSON_Parse(line + 8);
		else if (!strncmp(line, "# checksum: ", 12))
			snprintf(v->checksum, sizeof(v->checksum), "%.200s",
				 line + 12);
		else if (line[0] != '#')
			v->len += unhex(v->bytes + v->len, MAX_FRAME - v->len,
					line);
	}
	fclose(in);
	assert_non_null(v->json);
	assert_true(ip_frame_parse(&v->ip, v->bytes, v->len));
	assert_int_equal(v->len,
			 (size_t)(v->ip.homa - v->bytes) + v->ip.homa_len);
}

static bool is_super(const char *file)
{
	return strstr(file, "gso_native_super") != NULL;
}

static void vectors__decode_as_stated_and_encode_to_their_bytes(void **state)
{
	static struct vector v;
	struct dirent *entry;
	u32 files = 0, types = 0;
	DIR *dir = opendir(VECTORS);

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		u8 type;

		if (!strstr(entry->d_name, ".hex") || is_super(entry->d_name))
			continue;
		vector_read(&v, entry->d_name);
		check_ip(&v, cJSON_GetObjectItem(v.json, "ip"));
		check_packet(&v, v.ip.homa, v.ip.homa_len);
		check_checksum(&v);
		type = homa_peek_type(v.ip.homa);
		if (type == HOMA_DATA)
			check_payload(&v, v.ip.homa + HOMA_DATA_HDR,
				      v.ip.homa_len - HOMA_DATA_HDR,
				      (u32)want(&v, v.json, "data_offset"));
		files++;
		types |= 1u << (type - HOMA_TYPE_FIRST);
		cJSON_Delete(v.json);
	}
	closedir(dir);
	assert_int_equal(files, 39);
	/* All types that this revision sends. */
	assert_int_equal(types, (1u << (HOMA_START_MSG - HOMA_TYPE_FIRST)) - 1);
}

/*
 * The one frame that no network carries: several segments, each with the last
 * four header bytes in front. Cut as a device cuts it, every piece must decode.
 */
static void vectors__super_packet_segments_as_a_device_would(void **state)
{
	static struct vector v;
	static u8 segment[HOMA_DATA_HDR + 1424];
	const u32 fixed = HOMA_DATA_HDR - 4, step = 1424 + 4;
	struct homa_packet p;
	u32 at, total = 0, segments = 0;

	(void)state;
	vector_read(&v, "data_gso_native_super_v4.hex");
	check_ip(&v, cJSON_GetObjectItem(v.json, "ip"));
	check_checksum(&v);
	assert_int_equal(homa_packet_decode(&p, v.ip.homa, v.ip.homa_len),
			 -HOMA_WIRE_OFFSET);
	same(&v, "payload_length", v.ip.homa_len - HOMA_DATA_HDR,
	     want(&v, v.json, "payload_length"));

	memcpy(segment, v.ip.homa, fixed);
	for (at = fixed; at < v.ip.homa_len; at += step) {
		u32 n = homa_min_u32(step, v.ip.homa_len - at);

		memcpy(segment + fixed, v.ip.homa + at, n);
		assert_int_equal(homa_packet_decode(&p, segment, fixed + n), 0);
		SAME(&v, v.json, "message_length", p.data.length);
		SAME(&v, v.json, "sender_id", p.hdr.sender_id);
		assert_int_equal(p.data.offset, total);
		check_payload(&v, segment + HOMA_DATA_HDR, p.data.payload_len,
			      total);
		total += p.data.payload_len;
		segments++;
	}
	assert_int_equal(segments, 8);
	assert_int_equal(total, 10000);
	cJSON_Delete(v.json);
}

/* A flow's packets have headers only: give them the payload they had. */
static void check_flow_packet(struct vector *v, const char *hex)
{
	u32 payload = 0;

	memset(v->bytes, 0, sizeof(v->bytes));
	v->len = unhex(v->bytes, MAX_FRAME, hex);
	assert_true(ip_frame_parse(&v->ip, v->bytes, v->len));
	SAME(v, v->json, "ip_proto", v->ip.proto);
	SAME(v, v->json, "tos", v->ip.tos);
	if (states(v->json, "payload_length"))
		payload = (u32)want(v, v->json, "payload_length");
	assert_int_equal(v->len + payload,
			 (size_t)(v->ip.homa - v->bytes) + v->ip.homa_len);
	check_packet(v, v->ip.homa, v->ip.homa_len);
}

static void flows__decode_as_stated_and_encode_to_their_bytes(void **state)
{
	static struct vector v;
	static char line[65536];
	FILE *in = fopen(VECTORS "/flows.jsonl", "r");
	u32 packets = 0, checked = 0, flows = 0;

	(void)state;
	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		const cJSON *hex;

		v.json = cJSON_Parse(line);
		assert_non_null(v.json);
		if (!states(v.json, "n")) {
			flows++;
			cJSON_Delete(v.json);
			continue;
		}
		packets++;
		snprintf(v.name, sizeof(v.name), "%s packet %d",
			 cJSON_GetObjectItem(v.json, "flow")->valuestring,
			 cJSON_GetObjectItem(v.json, "n")->valueint);
		hex = cJSON_GetObjectItem(v.json, "headers_hex");
		if (hex) {
			check_flow_packet(&v, hex->valuestring);
			checked++;
		}
		cJSON_Delete(v.json);
	}
	fclose(in);
	assert_int_equal(flows, 7);
	assert_int_equal(packets, 641);
	assert_int_equal(checked, 132);
}

/*
 * Our extension bits stand in bytes that the reference neither writes nor
 * reads. Whoever reads only its fields sees no difference.
 */
static void vectors__extension_is_invisible_to_the_reference(void **state)
{
	/* Offset and size of each field that the reference has in DATA. */
	static const struct {
		u32 at, size;
	} field[] = {
		{ 0, 2 },  { 2, 2 },  { 4, 4 },	 { 11, 1 }, { 12, 1 },
		{ 13, 1 }, { 18, 2 }, { 20, 8 }, { 28, 4 }, { 32, 4 },
		{ 36, 8 }, { 44, 2 }, { 46, 2 }, { 48, 1 }, { 52, 4 },
	};
	static struct vector v;
	u8 ours[HOMA_MAX_HDR], plain[HOMA_MAX_HDR];
	struct homa_packet p;
	size_t i;

	(void)state;
	vector_read(&v, "data_ack_piggyback_v4.hex");
	assert_int_equal(homa_packet_decode(&p, v.ip.homa, v.ip.homa_len), 0);
	homa_packet_encode(plain, &p);
	assert_memory_equal(plain + 49, "\0\0\0", 3);
	assert_memory_equal(plain + 14, "\0\0", 2);
	p.data.incast = true;
	p.data.sender_congested = true;
	p.data.may_reject = true;
	p.data.resp_limit_kib = 0x1234;
	p.data.left = 0x5678;
	homa_packet_encode(ours, &p);
	assert_memory_equal(ours + 49, "\x0f\x12\x34", 3);
	assert_memory_equal(ours + 14, "\x56\x78", 2);
	for (i = 0; i < HOMA_ARRAY_SIZE(field); i++)
		assert_memory_equal(ours + field[i].at, plain + field[i].at,
				    field[i].size);
	cJSON_Delete(v.json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			vectors__decode_as_stated_and_encode_to_their_bytes),
		cmocka_unit_test(vectors__super_packet_segments_as_a_device_would),
		cmocka_unit_test(flows__decode_as_stated_and_encode_to_their_bytes),
		cmocka_unit_test(vectors__extension_is_invisible_to_the_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
