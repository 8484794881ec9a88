// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What is known of a frame comes with its first beat, and stays until its last. The blocks before
// this one say it beside the beat with which they know it, the last one at the latest. So beats are
// held back until then: at most 286 bytes, which is where the last byte of a Homa header can be.
module homa_lead #(
    parameter int WIDTH = 512,
    parameter int SIDE = 64                // bits of what is said of a frame
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_bad,                     // with s_last
    input logic s_side_valid,              // with one beat of each frame
    input logic [SIDE-1:0] s_side,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,
    output logic [SIDE-1:0] m_side
);
  localparam int BYTES = WIDTH / 8;
  localparam int BITS = $clog2(512 / BYTES);
  localparam int ENTRY = WIDTH + BYTES + 2;

  logic [ENTRY-1:0] beats[1 << BITS];
  logic [SIDE-1:0] sides[1 << BITS];       // a frame has a beat, so there are not more
  logic [BITS:0] beat_in, beat_out, side_in, side_out;

  wire [BITS:0] number = beat_in - beat_out;
  assign s_ready = !number[BITS];
  assign m_valid = number != 0 && side_in != side_out;
  assign {m_last, m_bad, m_keep, m_data} = beats[beat_out[BITS-1:0]];
  assign m_side = sides[side_out[BITS-1:0]];
  wire push = s_valid && s_ready;
  wire pop = m_valid && m_ready;

  always_ff @(posedge clk) begin
    if (push) beats[beat_in[BITS-1:0]] <= {s_last, s_bad, s_keep, s_data};
    if (push && s_side_valid) sides[side_in[BITS-1:0]] <= s_side;
    if (rst) begin
      beat_in <= 0;
      beat_out <= 0;
      side_in <= 0;
      side_out <= 0;
    end else begin
      if (push) beat_in <= beat_in + 1;
      if (push && s_side_valid) side_in <= side_in + 1;
      if (pop) beat_out <= beat_out + 1;
      if (pop && m_last) side_out <= side_out + 1;
    end
  end
endmodule
