// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_lro_store, 512 bits wide, with few pages and short frames: no page is lost and none is given
// twice. A page that is taken is in no frame, and a frame has as many as its bytes need, one at
// least, so whoever reads its bytes gives all of them back. The number of free pages is right. And
// it goes on: while a page is free and the frame that ends can be taken, a beat waits for fewer than
// `SLOWEST` cycles. What is written is in pages of a frame that has not ended, or whose end is told
// in this cycle, or free, and a page that comes from the list of free ones was put there in an
// earlier cycle than it was read. So of a place that is written nobody needs what it says then.
//
// Frames have any length, and their last beats any number of bytes, none included. Pages come back
// in any order, but not before their frame has ended. No byte matters here: all are 0.
module prove_lro_store
  import homa_lro_pkg::*;
#(
    parameter int PAGES_BITS = 2,
    parameter int SLOWEST = 4
) (
    input logic clk,
    input logic rst,
    input logic s_valid, s_last, f_room, give,
    input logic [6:0] count,                 // bytes of a last beat
    input logic [PAGES_BITS-1:0] give_page
);
  localparam int NUMBER = 1 << PAGES_BITS;
  localparam int BYTES = 64;

  logic s_ready, f_valid, f_long, low;
  logic [PAGES_BITS-1:0] f_page, n_next;
  logic [13:0] f_bytes;
  logic [511:0] r_data;
  wire [63:0] s_keep = s_last ? ~(~64'd0 << count) : '1;
  homa_lro_store #(.WIDTH(512), .PAGES_BITS(PAGES_BITS)) store (
      .s_data(512'd0), .r_on(1'b0), .r_page('0), .r_beat('0), .n_page('0), .*);

  wire take = s_valid && s_ready;
  logic begun, amid, waits;
  logic [7:0] shown;
  logic [NUMBER-1:0] used, own;              // pages of frames; of the frame that has not ended
  logic [13:0] bytes;                        // of it, that are kept
  logic [2:0] still;                         // cycles for which a beat waits for nothing
  logic head_clash;                          // a free page was written and read a cycle ago
  wire [13:0] more = s_last ? 14'(count) : 14'(BYTES);
  wire [13:0] all = (amid ? bytes : 14'd0) + more;
  wire [13:0] kept = all > 14'(LONGEST) ? 14'(LONGEST) : all;
  wire [NUMBER-1:0] taken = store.take_spare ? NUMBER'(1) << store.spare : '0;
  wire [NUMBER-1:0] given = give ? NUMBER'(1) << give_page : '0;
  wire [NUMBER-1:0] frame = (amid ? own : '0) | taken;
  wire [PAGES_BITS-1:0] put_page = store.put_at[PAGES_BITS+1:2];
  wire [13:0] needs = (kept + 14'(PAGE_BYTES - 1)) / 14'(PAGE_BYTES);

  function automatic logic [PAGES_BITS:0] ones(input logic [NUMBER-1:0] pages);
    ones = 0;
    for (int i = 0; i < NUMBER; i++) ones += (PAGES_BITS + 1)'(pages[i]);
  endfunction

  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    waits <= !rst && s_valid && !s_ready;
    shown <= {s_last, count};
    head_clash <= !rst && give && store.given[PAGES_BITS-1:0] == store.taken[PAGES_BITS-1:0];
    if (take) begin
      bytes <= kept;
      own <= frame;
    end
    if (rst) {amid, used, still} <= 0;
    else begin
      if (take) amid <= !s_last;
      used <= (used | taken) & ~given;
      still <= s_valid && !s_ready && f_room && used != '1 ? still + 3'd1 : 3'd0;
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    else begin
      assume (!rst);
      assume (count <= BYTES);
      if (waits) assume (s_valid && shown == {s_last, count});
      if (give) assume (used[give_page] && !(amid && own[give_page]));
    end
    if (begun && !rst) begin
      if (store.take_spare) assert (take && !used[store.spare]);
      if (take && s_last) assert (14'(ones(frame)) == (needs == 0 ? 14'd1 : needs));
      assert (store.number == (PAGES_BITS + 1)'(NUMBER) - ones(used));
      assert (still < SLOWEST);
      if (store.put) assert (!used[put_page] || (own[put_page] && (amid || f_valid)));
      if (store.take_spare && !store.begins) assert (amid && own[store.page]);
      if (head_clash) assert (!store.head_valid);
    end
  end
endmodule
