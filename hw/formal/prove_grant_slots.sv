// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_grant_slots, used as homa_grant uses it: its messages are in order, the slots in use are the
// first ones, and `count` says how many there are.
module prove_grant_slots
  import homa_grant_pkg::*;
(
    input logic clk,
    input logic rst,
    input grantee_t who,
    input logic put,
    input logic drop,
    input logic [2:0] drop_at
);
  grantee_t slots[SLOTS];
  logic [SLOTS-1:0] used, stays;
  logic [3:0] rank, count;
  homa_grant_slots slots_ (.*);

  logic begun, changed;
  grantee_t then_;
  logic [3:0] number;
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    changed <= put || drop || rst;
    then_ <= who;
    if (rst) number <= 0;
    else number <= number + {3'd0, put} - {3'd0, drop};
  end

  always_comb begin
    if (!begun) assume (rst);
    assume (!(put && drop));
    // Nothing changed in the cycle before, or `stays` would not be of this moment.
    if (put) assume (!changed && who == then_ && number < 8);
    if (drop) assume ({1'b0, drop_at} < number);
    if (begun && !rst) begin
      assert (count == number);
      for (int i = 0; i < SLOTS; i++) assert (used[i] == (4'(i) < number));
      for (int i = 1; i < SLOTS; i++)
        if (used[i])
          assert ({slots[i-1].left, slots[i-1].birth} <= {slots[i].left, slots[i].birth});
    end
  end
endmodule
