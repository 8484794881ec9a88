// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What becomes of each frame: it is put behind others of its unit, begins a unit, or passes.
//
// A slot is free, open (its unit takes more) or closed (its unit waits to leave). Frames are looked
// at one after the other. A frame that merges goes behind its RPC's open unit or begins one. Any
// other frame of the RPC, or one that does not fit, closes the unit first. Two queues lead out:
//
// * closed units, in the order in which they were closed; frames that pass while a unit of their
//   RPC waits are units of one frame;
// * frames that pass while none does; they go first. When OVERTAKE of them have gone before a
//   closed unit, those that come stand behind it until it has left, so that a host that takes less
//   than comes gets the units, too.
//
// So nothing is reordered inside an RPC. RPCs are told apart by a digest of 16 bits at first, and
// by all of the header before anything is merged: two with one digest push each other's units
// out, which costs speed and nothing else. No frame waits but for the output: if no slot is free or
// memory is short, an open unit is closed, and closed ones leave as the output takes them.
module homa_lro_table
  import homa_lro_pkg::*;
#(
    parameter int PAGES_BITS = 10,
    parameter int WORDS = 1,              // of which a key has so many, a power of two
    localparam int WORD = ($bits(homa_lro_key_t) + WORDS - 1) / WORDS,
    localparam int WORD_BITS = WORDS > 1 ? $clog2(WORDS) : 1
) (
    input logic clk,
    input logic rst,

    input logic on,                       // merge; else all frames pass
    input logic [15:0] limit,             // bytes of a unit
    input logic [15:0] patience,          // cycles for which a unit may be open; up to 65,024
    input logic low,                      // memory is short

    input logic f_valid,
    output logic f_ready,
    output logic [1:0] f_step,            // of the four in which a frame is looked at
    input logic [PAGES_BITS-1:0] f_page,
    /* verilator lint_off UNUSEDSIGNAL */
    input homa_lro_info_t f_info,         // not all of it matters here
    /* verilator lint_on UNUSEDSIGNAL */

    output logic [PAGES_BITS-1:0] k_page, // a word of the key of the frame with this first page
    output logic [WORD_BITS-1:0] k_word,
    input logic [WORD-1:0] k_key,         // two cycles later

    output logic u_valid,                 // the next unit to leave
    input logic u_ready,
    output logic [SLOT_BITS-1:0] u_slot,
    output logic [PIECE_BITS:0] u_pieces, // 1: a frame as it came; 0: the same, of no slot
    output logic [PAGES_BITS-1:0] u_page, // of that frame
    output logic [13:0] u_bytes,
    output logic u_bad,
    output logic [7:0] u_at,              // begin of the Homa header in the first frame
    output logic [13:0] u_seg,            // bytes of the message in each but the last packet
    input logic done,                     // all of the unit in done_slot has been read
    input logic [SLOT_BITS-1:0] done_slot,

    input logic [SLOT_BITS-1:0] p_slot,   // a packet of a unit, a cycle later:
    input logic [PIECE_BITS-1:0] p_number,
    output logic [PAGES_BITS-1:0] p_page,
    output logic [31:0] p_offset,
    output logic [13:0] p_length,

    output logic [EVENTS-1:0] event_      // EVENT_* of this cycle, but for BAD and LONG
);
  localparam int FAST_BITS = 6;
  localparam int OVERTAKE_BITS = 4;       // log2 of OVERTAKE
  localparam int PIECE = PAGES_BITS + 46;

  localparam logic [1:0] FREE = 0;
  localparam logic [1:0] OPEN = 1;
  localparam logic [1:0] CLOSED = 2;

  localparam logic [2:0] IDLE = 0;
  localparam logic [2:0] LOOK = 1;
  localparam logic [2:0] COMPARE = 2;
  localparam logic [2:0] ACT = 3;
  // Between COMPARE and ACT. Such a frame has no hash of its own: it is put behind others, or looked
  // at once more when their unit is closed.
  localparam logic [2:0] READ = 4;

  // What a frame that may join a unit is compared with, and what else is said of a unit's first
  // frame. Both are written when the unit begins and change no more.
  typedef struct packed {
    logic [PAGES_BITS-1:0] page;
    logic [13:0] seg;
  } unit_t;
  typedef struct packed {
    logic [13:0] bytes;
    logic bad;
    logic [7:0] at;
  } rest_t;

  logic [2:0] state;
  logic [1:0] slot_state[SLOTS];
  logic slot_homa[SLOTS];
  logic [15:0] slot_digest[SLOTS];
  logic [15:0] slot_since[SLOTS];
  unit_t units[SLOTS];
  rest_t rests[SLOTS];
  logic [PIECE_BITS:0] counts[SLOTS];     // packets of the unit
  logic [16:0] fills[SLOTS];              // bytes of the unit

  // ---- which slots matter ----

  logic [SLOTS-1:0] is_free, is_open, alike;
  logic [SLOTS-1:0] own_bit;              // in LOOK: the open unit of the frame's RPC, if any
  logic any_alike;                        // in LOOK: any slot of it
  always_comb
    for (int i = 0; i < SLOTS; i++) begin
      is_free[i] = slot_state[i] == FREE;
      is_open[i] = slot_state[i] == OPEN;
      // Frames without an RPC keep their order, too.
      alike[i] = !is_free[i] && slot_homa[i] == f_info.homa &&
                 (!f_info.homa || slot_digest[i] == f_info.digest);
    end

  function automatic logic [SLOT_BITS-1:0] lowest(input logic [SLOTS-1:0] bits);
    lowest = 0;
    for (int i = SLOTS - 1; i >= 0; i--) if (bits[i]) lowest = SLOT_BITS'(i);
  endfunction

  // An RPC has one open unit at most: its digest and not more was asked when that was opened.
  function automatic logic [SLOT_BITS-1:0] number_of(input logic [SLOTS-1:0] bit_);
    number_of = 0;
    for (int i = 0; i < SLOTS; i++) if (bit_[i]) number_of |= SLOT_BITS'(i);
  endfunction
  wire [SLOT_BITS-1:0] found = number_of(own_bit);

  // The open slot from the hand on, which goes round: roughly the oldest. It is known two cycles
  // late, and a third cycle later whether it is open now.
  logic [SLOT_BITS-1:0] hand, victim, open_victim;
  logic victim_open;                      // that in open_victim is
  logic [SLOTS-1:0] ahead, round;         // open slots from the hand on; all of them

  logic has_free, mine, waits;            // mine: an open unit of the RPC; waits: any slot of it
  logic [SLOT_BITS-1:0] free, own;

  // ---- time ----

  // One slot is looked at in a cycle, and one unit that is late is remembered: another that becomes
  // late before that one is closed is found again a round later. Ages are modulo 2^16, so the
  // longest patience leaves 32 rounds for that.

  logic [15:0] now, soon;                 // soon: now + 1
  logic [SLOT_BITS-1:0] scan, aged_slot, late_slot;
  logic [15:0] age;                       // of the unit in aged_slot, if aged_open
  logic aged_open;
  logic late;                             // the unit in late_slot is as old as it may be
  logic late_open;                        // and is open, which is known a cycle later
  wire aged = aged_open && age >= patience;
  wire stays = late && is_open[late_slot];

  // ---- a frame and its slot ----

  unit_t unit;
  wire unit_t found_unit = units[found];
  logic [PIECE_BITS:0] count;
  logic [16:0] fill;
  logic same;                             // what was compared of its key is that of the unit's
  wire merges = on && f_info.merges && !f_info.bad;
  // The message offset stands before each packet's part, and in the first one's header anyway.
  logic [14:0] more;                      // bytes that the frame adds to a unit
  logic [16:0] grown, begun;              // bytes of the unit with it; of a unit that it begins
  logic [17:0] space;                     // bytes that a unit may have before it; negative: none
  logic fits;                             // it may be put behind its RPC's unit, if that is alike
  logic alone;                            // it will not be merged
  logic [3:0] why;
  logic joins, all_same;                  // in ACT: it fits and is alike; it is alike
  wire append = state == ACT && joins;
  wire [PIECE_BITS:0] number = count + 1'b1;
  logic ends;                             // the unit with it takes no more
  wire push_out = state == ACT && mine && !append;              // the unit goes before the frame
  logic [OVERTAKE_BITS:0] overtaken;                            // frames before a closed unit
  wire slow = waits || !alone || overtaken[OVERTAKE_BITS];      // it needs a slot
  wire enter = state == ACT && !mine && slow && has_free;
  wire fast_room;
  wire fast = state == ACT && !mine && !slow && fast_room;
  wire evict = state == ACT && !mine && slow && !has_free && victim_open;

  // ---- closed units ----

  logic [SLOT_BITS-1:0] closed[SLOTS];
  logic [SLOT_BITS:0] closed_in, closed_out;
  wire any_closed = closed_in != closed_out;
  wire leaves = u_valid && u_ready;

  wire timed = state == IDLE && late_open;
  wire squeezed = state == IDLE && !late_open && low && !any_closed && victim_open;
  // What closes a slot in IDLE is seen in LOOK.
  wire looks = state == IDLE && f_valid && !timed && !squeezed;
  wire close_own = push_out || (append && ends);
  wire close = timed || squeezed || close_own || evict || (enter && alone);
  logic [SLOT_BITS-1:0] close_slot;
  always_comb begin
    close_slot = own;
    if (timed) close_slot = late_slot;
    if (squeezed || evict) close_slot = open_victim;
    if (enter) close_slot = free;
  end

  // ---- the frame's key and that of the unit's first frame ----

  // Their words are asked for in turns from IDLE on, the frame's first. `asked`: how many were. What
  // comes out of their memory is late in its cycle, so it is compared when it is in registers. That
  // of the first two is known in READ, when five were asked for, and of two more every second cycle.
  // A cycle after that of the last two the frame is put behind its unit or not.
  localparam int ASKS = 2 * WORDS;
  localparam int ASK_BITS = $clog2(ASKS + 5);
  localparam int PARTS = 2;
  localparam int PART = (WORD + PARTS - 1) / PARTS;
  logic [ASK_BITS-1:0] asked;
  logic [WORD-1:0] word, word_before;     // those which came a cycle ago and two
  logic [PARTS-1:0] same_part;            // of these two
  logic same_before;                      // all words before these two are the same
  wire [PARTS*PART-1:0] differing = (PARTS * PART)'(word ^ word_before);
  assign same = same_before && &same_part;
  assign k_page = state == LOOK ? found_unit.page : asked[0] ? unit.page : f_page;
  assign k_word = WORD_BITS'(asked >> 1);

  always_ff @(posedge clk) begin
    asked <= looks || (state != IDLE && state != ACT) ? asked + 1'b1 : '0;
    if (rst) asked <= 0;
    word <= k_key;
    word_before <= word;
    for (int i = 0; i < PARTS; i++) same_part[i] <= differing[PART*i+:PART] == 0;
    all_same <= same;
    joins <= state == READ && fits && same;
    if (asked <= ASK_BITS'(3)) same_before <= 1;
    else if (asked[0]) same_before <= same;
  end

  // ---- what happens ----

  assign f_ready = append || enter || fast;
  assign f_step = state[1:0];

  always_comb begin
    why = EVENT_URGENT;
    if (merges) why = all_same ? EVENT_FULL : EVENT_DIFFERS;
    if (append) why = f_info.ends ? EVENT_ENDED : EVENT_FULL;
    if (timed) why = EVENT_TIMED;
    if (squeezed || evict) why = EVENT_EVICTED;
    event_ = 0;
    event_[EVENT_FRAME] = f_ready;
    event_[EVENT_PASSED] = fast || (enter && alone);
    event_[EVENT_MERGED] = append;
    event_[EVENT_OPENED] = enter && !alone;
    if (close && !enter) event_[why] = 1;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      closed_in <= 0;
      hand <= 0;
      late <= 0;
      late_open <= 0;
      victim_open <= 0;
      aged_open <= 0;
      scan <= 0;
      now <= 0;
      soon <= 1;
      has_free <= 0;
      for (int i = 0; i < SLOTS; i++) slot_state[i] <= FREE;
    end else begin
      now <= soon;
      soon <= soon + 1;
      scan <= scan + 1;
      aged_open <= is_open[scan];
      // A unit that was closed for another reason is late no more.
      late <= aged || stays;
      if (!stays) late_slot <= aged_slot;
      late_open <= stays && !(close && close_slot == late_slot);
      victim_open <= is_open[victim] && !(close && close_slot == victim);
      has_free <= |is_free;
      free <= lowest(is_free);
      case (state)
        IDLE: if (looks) state <= LOOK;
        LOOK: state <= COMPARE;
        COMPARE: state <= mine && merges ? READ : ACT;
        READ: if (asked == ASK_BITS'(ASKS + 3)) state <= ACT;
        default: state <= IDLE;
      endcase
      if (enter) slot_state[free] <= OPEN;
      if (close) begin
        slot_state[close_slot] <= CLOSED;
        closed_in <= closed_in + 1;
        if (!close_own) hand <= close_slot + 1;
      end
      if (done) slot_state[done_slot] <= FREE;
    end
    aged_slot <= scan;
    age <= soon - slot_since[scan];        // as it is when that is looked at
    ahead <= is_open & ({SLOTS{1'b1}} << hand);
    round <= is_open;
    victim <= |ahead ? lowest(ahead) : lowest(round);
    open_victim <= victim;
    // The frame is there in IDLE, and no slot changes between that and LOOK but one that becomes
    // free: then the frame waits behind a unit that has just left.
    own_bit <= alike & is_open;
    any_alike <= |alike;
    more <= {1'b0, f_info.length} + 15'd4;
    if (state == LOOK) begin
      mine <= |own_bit;
      waits <= any_alike;
      own <= found;
      unit <= found_unit;
      count <= counts[found];
      fill <= fills[found];
      space <= {2'b00, limit} - {3'd0, more};
      begun <= {9'd0, f_info.at} + 17'd56 + {3'd0, f_info.length};
    end
    if (state == COMPARE) begin
      fits <= mine && merges && !space[17] && fill <= space[16:0] && f_info.length <= unit.seg;
      grown <= fill + {2'b00, more};
      ends <= f_info.ends || f_info.length != unit.seg || number == (PIECE_BITS + 1)'(PIECES);
      alone <= !merges || f_info.ends || begun > {1'b0, limit};
    end
    if (close) closed[closed_in[SLOT_BITS-1:0]] <= close_slot;
    if (enter) begin
      slot_homa[free] <= f_info.homa;
      slot_digest[free] <= f_info.digest;
      slot_since[free] <= now;
    end
  end

  wire [SLOT_BITS-1:0] write_slot = enter ? free : own;
  wire [PIECE_BITS-1:0] write_piece = enter ? '0 : count[PIECE_BITS-1:0];

  always_ff @(posedge clk) begin
    if (enter) begin
      units[free] <= {f_page, f_info.length};
      rests[free] <= {f_info.bytes, f_info.bad, f_info.at};
    end
    if (enter || append) begin
      counts[write_slot] <= enter ? (PIECE_BITS + 1)'(1) : number;
      fills[write_slot] <= enter ? begun : grown;
    end
  end

  // They are read once the unit is closed.
  homa_memory #(.BITS(PIECE), .AT_BITS(SLOT_BITS + PIECE_BITS)) pieces (
      .clk, .write(enter || append), .write_at({write_slot, write_piece}),
      .write_data({f_page, f_info.offset, f_info.length}), .read(1'b1),
      .read_at({p_slot, p_number}), .q({p_page, p_offset, p_length}));

  // ---- frames that pass, and who leaves next ----

  localparam int FAST = PAGES_BITS + 15;
  logic [FAST-1:0] fasts[1 << FAST_BITS];
  logic [FAST_BITS:0] fast_in, fast_out;
  wire any_fast = fast_in != fast_out;
  wire [FAST_BITS:0] fast_number = fast_in - fast_out;
  assign fast_room = !fast_number[FAST_BITS];
  wire [FAST-1:0] fast_head = fasts[fast_out[FAST_BITS-1:0]];
  wire [SLOT_BITS-1:0] closed_head = closed[closed_out[SLOT_BITS-1:0]];
  wire unit_t closed_unit = units[closed_head];
  wire rest_t closed_rest = rests[closed_head];
  wire load = (!u_valid || u_ready) && (any_fast || any_closed);

  always_ff @(posedge clk) begin
    if (fast) fasts[fast_in[FAST_BITS-1:0]] <= {f_page, f_info.bytes, f_info.bad};
    if (load) begin
      u_slot <= closed_head;
      if (any_fast) begin
        u_pieces <= 0;
        {u_page, u_bytes, u_bad} <= fast_head;
      end else begin
        u_pieces <= counts[closed_head];
        u_page <= closed_unit.page;
        u_bytes <= closed_rest.bytes;
        u_bad <= closed_rest.bad;
      end
      u_at <= closed_rest.at;
      u_seg <= closed_unit.seg;
    end
    if (rst) begin
      fast_in <= 0;
      fast_out <= 0;
      closed_out <= 0;
      overtaken <= 0;
      u_valid <= 0;
    end else begin
      if (fast) fast_in <= fast_in + 1;
      if (load && any_fast) fast_out <= fast_out + 1;
      if (load && !any_fast) closed_out <= closed_out + 1;
      if (!any_closed || (load && !any_fast)) overtaken <= 0;
      else if (load && !overtaken[OVERTAKE_BITS]) overtaken <= overtaken + 1;
      u_valid <= load || (u_valid && !leaves);
    end
  end
endmodule
