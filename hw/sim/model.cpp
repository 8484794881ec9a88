// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The Verilated homa_nic behind the C functions of model.h. In each cycle the inputs are set, the
// logic settles, what both sides of a stream agree upon is noted, and the clock rises.
#include "model.h"

#include <cstring>
#include <memory>
#include <vector>

#include "Vhoma_nic.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

namespace {

constexpr uint32_t BEAT = MODEL_WIDTH / 8;
// Cycles in which a register must answer.
constexpr int PATIENCE = 1000;

// Bytes of a port of the model, which is a number or an array of words of 32 bits.
template <typename Port> uint8_t *bytes_of(Port &port)
{
	return reinterpret_cast<uint8_t *>(&port);
}

struct Source {
	std::vector<uint8_t> frame;
	uint32_t at = 0;
	uint32_t seg = 0;
	uint32_t tag = 0;

	bool busy() const { return at < frame.size(); }
	uint32_t beat() const
	{
		uint32_t left = static_cast<uint32_t>(frame.size()) - at;
		return left < BEAT ? left : BEAT;
	}
	template <typename Data, typename Keep>
	void show(Data &data, Keep &keep, CData &last) const
	{
		uint32_t n = beat();
		std::memset(bytes_of(data), 0, BEAT);
		std::memcpy(bytes_of(data), frame.data() + at, n);
		keep = static_cast<Keep>(n == 64 ? ~0ull : (1ull << n) - 1);
		last = at + n == frame.size();
	}
};

struct Sink {
	std::vector<uint8_t> frame;

	template <typename Data> uint32_t take(Data &data, uint64_t keep)
	{
		uint32_t n = static_cast<uint32_t>(__builtin_popcountll(keep));
		frame.insert(frame.end(), bytes_of(data), bytes_of(data) + n);
		return n;
	}
};

struct Unit {
	std::vector<uint8_t> frame;
	model_got said;
};

} // namespace

struct model {
	VerilatedContext context;
	Vhoma_nic top{&context};
	std::unique_ptr<VerilatedVcdC> wave;
	bool recording = false;
	model_calls calls;
	void *arg;
	Source in[MODEL_INPUTS];
	Sink port, host;
	model_got said;
	std::vector<model_piece> list;
	std::vector<Unit> units; // whose list has not come yet
	uint64_t cycles = 0;
	uint32_t left = 0;

	void drive();
	bool look();
	void clock();
	void give();
};

void model::drive()
{
	Source &hs = in[MODEL_SUPER], &hb = in[MODEL_OTHER], &ps = in[MODEL_PORT];

	if ((top.hs_valid = hs.busy())) {
		hs.show(top.hs_data, top.hs_keep, top.hs_last);
		top.hs_split = hs.seg != 0;
		top.hs_seg = static_cast<SData>(hs.seg);
		top.hs_tag = static_cast<CData>(hs.tag);
	}
	if ((top.hb_valid = hb.busy()))
		hb.show(top.hb_data, top.hb_keep, top.hb_last);
	if ((top.ps_valid = ps.busy()))
		ps.show(top.ps_data, top.ps_keep, top.ps_last);
	// What the port took in the last cycle has left it.
	top.pm_left = static_cast<CData>(left);
	left = 0;
	top.pm_ready = top.hm_ready = top.hl_ready = top.hc_ready = top.hd_ready = 1;
}

// Give out units whose list is there.
void model::give()
{
	while (!units.empty()) {
		Unit &unit = units.front();
		uint32_t need = unit.said.pieces > 1 ? unit.said.pieces : 0;

		if (list.size() < need)
			return;
		calls.got(arg, unit.frame.data(),
			  static_cast<uint32_t>(unit.frame.size()), &unit.said,
			  list.data());
		list.erase(list.begin(), list.begin() + need);
		units.erase(units.begin());
	}
}

// Note what moves at the edge that comes.
bool model::look()
{
	bool moved = false;
	CData *ready[MODEL_INPUTS] = { &top.hs_ready, &top.hb_ready,
				       &top.ps_ready };

	for (int i = 0; i < MODEL_INPUTS; i++) {
		if (!in[i].busy() || !*ready[i])
			continue;
		in[i].at += in[i].beat();
		moved = true;
	}
	if (top.pm_valid) {
		left = port.take(top.pm_data, top.pm_keep);
		if (top.pm_last) {
			calls.left(arg, port.frame.data(),
				   static_cast<uint32_t>(port.frame.size()));
			port.frame.clear();
		}
		moved = true;
	}
	if (top.hm_valid) {
		host.take(top.hm_data, top.hm_keep);
		if (top.hm_last) {
			model_got said = {};
			said.time = top.hm_time;
			said.hash = top.hm_hash;
			said.queue = top.hm_queue;
			said.pieces = top.hm_pieces;
			said.seg = top.hm_seg;
			said.class_ = top.hm_class;
			said.at = top.hm_at;
			said.bad = top.hm_bad;
			units.push_back({ std::move(host.frame), said });
			host.frame.clear();
		}
		moved = true;
	}
	if (top.hl_valid) {
		list.push_back({ top.hl_offset, top.hl_length });
		moved = true;
	}
	if (top.hc_valid) {
		calls.done(arg, top.hc_tag, top.hc_status, top.hc_packets);
		moved = true;
	}
	give();
	return moved;
}

void model::clock()
{
	top.clk = 1;
	top.eval();
	if (recording)
		wave->dump(10 * cycles + 5);
	top.clk = 0;
	cycles++;
}

extern "C" {

bool model_cycle(model *m)
{
	m->drive();
	m->top.eval();
	if (m->recording)
		m->wave->dump(10 * m->cycles);
	bool moved = m->look();
	m->clock();
	return moved;
}

model *model_new(const model_calls *calls, void *arg, const char *wave)
{
	model *m = new (std::nothrow) model;

	if (!m)
		return nullptr;
	m->calls = *calls;
	m->arg = arg;
	if (wave) {
		m->context.traceEverOn(true);
		m->wave.reset(new VerilatedVcdC);
		m->top.trace(m->wave.get(), 99);
		m->wave->open(wave);
	}
	m->top.rst = 1;
	m->top.clk = 0;
	for (int i = 0; i < 4; i++) {
		m->top.eval();
		m->clock();
	}
	m->top.rst = 0;
	return m;
}

void model_free(model *m)
{
	if (m && m->wave)
		m->wave->close();
	delete m;
}

bool model_takes(const model *m, model_input input)
{
	return !m->in[input].busy();
}

void model_put(model *m, model_input input, const uint8_t *frame, uint32_t len,
	       uint32_t seg, uint32_t tag)
{
	Source &s = m->in[input];

	s.frame.assign(frame, frame + len);
	s.at = 0;
	s.seg = seg;
	s.tag = tag;
}

bool model_write(model *m, uint32_t address, uint32_t value)
{
	bool address_taken = false, data_taken = false, ok = false;

	m->top.reg_awaddr = static_cast<SData>(address);
	m->top.reg_wdata = value;
	m->top.reg_wstrb = 15;
	m->top.reg_bready = 1;
	for (int i = 0; i < PATIENCE; i++) {
		m->top.reg_awvalid = !address_taken;
		m->top.reg_wvalid = !data_taken;
		m->drive();
		m->top.eval();
		address_taken |= m->top.reg_awvalid && m->top.reg_awready;
		data_taken |= m->top.reg_wvalid && m->top.reg_wready;
		bool answered = m->top.reg_bvalid;
		ok = !m->top.reg_bresp;
		m->look();
		m->clock();
		if (answered) {
			m->top.reg_awvalid = m->top.reg_wvalid = 0;
			return ok;
		}
	}
	return false;
}

bool model_read(model *m, uint32_t address, uint32_t *value)
{
	bool taken = false;

	m->top.reg_araddr = static_cast<SData>(address);
	m->top.reg_rready = 1;
	for (int i = 0; i < PATIENCE; i++) {
		m->top.reg_arvalid = !taken;
		m->drive();
		m->top.eval();
		taken |= m->top.reg_arvalid && m->top.reg_arready;
		bool answered = m->top.reg_rvalid, ok = !m->top.reg_rresp;
		*value = m->top.reg_rdata;
		m->look();
		m->clock();
		if (answered) {
			m->top.reg_arvalid = 0;
			return ok;
		}
	}
	return false;
}

uint64_t model_cycles(const model *m)
{
	return m->cycles;
}

void model_record(model *m, bool on)
{
	m->recording = on && m->wave;
}

} // extern "C"
