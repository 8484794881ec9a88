// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The messages that are granted to, shortest rest first, of equal ones the one that came first. The
// message at hand is outside: `stays` says, a cycle after it or a slot has changed, which slots are
// before it.
module homa_grant_slots
  import homa_grant_pkg::*;
(
    input logic clk,
    input logic rst,
    input grantee_t who,
    input logic put,                       // it takes its place; there must be room
    input logic drop,                      // this slot is given up
    input logic [2:0] drop_at,
    output grantee_t slots[SLOTS],
    output logic [SLOTS-1:0] used,         // the first ones are
    output logic [SLOTS-1:0] stays,
    output logic [3:0] rank,               // how many stay
    output logic [3:0] count
);
  always_comb begin
    rank = 0;
    count = 0;
    for (int i = 0; i < SLOTS; i++) begin
      rank = rank + {3'd0, stays[i]};
      count = count + {3'd0, used[i]};
    end
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < SLOTS; i++)
      stays[i] <= used[i] && {slots[i].left, slots[i].birth} < {who.left, who.birth};
    if (put) begin
      used <= {used[SLOTS-2:0], 1'b1};
      for (int i = 0; i < SLOTS; i++)
        if (!stays[i]) slots[i] <= i == 0 || stays[i-1] ? who : slots[i-1];
    end else if (drop) begin
      used <= {1'b0, used[SLOTS-1:1]};
      for (int i = 0; i < SLOTS - 1; i++) if (i >= 32'(drop_at)) slots[i] <= slots[i+1];
    end
    if (rst) used <= 0;
  end
endmodule
