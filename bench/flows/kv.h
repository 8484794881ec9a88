/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The key-value store of the paper's evaluation (TAS, EuroSys 2019, section 5.3): keys of
 * 32 bytes, values of 64 bytes, nine of ten requests read. Both ends of it.
 */
#ifndef HOMA_FLOWS_KV_H
#define HOMA_FLOWS_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_KEY 32u
#define KV_VALUE 64u
/** Bytes of a request to read, of one to write, and of the response to one that wrote. */
#define KV_GET_SIZE (8u + KV_KEY)
#define KV_SET_SIZE (8u + KV_KEY + KV_VALUE)
#define KV_STORED_SIZE 8u

struct kv_store;

/** kv_new() - make a store in which all of @keys keys have a value; NULL: no memory */
struct kv_store *kv_new(uint32_t keys);
void kv_free(struct kv_store *store);

/**
 * kv_answer() - answer the first request in @in
 * @used: receives its length, 0 if it is not complete.
 * @out: has room for KV_VALUE bytes.
 * Return: the length of the response, 0 if there is none yet, -1 if this is no request.
 */
int kv_answer(struct kv_store *store, const uint8_t *in, size_t len,
	      size_t *used, uint8_t *out);

/**
 * kv_request() - write a request for key number @key to @out
 * @response: receives the length of its response.
 * Return: the length of the request
 */
uint32_t kv_request(uint8_t *out, uint32_t key, bool set, uint32_t *response);

#endif
