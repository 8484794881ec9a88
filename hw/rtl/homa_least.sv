// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// How many packets wait in each queue, and which queue has the fewest. Packets are counted when
// they are given to a queue and when the host says that it has taken one. Both numbers of each queue
// are in memories of look-up tables, modulo 2^COUNT_BITS. What waits is the difference.
//
// The queues are looked at in turn, one in a cycle. One with fewer than the best so far becomes the
// best. What waits in the best is counted on when it is given a packet, and is found out anew in its
// own turn. So if nothing changes the answer is right after two rounds and four cycles, and packets
// that come right behind each other do not meet in one queue while others have as few.
//
// For QUEUES cycles after a reset the memories are cleared, and nothing is counted.
module homa_least #(
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4
) (
    input logic clk,
    input logic rst,
    input logic given,                          // a packet to given_queue
    input logic [QUEUE_BITS-1:0] given_queue,
    input logic taken,                          // the host took one of taken_queue
    input logic [QUEUE_BITS-1:0] taken_queue,
    output logic [QUEUE_BITS-1:0] q_least
);
  localparam int COUNT_BITS = 10;  // a queue with 1,023 packets is as bad as one with more

  logic [COUNT_BITS-1:0] all_given[1 << QUEUE_BITS], all_taken[1 << QUEUE_BITS];
  logic [QUEUE_BITS-1:0] turn;
  logic clearing;

  // ---- counting: what is told is kept first, for the memories are read and written at once ----

  logic gives, takes;
  logic [QUEUE_BITS-1:0] to, from;
  wire [COUNT_BITS-1:0] given_to = all_given[to], taken_from = all_taken[from];
  // A host that says more than is true gains nothing but fewer than none.
  wire full = given_to - all_taken[to] == '1;
  wire empty = all_given[from] == taken_from;
  wire both = gives && takes && to == from;
  wire more = gives && (both || !full);
  wire less = takes && (both || !empty);
  wire [QUEUE_BITS-1:0] write_given = clearing ? turn : to;
  wire [QUEUE_BITS-1:0] write_taken = clearing ? turn : from;

  always_ff @(posedge clk) begin
    to <= given_queue;
    from <= taken_queue;
    gives <= given && !clearing && !rst;
    takes <= taken && !clearing && !rst;
    if (more || clearing) all_given[write_given] <= clearing ? '0 : given_to + 1'b1;
    if (less || clearing) all_taken[write_taken] <= clearing ? '0 : taken_from + 1'b1;
  end

  // ---- the best ----

  logic [QUEUE_BITS-1:0] looked_at;
  logic [COUNT_BITS-1:0] waiting, fewest;       // in looked_at; in q_least
  wire better = looked_at == q_least || waiting < fewest;

  always_ff @(posedge clk) begin
    looked_at <= turn;
    waiting <= all_given[turn] - all_taken[turn];
    if (better) begin
      q_least <= looked_at;
      fewest <= waiting;
    end else if (more && to == q_least && fewest != '1) fewest <= fewest + 1'b1;
    if (rst) begin
      turn <= 0;
      clearing <= 1;
      looked_at <= 0;
      waiting <= 0;
      q_least <= 0;
      fewest <= 0;
    end else begin
      turn <= turn == QUEUE_BITS'(QUEUES - 1) ? '0 : turn + 1'b1;
      if (turn == QUEUE_BITS'(QUEUES - 1)) clearing <= 0;
      // What the memories say before they are cleared is nothing.
      if (clearing) waiting <= 0;
    end
  end
endmodule
