// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Applications, and what must hold: each byte that is read was written, once and in
 * order; each connection ends; and if nobody gave up, all bytes arrived, and both
 * have seen the other's end.
 */
#include "tas_call.h"
#include "tas_world.h"
#include "tcp_check.h"

#include <string.h>

/* ---- what the engine says ---- */

static bool accept_all(struct xp_world *w, u32 host)
{
	struct xt_host *h = &xt_of(w)->host[host];
	struct tas_listener *listener;
	struct tas_conn *conn;
	bool any = false;

	while ((listener = tas_next_ready(&h->engine))) {
		while ((conn = tas_accept(&h->engine, listener))) {
			any = true;
			if (h->had) { /* one is enough */
				tas_abort(&h->engine, conn);
				continue;
			}
			h->conn = conn;
			h->had = true;
		}
	}
	return any;
}

static void read_all(struct xp_world *w, u32 host)
{
	struct xt_host *h = &xt_of(w)->host[host];
	const struct xt_host *peer = &xt_of(w)->host[!host];
	u32 n = tas_readable(h->conn), i;

	for (i = h->got; i < h->got + n && i < 64; i++)
		if (!(h->placed >> i & 1))
			xp_fail("host %u reads byte %u, which has not come",
				host, i);
	h->got += n;
	if (h->got > peer->written && w->life[!host] == 1)
		xp_fail("host %u reads %u bytes, of %u written", host, h->got,
			peer->written);
	tas_taken(&h->engine, h->conn, n);
}

static void heard(struct xp_world *w, u32 host, struct tas_conn *conn, u32 events)
{
	struct xt_host *h = &xt_of(w)->host[host];

	if (events & TAS_EV_FREE) {
		if (conn == h->conn) {
			h->conn = NULL;
			h->freed = true;
		}
		tas_add_spare(&h->engine, conn);
		return;
	}
	if (conn != h->conn || h->closed)
		return;
	read_all(w, host);
	if (events & TAS_EV_ERROR)
		h->error = conn->error;
	if (events & TAS_EV_END) {
		if (h->end)
			xp_fail("host %u sees the end twice", host);
		h->end = true;
	}
}

bool xt_events(struct xp_world *w, u32 host)
{
	struct xt_host *h = &xt_of(w)->host[host];
	struct tas_conn *conn;
	u32 events;
	bool any = accept_all(w, host);

	while ((conn = tas_next_event(&h->engine, &events))) {
		heard(w, host, conn, events);
		any = true;
	}
	return any;
}

/* ---- what applications do ---- */

static u32 add(struct xp_choice *c, u32 n, u8 kind, u8 fault, u32 host, u8 arg)
{
	c[n] = (struct xp_choice){ kind, fault, (u8)host, arg };
	return n + 1;
}

/* What an application does some time, if nothing else happens. It does not wait for ever for
 * the end of a stream: who lost everything does not say it, and a reset may be lost. */
static u32 of_host(struct xp_world *w, u32 host, struct xp_choice *c, u32 n)
{
	const struct xt_host *h = &xt_of(w)->host[host];
	bool all = h->written == xt_what->bytes[host],
	     over = h->end || xt_of(w)->excused;

	if (h->error)
		return add(c, n, XT_CLOSE, XP_NONE, host, 0);
	if (!all)
		return add(c, n, XT_WRITE, XP_NONE, host, 0);
	if (xt_what->abrupt || (h->shut && over))
		return add(c, n, XT_CLOSE, XP_NONE, host, 0);
	if (!h->shut && tas_open(h->conn))
		return add(c, n, XT_SHUT, XP_NONE, host, 0);
	return n;
}

static u32 faults_of(struct xp_world *w, u32 host, struct xp_choice *c, u32 n)
{
	const struct xt_host *h = &xt_of(w)->host[host];
	u32 i;

	if (w->left[XP_ABORT] && w->any && !h->closed)
		n = add(c, n, XT_ABORT, XP_ABORT, host, 0);
	/* What a stranger may do while a connection is opened is another thing. */
	for (i = 0; w->left[XP_FORGE] && w->any && tas_open(h->conn) &&
		    i < XT_FORGERIES;
	     i++)
		if (i != XT_AGAIN || h->got)
			n = add(c, n, XT_FORGE, XP_FORGE, host, (u8)i);
	return n;
}

u32 xt_choices(struct xp_world *w, struct xp_choice *c)
{
	u32 host, n = 0;

	for (host = 0; host < 2; host++) {
		const struct xt_host *h = &xt_of(w)->host[host];

		if (h->conn && !h->closed)
			n = of_host(w, host, c, n);
	}
	for (host = 0; host < 2; host++)
		if (xt_of(w)->host[host].conn)
			n = faults_of(w, host, c, n);
	return n;
}

void xt_act(struct xp_world *w, struct xp_choice c)
{
	struct xt_host *h = xt_clock(w, c.host);

	switch (c.kind) {
	case XT_WRITE:
		h->written++;
		if (tas_written(&h->engine, h->conn, 1))
			xp_fail("host %u cannot write", c.host);
		break;
	case XT_SHUT:
		h->shut = true;
		if (tas_shut_send(&h->engine, h->conn))
			xp_fail("host %u cannot end its stream", c.host);
		break;
	case XT_CLOSE:
		h->closed = true;
		xt_of(w)->excused |= xt_what->abrupt;
		tas_close(&h->engine, h->conn);
		break;
	case XT_ABORT:
		h->closed = true;
		xt_of(w)->excused = true;
		tas_abort(&h->engine, h->conn);
		break;
	case XT_FORGE:
		xt_forge(w, c.host, c.arg);
		return;
	}
	xt_poll(w, c.host);
}

bool xt_may_wait(struct xp_world *w)
{
	(void)w;
	return true;
}

/* ---- what must hold ---- */

static bool left(const struct xt_host *h)
{
	return h->conn || h->engine.table.count || h->engine.ended.count;
}

bool xt_ended(struct xp_world *w)
{
	const struct xt_world *x = xt_of(w);

	return !left(&x->host[0]) && !left(&x->host[1]);
}

void xt_check(struct xp_world *w)
{
	const char *wrong;
	u32 host;

	/* What would be sent is not there. */
	if (xp_full)
		return;
	for (host = 0; host < 2; host++) {
		wrong = tcp_check(&xt_of(w)->host[host].engine);
		if (wrong)
			xp_fail("host %u: not %s", host, wrong);
	}
}

void xt_check_end(struct xp_world *w)
{
	const struct xt_world *x = xt_of(w);
	u32 host;

	for (host = 0; host < 2; host++) {
		const struct xt_host *h = &x->host[host];

		if (h->engine.num_spare != XT_CONNS)
			xp_fail("host %u has lost memory of connections", host);
		if (h->engine.wheel.count)
			xp_fail("host %u waits for nothing", host);
		if (x->excused)
			continue;
		if (h->error || !h->freed)
			xp_fail("the connection of host %u failed: %d", host,
				h->error);
		if (h->got != xt_what->bytes[!host] || !h->end)
			xp_fail("host %u got %u bytes of %u", host, h->got,
				xt_what->bytes[!host]);
	}
}

/* ---- in words ---- */

void xt_name_of(struct xp_choice c, char *text, size_t size)
{
	static const char *const does[] = { "writes a byte", "ends its stream",
					    "closes", "gives up" };
	static const char *const forged[XT_FORGERIES] = {
		"a reset inside the window", "a SYN",
		"an ACK of what was never sent", "bytes with an old ACK",
		"other bytes in the place of old ones"
	};

	if (c.kind == XT_FORGE)
		snprintf(text, size, "a stranger sends host %u %s", c.host,
			 forged[c.arg % XT_FORGERIES]);
	else
		snprintf(text, size, "host %u %s", c.host,
			 does[(c.kind - XT_WRITE) % 4]);
}

void xt_summary(struct xp_world *w, char *text, size_t size)
{
	const struct xt_world *x = xt_of(w);
	int n = 0;
	u32 host;

	for (host = 0; host < 2; host++) {
		const struct xt_host *h = &x->host[host];

		n += snprintf(text + n, size - (size_t)n,
			      "host %u: state %d, wrote %u, got %u, error %d%s; ",
			      host, h->conn ? h->conn->f.state : -1, h->written,
			      h->got, h->error, h->closed ? ", closed" : "");
	}
}
