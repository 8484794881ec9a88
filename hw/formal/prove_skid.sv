// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_skid: each beat leaves once, in order and unchanged, in the cycle after it came if nothing
// is before it; what is offered stays until it is taken; while beats are taken, one can come in
// every cycle. A beat's number is free (`mark`), so what holds for it holds for each.
module prove_skid (
    input logic clk,
    input logic rst,
    input logic s_valid, m_ready,
    input logic [7:0] s_data,
    input logic [3:0] mark
);
  logic s_ready, m_valid;
  logic [7:0] m_data;
  homa_skid #(.BITS(8)) skid (.*);

  wire push = s_valid && s_ready, give = m_valid && m_ready;
  logic begun, waits, flows;               // flows: since the reset all that was offered was taken
  logic [7:0] shown, kept;
  logic [3:0] in, out, marked;             // beats that came, that left
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    marked <= mark;
    waits <= !rst && m_valid && !m_ready;
    shown <= m_data;
    flows <= rst || (flows && (m_ready || !m_valid));
    if (push && in == mark) kept <= s_data;
    if (rst) {in, out} <= 0;
    else begin
      in <= in + {3'd0, push};
      out <= out + {3'd0, give};
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    if (begun) assume (mark == marked);
    if (begun && !rst) begin
      if (waits) assert (m_valid && m_data == shown);
      if (give && out == mark) assert (m_data == kept);
      assert (m_valid == (in != out));
      assert (in - out <= 2);
      if (flows) assert (s_ready);
    end
  end
endmodule
