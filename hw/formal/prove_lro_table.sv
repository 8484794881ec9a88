// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_lro_table with two slots, units of up to four packets and room for two frames that pass: it
// does not stop. While what leaves is taken, and is read within two cycles more, a frame that
// waits to be looked at is taken in one of `LONGEST_WAIT` cycles, and while a frame is inside, a
// unit leaves in each run of `SLOWEST`, the two cycles included for which a unit may be open. No
// unit leaves without a frame, and none with more packets than there are inside. An RPC has one open
// unit at most.
//
// What is known of a frame is free: whether it merges, ends its message, is bad, which RPC and how
// many bytes it has. So is what the memory of keys says, in WORDS words for each frame: any two frames
// may be alike, and not be so the next time. Memory is short whenever that is worst.
module prove_lro_table
  import homa_lro_pkg::*;
#(
    parameter int WORDS = 2,
    parameter int SLOWEST = 17,
    parameter int LONGEST_WAIT = 18
) (
    input logic clk,
    input logic rst,
    input logic on, low, read,
    input logic [8:0] limit,
    input logic f_valid, homa, merges, bad, ends, digest, long,
    input logic key
);
  localparam int WORD = $bits(homa_lro_key_t) / WORDS;
  homa_lro_info_t f_info;
  always_comb begin
    f_info = 0;
    f_info.bytes = 14'd200;
    f_info.homa = homa;
    f_info.merges = merges && homa;
    f_info.bad = bad;
    f_info.ends = ends;
    f_info.digest = 16'(digest);
    f_info.length = long ? 14'd64 : 14'd8;
  end

  logic [1:0] f_step;
  logic f_ready, k_word, u_valid, u_bad, done;
  logic [2:0] k_page;
  logic [SLOT_BITS-1:0] u_slot, done_slot;
  logic [PIECE_BITS:0] u_pieces;
  logic [2:0] u_page, p_page;
  logic [13:0] u_bytes, u_seg, p_length;
  logic [7:0] u_at;
  logic [31:0] p_offset;
  logic [EVENTS-1:0] event_;
  logic reading, of_slot;                  // a unit is being read; it has a slot
  homa_lro_table #(.PAGES_BITS(3), .WORDS(WORDS)) table_ (
      .k_key(WORD'(key)), .limit(16'(limit)), .patience(16'd2), .f_page(3'd0), .u_ready(!reading), .p_slot(1'b0),
      .p_number(2'd0), .*);

  wire leaves = u_valid && !reading;
  wire [SLOTS-1:0] own = table_.alike & table_.is_open;
  wire [5:0] packets = u_pieces == 0 ? 6'd1 : 6'(u_pieces);
  logic begun, f_waits;
  logic [9:0] settings;
  logic [5:0] f_shown;
  logic [1:0] cycles;                      // for which the unit has been read
  logic [5:0] held;                        // frames that were taken and have not left
  logic [5:0] still, waits;                // cycles in which no unit leaves; in which a frame waits
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    settings <= {on, limit};
    f_waits <= !rst && f_valid && !f_ready;
    f_shown <= {homa, merges, bad, ends, digest, long};
    done_slot <= leaves ? u_slot : done_slot;
    of_slot <= leaves ? u_pieces != 0 : of_slot;
    if (rst) {reading, done, cycles, held, still, waits} <= 0;
    else begin
      reading <= leaves || (reading && !read);
      done <= reading && read && of_slot;
      cycles <= reading ? cycles + 2'd1 : 2'd0;
      held <= held + 6'(f_valid && f_ready) - (leaves ? packets : 6'd0);
      still <= leaves || held == 0 ? 6'd0 : still + 6'd1;
      waits <= f_valid && !f_ready ? waits + 6'd1 : 6'd0;
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    else begin
      assume (!rst && settings == {on, limit});
      if (f_waits) assume (f_valid && f_shown == {homa, merges, bad, ends, digest, long});
      if (cycles == 1) assume (read);
    end
    if (begun && !rst) begin
      if (leaves) assert (packets <= held && packets <= PIECES);
      assert ((own & (own - 1'b1)) == 0);
      assert (still < SLOWEST);
      assert (waits < LONGEST_WAIT);
    end
  end
endmodule
