// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_pace, with beats of two bytes and a limit and a rate that do not change: what is offered
// stays until it is taken, each beat passes unchanged; switched on, a frame begins only if at most
// `limit` bytes are in the port, counted to the byte and the cycle; with an empty port and no rate
// a frame waits for less than six cycles; switched off, none waits at all. With a rate below 4
// bytes in a cycle a frame begins only when what went before is paid but for one cycle's worth,
// counted to the byte and the cycle. What has left is said once for each frame, in order, with its
// number, and only when all its bytes have left. A frame's number is free (`mark`), so what holds
// for it holds for each. The input keeps what it offers. The port may lie. Frames that could not be
// remembered are left out.
module prove_pace (
    input logic clk,
    input logic rst,
    input logic on,
    input logic [4:0] limit, rate, some_left,
    input logic s_valid, s_last, s_other, m_ready, d_ready, short_beat,
    input logic [15:0] s_data,
    input logic [3:0] mark
);
  logic s_ready, m_valid, m_last, d_valid, d_other, waited, lied, untaken, crowded;
  logic [1:0] m_keep;
  logic [15:0] m_data, d_number;
  logic [31:0] in_port;
  logic [47:0] d_time;
  wire [1:0] s_keep = {!(s_last && short_beat), 1'b1};
  homa_pace #(.WIDTH(16), .ENDS_BITS(3), .GONE_BITS(3)) pace (
      .limit({12'd0, limit}), .rate({5'd0, rate, 14'd0}), .extra(8'd1), .now(48'd0),
      .left({2'd0, some_left}), .*);

  wire take = s_valid && s_ready;
  wire [6:0] bytes = !take ? 7'd0 : s_keep[1] ? 7'd2 : 7'd1;
  wire [6:0] left = {2'd0, some_left};
  logic begun, was_on, s_waits, m_waits, amid;
  logic [4:0] was_limit, was_rate;
  logic [3:0] marked, ended, out, starved;
  logic [19:0] s_shown;
  logic [18:0] m_shown;
  logic [6:0] port, handed, gone, end_at;  // bytes in the port; taken; left of those
  logic [9:0] debt;                        // in quarters of a byte, as the rate
  wire [9:0] owed = debt + {1'b0, bytes, 2'd0} + (take && s_last ? 10'd4 : 10'd0);
  logic [15:0] frames[2];
  logic mark_other;
  logic [15:0] mark_number;
  wire [6:0] had = port + bytes;
  wire [6:0] leaves = left > had ? had : left;
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    marked <= mark;
    was_on <= on;
    was_limit <= limit;
    was_rate <= rate;
    s_waits <= !rst && s_valid && !s_ready;
    s_shown <= {s_other, s_last, s_keep, s_data};
    m_waits <= !rst && m_valid && !m_ready;
    m_shown <= {m_last, m_keep, m_data};
    if (take && s_last && ended == mark) begin
      mark_other <= s_other;
      mark_number <= frames[s_other];
      end_at <= handed + bytes;
    end
    if (rst) begin
      amid <= 0;
      {port, handed, gone} <= 0;
      debt <= 0;
      {ended, out, starved} <= 0;
      frames[0] <= 0;
      frames[1] <= 0;
    end else begin
      if (take) amid <= !s_last;
      port <= had - leaves;
      handed <= handed + bytes;
      gone <= gone + leaves;
      debt <= owed > {5'd0, rate} ? owed - {5'd0, rate} : 10'd0;
      if (take && s_last) begin
        ended <= ended + 1;
        frames[s_other] <= frames[s_other] + 1;
      end
      if (d_valid && d_ready) out <= out + 1;
      starved <= s_valid && !m_valid && port == 0 ? starved + 1 : 0;
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    else begin
      assume (mark == marked && on == was_on && limit == was_limit && rate == was_rate);
      assume (!untaken && !crowded);
      if (s_waits) assume (s_valid && {s_other, s_last, s_keep, s_data} == s_shown);
    end
    if (begun && !rst) begin
      if (m_waits) assert (m_valid && {m_last, m_keep, m_data} == m_shown);
      assert ((m_valid && m_ready) == take);
      if (take) assert ({m_last, m_keep, m_data} == {s_last, s_keep, s_data});
      if (!on) assert (m_valid == s_valid);
      if (on && m_valid && !m_waits && !amid) assert (port <= {2'd0, limit});
      if (on && m_valid && !m_waits && !amid && rate != 0 && rate < 16)
        assert (debt < {5'd0, rate});
      if (rate == 0) assert (starved < 6);
      if (d_valid) assert (out != ended);
      if (d_valid && out == mark) begin
        assert (d_other == mark_other && d_number == mark_number);
        assert (gone >= end_at);
      end
    end
  end
endmodule
