// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receive hash of Toeplitz over 288 bits, one result per cycle, two cycles late. The key is a
// parameter: with a key in registers each of the 9,216 products would cost logic, with a constant
// one half of them vanish and the rest is a sum.
module homa_toeplitz #(
    parameter logic [319:0] KEY = 0  // first byte highest
) (
    input logic clk,
    input logic adv,
    input logic [287:0] in_tuple,  // first byte highest
    output logic [31:0] q_hash
);
  localparam int BITS = 288;
  localparam int PIECES = 8;
  localparam int PIECE = BITS / PIECES;

  // Bit i of the tuple, counted from the first one, adds the 32 bits of the key from bit i on.
  function automatic logic [31:0] piece(input logic [PIECE-1:0] bits, input int begin_);
    piece = 0;
    for (int i = 0; i < PIECE; i++) if (bits[PIECE-1-i]) piece ^= KEY[319-begin_-i-:32];
  endfunction

  logic [31:0] part[PIECES];
  logic [31:0] sum;

  always_comb begin
    sum = 0;
    for (int i = 0; i < PIECES; i++) sum ^= part[i];
  end

  always_ff @(posedge clk)
    if (adv) begin
      for (int i = 0; i < PIECES; i++)
        part[i] <= piece(in_tuple[BITS-1-PIECE*i-:PIECE], PIECE * i);
      q_hash <= sum;
    end
endmodule
