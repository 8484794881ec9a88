// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Units leave: the pages of their packets are read, and put together without gaps. Of the first
// packet comes everything, of those behind it the message offset, that is the last four bytes of
// the Homa header, and the payload. All packets of a unit have headers of one length, so the
// offset is at the same place in each.
//
// Bytes are turned by the difference of their places in the memory and in the unit, which is one
// number for a packet, and joined with what is left of the beat before. The last step of turning,
// by one byte or none, is done while they are joined, for a look-up table has room for both.
module homa_lro_emit
  import homa_lro_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int PAGES_BITS = 10
) (
    input logic clk,
    input logic rst,

    input logic u_valid,
    output logic u_ready,
    input logic [SLOT_BITS-1:0] u_slot,
    input logic [PIECE_BITS:0] u_pieces,
    input logic [PAGES_BITS-1:0] u_page,
    input logic [13:0] u_bytes,
    input logic u_bad,
    input logic [7:0] u_at,
    input logic [13:0] u_seg,
    output logic done,
    output logic [SLOT_BITS-1:0] done_slot,

    output logic [SLOT_BITS-1:0] p_slot,
    output logic [PIECE_BITS-1:0] p_number,
    input logic [PAGES_BITS-1:0] p_page,
    input logic [31:0] p_offset,
    input logic [13:0] p_length,

    output logic r_on,
    output logic [PAGES_BITS-1:0] r_page,
    output logic [$clog2(2048/WIDTH)-1:0] r_beat,
    input logic [WIDTH-1:0] r_data,
    input homa_lro_about_t r_about,         // of the frame whose first page that is
    output logic h_on,                      // the hash of the frame with this first page
    output logic [PAGES_BITS-1:0] h_page,
    input logic [31:0] r_hash,              // a cycle later, until the next one is asked for
    output logic [PAGES_BITS-1:0] n_page,
    input logic [PAGES_BITS-1:0] n_next,    // the page after n_page, two cycles later
    output logic give,
    output logic [PAGES_BITS-1:0] give_page,

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,                     // with m_last
    output logic [PIECE_BITS:0] m_pieces,   // packets in the unit; with each beat
    output logic [13:0] m_seg,              // bytes of the message in each but the last; the same
    output homa_lro_about_t m_about,        // of its first packet; the same
    output logic [31:0] m_hash,             // the same

    output logic l_valid,                   // the list: a packet of a unit with several
    input logic l_ready,
    output logic [31:0] l_offset,           // of its payload in the message
    output logic [13:0] l_length,           // of its payload
    output logic l_last
);
  localparam int BYTES = WIDTH / 8;
  localparam int LOG = $clog2(BYTES);
  localparam int BEAT_BITS = $clog2(2048 / WIDTH);

  localparam logic [1:0] IDLE = 0;
  localparam logic [1:0] FETCH = 1;  // the packet's place is read
  localparam logic [1:0] RUN = 2;    // its beats are
  localparam logic [1:0] FLUSH = 3;  // what is left of the unit's last beat

  // What is done with a beat that comes out of the memory, once it is turned, but for one byte.
  typedef struct packed {
    logic [LOG-1:0] held;       // bytes that are there from before
    logic late;                 // it is to be turned by a byte more
    logic emit;                 // a beat is complete
    logic last;
    logic [LOG:0] count;        // bytes of it, if it is the last
    logic mark;                 // it has the byte with the data offset, of the first packet, which
    logic [LOG-1:0] mark_at;    // is not turned, and has nothing before it
    logic bad;
    logic [PIECE_BITS:0] pieces;
    logic [13:0] seg;
  } join_t;

  typedef struct packed {
    logic begins;               // it is the unit's first
    logic [LOG-2:0] turn;       // by which it is turned, pairs of bytes
    join_t then_;
  } step_t;

  wire adv = m_ready || !m_valid;

  logic [1:0] state;
  logic several;
  logic has_slot;               // it is a unit of a slot, which is free afterwards
  logic [PIECE_BITS:0] number, pieces;
  logic [SLOT_BITS-1:0] slot;
  logic [7:0] at;
  logic [13:0] seg;
  logic bad;

  logic [PAGES_BITS-1:0] page;
  logic [BEAT_BITS-1:0] beat;
  logic [13-LOG:0] row;         // number of the beat in the first packet
  logic [13:0] left;            // bytes of the packet from the beat's first one on
  logic [8:0] lead;             // of those, what is before its bytes of the message
  logic [LOG-1:0] low;          // bytes of the beat before the packet's
  logic first_beat;
  logic [LOG-1:0] held;

  // The next packet of the unit. The memory tells it a cycle after it is asked, late in the cycle.
  logic [1:0] coming;           // cycles until it is here
  logic [PAGES_BITS-1:0] next_page;
  logic [31:0] next_offset;
  logic [13:0] next_length;

  // ---- the step for this beat ----

  wire [LOG-1:0] from = first_beat ? low : '0;
  wire ends = left <= 14'(BYTES);
  wire last_piece = number == pieces;
  wire [LOG:0] high = ends ? left[LOG:0] : (LOG + 1)'(BYTES);
  wire [LOG+1:0] sum = {1'b0, high} + ({2'b00, held} - {2'b00, from});
  wire over = sum > (LOG + 2)'(BYTES);
  wire whole = sum >= (LOG + 2)'(BYTES);
  wire [13:0] mark_pos = {6'd0, at} + 14'(COMMON_DOFF_AT);
  wire finishes = ends && last_piece;

  logic q_valid, a_valid, b_valid;
  step_t step, q, a;
  always_comb begin
    step.begins = number == 1 && row == 0;
    {step.turn, step.then_.late} = held - from;
    step.then_.held = held;
    step.then_.emit = whole || finishes;
    step.then_.last = finishes && !over;
    step.then_.count = sum[LOG:0];
    step.then_.mark = several && number == 1 && mark_pos[13:LOG] == row;
    step.then_.mark_at = mark_pos[LOG-1:0];
    step.then_.bad = bad;
    step.then_.pieces = several ? pieces : (PIECE_BITS + 1)'(1);
    step.then_.seg = seg;
    if (state == FLUSH) begin
      step.then_.emit = 1;
      step.then_.last = 1;
      step.then_.count = {1'b0, held};
      step.begins = 0;
      step.then_.mark = 0;
    end
  end

  wire run = state == RUN && adv;
  assign r_on = adv;
  assign r_page = page;
  assign r_beat = beat;
  assign n_page = page;
  assign give = run && (ends || &beat);
  assign give_page = page;
  // A unit of one beat leaves a gap behind it, so that its hash is taken before the next one's comes.
  wire gap = q_valid && q.begins;
  assign u_ready = state == IDLE && !gap;
  assign p_slot = state == IDLE ? u_slot : slot;
  assign p_number = state == IDLE ? '0 : number[PIECE_BITS-1:0];
  assign done_slot = slot;

  wire list_room = !l_valid || l_ready;
  wire begin_piece = state == FETCH && list_room && coming == 0;
  wire [8:0] later = {1'b0, at} + {1'b0, SKIP};  // where packets begin that follow the first one
  wire [8:0] skip = number == 0 ? 9'd0 : later;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      l_valid <= 0;
      done <= 0;
    end else begin
      done <= 0;
      if (list_room) l_valid <= begin_piece;
      case (state)
        IDLE: if (u_valid && !gap) state <= u_pieces > 1 ? FETCH : RUN;
        FETCH: if (begin_piece) state <= RUN;
        RUN:
          if (adv && ends) begin
            if (!last_piece) state <= FETCH;
            else begin
              state <= over ? FLUSH : IDLE;
              done <= has_slot;
            end
          end
        default: if (adv) state <= IDLE;
      endcase
    end
    {next_page, next_offset, next_length} <= {p_page, p_offset, p_length};
    if (coming != 0) coming <= coming - 1'b1;
    case (state)
      IDLE: begin
        coming <= 1;
        several <= u_pieces > 1;
        has_slot <= u_pieces != 0;
        pieces <= u_pieces == 0 ? 1 : u_pieces;
        number <= u_pieces > 1 ? 0 : 1;
        slot <= u_slot;
        at <= u_at;
        seg <= u_seg;
        bad <= u_bad;
        page <= u_page;
        beat <= 0;
        row <= 0;
        left <= u_bytes;
        lead <= {1'b0, u_at} + DATA_HDR[8:0];
        low <= 0;
        first_beat <= 1;
        held <= 0;
      end
      FETCH:
        if (begin_piece) begin
          number <= number + 1;
          page <= next_page;
          coming <= 2;
          beat <= BEAT_BITS'(skip >> LOG);
          left <= {5'd0, lead} + next_length;
          lead <= 9'(DATA_HDR - 32'(SKIP)) + 9'(later[LOG-1:0]);
          low <= skip[LOG-1:0];
          first_beat <= 1;
        end
      RUN:
        if (adv) begin
          first_beat <= 0;
          row <= row + 1'b1;
          left <= left - 14'(BYTES);
          beat <= beat + 1;
          held <= LOG'(sum);
          // It is known by now: a page has four beats at 512 bits, and a packet behind the first begins
          // in the second one at the latest, for no header that merges has 128 bytes before its offset.
          if (&beat) page <= n_next;
        end
      default: ;
    endcase
    if (begin_piece) begin
      l_offset <= next_offset;
      l_length <= next_length;
      l_last <= number + 1'b1 == pieces;
    end
  end

  // ---- the beat: read, turned, joined ----

  join_t b;
  homa_lro_about_t a_about, b_about;
  logic [31:0] b_hash;
  logic [WIDTH-1:0] a_data, turned, b_data, whole_turn, kept, joined;

  always_comb begin
    turned = a_data;
    for (int i = 1; i < LOG; i++)
      if (a.turn[i-1]) turned = (turned << (8 << i)) | (turned >> (WIDTH - (8 << i)));
    whole_turn = b.late ? {b_data[WIDTH-9:0], b_data[WIDTH-1-:8]} : b_data;
    for (int i = 0; i < BYTES; i++)
      joined[8*i+:8] = b.mark && b.mark_at == LOG'(i) ? DOFF_UNIT
                     : (LOG + 1)'(i) < {1'b0, b.held} ? kept[8*i+:8] : whole_turn[8*i+:8];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      q_valid <= 0;
      a_valid <= 0;
      b_valid <= 0;
      m_valid <= 0;
    end else if (adv) begin
      q_valid <= state == RUN || state == FLUSH;
      a_valid <= q_valid;
      b_valid <= a_valid;
      m_valid <= b_valid && b.emit;
    end
    // The hash comes later than what else is said, so it is asked for a cycle later. It must not
    // wait for what is behind, for the page may be another frame's by then.
    h_on <= run && step.begins;
    // A stage that is empty keeps what it had, so that these are no shift registers, which take
    // look-up tables.
    if (adv && (state == RUN || state == FLUSH)) begin
      h_page <= page;
      q <= step;
    end
    if (adv && q_valid) begin
      // The memory's output is late in its cycle, so nothing is done with it in the same.
      a <= q;
      a_data <= r_data;
      a_about <= r_about;
    end
    if (adv && a_valid) begin
      b <= a.then_;
      b_data <= turned;
      // Between the first beats of two units there is another beat or a gap, so r_hash is still this
      // one's, for however long this beat had to wait.
      if (a.begins) begin
        b_about <= a_about;
        b_hash <= r_hash;
      end
    end
    if (adv && b_valid) begin
      m_about <= b_about;
      m_hash <= b_hash;
      kept <= b.emit ? whole_turn : joined;
      m_data <= joined;
      for (int i = 0; i < BYTES; i++) m_keep[i] <= !b.last || (LOG + 1)'(i) < b.count;
      m_last <= b.last;
      m_bad <= b.last && b.bad;
      m_pieces <= b.pieces;
      m_seg <= b.seg;
    end
  end
endmodule
