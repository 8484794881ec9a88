// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_rss, with four queues, a memory of two RPCs, any indirection table and settings that do not
// change: all packets of an RPC, of both directions, get the same queue, whatever comes between
// them, pauses included, by hash and by load. An RPC is kept for two ticks, so there are no more.
// Which RPC it is, is free, so what holds for it holds for each. Of addresses, ports and ids the
// lowest bits are free, the others 0. Instead of the hash of Toeplitz, whose sums of 288 bits take
// the solver minutes, it gets four bits of what is hashed, so that RPCs do and do not meet; the
// bench compares the hash. Nothing comes while the block clears its tables.
module prove_rss
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
(
    input logic clk,
    input logic rst,
    input logic on, least, tick, taken,
    input logic [1:0] taken_queue,
    input logic s_valid, s_meta_valid, m_ready,
    input logic [2:0] class_,
    input logic [1:0] src, dst, sport, dport,        // of this packet
    input logic [2:0] id,
    input logic s_first,
    input logic [1:0] our_src, our_dst, our_sport, our_dport, our_id  // of the RPC; id >> 1
);
  localparam int CLEARING = 2;                       // cycles after a reset
  localparam int HDR_BITS = 8 * HDR_BYTES;

  homa_meta_t s_meta;
  always_comb begin
    s_meta = 0;
    s_meta.class_ = class_;
    s_meta.bytes = COMMON_HDR[16:0];
    s_meta.l3.v6 = 1;
    s_meta.l3.src = 128'(src);
    s_meta.l3.dst = 128'(dst);
    s_meta.hdr[HDR_BITS-64-8*COMMON_SENDER_ID_AT+:64] = 64'(id);
    s_meta.hdr[HDR_BITS-16-8*COMMON_SPORT_AT+:16] = 16'(sport);
    s_meta.hdr[HDR_BITS-16-8*COMMON_DPORT_AT+:16] = 16'(dport);
  end
  wire homa = class_ == CLASS_HOMA || class_ == CLASS_HOMA_UDP || class_ == CLASS_HOMA_TCP;
  wire there = {src, dst, sport, dport} == {our_src, our_dst, our_sport, our_dport};
  wire back = {src, dst, sport, dport} == {our_dst, our_src, our_dport, our_sport};
  wire ours = homa && (there || back) && id[2:1] == our_id;

  logic s_ready, m_valid, m_keep, m_last, m_bad, m_meta_valid, placed, s_homa;
  logic [287:0] tuple;
  homa_rss_tuple rss_tuple (.meta(s_meta), .homa(s_homa), .tuple);
  wire [31:0] s_hash = 32'({tuple[97], tuple[16], tuple[160], tuple[96]});
  logic [7:0] m_data;
  logic m_side;
  logic [1:0] m_queue;
  logic [31:0] m_hash;
  homa_rss #(.WIDTH(8), .QUEUES(4), .QUEUE_BITS(2), .RPC_BITS(1)) rss (
      .set(1'b0), .set_at(8'd0), .set_queue(2'd0), .s_data({7'd0, ours}), .s_keep(1'b1),
      .s_last(1'b1), .s_bad(1'b0), .s_side(1'b0), .*);

  logic begun, known;
  logic [2:0] age;                                   // cycles since the reset, up to CLEARING
  logic [1:0] ticks, queue;                          // queue: of the first packet of the RPC
  logic [11:0] settings;
  wire gives = m_valid && m_meta_valid && m_data[0];
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    settings <= {on, least, our_src, our_dst, our_sport, our_dport, our_id};
    if (rst) {age, ticks, known} <= 0;
    else begin
      if (age < CLEARING) age <= age + 1;
      if (tick) ticks <= ticks + 1;
      if (gives && !known) queue <= m_queue;
      known <= known || gives;
    end
  end

  always_comb begin
    assume (rst == !begun);
    if (begun) begin
      assume (settings == {on, least, our_src, our_dst, our_sport, our_dport, our_id});
      assume (age == CLEARING || !s_valid);
      assume (ticks < 2 || !tick);
      if (!rst && gives && known) assert (m_queue == queue);
    end
  end
endmodule
