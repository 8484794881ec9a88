// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Messages that wait for grants, best first: a row of cells, each of which compares what comes with
// what it has. All cells do so in one cycle and move in the next, so an entry is put in or taken out
// of any place in two cycles, however many there are. Best is the message with the fewest bytes to
// come, of equal ones the one that came first, of those the one with the smallest number; no two are
// the same, so there is one order.
//
// The best one is wanted of those whose peer has no slot, for a peer has one at most (SIGCOMM'18).
// Each cell knows that of its peer: `blocked`. So the row is what is called PIEO elsewhere, push in,
// extract out: what is taken is the first that may be, and not the first. Who is it is known three
// cycles after the last change, found in groups of GROUP cells and then among the groups.
module homa_grant_queue #(
    parameter int DEPTH = 1024,        // cells, a multiple of GROUP
    parameter int LENGTH_BITS = 20,
    parameter int BIRTH_BITS = 20,
    parameter int ID_BITS = 11,
    parameter int PEER_BITS = 10
) (
    input logic clk,
    input logic rst,

    input logic op_valid,
    output logic op_ready,
    input logic op_insert,                     // else it is taken out, and must be there
    input logic [LENGTH_BITS-1:0] op_key,      // bytes to come
    input logic [BIRTH_BITS-1:0] op_birth,
    input logic [ID_BITS-1:0] op_id,
    input logic [PEER_BITS-1:0] op_peer,
    input logic op_blocked,                    // its peer has a slot

    input logic mark_valid,                    // a peer got its slot, or lost it
    input logic [PEER_BITS-1:0] mark_peer,
    input logic mark_blocked,

    output logic full,
    output logic best_known,                   // the rest is of what is in the cells now
    output logic best_valid,
    output logic [ID_BITS-1:0] best_id
);
  localparam int GROUP = DEPTH < 32 ? DEPTH : 32;
  localparam int GROUPS = DEPTH / GROUP;
  localparam int RANK_BITS = LENGTH_BITS + BIRTH_BITS + ID_BITS;

  typedef struct packed {
    logic valid;
    logic [RANK_BITS-1:0] rank;                // key, birth, id
    logic [PEER_BITS-1:0] peer;
    logic blocked;
  } cell_t;

  // ---- the operation: compared in its first cycle, done in its second ----

  cell_t cells[DEPTH];
  logic [DEPTH-1:0] stays;                     // the cell is before the entry, so it does not move
  cell_t entry;
  logic moving, inserting;
  wire cell_t offered = {1'b1, op_key, op_birth, op_id, op_peer, op_blocked};

  // A mark may come at any time.
  function automatic cell_t marked(input cell_t c);
    marked = c;
    if (mark_valid && c.peer == mark_peer) marked.blocked = mark_blocked;
  endfunction

  assign full = cells[DEPTH-1].valid;
  assign op_ready = !moving;
  wire take = op_valid && op_ready;

  always_ff @(posedge clk) begin
    moving <= take && !rst && !(op_insert && full);
    if (take) begin
      entry <= marked(offered);
      inserting <= op_insert;
    end
  end

  // A loop and not a cell of its own for each: the simulator's code is much shorter so.
  always_ff @(posedge clk)
    for (int i = 0; i < DEPTH; i++) begin
      if (take) stays[i] <= cells[i].valid && cells[i].rank < offered.rank;
      if (rst) cells[i] <= '0;
      else if (!moving || stays[i]) cells[i] <= marked(cells[i]);
      else if (!inserting) cells[i] <= i == DEPTH - 1 ? '0 : marked(cells[i+1]);
      else cells[i] <= i == 0 || stays[i-1] ? marked(entry) : marked(cells[i-1]);
    end

  // ---- the first that may have a slot ----

  logic [GROUPS-1:0] some;
  logic [ID_BITS-1:0] id_of[GROUPS];
  logic [1:0] stale;

  for (genvar g = 0; g < GROUPS; g++) begin : group
    logic any;
    logic [ID_BITS-1:0] id;
    always_comb begin
      any = 0;
      id = 0;
      for (int i = GROUP - 1; i >= 0; i--)
        if (cells[g*GROUP+i].valid && !cells[g*GROUP+i].blocked) begin
          any = 1;
          id = cells[g*GROUP+i].rank[ID_BITS-1:0];
        end
    end
    always_ff @(posedge clk) begin
      some[g] <= any;
      id_of[g] <= id;
    end
  end

  logic [ID_BITS-1:0] first_id;
  always_comb begin
    first_id = 0;
    for (int g = GROUPS - 1; g >= 0; g--) if (some[g]) first_id = id_of[g];
  end

  assign best_known = !moving && stale == 0;
  always_ff @(posedge clk) begin
    best_valid <= some != 0;
    best_id <= first_id;
    if (rst || moving || mark_valid) stale <= 2;
    else if (stale != 0) stale <= stale - 1;
  end
endmodule
