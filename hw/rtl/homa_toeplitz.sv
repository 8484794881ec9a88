// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receive hash of Toeplitz over 288 bits, one result per cycle, three cycles late. The key is a
// parameter, so what each value of a byte adds is a constant: a table of 256 words for each of the
// 36 bytes, in block RAM. The hash is the exclusive or of what the tables say. To choose what is
// hashed takes most of a cycle, and so does the output of a block RAM. So both go into registers,
// and the hash does not: whoever gets it has some of its cycle left.
module homa_toeplitz
  import homa_nic_pkg::*;
#(
    parameter logic [319:0] KEY = 0  // first byte highest
) (
    input logic clk,
    input logic [2:0] adv,         // each of the three steps moves: keep, look up, keep that
    input logic [287:0] in_tuple,  // first byte highest
    output logic [31:0] q_hash
);
  localparam int NUMBER = 36;  // bytes

  logic [287:0] tuple;
  logic [31:0] part[NUMBER];

  always_ff @(posedge clk) if (adv[0]) tuple <= in_tuple;

  for (genvar n = 0; n < NUMBER; n++) begin : piece
    (* ram_style = "block" *) logic [31:0] products[256];
    logic [31:0] found;
    initial
      for (int value = 0; value < 256; value++)
        products[value] = hash_product(KEY, 8'(value), 8 * n);
    always_ff @(posedge clk) begin
      if (adv[1]) found <= products[tuple[287-8*n-:8]];
      if (adv[2]) part[n] <= found;
    end
  end

  always_comb begin
    q_hash = 0;
    for (int n = 0; n < NUMBER; n++) q_hash ^= part[n];
  end
endmodule
