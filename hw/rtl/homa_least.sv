// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// How many packets wait in each queue, and which queue has the fewest. Packets are counted when
// they are given to a queue and when the host says that it has taken one. The answer is that of
// log2(QUEUES) cycles ago: comparing all queues in one cycle would be too slow.
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

  logic [COUNT_BITS-1:0] waiting[QUEUES];

  // A tree whose leaves are the queues: node n has the better of nodes 2n and 2n + 1.
  logic [COUNT_BITS-1:0] count[2*QUEUES];
  logic [QUEUE_BITS-1:0] queue[2*QUEUES];

  always_comb
    for (int i = 0; i < QUEUES; i++) begin
      count[QUEUES+i] = waiting[i];
      queue[QUEUES+i] = QUEUE_BITS'(i);
    end
  assign count[0] = 0;
  assign queue[0] = 0;

  for (genvar n = 1; n < QUEUES; n++) begin : node
    wire second = count[2*n+1] < count[2*n];
    always_ff @(posedge clk) begin
      count[n] <= rst ? 0 : second ? count[2*n+1] : count[2*n];
      queue[n] <= rst ? 0 : second ? queue[2*n+1] : queue[2*n];
    end
  end
  assign q_least = queue[1];

  for (genvar i = 0; i < QUEUES; i++) begin : counter
    wire more = given && given_queue == QUEUE_BITS'(i);
    wire less = taken && taken_queue == QUEUE_BITS'(i);
    always_ff @(posedge clk)
      if (rst) waiting[i] <= 0;
      else if (more && !less && waiting[i] != '1) waiting[i] <= waiting[i] + 1;
      // A host that says more than is true gains nothing but fewer than none.
      else if (less && !more && waiting[i] != 0) waiting[i] <= waiting[i] - 1;
  end
endmodule
