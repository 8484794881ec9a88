// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// A receive path without large receive: the parser and receive side scaling behind it. Frames come
// from the port's FIFO; beside one beat of each leaves what it is and the queue that it is for.
// What it is does not go through the stages behind the parser with the beat: it waits in a memory.
module homa_classify
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
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
    output homa_meta_t m_meta,              // with m_meta_valid
    output logic [QUEUE_BITS-1:0] m_queue,
    output logic [31:0] m_hash,
    output logic placed
);
  localparam int STAGES = 2;  // by which the hash is later than meta
  localparam int HDR_BITS = 8 * HDR_BYTES;

  // A beat, and what receive side scaling must know of its frame.
  typedef struct packed {
    logic [WIDTH-1:0] data;
    logic [WIDTH/8-1:0] keep;
    logic last;
    logic bad;
    logic meta_valid;
    logic homa;
    logic first;
  } beat_t;

  logic valid, ready, last, bad, meta_valid, homa;
  logic [WIDTH-1:0] data;
  logic [WIDTH/8-1:0] keep;
  homa_meta_t meta;
  beat_t late[STAGES];
  logic [STAGES-1:0] late_valid;
  logic [31:0] hash;
  homa_meta_t early;

  homa_parser #(.WIDTH(WIDTH)) parser (
      .clk, .rst, .s_valid, .s_ready, .s_data, .s_keep, .s_last,
      .m_valid(valid), .m_ready(ready), .m_data(data), .m_keep(keep), .m_last(last),
      .m_bad(bad), .m_meta_valid(meta_valid), .m_meta(meta), .m_early(early));

  homa_rss_hash rss_hash (
      .clk, .adv({ready, ready, ready || !valid}), .s_early(early), .q_homa(homa),
      .q_hash(hash));
  wire first = meta.error == WIRE_OK && meta.offset == 0 &&
               meta.hdr[HDR_BITS-8-8*COMMON_TYPE_AT+:8] == TYPE_DATA;

  always_ff @(posedge clk) begin
    if (rst) late_valid <= 0;
    else if (ready) late_valid <= {late_valid[STAGES-2:0], valid};
    // A stage that is empty keeps what it had, so that this is no shift register of look-up tables.
    if (ready && valid) late[0] <= {data, keep, last, bad, meta_valid, homa, first};
    for (int i = 1; i < STAGES; i++) if (ready && late_valid[i-1]) late[i] <= late[i-1];
  end
  wire beat_t at = late[STAGES-1];

  // ---- what the frames are whose beats are behind the parser ----

  // These are six beats at most. What belongs to the next beat with meta is read in each cycle until
  // that beat leaves. It was written five cycles before the beat is offered at least, so what it says
  // of a place in the cycle in which that is written is never shown.
  localparam int PLACE_BITS = 3;
  logic [PLACE_BITS-1:0] meta_in, meta_out, meta_after;  // meta_after: meta_out + 1
  wire enters = ready && valid && meta_valid;
  wire leaves = m_valid && m_ready && m_meta_valid;

  homa_memory #(.BITS($bits(homa_meta_t)), .AT_BITS(PLACE_BITS), .STYLE("block")) metas (
      .clk, .write(enters), .write_at(meta_in), .write_data(meta), .read(1'b1),
      .read_at(leaves ? meta_after : meta_out), .q(m_meta));

  always_ff @(posedge clk) begin
    if (rst) begin
      meta_in <= 0;
      meta_out <= 0;
      meta_after <= 1;
    end else begin
      if (enters) meta_in <= meta_in + 1;
      if (leaves) begin
        meta_out <= meta_after;
        meta_after <= meta_after + 1;
      end
    end
  end

  /* verilator lint_off PINCONNECTEMPTY */
  homa_rss #(.WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS)) rss (
      .clk, .rst, .on, .least, .tick, .set, .set_at, .set_queue, .taken, .taken_queue,
      .s_valid(late_valid[STAGES-1]), .s_ready(ready), .s_data(at.data), .s_keep(at.keep),
      .s_last(at.last), .s_bad(at.bad), .s_side(1'b0), .s_meta_valid(at.meta_valid),
      .s_homa(at.homa), .s_first(at.first), .s_hash(hash),
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_bad, .m_side(), .m_meta_valid,
      .m_queue, .m_hash, .placed);
  /* verilator lint_on PINCONNECTEMPTY */
endmodule
