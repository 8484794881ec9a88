// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// A memory with a port to write and one to read, of which it does not matter what it says of a place
// that is written in the cycle in which it is read. Block RAM need not define that, and logic that
// does would stand behind its output, which is late in the cycle anyway. All memories that are
// marked in this way are here. Whoever uses one sees to it that such an answer has no effect.
//
// With HOMA_CLASH defined, as in all tests, the answer is wrong in every bit then, whereas a simulator
// would say what was there before.
module homa_memory #(
    parameter int BITS = 8,           // of a word
    parameter int AT_BITS = 4,        // log2 of the words
    parameter int TOGETHER_BITS = 0,  // log2 of the words that are written at once
    /* verilator lint_off UNUSEDPARAM */
    parameter STYLE = "auto"          // "block": in block RAM, however small it is
    /* verilator lint_on UNUSEDPARAM */
) (
    input logic clk,
    input logic write,
    input logic [AT_BITS-TOGETHER_BITS-1:0] write_at,
    input logic [(BITS<<TOGETHER_BITS)-1:0] write_data,  // the first word lowest
    input logic read,
    input logic [AT_BITS-1:0] read_at,
    output logic [BITS-1:0] q         // a cycle later, until the next read
);
  (* ram_style = STYLE, no_rw_check *) logic [BITS-1:0] words[1 << AT_BITS];

`ifdef HOMA_CLASH
  wire clash = write && write_at == read_at[AT_BITS-1:TOGETHER_BITS];
`else
  wire clash = 1'b0;
`endif

  if (TOGETHER_BITS > 0) begin : several
    always_ff @(posedge clk)
      if (write)
        for (int i = 0; i < 1 << TOGETHER_BITS; i++)
          words[{write_at, TOGETHER_BITS'(i)}] <= write_data[BITS*i+:BITS];
  end else begin : one
    always_ff @(posedge clk) if (write) words[write_at] <= write_data;
  end

  always_ff @(posedge clk) if (read) q <= clash ? ~words[read_at] : words[read_at];
endmodule
