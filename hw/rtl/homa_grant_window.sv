// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// How far a message may be granted, and on which level: the rule of SIGCOMM'18 as the engine's
// homa_grant_one() has it with homa_params_sigcomm(). RTTbytes beyond what has come are granted, in
// whole packets. The last RTTbytes of a message are granted on the unscheduled level of so many
// bytes, what is before them on a scheduled one by rank. So there are up to two grants.
//
// Packets are counted by adding, eight at a time while there are so many.
module homa_grant_window
  import homa_grant_pkg::*;
(
    input logic clk,
    input logic rst,
    input logic start,                       // for this message, which stays until `done`
    /* verilator lint_off UNUSEDSIGNAL */
    input grantee_t who,
    input grant_settings_t settings,
    /* verilator lint_on UNUSEDSIGNAL */
    input logic [3:0] rank,                  // two cycles after `start` at the latest
    input logic [3:0] active,                // messages that are granted to, this one included

    output logic g_valid,
    input logic g_ready,
    output logic [LENGTH_BITS-1:0] g_offset,
    output logic [2:0] g_level,

    output logic done,
    output logic [LENGTH_BITS-1:0] granted   // now
);
  typedef enum logic [2:0] {IDLE, MEASURE, AIM, COUNT, DECIDE, GIVE, DONE} state_t;
  state_t state;

  logic two;                                 // the end of the scheduled bytes comes first
  logic [LENGTH_BITS:0] to;                  // what has come and RTTbytes
  logic [LENGTH_BITS-1:0] border, rest;      // where scheduled bytes end; what is not granted
  logic signed [LENGTH_BITS+1:0] need;       // bytes that the goal is short of
  logic [LENGTH_BITS+1:0] goal;
  logic [2:0] level;

  wire [3:0] top = settings.levels < active ? settings.levels : active;
  wire [2:0] scheduled = top > rank ? 3'(top - 4'd1 - rank) : 3'd0;
  logic [2:0] unscheduled;
  always_comb begin
    unscheduled = 0;
    for (int i = 1; i < 8; i++) if (settings.cutoffs[i] >= rest) unscheduled = 3'(i);
  end

  wire [LENGTH_BITS:0] aim = two && {1'b0, border} < to ? {1'b0, border} : to;
  wire signed [LENGTH_BITS+1:0] one = (LENGTH_BITS+2)'({1'b0, settings.seg});
  wire signed [LENGTH_BITS+1:0] eight = (LENGTH_BITS+2)'({1'b0, settings.seg, 3'd0});
  wire signed [LENGTH_BITS+1:0] more = one == 0 ? need : need > eight ? eight : one;
  wire [LENGTH_BITS-1:0] target = goal > {2'd0, who.length} ? who.length : goal[LENGTH_BITS-1:0];

  assign g_valid = state == GIVE;
  assign g_offset = granted;
  assign g_level = level;
  assign done = state == DONE;

  always_ff @(posedge clk)
    if (rst) state <= IDLE;
    else
      case (state)
        IDLE:
        if (start) begin
          granted <= who.granted;
          rest <= who.length - who.granted;
          to <= {1'b0, who.length - who.left} + {1'b0, settings.rtt};
          border <= who.length - settings.rtt;
          state <= MEASURE;
        end
        MEASURE: begin
          two <= settings.rtt != 0 && rest > settings.rtt;
          state <= AIM;
        end
        AIM: begin
          need <= $signed({1'b0, aim}) - $signed({2'd0, granted});
          goal <= {2'd0, granted};
          level <= two ? scheduled : unscheduled;
          state <= COUNT;
        end
        COUNT:
        if (need <= 0) state <= DECIDE;
        else begin
          need <= need - more;
          goal <= goal + $unsigned(more);
        end
        DECIDE: begin
          granted <= target;
          rest <= who.length - target;
          if (target > granted) state <= GIVE;
          else state <= DONE;
        end
        GIVE:
        if (g_ready) begin
          two <= 0;
          state <= two && granted >= border ? AIM : DONE;
        end
        default: state <= IDLE;
      endcase
endmodule
