// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// A register between two stages, in both directions: what is offered leaves a cycle later, and
// whether something can be taken does not depend on what happens behind in the same cycle. So no
// path goes through it. It has two places, and a beat passes in every cycle.
module homa_skid #(
    parameter int BITS = 64
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [BITS-1:0] s_data,

    output logic m_valid,
    input logic m_ready,
    output logic [BITS-1:0] m_data
);
  logic spare_valid;  // the second place is taken
  logic [BITS-1:0] spare;
  wire room = m_ready || !m_valid;
  assign s_ready = !spare_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      m_valid <= 0;
      spare_valid <= 0;
    end else begin
      if (room) m_valid <= spare_valid || s_valid;
      spare_valid <= !room && (spare_valid || s_valid);
    end
    if (room) m_data <= spare_valid ? spare : s_data;
    if (!spare_valid) spare <= s_data;
  end
endmodule
