// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// A FIFO of whole frames: a frame can be read once its last beat is in, and until then it can be
// taken back. So nothing leaves of a frame that turns out to be broken, and a frame that leaves has
// no gaps, whatever its source does.
//
// The memory is cut into slices that fit into one block RAM each, of 18 Kbit or 36: the output of a
// block RAM is late in its cycle, and must not be chosen out of several. Behind it is a register.
// A beat is read in a later cycle than it is written.
// Output and register are filled before a frame has ended: `ahead` is how many of the beats in them
// are of such a frame. These are not offered, and are forgotten if the frame is taken back. So a
// frame of three beats or more is offered in the cycle after its last one.
module homa_frame_fifo #(
    parameter int WIDTH = 512,
    parameter int DEPTH_BITS = 9,  // log2 of the beats that it holds
    parameter int ROOM = 1,        // beats, for s_room
    parameter bit ASKED = 1        // a beat waits for s_ready; else who sends it goes by s_room
) (
    input logic clk,
    input logic rst,

    output logic s_room,  // two cycles ago there was room for ROOM beats; a register
    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_abort,  // forget the beats of the frame that has not ended; not with s_valid

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last
);
  localparam int BYTES = WIDTH / 8;
  localparam int ENTRY = WIDTH + BYTES + 1;
  localparam int SLICE = DEPTH_BITS > 11 ? 4 : DEPTH_BITS > 10 ? 9 : DEPTH_BITS > 9 ? 18 : 36;
  localparam int SLICES = (ENTRY + SLICE - 1) / SLICE;

  logic [DEPTH_BITS:0] write_at, ended_at, read_at;  // the highest bit tells full from empty
  logic [DEPTH_BITS:0] after;                        // read_at + 1
  logic some;                                        // there is a beat at read_at
  /* verilator lint_off UNUSEDSIGNAL */
  logic [SLICES*SLICE-1:0] head, first;       // not all bits of the last slice matter
  /* verilator lint_on UNUSEDSIGNAL */
  wire [SLICES*SLICE-1:0] entry = (SLICES * SLICE)'({s_last, s_keep, s_data});

  wire full = write_at[DEPTH_BITS] != read_at[DEPTH_BITS] &&
              write_at[DEPTH_BITS-1:0] == read_at[DEPTH_BITS-1:0];
  logic [DEPTH_BITS:0] held;  // beats, a cycle ago
  wire push = s_valid && (s_ready || !ASKED);
  assign s_ready = !full;
  assign {m_last, m_keep, m_data} = first[ENTRY-1:0];

  // What is in `first` came before what is in `head`.
  logic head_valid, first_valid;
  logic [1:0] ahead;
  wire head_ahead = head_valid && ahead != 0;
  wire first_ahead = ahead == 2 || (ahead == 1 && !head_valid);
  wire give = m_valid && m_ready;
  wire move = head_valid && (!first_valid || give);
  wire beyond = ahead != 0 || read_at == ended_at;  // what is read next is of such a frame
  wire pop = (!head_valid || move) && some && !(s_abort && beyond);

  // What these are next. Whether a beat is offered is a register, for much is decided by it.
  wire next_head = pop || (head_valid && !move && !(s_abort && head_ahead));
  wire next_first = (move && !(s_abort && head_ahead)) ||
                    (first_valid && !give && !(s_abort && first_ahead));
  wire [1:0] next_ahead = s_abort || (push && s_last) ? 2'd0 : ahead + 2'(pop && beyond);
  wire next_first_ahead = next_ahead == 2 || (next_ahead == 1 && !next_head);

  for (genvar i = 0; i < SLICES; i++) begin : slice
    homa_memory #(.BITS(SLICE), .AT_BITS(DEPTH_BITS), .STYLE("block")) memory (
        .clk, .write(push), .write_at(write_at[DEPTH_BITS-1:0]),
        .write_data(entry[SLICE*i+:SLICE]), .read(pop), .read_at(read_at[DEPTH_BITS-1:0]),
        .q(head[SLICE*i+:SLICE]));
  end

  always_ff @(posedge clk) begin
    if (move) first <= head;
    held <= write_at - read_at;
    s_room <= !rst && 32'(held) <= (1 << DEPTH_BITS) - ROOM;
    if (rst) begin
      held <= 0;
      write_at <= 0;
      ended_at <= 0;
      read_at <= 0;
      after <= 1;
      some <= 0;
      head_valid <= 0;
      first_valid <= 0;
      m_valid <= 0;
      ahead <= 0;
    end else begin
      if (s_abort) write_at <= ended_at;
      else if (push) write_at <= write_at + 1;
      if (push && s_last) ended_at <= write_at + 1;
      if (s_abort && ahead != 0) begin
        read_at <= ended_at;
        after <= ended_at + 1;
      end else if (pop) begin
        read_at <= after;
        after <= after + 1;
      end
      // What is taken back was not read, or all that was read with it is forgotten.
      if (s_abort) some <= ahead == 0 && (pop ? ended_at != after : ended_at != read_at);
      else some <= push || (pop ? write_at != after : write_at != read_at);
      ahead <= next_ahead;
      head_valid <= next_head;
      first_valid <= next_first;
      m_valid <= next_first && !next_first_ahead;
    end
  end
endmodule
