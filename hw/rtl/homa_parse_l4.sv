// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The parser's stage for what carries Homa: directly on IP, inside UDP with our port at either end,
// or, possibly, as TCP; whether it is, the Homa header says, which is not here yet.
module homa_parse_l4
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int WIDTH = 512
) (
    input logic clk,
    input logic rst,
    input logic adv,

    input logic in_valid,
    input logic [WIDTH-1:0] in_data,
    input logic [WIDTH/8-1:0] in_keep,
    input logic in_last,
    input logic in_first,
    input logic [7:0] in_beat,
    input homa_l3_t in_l3,
    input logic in_not_ip,
    input logic in_bad,
    input logic in_fragment,
    input logic in_ready,
    input logic in_unknown,
    input logic [7:0] in_proto,
    input logic [7:0] in_at,
    input logic [16:0] in_left,

    output logic q_valid,
    output logic [WIDTH-1:0] q_data,
    output logic [WIDTH/8-1:0] q_keep,
    output logic q_last,
    output logic q_first,
    output logic [7:0] q_beat,
    output homa_l3_t q_l3,
    output logic q_ready,          // class and place are known
    output logic [2:0] q_class,    // CLASS_HOMA_TCP: if the Homa header agrees, else CLASS_PORTS
    output logic q_broken,         // this frame contradicts itself after all; with q_last
    output logic [15:0] q_sport,
    output logic [15:0] q_dport,
    output logic [7:0] q_at,       // begin of the Homa header, halfwords
    output logic [16:0] q_bytes,   // Homa header and payload, bytes
    output logic q_no_sum          // in UDP: its checksum is 0
);
  localparam int HALVES = WIDTH / 16;
  localparam int LANE_BITS = $clog2(HALVES);
  localparam logic [7:0] PROTO_UDP = 8'd17;
  localparam logic [7:0] EXT_FRAGMENT = 8'd44;
  localparam logic [16:0] UDP_HDR = 17'd8;
  localparam logic [16:0] TCP_HDR = 17'd20;

  function automatic logic [15:0] half(input logic [WIDTH-1:0] data,
                                         input logic [LANE_BITS-1:0] lane);
    half = {data[16*32'(lane)+:8], data[16*32'(lane)+8+:8]};
  endfunction

  function automatic logic is_here(input logic [7:0] at, input logic [7:0] beat);
    is_here = (at >> LANE_BITS) == beat;
  endfunction

  wire native = in_proto == IPPROTO[7:0];
  wire tcp = in_proto == IPPROTO_HIJACK[7:0];
  wire udp = in_proto == PROTO_UDP;
  wire ports = (udp && in_left >= UDP_HDR) || (tcp && in_left >= TCP_HDR);

  wire [15:0] half0 = half(in_data, LANE_BITS'(in_at));
  wire [15:0] half1 = half(in_data, LANE_BITS'(in_at + 8'd1));
  wire [15:0] half2 = half(in_data, LANE_BITS'(in_at + 8'd2));
  wire [15:0] half3 = half(in_data, LANE_BITS'(in_at + 8'd3));
  wire here0 = is_here(in_at, in_beat);
  wire here1 = is_here(in_at + 8'd1, in_beat);
  wire here2 = is_here(in_at + 8'd2, in_beat);
  wire here3 = is_here(in_at + 8'd3, in_beat);
  logic [15:0] q_udp_length;
  wire [15:0] udp_length = here2 ? half2 : q_udp_length;
  wire [15:0] sport = here0 ? half0 : q_sport;
  wire [15:0] dport = here1 ? half1 : q_dport;
  wire ours = sport == UDP_PORT[15:0] || dport == UDP_PORT[15:0];
  wire udp_bad = udp_length < UDP_HDR[15:0] || {1'b0, udp_length} > in_left;
  wire fragment = in_fragment || (in_l3.v6 && !in_unknown && in_proto == EXT_FRAGMENT);
  wire known = q_ready && !in_first;

  always_ff @(posedge clk) begin
    if (rst) q_valid <= 0;
    else if (adv) q_valid <= in_valid;
    if (adv && in_valid) begin
      q_data <= in_data;
      q_keep <= in_keep;
      q_last <= in_last;
      q_first <= in_first;
      q_beat <= in_beat;
      q_l3 <= in_l3;
      q_broken <= in_last && in_bad && !in_not_ip;
      if (here0 && !known) q_sport <= half0;
      if (here1 && !known) q_dport <= half1;
      if (here2 && !known) q_udp_length <= half2;
      if (here3 && !known) q_no_sum <= half3 == 0;
      if (!known) begin
        q_at <= in_at;
        q_bytes <= in_left;
        q_ready <= in_ready || in_last;
        if (in_not_ip) q_class <= CLASS_NOT_IP;
        else if (in_bad) q_class <= CLASS_BAD;
        else if (fragment) q_class <= CLASS_FRAGMENT;
        else if (in_unknown || !(native || ports)) q_class <= CLASS_IP;
        else if (native) q_class <= CLASS_HOMA;
        else if (tcp) begin
          q_class <= in_left >= COMMON_HDR[16:0] ? CLASS_HOMA_TCP : CLASS_PORTS;
          q_ready <= (in_ready && here1) || in_last;
        end else begin
          q_class <= !ours ? CLASS_PORTS : udp_bad ? CLASS_BAD : CLASS_HOMA_UDP;
          q_at <= in_at + 8'd4;
          q_bytes <= {1'b0, udp_length} - UDP_HDR;
          q_ready <= (in_ready && here3) || in_last;
        end
      end
    end
  end
endmodule
