// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Large receive offload: the receive path from the port's FIFO to the host's queue. DATA packets of
// one RPC that follow each other become one unit with the first one's headers, and a list says
// which bytes of the message are in it. All else passes as it came.
module homa_lro
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
  import homa_lro_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int PAGES_BITS = 10  // log2 of the pages of 256 bytes that it has
) (
    input logic clk,
    input logic rst,

    input logic on,                        // merge
    input logic [15:0] limit,              // bytes of a unit
    input logic [15:0] patience,           // cycles for which a unit waits for more; up to 65,024

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic [47:0] now,                // the time; with a frame's first beat that of its arrival

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,                    // with m_last: the frame contradicts itself
    output logic [PIECE_BITS:0] m_pieces,  // packets in it; 1: it is as it came
    output logic [13:0] m_seg,             // if more: bytes of the message in each but the last
    output homa_lro_about_t m_about,       // of its first packet; with each beat
    output logic [31:0] m_hash,            // the same: as homa_rss_hash says

    output logic l_valid,                  // once for each packet of a unit with several
    input logic l_ready,
    output logic [31:0] l_offset,
    output logic [13:0] l_length,
    output logic l_last,                   // the last one of its unit

    output logic [EVENTS-1:0] events       // which EVENT_* are in this cycle
);
  localparam int BEAT_BITS = $clog2(2048 / WIDTH);

  logic p_valid, p_ready, p_last, p_bad, p_meta_valid;
  logic [WIDTH-1:0] p_data;
  logic [WIDTH/8-1:0] p_keep;
  homa_meta_t p_meta, p_early;

  homa_parser #(.WIDTH(WIDTH), .CONTROL(0)) parser (
      .clk, .rst, .s_valid, .s_ready, .s_data, .s_keep, .s_last,
      .m_valid(p_valid), .m_ready(p_ready), .m_data(p_data), .m_keep(p_keep), .m_last(p_last),
      .m_bad(p_bad), .m_meta_valid(p_meta_valid), .m_meta(p_meta), .m_early(p_early));

  // ---- into memory, with what is known of the frame beside it ----

  logic f_valid, f_long, f_bad, f_room;
  logic [PAGES_BITS-1:0] f_page;
  logic [13:0] f_bytes;
  homa_lro_info_t judged, f_info;
  logic [16:0] packet_end;
  homa_lro_key_t key;

  logic r_on, give, low;
  logic [PAGES_BITS-1:0] r_page, n_page, n_next, give_page;
  logic [BEAT_BITS-1:0] r_beat;
  logic [WIDTH-1:0] r_data;

  wire meta_moves = p_valid && p_ready && p_meta_valid;
  homa_lro_judge judge (
      .clk, .early_adv(p_ready || !p_valid), .s_early(p_early),
      .adv(meta_moves), .s_meta(p_meta), .q_info(judged), .q_end(packet_end), .q_key(key));

  homa_lro_store #(.WIDTH(WIDTH), .PAGES_BITS(PAGES_BITS)) store (
      .clk, .rst, .s_valid(p_valid), .s_ready(p_ready), .s_data(p_data), .s_keep(p_keep),
      .s_last(p_last), .f_room, .f_valid, .f_page, .f_bytes, .f_long, .r_on, .r_page, .r_beat,
      .r_data, .n_page, .n_next, .give, .give_page, .low);

  always_ff @(posedge clk) if (p_valid && p_ready && p_last) f_bad <= p_bad;

  always_comb begin
    f_info = judged;
    f_info.bytes = f_bytes;
    f_info.bad = f_bad || f_long;
    f_info.merges = judged.merges && packet_end == {3'd0, f_bytes};
    f_info.homa = judged.homa && !f_bad;  // what it says of an RPC is not to be believed
    f_info.hashed.class_ = key.class_;
    f_info.hashed.v4 = key.v4;
    f_info.hashed.src = key.src;
    f_info.hashed.dst = key.dst;
    f_info.hashed.out_ports = key.out_ports;
    f_info.hashed.ports = key.ports;
    f_info.hashed.id = key.hdr[351-8*(COMMON_SENDER_ID_AT-COMMON_ACK_HIGH_AT)-:64];
  end

  // ---- what is said of a frame: beside its first page, which is the unit's if it begins one ----

  // The parser and the store have eleven of them, at most. When a frame arrived is written as it
  // comes and read in the cycle before it is in memory.
  localparam int ARRIVAL_BITS = 4;
  logic [47:0] arrived;
  homa_lro_about_t about, r_about;
  logic [ARRIVAL_BITS-1:0] arrival_in, arrival_out, arrival_after;  // arrival_after: out + 1
  logic begins, starts, undecoded;
  wire [7:0] kind = p_meta.hdr[HDR_BITS-8-8*COMMON_TYPE_AT+:8];

  always_comb begin
    about.arrived = arrived;
    about.class_ = key.class_;
    about.at = judged.at;
    about.homa = judged.rpc;
    about.first = starts;
    about.undecoded = undecoded;
  end

  // The last time that is written for a frame is that of the cycle in which its first beat is taken.
  homa_memory #(.BITS(48), .AT_BITS(ARRIVAL_BITS), .STYLE("block")) arrivals (
      .clk, .write(begins), .write_at(arrival_in), .write_data(now), .read(1'b1),
      .read_at(f_valid ? arrival_after : arrival_out), .q(arrived));
  // It is written before the frame is asked for.
  homa_memory #(.BITS($bits(homa_lro_about_t)), .AT_BITS(PAGES_BITS)) abouts (
      .clk, .write(f_valid), .write_at(f_page), .write_data(about), .read(r_on), .read_at(r_page),
      .q(r_about));

  always_ff @(posedge clk) begin
    if (meta_moves) begin
      starts <= p_meta.error == WIRE_OK && p_meta.offset == 0 && kind == TYPE_DATA;
      undecoded <= p_meta.class_ >= CLASS_HOMA && p_meta.error != WIRE_OK;
    end
    if (rst) begin
      begins <= 1;
      arrival_in <= 0;
      arrival_out <= 0;
      arrival_after <= 1;
    end else begin
      if (s_valid && s_ready) begin
        begins <= s_last;
        if (begins) arrival_in <= arrival_in + 1;
      end
      if (f_valid) begin
        arrival_out <= arrival_after;
        arrival_after <= arrival_after + 1;
      end
    end
  end

  // ---- the key: beside the first page, too ----

  // It is written at once and read in words, for those of two frames are compared word by word. A
  // narrow port has long enough for that: the shortest packet that merges has 12 beats at 64 bits.
  // What is written is not read in the same cycle, for the table has not seen the frame yet.
  localparam int WORDS = WIDTH < 256 ? 256 / WIDTH : 1;
  localparam int WORD = ($bits(homa_lro_key_t) + WORDS - 1) / WORDS;
  localparam int TOGETHER_BITS = $clog2(WORDS);
  localparam int WORD_BITS = WORDS > 1 ? TOGETHER_BITS : 1;
  logic [PAGES_BITS-1:0] k_page;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [WORD_BITS-1:0] k_word;            // there may be one only
  /* verilator lint_on UNUSEDSIGNAL */
  logic [WORD-1:0] k_key;
  // Where it is in the memory is known late, too.
  logic [PAGES_BITS+TOGETHER_BITS-1:0] asked_at;
  if (WORDS > 1) begin : narrow
    always_ff @(posedge clk) asked_at <= {k_page, k_word};
  end else begin : wide
    always_ff @(posedge clk) asked_at <= k_page;
  end

  homa_memory #(
      .BITS(WORD), .AT_BITS(PAGES_BITS + TOGETHER_BITS), .TOGETHER_BITS(TOGETHER_BITS)
  ) keys (
      .clk, .write(f_valid), .write_at(f_page), .write_data((WORDS * WORD)'(key)), .read(1'b1),
      .read_at(asked_at), .q(k_key));

  // ---- frames that wait to be looked at ----

  // In block RAM, whose output is late in its cycle. So the first of them is in a register. A frame
  // is read in a later cycle than it is written.
  localparam int WAIT_BITS = 4;
  localparam int ENTRY = PAGES_BITS + $bits(homa_lro_info_t);
  logic [ENTRY-1:0] second;
  logic [WAIT_BITS:0] wait_in, wait_out;
  logic second_valid, w_valid, w_ready;
  wire [WAIT_BITS:0] wait_number = wait_in - wait_out;
  // Two may be on their way when this is said.
  always_ff @(posedge clk) f_room <= !rst && wait_number < (WAIT_BITS + 1)'((1 << WAIT_BITS) - 3);

  logic [PAGES_BITS-1:0] w_page;
  homa_lro_info_t w_info;
  wire advance = second_valid && (!w_valid || w_ready);
  // A frame is looked at for four cycles at least, so there is time for this one after the other.
  wire fetch = wait_in != wait_out && !second_valid;

  homa_memory #(.BITS(ENTRY), .AT_BITS(WAIT_BITS), .STYLE("block")) waiting (
      .clk, .write(f_valid), .write_at(wait_in[WAIT_BITS-1:0]), .write_data({f_page, f_info}),
      .read(fetch), .read_at(wait_out[WAIT_BITS-1:0]), .q(second));

  always_ff @(posedge clk) begin
    if (advance) {w_page, w_info} <= second;
    if (rst) begin
      wait_in <= 0;
      wait_out <= 0;
      second_valid <= 0;
      w_valid <= 0;
    end else begin
      if (f_valid) wait_in <= wait_in + 1;
      if (fetch) wait_out <= wait_out + 1;
      second_valid <= fetch || (second_valid && !advance);
      w_valid <= advance || (w_valid && !w_ready);
    end
  end

  // ---- the hash: made while the table looks at the frame, and kept as what is said of it ----

  // A frame that passes at once is read in the third cycle after it was taken, and its hash in the
  // one after that. That is a cycle after it was written. Between two frames that are taken are four
  // cycles.
  logic [31:0] hash, r_hash;
  logic [1:0] w_step;
  logic [PAGES_BITS-1:0] hash_page, h_page;
  logic [2:0] hash_comes;                  // in one, two, three cycles
  logic h_on;

  homa_lro_hash lro_hash (
      .clk, .step(w_step), .info(w_info.hashed), .has_rpc(w_info.rpc), .q_hash(hash));

  always_ff @(posedge clk) begin
    hash_comes <= rst ? 3'd0 : {hash_comes[1:0], w_valid && w_ready};
    if (w_valid && w_ready) hash_page <= w_page;
  end
  homa_memory #(.BITS(32), .AT_BITS(PAGES_BITS)) hashes (
      .clk, .write(hash_comes[2]), .write_at(hash_page), .write_data(hash), .read(h_on),
      .read_at(h_page), .q(r_hash));

  // ---- units ----

  logic u_valid, u_ready, u_bad, done;
  logic [SLOT_BITS-1:0] u_slot, done_slot, p_slot;
  logic [PIECE_BITS:0] u_pieces;
  logic [PIECE_BITS-1:0] p_number;
  logic [PAGES_BITS-1:0] u_page, p_page;
  logic [13:0] u_bytes, u_seg, p_length;
  logic [7:0] u_at;
  logic [31:0] p_offset;
  logic [EVENTS-1:0] table_event;

  homa_lro_table #(.PAGES_BITS(PAGES_BITS), .WORDS(WORDS)) table_ (
      .clk, .rst, .on, .limit, .patience, .low,
      .f_valid(w_valid), .f_ready(w_ready), .f_step(w_step), .f_page(w_page),
      .f_info(w_info), .k_page, .k_word, .k_key,
      .u_valid, .u_ready, .u_slot, .u_pieces, .u_page, .u_bytes, .u_bad, .u_at, .u_seg, .done,
      .done_slot, .p_slot, .p_number, .p_page, .p_offset, .p_length, .event_(table_event));

  homa_lro_emit #(.WIDTH(WIDTH), .PAGES_BITS(PAGES_BITS)) emit (
      .clk, .rst, .u_valid, .u_ready, .u_slot, .u_pieces, .u_page, .u_bytes, .u_bad, .u_at,
      .u_seg, .done, .done_slot, .p_slot, .p_number, .p_page, .p_offset, .p_length, .r_on, .r_page,
      .r_beat, .r_data, .r_about, .h_on, .h_page, .r_hash, .n_page, .n_next, .give, .give_page,
      .m_valid, .m_ready, .m_data, .m_keep, .m_last, .m_bad, .m_pieces, .m_seg, .m_about, .m_hash,
      .l_valid, .l_ready, .l_offset, .l_length, .l_last);

  always_comb begin
    events = table_event;
    events[EVENT_BAD] = f_valid && f_bad;
    events[EVENT_LONG] = f_valid && f_long;
  end
endmodule
