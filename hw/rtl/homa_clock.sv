// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The card's time: nanoseconds since the reset. What a cycle adds is a setting in 2^-24 ns, so that
// software can let it run a little faster or slower. The sum is made in two parts, the upper one a
// cycle later, for the speed.
module homa_clock (
    input logic clk,
    input logic rst,
    input logic [31:0] step,
    output logic [47:0] now
);
  logic [31:0] part;   // the lowest 8 bits of the time, and 24 of its fraction
  logic carry;

  always_ff @(posedge clk)
    if (rst) begin
      part <= 0;
      carry <= 0;
      now <= 0;
    end else begin
      {carry, part} <= {1'b0, part} + {1'b0, step};
      now <= {now[47:8] + {39'd0, carry}, part[31:24]};
    end
endmodule
