// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_grant_queue beside a set of entries without order: whatever is put in, taken out and marked,
// who is said to be best is the best of the set that may have a slot, so no entry is lost, doubled
// or out of order; the row is full when the set has as many entries as there are cells, and an
// operation never waits for more than a cycle.
module prove_grant_queue (
    input logic clk,
    input logic rst,
    input logic op_valid,
    input logic op_insert,
    input logic [1:0] op_key,
    input logic op_birth,
    input logic [1:0] op_id,
    input logic op_peer,
    input logic mark_valid,
    input logic mark_peer,
    input logic mark_blocked
);
  localparam int DEPTH = 3;

  logic op_ready, full, best_known, best_valid;
  logic [1:0] best_id;
  logic [1:0] blocked;
  homa_grant_queue #(
      .DEPTH(DEPTH), .LENGTH_BITS(2), .BIRTH_BITS(1), .ID_BITS(2), .PEER_BITS(1)
  ) queue (.op_blocked(blocked[op_peer]), .*);

  logic [3:0] there, peers;
  logic [2:0] rank[4];
  wire take = op_valid && op_ready;

  logic [2:0] count;
  logic some;
  logic [1:0] best;
  always_comb begin
    count = 0;
    some = 0;
    best = 0;
    for (int i = 0; i < 4; i++) begin
      count = count + {2'd0, there[i]};
      if (there[i] && !blocked[peers[i]] && (!some || rank[i] < rank[best])) begin
        some = 1;
        best = 2'(i);
      end
    end
  end

  logic begun, waited;
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    waited <= op_valid && !op_ready && !rst;
    if (take && !(op_insert && full)) begin
      there[op_id] <= op_insert;
      rank[op_id] <= {op_key, op_birth};
      peers[op_id] <= op_peer;
    end
    if (mark_valid) blocked[mark_peer] <= mark_blocked;
    if (rst) begin
      there <= 0;
      blocked <= 0;
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    // What is put in is not there, what is taken out is there.
    if (op_valid && op_insert) assume (!there[op_id]);
    if (op_valid && !op_insert)
      assume (there[op_id] && rank[op_id] == {op_key, op_birth} && peers[op_id] == op_peer);
    if (begun && !rst) begin
      if (op_ready) assert (full == (count == DEPTH));
      if (best_known) begin
        assert (best_valid == some);
        if (some) assert (best_id == best);
      end
      if (waited) assert (op_ready);
    end
  end
endmodule
