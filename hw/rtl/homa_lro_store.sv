// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The memory of large receive: frames are written into chains of pages as they come, and read in
// any order later. Who reads a page gives it back. When no page is free, the input waits.
//
// A frame longer than LONGEST is cut there, so that each frame ends in a memory of bounded size. A
// last beat without bytes is in no page, for nobody would read it and give the page back. A frame
// has one page at least, also one without bytes.
module homa_lro_store
  import homa_lro_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int PAGES_BITS = 10  // log2 of the pages
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,

    input logic f_room,                    // a frame that ends can be taken
    output logic f_valid,                  // a frame is in memory, for a cycle
    output logic [PAGES_BITS-1:0] f_page,  // its first page
    output logic [13:0] f_bytes,
    output logic f_long,                   // it was cut

    input logic r_on,                      // the beat that is asked for comes in the next cycle
    input logic [PAGES_BITS-1:0] r_page,
    input logic [$clog2(2048/WIDTH)-1:0] r_beat,
    output logic [WIDTH-1:0] r_data,
    input logic [PAGES_BITS-1:0] n_page,   // the page after this one, two cycles later
    output logic [PAGES_BITS-1:0] n_next,

    input logic give,                      // this page is free
    input logic [PAGES_BITS-1:0] give_page,
    output logic low                       // there is not room for two of the longest frames
);
  localparam int BYTES = WIDTH / 8;
  localparam int BEAT_BITS = $clog2(2048 / WIDTH);
  localparam int COUNT_BITS = $clog2(BYTES + 1);
  localparam int NUMBER = 1 << PAGES_BITS;
  localparam int LOW = 2 * (LONGEST / PAGE_BYTES);

  // What comes out of block RAM is late in its cycle, so there should be no logic behind it. There
  // is none if a block RAM has a bit of as many beats as there are: 2^15 in UltraScale, 2^14 in ECP5.
  // With more beats one of several block RAMs is chosen. A frame is read when all of it is written,
  // and a free page when it is in the list, so what is read was written in an earlier cycle.
  localparam int PLACE_BITS = PAGES_BITS + BEAT_BITS;

  function automatic logic [COUNT_BITS-1:0] count(input logic [BYTES-1:0] keep);
    count = 0;
    for (int i = 0; i < BYTES; i++) if (keep[i]) count = COUNT_BITS'(i + 1);
  endfunction

  // ---- free pages: those that were never used, then those that came back ----

  // A page of either kind has a register of its own, for `head` comes late in its cycle.
  logic [PAGES_BITS:0] fresh, given, taken, number;
  logic [PAGES_BITS-1:0] head, spare_fresh, spare_given;
  logic spare_valid, head_valid, was_given;
  wire [PAGES_BITS-1:0] spare = was_given ? spare_given : spare_fresh;
  wire take_spare, pop_head;
  wire want = !spare_valid || take_spare;
  wire from_fresh = want && !fresh[PAGES_BITS];
  assign pop_head = want && fresh[PAGES_BITS] && head_valid;

  homa_memory #(.BITS(PAGES_BITS), .AT_BITS(PAGES_BITS)) free_ (
      .clk, .write(give), .write_at(given[PAGES_BITS-1:0]), .write_data(give_page), .read(1'b1),
      .read_at(taken[PAGES_BITS-1:0]), .q(head));

  always_ff @(posedge clk) begin
    if (want) begin
      spare_fresh <= fresh[PAGES_BITS-1:0];
      spare_given <= head;
      was_given <= fresh[PAGES_BITS];
    end
    if (rst) begin
      fresh <= 0;
      given <= 0;
      taken <= 0;
      number <= (PAGES_BITS + 1)'(NUMBER);
      spare_valid <= 0;
      head_valid <= 0;
      low <= 0;
    end else begin
      if (from_fresh) fresh <= fresh + 1;
      if (give) given <= given + 1;
      if (pop_head) taken <= taken + 1;
      head_valid <= !pop_head && taken != given;
      if (want) spare_valid <= from_fresh || pop_head;
      number <= number + (PAGES_BITS + 1)'(give) - (PAGES_BITS + 1)'(take_spare);
      low <= 32'(number) < LOW;
    end
  end

  // ---- writing ----

  logic begins;
  logic [PAGES_BITS-1:0] page, first;
  logic [BEAT_BITS-1:0] beat;
  logic [13:0] bytes;
  // Whether a beat can be taken moves all of the parser, so what that depends on are registers.
  logic too_long;          // the frame has all bytes that are kept
  logic need;              // the next beat begins a page
  wire fills = !begins && bytes == 14'(LONGEST - BYTES);
  wire take = s_valid && s_ready;
  wire nothing = !begins && !s_keep[0];  // a frame's last beat, and the bytes before it were all
  wire [PAGES_BITS-1:0] here = need ? spare : page;
  wire [13:0] bytes_now = (begins ? 14'd0 : bytes) +
                          (too_long ? 14'd0 : s_last ? 14'(count(s_keep)) : 14'(BYTES));
  assign s_ready = (!need || spare_valid) && (!begins || f_room);
  assign take_spare = take && need && !nothing;

  // The memory is large, so its inputs come from registers. What is written is not read before the
  // frame has ended, and that is told in the cycle in which its last beat is written.
  logic put;
  logic [PLACE_BITS-1:0] put_at;
  logic [WIDTH-1:0] put_data;
  logic [PAGES_BITS-1:0] found_next;

  homa_memory #(.BITS(WIDTH), .AT_BITS(PLACE_BITS)) memory (
      .clk, .write(put), .write_at(put_at), .write_data(put_data), .read(r_on),
      .read_at({r_page, r_beat}), .q(r_data));
  homa_memory #(.BITS(PAGES_BITS), .AT_BITS(PAGES_BITS)) next (
      .clk, .write(take_spare && !begins), .write_at(page), .write_data(spare), .read(1'b1),
      .read_at(n_page), .q(found_next));

  always_ff @(posedge clk) begin
    put <= take && !too_long;
    put_at <= {here, beat};
    put_data <= s_data;
    n_next <= found_next;
    if (take_spare) page <= spare;
    if (take && begins) first <= spare;
    if (take) bytes <= bytes_now;
    if (take && s_last) begin
      f_page <= begins ? spare : first;
      f_bytes <= bytes_now;
      f_long <= too_long;
    end
    if (rst) begin
      begins <= 1;
      too_long <= 0;
      need <= 1;
      beat <= 0;
      f_valid <= 0;
    end else begin
      f_valid <= take && s_last;
      if (take) begin
        begins <= s_last;
        too_long <= !s_last && (too_long || fills);
        need <= s_last || (&beat && !too_long && !fills);
        beat <= s_last ? '0 : too_long ? beat : beat + 1'b1;
      end
    end
  end
endmodule
