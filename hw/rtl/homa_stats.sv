// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Counters of 64 bits, in block RAM: what happens is collected in a few bits for each of them, and
// one counter after the other gets what was collected: it is read, kept, and written with the sum.
// So a counter that is read may be behind by COUNTERS + 3 cycles, and is otherwise exact. All are 0
// after a reset.
module homa_stats #(
    parameter int COUNTERS = 35,
    parameter int SUMS = 2,                  // the first ones: sums of up to 64 in each cycle
    parameter int AT_BITS = 6
) (
    input logic clk,
    input logic rst,
    input logic [6:0] sums[SUMS],
    input logic [COUNTERS-1:SUMS] events,
    input logic [AT_BITS-1:0] read_at,
    output logic [63:0] q_value              // a cycle later
);
  // What is collected between two turns of a counter: at most 64 in each of COUNTERS cycles.
  localparam int SUM_BITS = $clog2(64 * COUNTERS + 1);
  localparam int EVENT_BITS = $clog2(COUNTERS + 1);

  (* ram_style = "block" *) logic [63:0] memory[1 << AT_BITS];
  logic [AT_BITS-1:0] at, found_at, add_at;
  logic fresh, found_fresh, add_fresh;       // fresh: this turn is the first of all
  logic finding, adding;
  logic [63:0] found, old;                   // found: late in its cycle, so nothing is done with it
  logic [SUM_BITS-1:0] collected[COUNTERS];
  logic [SUM_BITS-1:0] found_add, add;

  for (genvar i = 0; i < COUNTERS; i++) begin : counter
    localparam int BITS = i < SUMS ? SUM_BITS : EVENT_BITS;
    logic [BITS-1:0] some, more;
    if (i < SUMS) begin : bytes
      assign more = BITS'(sums[i]);
    end else begin : happens
      assign more = BITS'(events[i]);
    end
    always_ff @(posedge clk)
      if (rst) some <= 0;
      else if (at == AT_BITS'(i)) some <= more;
      else some <= some + more;
    assign collected[i] = SUM_BITS'(some);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      at <= 0;
      fresh <= 1;
      finding <= 0;
      adding <= 0;
    end else begin
      at <= at == AT_BITS'(COUNTERS - 1) ? '0 : at + 1'b1;
      if (at == AT_BITS'(COUNTERS - 1)) fresh <= 0;
      finding <= 1;
      adding <= finding;
    end
    found_at <= at;
    found_fresh <= fresh;
    found_add <= collected[at];
    found <= memory[at];
    add_at <= found_at;
    add_fresh <= found_fresh;
    add <= found_add;
    old <= found_fresh ? 64'd0 : found;
    if (adding) memory[add_at] <= old + 64'(add);
    q_value <= fresh || found_fresh || add_fresh ? 64'd0 : memory[read_at];
  end
endmodule
