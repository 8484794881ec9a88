// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The parser's first two stages: Ethernet, one VLAN tag, the fixed headers of IPv4 and IPv6.
//
// A frame is looked at in halfwords of 16 bits: all headers begin at an even byte. Stage 1 keeps the
// halfwords of the network header as they pass, stage 2 judges them. Everything a stage knows about
// a frame moves on together with the beats, so that frames follow each other without a gap: what a
// stage shows beside a beat was learned from that beat and those before it.
module homa_parse_l3
  import homa_nic_pkg::*;
#(
    parameter int WIDTH = 512
) (
    input logic clk,
    input logic rst,
    input logic adv,  // all stages of the parser move

    input logic in_valid,
    input logic [WIDTH-1:0] in_data,
    input logic [WIDTH/8-1:0] in_keep,
    input logic in_last,

    output logic q_valid,
    output logic [WIDTH-1:0] q_data,
    output logic [WIDTH/8-1:0] q_keep,
    output logic q_last,
    output logic q_first,
    output logic [7:0] q_beat,     // number of the beat in its frame, from 0; stays at 255
    output homa_l3_t q_l3,
    output logic q_not_ip,         // valid with q_last or q_ready
    output logic q_bad,            // the same: header and frame contradict each other
    output logic q_short4,         // the same: IPv4, and the packet is shorter than its header
    output logic q_fragment,
    output logic q_ready,          // the fixed header has passed
    output logic [7:0] q_proto,    // what follows it
    output logic [7:0] q_at,       // begin of what follows, halfwords
    output logic [16:0] q_left,    // bytes behind the IP header, as it says
    output homa_parts_t q_parts,   // what has to be added to q_l3.sum_kept and q_l3.sum
    output logic [16:0] q_bytes,   // of the frame so far
    output logic [16:0] q_end      // end of the IP packet in the frame, bytes
);
  localparam int BYTES = WIDTH / 8;
  localparam int HALVES = WIDTH / 16;
  localparam int COUNT_BITS = $clog2(BYTES + 1);

  // Halfwords of the fixed header that are kept: those of IPv6, of which IPv4 has 10.
  localparam int KEPT = 20;
  localparam int TYPE_AT = 6;  // the type of Ethernet without a tag

  function automatic logic [15:0] half(input logic [WIDTH-1:0] data, input int unsigned lane);
    half = {data[16*lane+:8], data[16*lane+8+:8]};
  endfunction

  function automatic logic [COUNT_BITS-1:0] count(input logic [BYTES-1:0] keep);
    count = 0;
    for (int i = 0; i < BYTES; i++) if (keep[i]) count = COUNT_BITS'(i + 1);
  endfunction

  // ---- stage 1: halfwords ----

  // Beats of a frame in which a halfword is that matters, and that with the type.
  localparam int BEATS = (TYPE_AT + 3 + KEPT) / HALVES + 1;
  localparam int TYPE_BEAT = TYPE_AT / HALVES;

  logic first;  // the next beat begins a frame
  logic [7:0] beat;
  logic [BEATS-1:0] at;  // a bit for each number that it can have

  logic s_valid, s_last, s_first, s_vlan, s_v4, s_v6;
  logic [WIDTH-1:0] s_data;
  logic [BYTES-1:0] s_keep;
  logic [7:0] s_beat;
  logic [16:0] s_bytes;
  logic [15:0] s_tci;
  // The fixed header of IPv4, and that of IPv6, has passed: without a tag, with one.
  logic [1:0] s_past4, s_past6;
  logic [16*KEPT-1:0] s_ip;  // the first halfword in the lowest bits

  // Whether there is a tag is seen in one beat and known in those behind it; before it there is
  // none. What is in the same beat is kept as if there was none, if it comes again in a later beat
  // when there is one.
  wire vlan_now = at[TYPE_BEAT] ? half(in_data, TYPE_AT % HALVES) == 16'h8100 : s_vlan && !first;
  wire [16:0] bytes_before = first ? 17'd0 : s_bytes;
  // Beyond the longest packet and the headers before it the exact number is of no use; it must not
  // become small again.
  wire [COUNT_BITS-1:0] bytes_more = bytes_before[16] && bytes_before[7] ? '0 : count(in_keep);

  always_ff @(posedge clk) begin
    if (rst) begin
      first <= 1;
      beat <= 0;
      at <= 1;
      s_valid <= 0;
    end else if (adv) begin
      s_valid <= in_valid;
      if (in_valid) begin
        first <= in_last;
        beat <= in_last ? 8'd0 : (beat == 8'hff ? 8'hff : beat + 8'd1);
        at <= in_last ? BEATS'(1) : at << 1;
      end
    end
    if (adv && in_valid) begin
      s_data <= in_data;
      s_keep <= in_keep;
      s_last <= in_last;
      s_first <= first;
      s_beat <= beat;
      s_bytes <= 17'(bytes_more) + bytes_before;
      s_vlan <= vlan_now;
      for (int i = 0; i < 2; i++) begin
        s_past4[i] <= at[(TYPE_AT+1+2*i+9)/HALVES] || (s_past4[i] && !first);
        s_past6[i] <= at[(TYPE_AT+1+2*i+19)/HALVES] || (s_past6[i] && !first);
      end
      if (at[(TYPE_AT+1)/HALVES]) s_tci <= half(in_data, (TYPE_AT + 1) % HALVES);
    end
  end

  // What has this number without a tag, and two more with one: the type, and what is kept.
  for (genvar i = -1; i < KEPT; i++) begin : keep
    localparam int PLAIN = i < 0 ? TYPE_AT : TYPE_AT + 1 + i;
    localparam int TAGGED = PLAIN + 2;
    wire [15:0] without = half(in_data, PLAIN % HALVES);
    wire [15:0] with_tag = half(in_data, TAGGED % HALVES);
    logic [15:0] value;
    logic here;
    always_comb
      if (PLAIN / HALVES != TYPE_BEAT) begin
        here = s_vlan ? at[TAGGED/HALVES] : at[PLAIN/HALVES];
        value = s_vlan ? with_tag : without;
      end else if (TAGGED / HALVES != TYPE_BEAT) begin
        here = at[TYPE_BEAT] || (s_vlan && at[TAGGED/HALVES]);
        // In the beat with the type s_vlan is 0, but if that beat is the first one.
        value = (TYPE_BEAT > 0 ? !s_vlan : at[TYPE_BEAT]) ? without : with_tag;
      end else begin
        here = at[TYPE_BEAT];
        value = vlan_now ? with_tag : without;
      end
    // In beats of four halfwords IPv4's source address passes a beat before that of IPv6 ends, in
    // the same lanes. So one place has both, which IPv6 writes twice.
    localparam bit AGAIN = HALVES == 4 && (i == 10 || i == 11);
    wire sooner = s_vlan ? at[(TAGGED-4)/HALVES] : at[(PLAIN-4)/HALVES];
    wire keeps = adv && in_valid && (AGAIN ? sooner || (here && s_v6) : here);
    if (i < 0) begin : the_type
      always_ff @(posedge clk)
        if (keeps) begin
          s_v4 <= value == 16'h0800;
          s_v6 <= value == 16'h86dd;
        end
    end else begin : of_ip
      always_ff @(posedge clk) if (keeps) s_ip[16*i+:16] <= value;
    end
  end

  // ---- stage 2: what they say ----

  wire [7:0] l3_at = s_vlan ? 8'd9 : 8'd7;  // halfwords
  wire [16:0] l3_byte = s_vlan ? 17'd18 : 17'd14;
  wire [3:0] version = s_ip[15:12];
  wire [3:0] ihl = s_ip[11:8];
  wire [15:0] total = s_ip[16+:16];
  wire [15:0] payload6 = s_ip[32+:16];
  // Where what total and payload6 count begins.
  wire [16:0] counted_at = s_v6 ? (s_vlan ? 17'd58 : 17'd54) : l3_byte;
  wire [16:0] ip_end = counted_at + {1'b0, s_v6 ? payload6 : total};
  wire bad4 = version != 4'd4 || ihl < 4'd5;
  wire bad6 = version != 4'd6;
  // Does the frame end before it has so many bytes, which are fewer than 64? Comparing with
  // constants is faster than with one that is chosen first.
  wire few = s_bytes[16:6] == 0;
  function automatic logic below(input logic [5:0] bytes);
    below = few && s_bytes[5:0] < bytes;
  endfunction
  logic too_short, cut4, cut6;
  always_comb begin
    too_short = s_vlan ? below(18) : below(14);
    cut4 = s_vlan ? below(38) : below(34);
    cut6 = s_vlan ? below(58) : below(54);
  end
  // The sum of IPv4's header begins with pairs; the stages behind this one go on, two numbers in
  // each step, for sums of three take three times the look-up tables.
  function automatic logic [16:0] pair(input int i, input int j);
    pair = {1'b0, s_ip[16*i+:16]} + {1'b0, s_ip[16*j+:16]};
  endfunction

  always_ff @(posedge clk) begin
    if (rst) q_valid <= 0;
    else if (adv) q_valid <= s_valid;
    if (adv && s_valid) begin
      q_data <= s_data;
      q_keep <= s_keep;
      q_last <= s_last;
      q_first <= s_first;
      q_beat <= s_beat;
      q_l3.vlan <= s_vlan;
      q_l3.tci <= s_vlan ? s_tci : 16'd0;
      q_l3.sum <= {3'd0, pair(1, 2)};  // length and id
      q_l3.sum_kept <= {3'd0, pair(0, 3)};
      q_parts.kept <= pair(4, 6);
      q_parts.rest <= pair(7, 8);
      q_parts.checksum <= s_ip[80+:16];
      q_parts.last <= s_ip[144+:16];
      q_l3.v4 <= s_v4;
      q_l3.v6 <= s_v6;
      q_l3.tos <= s_v6 ? s_ip[11:4] : s_ip[7:0];
      q_l3.src <= s_v6 ? {s_ip[64+:16], s_ip[80+:16], s_ip[96+:16], s_ip[112+:16],
                        s_ip[128+:16], s_ip[144+:16], s_ip[160+:16], s_ip[176+:16]}
                     : {96'd0, HALVES == 4 ? {s_ip[160+:16], s_ip[176+:16]}
                                           : {s_ip[96+:16], s_ip[112+:16]}};
      q_l3.dst <= s_v6 ? {s_ip[192+:16], s_ip[208+:16], s_ip[224+:16], s_ip[240+:16],
                        s_ip[256+:16], s_ip[272+:16], s_ip[288+:16], s_ip[304+:16]}
                     : {96'd0, s_ip[128+:16], s_ip[144+:16]};
      q_not_ip <= !(s_v4 || s_v6) || (s_last && too_short);
      q_bad <= s_v6 ? bad6 || (s_last && cut6) : bad4 || (s_last && cut4);
      q_short4 <= !s_v6 && total[15:6] == 0 && total[5:2] < ihl;
      q_fragment <= s_v4 && !s_v6 && s_ip[48+:14] != 0;
      q_ready <= s_v6 ? s_past6[s_vlan] : s_past4[s_vlan];
      q_proto <= s_v6 ? s_ip[48+8+:8] : s_ip[64+:8];
      q_at <= l3_at + (s_v6 ? 8'd20 : {3'd0, ihl, 1'b0});
      q_bytes <= s_bytes;
      q_end <= ip_end;
      q_left <= s_v6 ? {1'b0, payload6} : {1'b0, total} - {11'd0, ihl, 2'b00};
    end
  end
endmodule
