// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What stands before the port's FIFO: it keeps that short, and says when each frame has left it. A
// long queue in the port would be one in which a short message stands behind a long one, and there
// priorities have no effect.
//
// The port says how many bytes have left it. So the bytes in it are known, and a frame begins only
// if there are not more than `limit`: the queue is never longer than that and one frame. Besides,
// `rate` bounds what leaves in the long run, headers and gaps on the cable included, for a link
// that is slower further on. A frame that has begun, or that was offered, goes on.
//
// Frames pass without delay. When the port has said so many bytes that all of a frame have left,
// its number and the time go to the host.
module homa_pace #(
    parameter int WIDTH = 512
) (
    input logic clk,
    input logic rst,

    input logic on,
    input logic [16:0] limit,      // bytes in the port with which one more frame begins
    input logic [23:0] rate,       // bytes in each cycle, in 2^-16; 0: as many as the port takes
    input logic [7:0] extra,       // bytes of each frame that the rate counts and the frame has not
    input logic [47:0] now,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_other,           // which of two inputs the frame came from; with each beat

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    input logic [6:0] left,        // bytes that have left the port in this cycle
    output logic [31:0] in_port,   // bytes that have not

    output logic d_valid,          // a frame has left
    input logic d_ready,
    output logic d_other,          // its s_other
    output logic [15:0] d_number,  // how many such frames came before it
    output logic [47:0] d_time,

    output logic waited,           // a frame is there and must not begin
    output logic lied,             // the port says that more bytes left than it had
    output logic untaken,          // a frame has left, and the host has not taken those before
    output logic crowded           // there are too many frames in the port to remember one more
);
  localparam int BYTES = WIDTH / 8;
  localparam int DEBT_BITS = 40;

  function automatic logic [6:0] bytes_of(input logic [BYTES-1:0] keep);
    bytes_of = 0;
    for (int i = 0; i < BYTES; i++) if (keep[i]) bytes_of = 7'(i + 1);
  endfunction

  // ---- may a frame begin? ----

  logic amid, offered;
  logic [31:0] handed, gone;       // bytes given to the port, bytes that left it; modulo 2^32
  logic [DEBT_BITS-1:0] debt;      // what the rate has not paid yet of what was sent, in 2^-16 bytes

  assign in_port = handed - gone;
  wire paid = rate == 0 || debt < {16'd0, rate};
  wire go = amid || offered || !on || (in_port <= {15'd0, limit} && paid);

  assign m_valid = s_valid && go;
  assign s_ready = m_ready && go;
  assign m_data = s_data;
  assign m_keep = s_keep;
  assign m_last = s_last;
  assign waited = s_valid && !go;

  wire take = m_valid && m_ready;
  wire ends = take && s_last;
  wire [6:0] bytes = !take ? 7'd0 : s_last ? bytes_of(s_keep) : 7'(BYTES);
  wire [31:0] had = in_port + {25'd0, bytes};
  assign lied = {25'd0, left} > had;

  wire [8:0] counted = {2'd0, bytes} + (ends ? {1'b0, extra} : 9'd0);
  wire [DEBT_BITS:0] owed = {1'b0, debt} + {16'd0, counted, 16'd0};
  wire [DEBT_BITS:0] rest = owed - {17'd0, rate};

  always_ff @(posedge clk)
    if (rst) begin
      amid <= 0;
      offered <= 0;
      handed <= 0;
      gone <= 0;
      debt <= 0;
    end else begin
      if (take) amid <= !s_last;
      offered <= m_valid && !m_ready;
      handed <= handed + {25'd0, bytes};
      gone <= gone + (lied ? had : {25'd0, left});
      if (!on || rate == 0 || owed < {17'd0, rate}) debt <= 0;
      else debt <= rest[DEBT_BITS] ? '1 : rest[DEBT_BITS-1:0];
    end

  // ---- frames in the port: where each ends ----

  localparam int ENDS_BITS = 6;
  logic [48:0] marks[1 << ENDS_BITS];
  logic [ENDS_BITS:0] mark_in, mark_out;
  logic [15:0] number[2];
  wire [ENDS_BITS:0] marked = mark_in - mark_out;
  wire mark = ends && !marked[ENDS_BITS];
  logic first_other;
  logic [15:0] first_number;
  logic [31:0] first_end;
  assign {first_other, first_number, first_end} = marks[mark_out[ENDS_BITS-1:0]];
  wire past = gone - first_end < 32'h8000_0000;
  wire departs = marked != 0 && past;

  // ---- frames that have left ----

  localparam int GONE_BITS = 4;
  logic [64:0] stamps[1 << GONE_BITS];
  logic [GONE_BITS:0] stamp_in, stamp_out;
  wire [GONE_BITS:0] stamped = stamp_in - stamp_out;
  wire stamp = departs && !stamped[GONE_BITS];

  assign d_valid = stamped != 0;
  assign {d_other, d_number, d_time} = stamps[stamp_out[GONE_BITS-1:0]];
  assign untaken = departs && stamped[GONE_BITS];
  assign crowded = ends && marked[ENDS_BITS];

  always_ff @(posedge clk) begin
    if (mark)
      marks[mark_in[ENDS_BITS-1:0]] <= {s_other, number[s_other], handed + {25'd0, bytes}};
    if (stamp) stamps[stamp_in[GONE_BITS-1:0]] <= {first_other, first_number, now};
    if (rst) begin
      number[0] <= 0;
      number[1] <= 0;
      mark_in <= 0;
      mark_out <= 0;
      stamp_in <= 0;
      stamp_out <= 0;
    end else begin
      if (ends) number[s_other] <= number[s_other] + 1;
      if (mark) mark_in <= mark_in + 1;
      if (departs) mark_out <= mark_out + 1;
      if (stamp) stamp_in <= stamp_in + 1;
      if (d_valid && d_ready) stamp_out <= stamp_out + 1;
    end
  end
endmodule
