// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// One stage of the parser for extension headers of IPv6: hop-by-hop, routing or destination options.
// Two headers are passed and no more: a chain that is longer, or a header above 64 bytes, leaves a
// packet of an unknown protocol. So the work for a packet has a bound that no sender can move.
//
// Wide beats may have both headers, so there are two such stages for one header each. The headers
// have a multiple of 8 bytes. So in beats of 8 bytes each begins in another beat, at the same place,
// and one stage passes both.
module homa_parse_ext
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter bit FIRST = 0, // the header begins right behind the fixed one of IPv6
    parameter int HEADERS = 1  // that are passed here
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
    input logic in_unknown,    // the headers before this one could not be passed
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
    output logic q_not_ip,
    output logic q_bad,
    output logic q_fragment,
    output logic q_ready,
    output logic q_unknown,
    output logic [7:0] q_proto,
    output logic [3:0] q_kind,       // what it is, as kind_of says
    output logic [7:0] q_at,
    output logic [16:0] q_left
);
  localparam int HALVES = WIDTH / 16;
  localparam int LANE_BITS = $clog2(HALVES);

  localparam logic [7:0] EXT_HOP = 8'd0;
  localparam logic [7:0] EXT_ROUTING = 8'd43;
  localparam logic [7:0] EXT_DESTINATION = 8'd60;
  localparam logic [7:0] EXT_FRAGMENT = 8'd44;
  localparam logic [7:0] PROTO_UDP = 8'd17;
  localparam logic [7:0] LONGEST = 8'd7;  // in units of 8 bytes, without the first

  // Where the header begins: of the first one there are two places, without and with a VLAN tag.
  // Others have an odd number of halfwords before them, as all headers have: 7 or 9 are Ethernet's,
  // and all headers behind it have an even number.
  function automatic logic [15:0] half(input logic [WIDTH-1:0] data,
                                         input logic [LANE_BITS-1:0] at);
    half = {data[16*32'(at)+:8], data[16*32'(at)+8+:8]};
  endfunction
  localparam int PLAIN_AT = 27;
  localparam int TAGGED_AT = 29;
  // The header's first halfword: what follows it, and its length.
  wire [15:0] head = !FIRST ? half(in_data, {in_at[LANE_BITS-1:1], 1'b1})
                   : in_l3.vlan ? half(in_data, LANE_BITS'(TAGGED_AT))
                                : half(in_data, LANE_BITS'(PLAIN_AT));

  // What is next. Of narrow beats it was kept with the beat before: the fixed header has at least
  // five of them, and what it says of what follows is in the first four.
  localparam bit KEPT = HEADERS > 1;
  logic [1:0] passed;        // headers of the frame
  wire [1:0] behind = in_first ? 2'd0 : passed;
  wire [7:0] at = KEPT ? q_at : in_at;
  wire [16:0] left = KEPT ? q_left : in_left;

  wire here = 8'(at >> LANE_BITS) == in_beat;
  function automatic logic is_ext(input logic [7:0] number);
    is_ext = number == EXT_HOP || number == EXT_ROUTING || number == EXT_DESTINATION;
  endfunction
  // What the next stage wants to know: a fragment's header, Homa itself, TCP, UDP.
  function automatic logic [3:0] kind_of(input logic [7:0] number);
    kind_of = {number == EXT_FRAGMENT, number == IPPROTO[7:0], number == IPPROTO_HIJACK[7:0],
               number == PROTO_UDP};
  endfunction
  logic kept_ext;            // is_ext(q_proto), where that is what matters
  wire ext = in_l3.v6 && behind != 2'(HEADERS) && (KEPT ? kept_ext : is_ext(in_proto));
  // The header has a unit of 8 bytes more than it says; a + b + 1 is a - ~b, a - b - 1 is a + ~b.
  wire [7:0] next_at = {at[7:2] - ~{3'd0, head[2:0]}, at[1:0]};
  wire [16:0] next_left = {left[16:3] + ~{11'd0, head[2:0]}, left[2:0]};
  wire fits = left >= 17'd8;
  wire next_fits = left[16:6] != 0 || left[5:3] > head[2:0];
  wire too_long = head[7:0] > LONGEST || !next_fits;
  wire known = q_ready && !in_first;  // an earlier beat of this frame had all of it
  wire none = in_unknown || !ext || !fits;
  wire pass = !known && !none && in_ready && here;

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
      q_not_ip <= in_not_ip;
      q_bad <= in_bad;
      q_fragment <= in_fragment;
      passed <= behind + 2'(pass);
      if (!known) begin
        q_ready <= none ? in_ready : pass && (too_long || behind == 2'(HEADERS - 1));
        q_unknown <= none ? in_unknown || ext : pass && too_long;
      end
      if (KEPT ? !in_ready : !known && none) begin
        q_proto <= in_proto;
        q_kind <= kind_of(in_proto);
        kept_ext <= is_ext(in_proto);
        q_at <= in_at;
        q_left <= in_left;
      end else if (pass) begin
        q_proto <= head[15:8];
        q_kind <= kind_of(head[15:8]);
        kept_ext <= is_ext(head[15:8]);
        q_at <= next_at;
        q_left <= next_left;
      end
    end
  end
endmodule
