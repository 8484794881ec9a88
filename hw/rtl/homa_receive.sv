// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receive path from the port's FIFO to the host's queues: large receive, then the parser and
// receive side scaling over what leaves it. A unit is hashed as its first packet is, so it gets
// the queue of its RPC, and for the load of a queue it counts as one. What the host wants to know
// of a frame or unit stands beside all of its beats.
module homa_receive
  import homa_nic_pkg::*;
  import homa_lro_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4,
    parameter int PAGES_BITS = 10
) (
    input logic clk,
    input logic rst,

    input logic lro_on,
    input logic [15:0] lro_limit,
    input logic [15:0] lro_patience,
    input logic rss_on,
    input logic rss_least,
    input logic rss_tick,
    input logic rss_set,
    input logic [7:0] rss_set_at,
    input logic [QUEUE_BITS-1:0] rss_set_queue,
    input logic taken,
    input logic [QUEUE_BITS-1:0] taken_queue,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic [47:0] now,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,                     // with m_last: the frame contradicts itself
    output logic [QUEUE_BITS-1:0] m_queue,
    output logic [31:0] m_hash,
    output logic [2:0] m_class,             // CLASS_*
    output logic [7:0] m_at,                // begin of the Homa header, if it has one
    output logic [PIECE_BITS:0] m_pieces,   // packets in it; 1: it is as it came
    output logic [13:0] m_seg,              // if more: bytes of the message in each but the last
    output logic [47:0] m_time,             // when its first packet arrived

    output logic l_valid,
    input logic l_ready,
    output logic [31:0] l_offset,
    output logic [13:0] l_length,
    output logic l_last,

    output logic [EVENTS-1:0] lro_events,
    output logic [7:0] classes,             // a frame of this class in this cycle
    output logic undecoded,                 // it has a Homa header that does not decode
    output logic placed
);
  logic u_valid, u_ready, u_last, u_bad;
  logic [WIDTH-1:0] u_data;
  logic [WIDTH/8-1:0] u_keep;
  logic [PIECE_BITS:0] u_pieces;
  logic [13:0] u_seg;
  logic [47:0] u_time;

  homa_lro #(.WIDTH(WIDTH), .PAGES_BITS(PAGES_BITS)) lro (
      .clk, .rst, .on(lro_on), .limit(lro_limit), .patience(lro_patience),
      .s_valid, .s_ready, .s_data, .s_keep, .s_last, .now,
      .m_valid(u_valid), .m_ready(u_ready), .m_data(u_data), .m_keep(u_keep), .m_last(u_last),
      .m_bad(u_bad), .m_pieces(u_pieces), .m_seg(u_seg), .m_time(u_time),
      .l_valid, .l_ready, .l_offset, .l_length, .l_last, .events(lro_events));

  // ---- what large receive said of the frames that are in the classifier ----

  localparam int NOTES_BITS = 4;  // it has 13 stages
  localparam int NOTE = PIECE_BITS + 63;
  logic [NOTE-1:0] notes[1 << NOTES_BITS];
  logic bads[1 << NOTES_BITS];
  logic [NOTES_BITS-1:0] note_in, note_out;
  logic c_valid, c_ready, c_last, c_bad, c_meta_valid;
  logic [WIDTH-1:0] c_data;
  logic [WIDTH/8-1:0] c_keep;
  /* verilator lint_off UNUSEDSIGNAL */
  homa_meta_t c_meta;             // not all of it is for the host
  /* verilator lint_on UNUSEDSIGNAL */
  logic [QUEUE_BITS-1:0] c_queue;
  logic [31:0] c_hash;

  always_ff @(posedge clk) begin
    if (u_valid && u_ready) notes[note_in] <= {u_pieces, u_seg, u_time};
    if (u_valid && u_ready && u_last) bads[note_in] <= u_bad;
    if (rst) begin
      note_in <= 0;
      note_out <= 0;
    end else begin
      if (u_valid && u_ready && u_last) note_in <= note_in + 1;
      if (c_valid && c_ready && c_last) note_out <= note_out + 1;
    end
  end

  homa_classify #(.WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS)) classify (
      .clk, .rst, .on(rss_on), .least(rss_least), .tick(rss_tick), .set(rss_set),
      .set_at(rss_set_at), .set_queue(rss_set_queue), .taken, .taken_queue,
      .s_valid(u_valid), .s_ready(u_ready), .s_data(u_data), .s_keep(u_keep), .s_last(u_last),
      .m_valid(c_valid), .m_ready(c_ready), .m_data(c_data), .m_keep(c_keep), .m_last(c_last),
      .m_bad(c_bad), .m_meta_valid(c_meta_valid), .m_meta(c_meta), .m_queue(c_queue),
      .m_hash(c_hash), .placed);

  always_ff @(posedge clk) begin
    classes <= 0;
    undecoded <= 0;
    if (!rst && c_valid && c_ready && c_meta_valid) begin
      classes[c_meta.class_] <= 1;
      undecoded <= c_meta.class_ >= CLASS_HOMA && c_meta.error != WIRE_OK;
    end
  end

  // ---- known with the first beat ----

  homa_lead #(.WIDTH(WIDTH), .SIDE(QUEUE_BITS + 43 + NOTE)) lead (
      .clk, .rst,
      .s_valid(c_valid), .s_ready(c_ready), .s_data(c_data), .s_keep(c_keep), .s_last(c_last),
      .s_bad(c_last && (c_bad || bads[note_out])), .s_side_valid(c_meta_valid),
      .s_side({c_queue, c_hash, c_meta.class_, c_meta.at, notes[note_out]}),
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_bad,
      .m_side({m_queue, m_hash, m_class, m_at, m_pieces, m_seg, m_time}));
endmodule
