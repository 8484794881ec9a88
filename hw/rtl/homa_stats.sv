// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Counters of 64 bits, in block RAM: what happens is collected in a few bits for each of them, and
// one counter after the other gets what was collected: it is read, kept, and written with the sum.
// So a counter that is read may be behind by COUNTERS + 3 cycles, and is otherwise exact. All are 0
// after a reset.
//
// Sums are collected by an adder each. Of an event it is enough to know how often it has been since
// the counter's last turn. So each has a shift register of 6 bits whose feedback goes through 63
// states, which takes one look-up table; an adder would take six. What is added is how much further
// its state is than at the last turn.
module homa_stats #(
    parameter int COUNTERS = 35,             // up to 62: an event may be in each cycle of a round
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
  // What is collected of a sum between two turns: at most 64 in each of COUNTERS cycles.
  localparam int SUM_BITS = $clog2(64 * COUNTERS + 1);
  localparam int RING_BITS = 6;
  localparam int RING = (1 << RING_BITS) - 1;  // states

  // The state that follows. All are passed but 0.
  function automatic logic [RING_BITS-1:0] further(input logic [RING_BITS-1:0] state);
    further = {state[RING_BITS-2:0], state[RING_BITS-1] ^ state[RING_BITS-2]};
  endfunction

  // How many steps a state is from 1, for each state.
  function automatic logic [RING_BITS*(RING+1)-1:0] all_steps();
    logic [RING_BITS-1:0] state;
    all_steps = 0;
    state = 1;
    for (int i = 0; i < RING; i++) begin
      all_steps[RING_BITS*32'(state)+:RING_BITS] = RING_BITS'(i);
      state = further(state);
    end
  endfunction
  localparam logic [RING_BITS*(RING+1)-1:0] STEPS = all_steps();

  (* ram_style = "block" *) logic [63:0] memory[1 << AT_BITS];
  // Of each event, at its last turn.
  (* ram_style = "distributed" *) logic [RING_BITS-1:0] steps_before[1 << AT_BITS];
  logic [AT_BITS-1:0] at, found_at, add_at;
  logic fresh, found_fresh, add_fresh;       // fresh: this turn is the first of all
  logic finding, adding;
  logic [63:0] found, old;                   // found: late in its cycle, so nothing is done with it
  logic [RING_BITS-1:0] states[1 << AT_BITS];
  logic [SUM_BITS-1:0] collected[1 << AT_BITS];
  logic [RING_BITS-1:0] found_steps;
  logic [SUM_BITS-1:0] found_sum, add;

  for (genvar i = 0; i < 1 << AT_BITS; i++) begin : counter
    if (i < SUMS) begin : bytes
      logic [SUM_BITS-1:0] some;
      always_ff @(posedge clk)
        if (rst) some <= 0;
        else if (at == AT_BITS'(i)) some <= SUM_BITS'(sums[i]);
        else some <= some + SUM_BITS'(sums[i]);
      assign collected[i] = some;
      assign states[i] = 0;
    end else if (i < COUNTERS) begin : happens
      logic [RING_BITS-1:0] state;
      always_ff @(posedge clk)
        if (rst) state <= 1;
        else if (events[i]) state <= further(state);
      assign states[i] = state;
      assign collected[i] = 0;
    end else begin : none
      assign states[i] = 0;
      assign collected[i] = 0;
    end
  end

  // Modulo RING: less by one if it is beyond the end of the ring.
  wire [RING_BITS-1:0] last = found_fresh ? '0 : steps_before[found_at];
  wire [RING_BITS:0] more = {1'b0, found_steps} - {1'b0, last};
  wire [RING_BITS-1:0] events_more = more[RING_BITS-1:0] - RING_BITS'(more[RING_BITS]);

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
    found_sum <= collected[at];
    found_steps <= STEPS[RING_BITS*32'(states[at])+:RING_BITS];
    found <= memory[at];
    add_at <= found_at;
    add_fresh <= found_fresh;
    add <= found_at < AT_BITS'(SUMS) ? found_sum : SUM_BITS'(events_more);
    steps_before[found_at] <= found_steps;
    old <= found_fresh ? 64'd0 : found;
    if (adding) memory[add_at] <= old + 64'(add);
    q_value <= fresh || found_fresh || add_fresh ? 64'd0 : memory[read_at];
  end
endmodule
