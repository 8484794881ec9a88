// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receive hash of Toeplitz over 288 bits, one result per cycle, three cycles late. The key is a
// parameter, so what each value of a byte adds is a constant: a table of 256 words for each of the
// 36 bytes, in block RAM. The hash is the exclusive or of what the tables say. Their outputs are
// late in the cycle, so they go into registers before they are added.
module homa_toeplitz
  import homa_nic_pkg::*;
#(
    parameter logic [319:0] KEY = 0  // first byte highest
) (
    input logic clk,
    input logic [2:0] adv,         // each of the three steps moves: look up, keep, add
    input logic [287:0] in_tuple,  // first byte highest
    output logic [31:0] q_hash
);
  localparam int NUMBER = 36;  // bytes

  logic [31:0] part[NUMBER];
  logic [31:0] sum;

  for (genvar n = 0; n < NUMBER; n++) begin : piece
    (* ram_style = "block" *) logic [31:0] products[256];
    logic [31:0] found;
    initial
      for (int value = 0; value < 256; value++)
        products[value] = hash_product(KEY, 8'(value), 8 * n);
    always_ff @(posedge clk) begin
      if (adv[0]) found <= products[in_tuple[287-8*n-:8]];
      if (adv[1]) part[n] <= found;
    end
  end

  always_comb begin
    sum = 0;
    for (int n = 0; n < NUMBER; n++) sum ^= part[n];
  end

  always_ff @(posedge clk) if (adv[2]) q_hash <= sum;
endmodule
