// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receive path from the port's FIFO to the host's queues: large receive, then receive side
// scaling over what leaves it. A frame is parsed and hashed once, when it comes; what was found
// then is said beside the first beat with which it leaves. A unit has the hash of its first packet,
// so it gets the queue of its RPC, and for the load of a queue it counts as one. What the host wants
// to know of a frame or unit stands beside all of its beats.
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
  homa_lro_about_t u_about;
  logic [31:0] u_hash;

  homa_lro #(.WIDTH(WIDTH), .PAGES_BITS(PAGES_BITS)) lro (
      .clk, .rst, .on(lro_on), .limit(lro_limit), .patience(lro_patience),
      .s_valid, .s_ready, .s_data, .s_keep, .s_last, .now,
      .m_valid(u_valid), .m_ready(u_ready), .m_data(u_data), .m_keep(u_keep), .m_last(u_last),
      .m_bad(u_bad), .m_pieces(u_pieces), .m_seg(u_seg), .m_about(u_about),
      .m_hash(u_hash),
      .l_valid, .l_ready, .l_offset, .l_length, .l_last, .events(lro_events));

  // ---- its queue ----

  localparam int SIDE = PIECE_BITS + 75;
  logic begins, m_begins, undecoded_here;

  always_ff @(posedge clk)
    if (rst) begins <= 1;
    else if (u_valid && u_ready) begins <= u_last;

  homa_rss #(.WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS), .SIDE(SIDE)) rss (
      .clk, .rst, .on(rss_on), .least(rss_least), .tick(rss_tick), .set(rss_set),
      .set_at(rss_set_at), .set_queue(rss_set_queue), .taken, .taken_queue,
      .s_valid(u_valid), .s_ready(u_ready), .s_data(u_data), .s_keep(u_keep), .s_last(u_last),
      .s_bad(u_bad),
      .s_side({u_about.arrived, u_about.class_, u_about.at, u_about.undecoded, u_pieces, u_seg}),
      .s_meta_valid(begins), .s_homa(u_about.homa), .s_first(u_about.first),
      .s_hash(u_hash),
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_bad,
      .m_side({m_time, m_class, m_at, undecoded_here, m_pieces, m_seg}),
      .m_meta_valid(m_begins), .m_queue, .m_hash, .placed);

  always_ff @(posedge clk) begin
    classes <= 0;
    undecoded <= 0;
    if (!rst && m_valid && m_ready && m_begins) begin
      classes[m_class] <= 1;
      undecoded <= undecoded_here;
    end
  end
endmodule
