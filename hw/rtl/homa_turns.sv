// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Two streams become one, frame by frame, in turns if both have one. So neither waits for more than
// one frame of the other.
module homa_turns #(
    parameter int WIDTH = 512
) (
    input logic clk,
    input logic rst,

    input logic a_valid,
    output logic a_ready,
    input logic [WIDTH-1:0] a_data,
    input logic [WIDTH/8-1:0] a_keep,
    input logic a_last,

    input logic b_valid,
    output logic b_ready,
    input logic [WIDTH-1:0] b_data,
    input logic [WIDTH/8-1:0] b_keep,
    input logic b_last,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_b                   // the frame is one of b's; with each beat
);
  logic amid, last_was_b;  // a frame has begun and not ended; whose it is, or was
  wire pick_b = amid ? last_was_b : b_valid && (!a_valid || !last_was_b);
  wire room = m_ready || !m_valid;

  assign a_ready = room && !pick_b;
  assign b_ready = room && pick_b;
  wire take = pick_b ? b_valid && b_ready : a_valid && a_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      m_valid <= 0;
      amid <= 0;
      last_was_b <= 0;
    end else begin
      if (room) m_valid <= take;
      if (take) begin
        amid <= !(pick_b ? b_last : a_last);
        last_was_b <= pick_b;
      end
    end
    if (room) begin
      m_data <= pick_b ? b_data : a_data;
      m_keep <= pick_b ? b_keep : a_keep;
      m_last <= pick_b ? b_last : a_last;
      m_b <= pick_b;
    end
  end
endmodule
