// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The parser's stage for what carries Homa: directly on IP, inside UDP with our port at either end,
// or, possibly, as TCP; whether it is, the Homa header says, which is not here yet.
//
// Beats of 8 bytes are turned here, so that what follows IP's headers begins in lane 0. UDP's
// header has 8 bytes, so the Homa header does so, too.
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
    input logic [7:0] in_before,   // the beat before it
    input homa_l3_t in_l3,
    input logic in_not_ip,
    input logic in_bad,
    input logic in_fragment,
    input logic in_ready,
    input logic in_unknown,
    input logic [3:0] in_kind,     // what follows IP's headers, as homa_parse_ext says
    input logic [7:0] in_at,
    input logic [16:0] in_left,

    output logic q_valid,
    output logic [WIDTH-1:0] q_data,
    output logic [WIDTH-1:0] q_turned,  // with beats of 8 bytes only
    output logic [WIDTH/8-1:0] q_keep,
    output logic q_last,
    output logic q_first,
    output homa_l3_t q_l3,
    output logic q_ready,          // class and place are known
    output logic [2:0] q_class,    // CLASS_HOMA_TCP: if the Homa header agrees, else CLASS_PORTS;
                                   // CLASS_HOMA_UDP: if a port is ours and its length can be true
    output logic q_broken,         // this frame contradicts itself after all; with q_last
    output logic [15:0] q_sport,
    output logic [15:0] q_dport,
    output logic [7:0] q_at,       // begin of the Homa header, halfwords
    output logic q_begin,          // it is in this beat, if that is known by now
    output logic [7:0] q_since,    // beats since that with the begin, modulo 256
    output logic [16:0] q_left,    // bytes behind the headers of IP
    output logic q_udp,            // a UDP header is first, and says q_udp_length
    output logic [15:0] q_udp_length,
    output logic q_udp_bad,        // that cannot be
    output logic [1:0] q_ours,     // the ports that are Homa's in UDP
    output logic q_no_sum          // in UDP: its checksum is 0
);
  localparam int HALVES = WIDTH / 16;
  localparam int LANE_BITS = $clog2(HALVES);
  localparam logic [16:0] UDP_HDR = 17'd8;
  localparam logic [16:0] TCP_HDR = 17'd20;

  function automatic logic [15:0] half(input logic [WIDTH-1:0] data,
                                         input logic [LANE_BITS-1:0] lane);
    half = {data[16*32'(lane)+:8], data[16*32'(lane)+8+:8]};
  endfunction

  // Rows: places in units of a beat. Is the halfword that many behind `lane` in this beat, if this
  // is the row of `lane`, or the one behind it?
  function automatic logic is_here(input logic [LANE_BITS-1:0] lane, input logic [2:0] more,
                                     input logic in_row, input logic in_next);
    logic [LANE_BITS:0] sum = {1'b0, lane} + (LANE_BITS + 1)'(more);
    is_here = sum[LANE_BITS] ? in_next : in_row;
  endfunction
  // All headers have an odd number of halfwords before them (homa_parse_ext.sv).
  wire [7:0] row = in_at >> LANE_BITS;
  wire [LANE_BITS-1:0] lane = {in_at[LANE_BITS-1:1], 1'b1};
  wire in_row = row == in_beat, in_next = row == in_before;

  logic fragment_header, native, tcp, udp;
  assign {fragment_header, native, tcp, udp} = in_kind;
  wire ports = (udp && in_left >= UDP_HDR) || (tcp && in_left >= TCP_HDR);

  // Where `lane` is odd, so is the third halfword's, and the second's and the fourth's are even.
  wire [LANE_BITS-2:0] pair = in_at[LANE_BITS-1:1];
  wire [LANE_BITS-2:0] pair1 = pair + 1'b1;
  wire [LANE_BITS-2:0] pair2 = pair + (LANE_BITS - 1)'(2);
  wire [15:0] half0 = half(in_data, lane);
  wire [15:0] half1 = half(in_data, {pair1, 1'b0});
  wire [15:0] half2 = half(in_data, {pair1, 1'b1});
  wire [15:0] half3 = half(in_data, {pair2, 1'b0});
  wire [63:0] turned = {half3[7:0], half3[15:8], half2[7:0], half2[15:8],
                        half1[7:0], half1[15:8], half0[7:0], half0[15:8]};
  wire here0 = is_here(lane, 3'd0, in_row, in_next);
  wire here1 = is_here(lane, 3'd1, in_row, in_next);
  wire here2 = is_here(lane, 3'd2, in_row, in_next);
  wire here3 = is_here(lane, 3'd3, in_row, in_next);
  wire here4 = is_here(lane, 3'd4, in_row, in_next);
  wire fragment = in_fragment || (in_l3.v6 && !in_unknown && fragment_header);
  wire known = q_ready && !in_first;
  wire behind_udp = udp && ports && !in_unknown && !fragment && !in_bad && !in_not_ip;
  wire [7:0] at = behind_udp ? in_at + 8'd4 : in_at;
  // Whether UDP's header is before it is known late, so its row is not found by adding to `at`.
  wire below = behind_udp && is_here(lane, 3'd4, 1'b0, 1'b1);  // it is in the row behind `row`
  wire [7:0] known_row = q_at >> LANE_BITS;

  always_ff @(posedge clk) begin
    if (rst) q_valid <= 0;
    else if (adv) q_valid <= in_valid;
    if (adv && in_valid) begin
      q_data <= in_data;
      q_turned <= HALVES == 4 ? WIDTH'(turned) : '0;
      q_keep <= in_keep;
      q_last <= in_last;
      q_first <= in_first;
      q_l3 <= in_l3;
      q_broken <= in_last && in_bad && !in_not_ip;
      if (here0 && !known) q_sport <= half0;
      if (here0 && !known) q_ours[0] <= half0 == UDP_PORT[15:0];
      if (here1 && !known) q_dport <= half1;
      if (here1 && !known) q_ours[1] <= half1 == UDP_PORT[15:0];
      if (here2 && !known) q_udp_length <= half2;
      if (here2 && !known) q_udp_bad <= half2 < UDP_HDR[15:0] || {1'b0, half2} > in_left;
      if (here3 && !known) q_no_sum <= half3 == 0;
      q_begin <= known ? in_beat == known_row : behind_udp ? here4 : here0;
      q_since <= (!known && below ? in_before : in_beat) - (known ? known_row : row);
      if (!known) begin
        q_at <= at;
        q_left <= in_left;
        q_udp <= behind_udp;
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
          q_class <= CLASS_HOMA_UDP;
          q_ready <= (in_ready && here3) || in_last;
        end
      end
    end
  end
endmodule
