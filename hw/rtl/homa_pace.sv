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
// Frames pass without delay. Their bytes are counted in short steps, a cycle each, so they are known
// some cycles later:
//
//   0  a beat is taken, the port says what has left
//   1  the bytes of each eighth of it are counted
//   2  the beat's bytes
//   3  bytes taken less bytes left; bytes given to the port; what the rate counts
//   4  bytes in the port; what the debt grows or shrinks by
//   5  is there room? debt
//   6  is the debt paid?
//
// A frame that begins while beats are on this way must have room for all of them; if there is not
// so much room it waits until nothing is on the way. So the limit holds to the byte. The rate may
// be passed by what is on the way, and never is in the long run: the debt counts all of it. Below 4
// bytes in a cycle the rate is not passed: a frame that would have to be paid waits until nothing
// is on the way there. That costs nothing while frames wait, since the smallest frame of Ethernet
// takes 15 cycles then; one that comes just as the one before is paid waits for up to five cycles
// more.
//
// When the port has said so many bytes that all of a frame have left, its number and the time go to
// the host. A port that holds 4 MiB is none: no more are counted then.
module homa_pace #(
    parameter int WIDTH = 512,
    parameter int ENDS_BITS = 6,   // 2^that many frames in the port are remembered, and one more
    parameter int GONE_BITS = 4    // 2^that many frames that have left wait for the host
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
    output logic crowded           // a frame is not remembered: the port has too many, or too many bytes
);
  localparam int BYTES = WIDTH / 8;
  localparam int GROUPS = (BYTES + 7) / 8;
  localparam int BITS = 24;              // positions in the bytes given to the port, modulo 2^24
  localparam int PORT_BITS = 23;         // the highest: more bytes in the port are not counted
  localparam int DEBT_BITS = 36;         // signed; in 2^-16 bytes
  localparam int ON_WAY = 4;             // beats that were taken and are not in `stock`
  localparam int SLACK = ON_WAY * BYTES;
  localparam int ON_WAY_RATE = 5;        // beats that were taken and are not in `paid`
  localparam int SLOW_BIT = 18;          // a rate whose bits from this one on are 0 is below 4 bytes

  // ---- does the beat pass? ----

  logic amid, offered, room, roomy, paid, slow;
  logic [ON_WAY_RATE-1:0] took;          // in the cycle before, in that before it, ...
  wire quiet = took[ON_WAY-1:0] == 0;
  wire unpaid = slow && took != 0;
  wire go = amid || offered || !on || ((roomy || (room && quiet)) && paid && !unpaid);

  assign m_valid = s_valid && go;
  assign s_ready = m_ready && go;
  assign m_data = s_data;
  assign m_keep = s_keep;
  assign m_last = s_last;
  assign waited = s_valid && !go;

  wire take = m_valid && m_ready;

  always_ff @(posedge clk)
    if (rst) begin
      amid <= 0;
      offered <= 0;
      took <= 0;
    end else begin
      if (take) amid <= !s_last;
      offered <= m_valid && !m_ready;
      took <= {took[ON_WAY_RATE-2:0], take};
    end

  // ---- 1: the bytes of each eighth ----

  logic [GROUPS-1:0][3:0] counts_1;
  logic [GROUPS-1:0] last_group_1;       // the last one with bytes
  logic beat_1, part_1;                  // a whole beat, the last one of a frame was taken
  logic other_1;
  logic [6:0] left_1;
  wire [8*GROUPS:0] keep = {1'b0, (8 * GROUPS)'(s_keep)};

  always_ff @(posedge clk) begin
    for (int g = 0; g < GROUPS; g++) begin
      counts_1[g] <= 0;
      for (int i = 0; i < 8; i++) if (keep[8*g+i]) counts_1[g] <= 4'(i + 1);
      last_group_1[g] <= keep[8*g] && !keep[8*g+8];
    end
    other_1 <= s_other;
    left_1 <= rst ? 7'd0 : left;
    beat_1 <= !rst && take && !s_last;
    part_1 <= !rst && take && s_last;
  end

  // ---- 2: the beat's ----

  logic [6:0] part, bytes_2, left_2;
  logic ended_2, other_2, full;
  logic [PORT_BITS-1:0] stock;
  assign full = stock[PORT_BITS-1];

  always_comb begin
    part = 0;
    for (int g = 0; g < GROUPS; g++)
      if (last_group_1[g]) part |= 7'(8 * g) + {3'd0, counts_1[g]};
  end

  always_ff @(posedge clk) begin
    if (full || rst) bytes_2 <= 0;
    else bytes_2 <= beat_1 ? 7'(BYTES) : part_1 ? part : 7'd0;
    ended_2 <= part_1 && !rst;
    left_2 <= rst ? 7'd0 : left_1;
    other_2 <= other_1;
  end

  // ---- 3 and 4: what is in the port ----

  logic [8:0] net_3;                     // signed
  logic [BITS-1:0] handed_3, handed_4, gone;
  logic ended_3, other_3;
  wire [PORT_BITS:0] next_stock = {1'b0, stock} + {{PORT_BITS - 8{net_3[8]}}, net_3};

  assign in_port = 32'(stock);

  always_ff @(posedge clk)
    if (rst) begin
      net_3 <= 0;
      handed_3 <= 0;
      ended_3 <= 0;
      handed_4 <= 0;
      stock <= 0;
      lied <= 0;
      gone <= 0;
    end else begin
      net_3 <= {2'd0, bytes_2} - {2'd0, left_2};
      handed_3 <= handed_3 + BITS'(bytes_2);
      ended_3 <= ended_2;
      handed_4 <= handed_3;
      lied <= next_stock[PORT_BITS];
      stock <= next_stock[PORT_BITS] ? '0 : next_stock[PORT_BITS-1:0];
      gone <= handed_4 - BITS'(stock);
    end

  always_ff @(posedge clk) other_3 <= other_2;

  // ---- 5: is there room? ----

  logic [17:0] less;                     // limit without what may be on the way; signed

  always_ff @(posedge clk) begin
    less <= {1'b0, limit} - 18'(SLACK);
    room <= stock <= PORT_BITS'(limit);
    roomy <= !less[17] && stock <= PORT_BITS'(less[16:0]);
    if (rst) begin
      room <= 0;
      roomy <= 0;
    end
  end

  // ---- 3 to 6: the rate ----

  // The debt counts a frame five cycles after it has begun. In these it shrinks by five times the
  // rate, so that much of it is not in the way of a frame.
  logic [8:0] counted_3;
  logic [26:0] change_4, paid_below;     // signed, in 2^-16 bytes; not signed
  logic [DEBT_BITS-1:0] debt;
  logic paying;
  wire [DEBT_BITS-1:0] owed = debt + {{DEBT_BITS - 27{change_4[26]}}, change_4};
  wire deep = debt[DEBT_BITS-2];         // a frame without end: no more of it is counted

  always_ff @(posedge clk) begin
    paying <= on && rate != 0;
    slow <= on && rate != 0 && rate[23:SLOW_BIT] == 0;
    paid_below <= {1'b0, rate, 2'd0} + {2'd0, rate, 1'b0};
    if (deep || rst) counted_3 <= 0;
    else counted_3 <= {2'd0, bytes_2} + (ended_2 ? {1'b0, extra} : 9'd0);
    change_4 <= {2'd0, counted_3, 16'd0} - {3'd0, rate};
    paid <= !paying || debt < DEBT_BITS'(paid_below);
    debt <= !paying || owed[DEBT_BITS-1] ? '0 : owed;
    if (rst) begin
      paid <= 0;
      debt <= 0;
    end
  end

  // ---- frames in the port: where each ends ----

  logic [16+BITS:0] marks[1 << ENDS_BITS];
  logic [ENDS_BITS-1:0] mark_in, mark_out;
  logic [ENDS_BITS:0] marked;            // how many there are
  logic [15:0] number[2];
  wire mark = ended_3 && !marked[ENDS_BITS] && !full;
  assign crowded = ended_3 && (marked[ENDS_BITS] || full);

  // The first of them has registers of its own.
  logic first, first_other;
  logic [15:0] first_number;
  logic [BITS-1:0] first_end;
  wire [BITS-1:0] beyond = gone - first_end;
  wire departs = first && !beyond[BITS-1];
  wire load = (!first || departs) && marked != 0;

  // ---- frames that have left ----

  logic [64:0] stamps[1 << GONE_BITS];
  logic [GONE_BITS:0] stamp_in, stamp_out;
  wire [GONE_BITS:0] stamped = stamp_in - stamp_out;
  wire stamp = departs && !stamped[GONE_BITS];

  assign d_valid = stamped != 0;
  assign {d_other, d_number, d_time} = stamps[stamp_out[GONE_BITS-1:0]];
  assign untaken = departs && stamped[GONE_BITS];

  always_ff @(posedge clk) begin
    if (mark) marks[mark_in] <= {other_3, number[other_3], handed_3};
    if (load) {first_other, first_number, first_end} <= marks[mark_out];
    if (stamp) stamps[stamp_in[GONE_BITS-1:0]] <= {first_other, first_number, now};
    if (rst) begin
      number[0] <= 0;
      number[1] <= 0;
      mark_in <= 0;
      mark_out <= 0;
      marked <= 0;
      first <= 0;
      stamp_in <= 0;
      stamp_out <= 0;
    end else begin
      if (ended_3) number[other_3] <= number[other_3] + 1;
      if (mark) mark_in <= mark_in + 1;
      if (load) mark_out <= mark_out + 1;
      if (mark && !load) marked <= marked + 1;
      if (!mark && load) marked <= marked - 1;
      first <= load || (first && !departs);
      if (stamp) stamp_in <= stamp_in + 1;
      if (d_valid && d_ready) stamp_out <= stamp_out + 1;
    end
  end
endmodule
