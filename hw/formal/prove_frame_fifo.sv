// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_frame_fifo, with four places: what is offered stays until it is taken, what comes out is
// each beat of each frame that has ended, once, in order and unchanged, and no other; a frame that
// has ended is offered in the third cycle after that or sooner, once those before it are out, and in
// the next one if its first beat came two cycles before its last one. No place of the memory is
// written in the cycle in which it is read. A beat's number is free (`mark`), so what holds for it
// holds for each. s_room says whether there was room for three beats two cycles ago.
module prove_frame_fifo (
    input logic clk,
    input logic rst,
    input logic s_valid, s_last, s_abort, m_ready, s_keep,
    input logic [7:0] s_data,
    input logic [4:0] mark
);
  logic s_ready, s_room, m_valid, m_keep, m_last;
  logic [7:0] m_data;
  homa_frame_fifo #(.WIDTH(8), .DEPTH_BITS(2), .ROOM(3)) fifo (.*);

  wire push = s_valid && s_ready, give = m_valid && m_ready;
  logic begun, waits;
  logic [1:0] late;                         // cycles in which nothing is offered, up to 2
  logic [1:0] there;                        // cycles for which the next beat is written, up to 2
  logic [9:0] m_shown, kept;
  logic [4:0] written, whole, out, marked;  // beats of all frames, of those that have ended; given
  logic [4:0] held, held_before;            // beats in the memory: a cycle ago, two cycles ago
  logic [1:0] age;                          // cycles since the reset, up to 2
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    marked <= mark;
    held <= written - out - {4'd0, fifo.head_valid} - {4'd0, fifo.first_valid};
    held_before <= held;
    age <= rst ? 2'd0 : age == 2 ? age : age + 2'd1;
    waits <= !rst && m_valid && !m_ready;
    m_shown <= {m_last, m_keep, m_data};
    late <= rst || whole == out || m_valid ? 2'd0 : late + 2'd1;
    there <= rst || s_abort || give || written == out ? 2'd0 : there == 2 ? 2'd2 : there + 2'd1;
    if (push && written == mark) kept <= {s_last, s_keep, s_data};
    if (rst) {written, whole, out} <= 0;
    else begin
      if (s_abort) written <= whole;
      else written <= written + {4'd0, push};
      if (push && s_last) whole <= written + 5'd1;
      out <= out + {4'd0, give};
    end
  end

  always_comb begin
    if (!begun) assume (rst);
    if (begun) assume (mark == marked);
    assume (!(s_abort && s_valid));
    if (begun && !rst) begin
      if (waits) assert (m_valid && {m_last, m_keep, m_data} == m_shown);
      if (m_valid) assert (whole != out);
      if (give && out == mark) assert ({m_last, m_keep, m_data} == kept);
      if (push && fifo.pop) assert (fifo.write_at[1:0] != fifo.read_at[1:0]);
      if (late == 2 || (there == 2 && whole != out)) assert (m_valid);
      assert (written - out <= 6);
      if (age == 2) assert (s_room == (held_before <= 4 - 3));
      if (written - out < 4) assert (s_ready);
    end
  end
endmodule
