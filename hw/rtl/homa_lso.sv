// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Large segmentation offload: the transmit path from the host's DMA to the port's FIFO. Frames of
// one input may be super-frames, which become packets (homa_segment.sv). The other input is for
// frames that shall not wait behind them: they pass between two packets.
module homa_lso
  import homa_nic_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int TAG_BITS = 8
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_split,               // with a frame's first beat: it is a super-frame
    input logic [15:0] s_seg,          // the same: bytes of the message in each packet
    input logic [TAG_BITS-1:0] s_tag,  // the same: comes back with the completion

    input logic b_valid,               // frames that pass between two packets
    output logic b_ready,
    input logic [WIDTH-1:0] b_data,
    input logic [WIDTH/8-1:0] b_keep,
    input logic b_last,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_other,              // the frame came from the second input; with each beat

    output logic c_valid,              // once for each frame of the first input
    input logic c_ready,
    output logic [TAG_BITS-1:0] c_tag,
    output logic [1:0] c_status,
    output logic [15:0] c_packets
);
  localparam int BYTES = WIDTH / 8;
  // The longest packet, of 9,216 bytes, and what may be under way. So when the FIFO is full, a packet
  // in it has ended, and leaves. Fewer beats than these need as many block RAMs.
  localparam int ROOM = 8;
  localparam int FEWEST_BITS = 9;
  localparam int LONG_BITS = $clog2(9216 / BYTES + ROOM);
  localparam int DEPTH_BITS = LONG_BITS > FEWEST_BITS ? LONG_BITS : FEWEST_BITS;

  // ---- what was said of the frames that are in the parser and behind it ----

  // They have ten beats in all, so there are ten frames at most.

  localparam int NOTES_BITS = 4;
  localparam int NOTE = TAG_BITS + 17;
  logic [NOTE-1:0] notes[1 << NOTES_BITS];
  logic [NOTES_BITS-1:0] note_in, note_out;
  logic begins;

  logic p_valid, p_ready, p_last, p_bad, p_meta_valid;
  logic [WIDTH-1:0] p_data;
  logic [BYTES-1:0] p_keep;
  homa_meta_t p_meta;
  logic k_valid, k_ready, k_last, k_bad, k_meta_valid;
  wire [NOTE-1:0] k_note = notes[note_out];

  always_ff @(posedge clk) begin
    if (s_valid && s_ready && begins) notes[note_in] <= {s_split, s_seg, s_tag};
    if (rst) begin
      begins <= 1;
      note_in <= 0;
      note_out <= 0;
    end else begin
      if (s_valid && s_ready) begin
        begins <= s_last;
        if (begins) note_in <= note_in + 1;
      end
      if (k_valid && k_ready && k_last) note_out <= note_out + 1;
    end
  end

  /* verilator lint_off PINCONNECTEMPTY */
  homa_parser #(.WIDTH(WIDTH), .CONTROL(0)) parser (
      .clk, .rst, .s_valid, .s_ready, .s_data, .s_keep, .s_last,
      .m_valid(p_valid), .m_ready(p_ready), .m_data(p_data), .m_keep(p_keep), .m_last(p_last),
      .m_bad(p_bad), .m_meta_valid(p_meta_valid), .m_meta(p_meta), .m_early());
  /* verilator lint_on PINCONNECTEMPTY */

  // A register between the parser, all of whose stages move together, and what is behind it. Meta
  // has one place only: a beat with the next one waits until the beat with this one has left.
  localparam int BEAT = WIDTH + BYTES + 3;
  logic room, meta_waits, enters;
  assign p_ready = room && !(p_meta_valid && meta_waits);
  assign enters = p_valid && p_ready;
  logic [WIDTH-1:0] k_data;
  logic [BYTES-1:0] k_keep;
  homa_meta_t k_meta;
  homa_skid #(.BITS(BEAT)) skid (
      .clk, .rst, .s_valid(enters), .s_ready(room),
      .s_data({p_data, p_keep, p_last, p_bad, p_meta_valid}),
      .m_valid(k_valid), .m_ready(k_ready),
      .m_data({k_data, k_keep, k_last, k_bad, k_meta_valid}));

  always_ff @(posedge clk) begin
    if (enters && p_meta_valid) k_meta <= p_meta;
    if (rst) meta_waits <= 0;
    else if (enters && p_meta_valid) meta_waits <= 1;
    else if (k_valid && k_ready && k_meta_valid) meta_waits <= 0;
  end

  // ---- segments ----

  logic d_valid, d_last, d_abort, d_whole, d_replace, v4, udp;
  logic [BYTES-1:0] d_keep;
  logic [WIDTH-1:0] d_raw;
  logic [2*WIDTH-1:0] d_pair;
  logic [$clog2(BYTES)-1:0] d_turn, d_head;
  logic [7:0] d_ip, d_homa;
  logic [15:0] ip_length, ip_id, ip_checksum, udp_length;
  logic [31:0] offset;
  logic f_room;

  homa_segment #(.WIDTH(WIDTH), .TAG_BITS(TAG_BITS)) segment (
      .clk, .rst,
      .s_valid(k_valid), .s_ready(k_ready), .s_data(k_data), .s_keep(k_keep), .s_last(k_last),
      .s_bad(k_bad), .s_meta_valid(k_meta_valid), .s_meta(k_meta),
      .s_split(k_note[TAG_BITS+16]), .s_seg(k_note[TAG_BITS+:16]), .s_tag(k_note[TAG_BITS-1:0]),
      .m_valid(d_valid), .m_ready(f_room), .m_last(d_last), .m_abort(d_abort), .m_keep(d_keep),
      .m_raw(d_raw), .m_pair(d_pair), .m_turn(d_turn), .m_whole(d_whole), .m_head(d_head),
      .m_replace(d_replace), .m_ip(d_ip), .m_homa(d_homa),
      .packet_v4(v4), .packet_udp(udp), .packet_length(ip_length), .packet_id(ip_id),
      .packet_checksum(ip_checksum), .packet_udp_length(udp_length), .packet_offset(offset),
      .c_valid, .c_ready, .c_tag, .c_status, .c_packets);

  logic g_valid, g_last, g_abort;
  logic [WIDTH-1:0] g_data;
  logic [BYTES-1:0] g_keep;
  homa_segment_build #(.WIDTH(WIDTH)) build (
      .clk, .rst, .s_valid(d_valid && f_room), .s_last(d_last), .s_abort(d_abort),
      .s_keep(d_keep), .s_raw(d_raw), .s_pair(d_pair), .s_turn(d_turn), .s_whole(d_whole),
      .s_head(d_head), .s_replace(d_replace), .s_ip(d_ip), .s_homa(d_homa),
      .v4, .udp, .ip_length, .ip_id, .ip_checksum, .udp_length, .offset,
      .m_valid(g_valid), .m_last(g_last), .m_abort(g_abort), .m_keep(g_keep), .m_data(g_data));

  logic a_valid, a_ready, a_last;
  logic [WIDTH-1:0] a_data;
  logic [BYTES-1:0] a_keep;

  // s_ready is not asked: what comes was let in by s_room. That is two cycles behind, and a beat
  // that it lets in comes three cycles later, so there are six at most for which it must hold.
  /* verilator lint_off PINCONNECTEMPTY */
  homa_frame_fifo #(.WIDTH(WIDTH), .DEPTH_BITS(DEPTH_BITS), .ROOM(ROOM), .ASKED(0)) fifo (
      .clk, .rst,
      .s_room(f_room), .s_valid(g_valid), .s_ready(), .s_data(g_data), .s_keep(g_keep),
      .s_last(g_last),
      .s_abort(g_abort),
      .m_valid(a_valid), .m_ready(a_ready), .m_data(a_data), .m_keep(a_keep), .m_last(a_last));
  /* verilator lint_on PINCONNECTEMPTY */

  homa_turns #(.WIDTH(WIDTH)) turns (
      .clk, .rst,
      .a_valid, .a_ready, .a_data, .a_keep, .a_last,
      .b_valid, .b_ready, .b_data, .b_keep, .b_last,
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_b(m_other));
endmodule
