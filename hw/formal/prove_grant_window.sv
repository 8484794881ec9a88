// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_grant_window with any settings and any message: each grant goes beyond what was granted
// before and not beyond the message, there are two at most, what is offered stays until it is
// taken, and the message is done. With packets so large that four of them are RTTbytes it is done
// after twelve cycles in which nothing waits.
module prove_grant_window
  import homa_grant_pkg::*;
(
    input logic clk,
    input logic rst,
    input logic start,
    input logic g_ready,
    input grantee_t who,
    input grant_settings_t settings,
    input logic [3:0] rank,
    input logic [3:0] active
);
  logic g_valid, done;
  logic [LENGTH_BITS-1:0] g_offset, granted;
  logic [2:0] g_level;
  homa_grant_window window (.*);

  logic begun, busy, offered;
  logic [1:0] given;
  logic [4:0] cycles;
  logic [LENGTH_BITS-1:0] last, offer;
  logic [2:0] offer_level;
  grantee_t who_then;
  grant_settings_t settings_then;

  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    who_then <= who;
    settings_then <= settings;
    offered <= g_valid && !g_ready && !rst;
    offer <= g_offset;
    offer_level <= g_level;
    if (start) begin
      busy <= 1;
      given <= 0;
      cycles <= 0;
      last <= who.granted;
    end else begin
      if (!(g_valid && !g_ready)) cycles <= cycles + 1;
      if (g_valid && g_ready) begin
        given <= given + 1;
        last <= g_offset;
      end
      if (done) busy <= 0;
    end
    if (rst) begin
      busy <= 0;
      given <= 0;
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    if (busy) assume (who == who_then && settings == settings_then && !start);
    assume (who.left <= who.length && who.granted < who.length);
    assume (settings.seg >= 200 && settings.rtt <= {4'd0, settings.seg, 2'd0});
    assume (who.length - who.left <= who.granted);
    assume (rank < 8 && active > rank && active <= 8);
    if (begun && !rst) begin
      if (g_valid) begin
        assert (busy && given < 2);
        assert (g_offset > last && g_offset <= who.length);
      end
      if (offered) assert (g_valid && g_offset == offer && g_level == offer_level);
      if (done) assert (busy && granted == last);
      if (busy) assert (cycles < 20);
    end
  end
endmodule
