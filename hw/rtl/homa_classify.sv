// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The begin of the receive path: the parser and receive side scaling behind it. Frames come from
// the port's FIFO; beside one beat of each leaves what it is and the queue that it is for.
module homa_classify
  import homa_nic_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4
) (
    input logic clk,
    input logic rst,

    input logic on,
    input logic least,
    input logic tick,
    input logic set,
    input logic [7:0] set_at,
    input logic [QUEUE_BITS-1:0] set_queue,
    input logic taken,
    input logic [QUEUE_BITS-1:0] taken_queue,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,
    output logic m_meta_valid,
    output homa_meta_t m_meta,
    output logic [QUEUE_BITS-1:0] m_queue,
    output logic [31:0] m_hash,
    output logic placed
);
  logic valid, ready, last, bad, meta_valid, homa, is_homa;
  logic [WIDTH-1:0] data;
  logic [WIDTH/8-1:0] keep;
  /* verilator lint_off UNUSEDSIGNAL */
  homa_meta_t meta, early;  // not all that is known early is asked
  /* verilator lint_on UNUSEDSIGNAL */
  logic [287:0] tuple, of_meta;  // of what is known early; of meta

  homa_parser #(.WIDTH(WIDTH)) parser (
      .clk, .rst, .s_valid, .s_ready, .s_data, .s_keep, .s_last,
      .m_valid(valid), .m_ready(ready), .m_data(data), .m_keep(keep), .m_last(last),
      .m_bad(bad), .m_meta_valid(meta_valid), .m_meta(meta), .m_early(early));

  // Found while the parser looks for the payload's place.
  homa_rss_tuple rss_tuple (.meta(early), .homa(is_homa), .tuple);
  always_ff @(posedge clk)
    if (ready || !valid) begin
      homa <= is_homa;
      of_meta <= tuple;
    end

  homa_rss #(.WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS)) rss (
      .clk, .rst, .on, .least, .tick, .set, .set_at, .set_queue, .taken, .taken_queue,
      .s_valid(valid), .s_ready(ready), .s_data(data), .s_keep(keep), .s_last(last),
      .s_bad(bad), .s_meta_valid(meta_valid), .s_meta(meta),
      .s_homa(homa), .s_tuple(of_meta),
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_bad, .m_meta_valid, .m_meta,
      .m_queue, .m_hash, .placed);
endmodule
