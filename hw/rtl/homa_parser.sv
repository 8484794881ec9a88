// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The parser: frames in, the same frames out eight cycles later, at 64 bits seven, and beside one
// beat of each what it is (homa_meta_t). One beat per cycle; all stages stand still together while
// the output does.
//
// m_early tells m_meta in the last cycle in which the beats move before it, but for `error` and what
// follows that in homa_meta_t.
//
// m_meta_valid is set on one beat of every frame, the last one at the latest. m_bad is set on the
// last beat if the frame ends before its IP packet does, or its headers contradict each other.
module homa_parser
  import homa_nic_pkg::*;
#(
    parameter int WIDTH = 512,
    // Of packets that are not DATA offset and length are said, too. Nothing else depends on it.
    parameter bit CONTROL = 1
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,  // whole in all beats but the last; there without gaps
    input logic s_last,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,
    output logic m_meta_valid,
    output homa_meta_t m_meta,
    output homa_meta_t m_early
);
  localparam int BYTES = WIDTH / 8;

  // All stages move together, or none does. Groups of them find out by themselves which it is, each
  // by a copy of m_valid: one signal for thousands of registers would have a long way.
  localparam int GROUPS = 6;
  logic [GROUPS-1:0] full;
  logic next_valid;  // what m_valid is once the stages have moved
  wire [GROUPS-1:0] adv = {GROUPS{m_ready}} | ~full;
  assign s_ready = adv[0];
  always_ff @(posedge clk) full <= rst ? '0 : ({GROUPS{next_valid}} & adv) | (full & ~adv);

  // Between the stages; x[0] after the fixed headers, the others after those for extension headers.
  localparam int EXTS = BYTES > 8 ? 2 : 1;
  logic [EXTS:0] x_valid, x_last, x_first, x_not_ip, x_bad, x_fragment, x_ready, x_unknown;
  logic [WIDTH-1:0] x_data[EXTS+1];
  logic [BYTES-1:0] x_keep[EXTS+1];
  logic [7:0] prior_beat;  // the beat before x_beat[EXTS]
  logic [7:0] x_beat[EXTS+1], x_at[EXTS+1];
  /* verilator lint_off UNUSEDSIGNAL */
  logic [7:0] x_proto[EXTS+1];  // of the last its kind matters, of those before it this
  logic [3:0] x_kind[EXTS];
  /* verilator lint_on UNUSEDSIGNAL */
  homa_l3_t x_l3[EXTS+1], e_l3, b_in_l3;  // e_l3, b_in_l3: as the next stages take it
  logic [16:0] x_left[EXTS+1], l3_bytes, l3_end;
  homa_parts_t l3_parts;
  logic [19:0] x_rest[EXTS];  // beside x[1] and those behind it
  logic l3_bad, l3_short4;

  homa_parse_l3 #(.WIDTH(WIDTH)) l3 (
      .clk, .rst, .adv(adv[0]),
      .in_valid(s_valid), .in_data(s_data), .in_keep(s_keep), .in_last(s_last),
      .q_valid(x_valid[0]), .q_data(x_data[0]), .q_keep(x_keep[0]), .q_last(x_last[0]),
      .q_first(x_first[0]), .q_beat(x_beat[0]), .q_l3(x_l3[0]), .q_parts(l3_parts),
      .q_not_ip(x_not_ip[0]),
      .q_bad(l3_bad), .q_short4(l3_short4), .q_fragment(x_fragment[0]), .q_ready(x_ready[0]),
      .q_proto(x_proto[0]), .q_at(x_at[0]), .q_left(x_left[0]),
      .q_bytes(l3_bytes), .q_end(l3_end));
  // The sum of IPv4's header, in steps of two numbers.
  always_ff @(posedge clk)
    if (adv[1] && x_valid[0]) x_rest[0] <= {3'd0, l3_parts.rest} + {4'd0, l3_parts.last};
  if (EXTS > 1) begin : two
    always_ff @(posedge clk) if (adv[1] && x_valid[1]) x_rest[1] <= x_rest[0];
  end
  always_comb begin
    e_l3 = x_l3[0];
    e_l3.sum_kept = x_l3[0].sum_kept + {3'd0, l3_parts.kept};
    e_l3.sum = x_l3[0].sum + {4'd0, l3_parts.checksum};
    b_in_l3 = x_l3[EXTS];
    b_in_l3.sum_kept = x_l3[EXTS].sum_kept + x_rest[EXTS-1];
  end
  // The last: it ends before its packet.
  assign x_bad[0] = l3_bad || l3_short4 || (x_last[0] && l3_bytes < l3_end);
  assign x_unknown[0] = 0;
  always_ff @(posedge clk) if (adv[1] && x_valid[EXTS-1]) prior_beat <= x_beat[EXTS-1] - 8'd1;

  for (genvar i = 0; i < EXTS; i++) begin : ext
    homa_parse_ext #(.WIDTH(WIDTH), .FIRST(i == 0), .HEADERS(2 / EXTS)) stage (
        .clk, .rst, .adv(adv[1]),
        .in_valid(x_valid[i]), .in_data(x_data[i]), .in_keep(x_keep[i]), .in_last(x_last[i]),
        .in_first(x_first[i]), .in_beat(x_beat[i]), .in_l3(i == 0 ? e_l3 : x_l3[i]),
        .in_not_ip(x_not_ip[i]),
        .in_bad(x_bad[i]), .in_fragment(x_fragment[i]), .in_ready(x_ready[i]),
        .in_unknown(x_unknown[i]), .in_proto(x_proto[i]), .in_at(x_at[i]), .in_left(x_left[i]),
        .q_valid(x_valid[i+1]), .q_data(x_data[i+1]), .q_keep(x_keep[i+1]),
        .q_last(x_last[i+1]), .q_first(x_first[i+1]), .q_beat(x_beat[i+1]),
        .q_l3(x_l3[i+1]),
        .q_not_ip(x_not_ip[i+1]), .q_bad(x_bad[i+1]), .q_fragment(x_fragment[i+1]),
        .q_ready(x_ready[i+1]), .q_unknown(x_unknown[i+1]), .q_proto(x_proto[i+1]),
        .q_kind(x_kind[i]),
        .q_at(x_at[i+1]), .q_left(x_left[i+1]));
  end

  logic b_valid, b_last, b_first, b_ready, b_broken, b_no_sum, b_udp;
  logic [WIDTH-1:0] b_data, b_turned;
  logic [BYTES-1:0] b_keep;
  logic b_begin;
  logic [7:0] b_since;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [7:0] b_at;  // its highest bit is not used
  /* verilator lint_on UNUSEDSIGNAL */
  homa_l3_t b_l3;
  logic [2:0] b_class;
  logic [15:0] b_sport, b_dport;
  logic [16:0] b_left;
  logic [15:0] b_udp_length;
  logic b_udp_bad;
  logic [1:0] b_ours;

  homa_parse_l4 #(.WIDTH(WIDTH)) l4 (
      .clk, .rst, .adv(adv[2]),
      .in_valid(x_valid[EXTS]), .in_data(x_data[EXTS]), .in_keep(x_keep[EXTS]),
      .in_last(x_last[EXTS]), .in_first(x_first[EXTS]), .in_beat(x_beat[EXTS]),
      .in_before(prior_beat), .in_l3(b_in_l3), .in_not_ip(x_not_ip[EXTS]),
      .in_bad(x_bad[EXTS]), .in_fragment(x_fragment[EXTS]), .in_ready(x_ready[EXTS]),
      .in_unknown(x_unknown[EXTS]), .in_kind(x_kind[EXTS-1]), .in_at(x_at[EXTS]),
      .in_left(x_left[EXTS]),
      .q_valid(b_valid), .q_data(b_data), .q_turned(b_turned), .q_keep(b_keep),
      .q_last(b_last), .q_first(b_first),
      .q_begin(b_begin), .q_since(b_since), .q_l3(b_l3), .q_ready(b_ready), .q_class(b_class),
      .q_broken(b_broken),
      .q_sport(b_sport), .q_dport(b_dport), .q_at(b_at), .q_left(b_left), .q_udp(b_udp),
      .q_udp_length(b_udp_length), .q_udp_bad(b_udp_bad), .q_ours(b_ours),
      .q_no_sum(b_no_sum));

  homa_l3_t c_in_l3;
  always_comb begin
    c_in_l3 = b_l3;
    c_in_l3.sum = b_l3.sum + b_l3.sum_kept;
  end

  homa_parse_body #(.WIDTH(WIDTH), .CONTROL(CONTROL)) body (
      .clk, .rst, .adv(adv[5:3]),
      .in_valid(b_valid), .in_data(b_data), .in_turned(b_turned), .in_keep(b_keep),
      .in_last(b_last),
      .in_first(b_first), .in_begin(b_begin), .in_since(b_since), .in_l3(c_in_l3),
      .in_ready(b_ready), .in_class(b_class), .in_broken(b_broken), .in_sport(b_sport),
      .in_dport(b_dport), .in_at(b_at[6:0]), .in_left(b_left), .in_udp(b_udp),
      .in_udp_length(b_udp_length), .in_udp_bad(b_udp_bad), .in_ours(b_ours), .in_no_sum(b_no_sum),
      .q_valid(m_valid), .q_next_valid(next_valid),
      .q_data(m_data), .q_keep(m_keep), .q_last(m_last), .q_bad(m_bad),
      .q_meta_valid(m_meta_valid), .q_meta(m_meta), .q_early(m_early));
endmodule
