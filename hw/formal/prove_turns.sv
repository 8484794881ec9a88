// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_turns: what is offered stays until it is taken, no beat is lost, doubled or changed, frames
// are not mixed, a beat is taken in each cycle in which one is there and can leave, and a frame
// waits for one frame of the other input at most. The inputs keep what they offer. A beat's number
// is free (`mark`), so what holds for it holds for each.
module prove_turns (
    input logic clk,
    input logic rst,
    input logic a_valid, b_valid, m_ready, a_last, b_last,
    input logic [7:0] a_data, b_data,
    input logic a_keep, b_keep,
    input logic [4:0] mark
);
  logic a_ready, b_ready, m_valid, m_keep, m_last, m_b;
  logic [7:0] m_data;
  homa_turns #(.WIDTH(8)) turns (.*);

  wire take_a = a_valid && a_ready, take_b = b_valid && b_ready, give = m_valid && m_ready;
  logic begun, waits, a_waits, b_waits, amid, amid_b, ended, ended_b, other_waits;
  logic [9:0] shown, a_shown, b_shown;
  logic [10:0] m_shown;
  logic [4:0] in_a, in_b, out_a, out_b, marked;
  logic [9:0] kept_a, kept_b;
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    marked <= mark;
    waits <= !rst && m_valid && !m_ready;
    m_shown <= {m_b, m_last, m_keep, m_data};
    a_waits <= !rst && a_valid && !a_ready;
    b_waits <= !rst && b_valid && !b_ready;
    a_shown <= {a_last, a_keep, a_data};
    b_shown <= {b_last, b_keep, b_data};
    if (take_a && in_a == mark) kept_a <= {a_last, a_keep, a_data};
    if (take_b && in_b == mark) kept_b <= {b_last, b_keep, b_data};
    if (rst) begin
      {in_a, in_b, out_a, out_b} <= 0;
      amid <= 0;
      ended <= 0;
    end else begin
      in_a <= in_a + {4'd0, take_a};
      in_b <= in_b + {4'd0, take_b};
      out_a <= out_a + {4'd0, give && !m_b};
      out_b <= out_b + {4'd0, give && m_b};
      if (give) {amid, amid_b} <= {!m_last, m_b};
      if (take_a || take_b) begin
        ended <= take_a ? a_last : b_last;
        ended_b <= take_b;
        other_waits <= take_a ? b_valid : a_valid;
      end
    end
  end

  assign shown = {m_last, m_keep, m_data};
  always_comb begin
    if (!begun) assume (rst);
    if (begun) assume (mark == marked);
    if (a_waits) assume (a_valid && {a_last, a_keep, a_data} == a_shown);
    if (b_waits) assume (b_valid && {b_last, b_keep, b_data} == b_shown);
    if (begun && !rst) begin
      if (waits) assert (m_valid && {m_b, shown} == m_shown);
      assert (in_a - out_a == {4'd0, m_valid && !m_b});
      assert (in_b - out_b == {4'd0, m_valid && m_b});
      if (give && !m_b && out_a == mark) assert (shown == kept_a);
      if (give && m_b && out_b == mark) assert (shown == kept_b);
      if (m_valid && amid) assert (m_b == amid_b);
      assert (!(take_a && take_b));
      if (m_ready && (a_valid && b_valid)) assert (take_a || take_b);
      if (m_ready && !amid && !m_valid && (a_valid || b_valid)) assert (take_a || take_b);
      if (ended && other_waits && take_a) assert (ended_b);
      if (ended && other_waits && take_b) assert (!ended_b);
    end
  end
endmodule
