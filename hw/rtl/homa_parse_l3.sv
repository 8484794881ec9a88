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
    output logic [18:0] q_more,    // what has to be added to q_l3.sum_kept, and that to q_l3.sum
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

  logic s_valid, s_last, s_first, s_vlan;
  logic [WIDTH-1:0] s_data;
  logic [BYTES-1:0] s_keep;
  logic [7:0] s_beat;
  logic [16:0] s_bytes;
  logic [15:0] s_type, s_tci;
  logic [16*KEPT-1:0] s_ip;  // the first halfword in the lowest bits

  // Whether there is a tag is seen in one beat and known in those behind it. What is in the same
  // beat is kept as if there was none, if it comes again in a later beat when there is one.
  wire vlan_now = at[TYPE_BEAT] ? half(in_data, TYPE_AT % HALVES) == 16'h8100 : s_vlan;
  wire [16:0] bytes_before = first ? 17'd0 : s_bytes;
  wire [16:0] bytes_now = bytes_before + 17'(count(in_keep));

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
      // Beyond the longest packet and the headers before it the exact number is of no use; it must
      // not become small again.
      s_bytes <= bytes_before[16] && bytes_before[7] ? bytes_before : bytes_now;
      s_vlan <= vlan_now;
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
        value = at[TYPE_BEAT] ? without : with_tag;
      end else begin
        here = at[TYPE_BEAT];
        value = vlan_now ? with_tag : without;
      end
    wire keeps = adv && in_valid && here;
    if (i < 0) begin : the_type
      always_ff @(posedge clk) if (keeps) s_type <= value;
    end else begin : of_ip
      always_ff @(posedge clk) if (keeps) s_ip[16*i+:16] <= value;
    end
  end

  // ---- stage 2: what they say ----

  wire [7:0] l3_at = s_vlan ? 8'd9 : 8'd7;  // halfwords
  wire [16:0] l3_byte = s_vlan ? 17'd18 : 17'd14;
  wire v4 = s_type == 16'h0800;
  wire v6 = s_type == 16'h86dd;
  wire [3:0] version = s_ip[15:12];
  wire [3:0] ihl = s_ip[11:8];
  wire [15:0] total = s_ip[16+:16];
  wire [15:0] payload6 = s_ip[32+:16];
  // Where what total and payload6 count begins.
  wire [16:0] counted_at = v6 ? (s_vlan ? 17'd58 : 17'd54) : l3_byte;
  wire [16:0] ip_end = counted_at + {1'b0, v6 ? payload6 : total};
  wire bad4 = version != 4'd4 || ihl < 4'd5;
  wire bad6 = version != 4'd6;
  wire too_short = s_vlan ? s_bytes < 17'd18 : s_bytes < 17'd14;
  // The frame ends before the fixed headers do. Comparing with constants is faster than with one
  // that is chosen first.
  wire cut4 = s_vlan ? s_bytes < 17'd38 : s_bytes < 17'd34;
  wire cut6 = s_vlan ? s_bytes < 17'd58 : s_bytes < 17'd54;
  // The sum of IPv4's header in three parts; the next two stages add them.
  function automatic logic [18:0] word(input int i);
    word = {3'd0, s_ip[16*i+:16]};
  endfunction
  wire [18:0] sum = word(1) + word(2) + word(5);  // length, id, checksum
  wire [18:0] kept = word(0) + word(3) + word(4) + word(6);
  wire [18:0] more = word(7) + word(8) + word(9);
  wire [7:0] last_half = l3_at + (v6 ? 8'd19 : 8'd9);

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
      q_l3.sum <= {1'b0, sum};
      q_l3.sum_kept <= {1'b0, kept};
      q_more <= more;
      q_l3.v4 <= v4;
      q_l3.v6 <= v6;
      q_l3.tos <= v6 ? s_ip[11:4] : s_ip[7:0];
      q_l3.src <= v6 ? {s_ip[64+:16], s_ip[80+:16], s_ip[96+:16], s_ip[112+:16],
                        s_ip[128+:16], s_ip[144+:16], s_ip[160+:16], s_ip[176+:16]}
                     : {96'd0, s_ip[96+:16], s_ip[112+:16]};
      q_l3.dst <= v6 ? {s_ip[192+:16], s_ip[208+:16], s_ip[224+:16], s_ip[240+:16],
                        s_ip[256+:16], s_ip[272+:16], s_ip[288+:16], s_ip[304+:16]}
                     : {96'd0, s_ip[128+:16], s_ip[144+:16]};
      q_not_ip <= !(v4 || v6) || (s_last && too_short);
      q_bad <= v6 ? bad6 || (s_last && cut6) : bad4 || (s_last && cut4);
      q_short4 <= !v6 && total < {10'd0, ihl, 2'b00};
      q_fragment <= v4 && !v6 && s_ip[48+:14] != 0;
      q_ready <= s_beat >= 8'(32'(last_half) / HALVES);
      q_proto <= v6 ? s_ip[48+8+:8] : s_ip[64+:8];
      q_at <= l3_at + (v6 ? 8'd20 : {3'd0, ihl, 1'b0});
      q_bytes <= s_bytes;
      q_end <= ip_end;
      q_left <= v6 ? {1'b0, payload6} : {1'b0, total} - {11'd0, ihl, 2'b00};
    end
  end
endmodule
