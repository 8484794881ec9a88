// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The receiver's half of Homa: what has come in, which grants are due out. Up to DEPTH messages wait
// in homa_grant_queue, up to SLOTS are granted to (homa_grant_slots), and homa_grant_window says how
// far. What happens after each event is what the engine's homa_grant.c and homa_grant_queue.c do
// with the settings of homa_params_sigcomm() and a run after each event:
//
//   - A message with scheduled bytes takes a slot if one is free and its peer has none. If its peer
//     has one, or none is free, it takes that of its peer's message, or of the last one, if it is
//     better: if it has fewer bytes to come, or as many and came first. Else it waits.
//   - Bytes of a message in a slot let its window go on. A message that waits changes its place when
//     `step` bytes have come since it last did (`accounted`), or all that it was granted.
//   - A message that is granted to its end, or ends, leaves its slot to the best that waits.
//
// One event is worked on at a time. A message at hand (`who`) is in no slot meanwhile. The memory
// knows of each where it is; a message in a slot is in the memory as it was before.
module homa_grant
  import homa_grant_pkg::*;
#(
    parameter int DEPTH = 1024
) (
    input logic clk,
    input logic rst,
    input grant_settings_t settings,           // may change during a reset only

    input logic s_valid,
    output logic s_ready,
    input logic [1:0] s_event,
    input logic [ID_BITS-1:0] s_id,
    input logic [PEER_BITS-1:0] s_peer,        // announced
    input logic [31:0] s_bytes,                // announced: bytes of the message; else of the packet
    input logic [31:0] s_unscheduled,          // announced: bytes that may come without a grant

    output logic g_valid,
    input logic g_ready,
    output logic [ID_BITS-1:0] g_id,
    output logic [LENGTH_BITS-1:0] g_offset,   // bytes before this one may come
    output logic [2:0] g_level,

    output logic [3:0] granting,               // messages in slots
    output logic twice,                        // announced, and is known: no effect
    output logic unknown,                      // bytes or the end of what is not known: no effect
    output logic improper,                     // announced with no bytes, or with too many: no effect
    output logic excess,                       // more bytes than the message has: those are not counted
    output logic crowded                       // announced while DEPTH wait: no effect
);
  typedef enum logic [3:0] {
    CLEAR, IDLE, LOOK, JUDGE, APPLY, ACCOUNT, PULL, PLACE, MARK, PUSH, START, WAIT, PUT,
    BEST, FETCH, TAKE
  } state_t;
  state_t state;

  // ---- the event at hand ----

  logic [1:0] event_;
  logic [PEER_BITS-1:0] peer;
  logic [31:0] bytes, unscheduled;
  logic [ID_BITS-1:0] at;                      // what the memory reads; counts after a reset
  logic [BIRTH_BITS-1:0] births;
  grantee_t who, other;                        // at hand; goes into the queue
  logic other_blocked, goes_on;                // after `other`, `who` is granted to
  logic slot_hit;                              // `at` is in a slot, which is slot_at
  logic [2:0] slot_at;
  record_t found;

  // ---- memory ----

  record_t memory[1 << ID_BITS];
  logic write;
  logic [ID_BITS-1:0] write_at;
  record_t written;

  always_ff @(posedge clk) begin
    if (write) memory[write_at] <= written;
    found <= memory[at];
  end

  // ---- slots, window, queue ----

  grantee_t slots[SLOTS];
  logic [SLOTS-1:0] used, stays;
  logic [3:0] rank, count;
  logic put, drop;
  logic [2:0] drop_at;

  homa_grant_slots slots_ (.*);
  assign granting = count;

  logic start, done;
  logic [LENGTH_BITS-1:0] granted;
  homa_grant_window window (.active(count + 4'd1), .*);
  assign g_id = who.id;

  logic op_valid, op_ready, op_insert, op_blocked;
  /* verilator lint_off UNUSEDSIGNAL */
  grantee_t op;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [LENGTH_BITS-1:0] op_key;
  logic mark_valid, mark_blocked;
  logic [PEER_BITS-1:0] mark_peer;
  logic full, best_known, best_valid;
  logic [ID_BITS-1:0] best_id;
  homa_grant_queue #(
      .DEPTH(DEPTH), .LENGTH_BITS(LENGTH_BITS), .BIRTH_BITS(BIRTH_BITS), .ID_BITS(ID_BITS),
      .PEER_BITS(PEER_BITS)
  ) queue (
      .op_birth(op.birth), .op_id(op.id), .op_peer(op.peer), .*
  );

  // ---- what it comes to ----

  wire [LENGTH_BITS-1:0] received = who.length - who.left;
  wire [LENGTH_BITS-1:0] unaccounted = received - who.accounted;
  wire all_came = received >= who.granted;
  wire [LENGTH_BITS-1:0] below = all_came ? who.granted : received;
  // Bytes that came unasked may have been accounted before they come.
  wire ahead = who.accounted > received;
  wire in_window = found.at == AT_SLOT && who.granted - received < settings.rtt;
  wire worth = all_came || (!ahead && unaccounted >= {6'd0, settings.step}) || in_window;
  wire ends = event_ == EVENT_END || who.left == 0;

  logic peer_hit;
  logic [2:0] peer_at;
  always_comb begin
    peer_hit = 0;
    peer_at = 0;
    for (int i = 0; i < SLOTS; i++)
      if (used[i] && slots[i].peer == who.peer) begin
        peer_hit = 1;
        peer_at = 3'(i);
      end
  end
  wire [2:0] last_at = 3'(count - 4'd1);
  wire room = count < settings.overcommit && !count[3];
  wire [2:0] victim_at = peer_hit ? peer_at : last_at;
  wire better = count != 0 && !stays[victim_at];

  wire known = found.at != AT_NOWHERE;
  wire announced = event_ == EVENT_ANNOUNCE;
  wire no_length = bytes == 0 || bytes[31:LENGTH_BITS] != 0;
  wire needs_grants = unscheduled < bytes;
  wire judged = state == JUDGE;
  assign twice = judged && announced && known;
  assign unknown = judged && !announced && !known;
  assign improper = judged && announced && !known && no_length;
  assign crowded = judged && announced && !known && !no_length && needs_grants && full;
  wire refused = twice || unknown || improper || crowded;
  wire too_many = bytes > {12'd0, who.left};
  assign excess = state == APPLY && event_ == EVENT_DATA && too_many;

  // Until a message has come, so much of it may be outstanding at most for the accounts.
  wire [LENGTH_BITS-1:0] at_first = needs_grants ? unscheduled[LENGTH_BITS-1:0] :
                                                   bytes[LENGTH_BITS-1:0];
  wire [LENGTH_BITS-1:0] claimed = at_first > settings.rtt ? at_first - settings.rtt : 0;

  function automatic record_t record(input logic [1:0] where, input grantee_t g);
    record = {where, g.left, g};
  endfunction

  always_comb begin
    write = 0;
    write_at = who.id;
    written = record(AT_REST, who);
    drop = 0;
    drop_at = slot_at;
    put = 0;
    start = 0;
    mark_valid = 0;
    mark_peer = who.peer;
    mark_blocked = 0;
    op_valid = 0;
    op_insert = 0;
    op = found.who;
    op_key = found.key;
    op_blocked = other_blocked;
    case (state)
      CLEAR: begin
        write = 1;
        write_at = at;
        written = '0;
      end
      JUDGE: drop = slot_hit && event_ != EVENT_ANNOUNCE;
      ACCOUNT: begin
        write = announced || found.at != AT_QUEUE || (!ends && !worth);
        if (ends) written = '0;
        // What it has in the queue stays as it is.
        else if (!announced && found.at == AT_QUEUE) written = {AT_QUEUE, found.key, who};
        mark_valid = ends && found.at == AT_SLOT;
      end
      PULL: begin
        op_valid = 1;
        write = op_ready && ends;
        written = '0;
      end
      PLACE: begin
        drop = better && (peer_hit || !room);
        drop_at = victim_at;
        mark_valid = !peer_hit && !room && better;
        mark_peer = slots[last_at].peer;
      end
      MARK: begin
        mark_valid = 1;
        mark_blocked = 1;
      end
      PUSH: begin
        op_valid = 1;
        op_insert = 1;
        op = other;
        op_key = other.left;
        write = op_ready;
        write_at = other.id;
        written = record(AT_QUEUE, other);
      end
      START: begin
        start = 1;
        write = 1;
        written = record(AT_SLOT, who);
      end
      PUT: begin
        put = who.granted != who.length;
        write = !put;
        mark_valid = !put;
      end
      TAKE: op_valid = 1;
      default: ;
    endcase
  end

  assign s_ready = state == IDLE;

  always_ff @(posedge clk) begin
    case (state)
      CLEAR: begin
        at <= at + 1;
        births <= 0;
        if (at == '1) state <= IDLE;
      end
      IDLE: begin
        event_ <= s_event;
        at <= s_id;
        peer <= s_peer;
        bytes <= s_bytes;
        unscheduled <= s_unscheduled;
        if (s_valid) state <= LOOK;
      end
      LOOK: begin
        slot_hit <= 0;
        for (int i = 0; i < SLOTS; i++)
          if (used[i] && slots[i].id == at) begin
            slot_hit <= 1;
            slot_at <= 3'(i);
          end
        state <= JUDGE;
      end
      JUDGE: begin
        if (announced)
          who <= {at, peer, births, bytes[LENGTH_BITS-1:0], bytes[LENGTH_BITS-1:0], at_first, claimed};
        else who <= slot_hit ? slots[slot_at] : found.who;
        state <= refused ? IDLE : APPLY;
      end
      APPLY: begin
        if (event_ == EVENT_DATA) who.left <= too_many ? 0 : who.left - bytes[LENGTH_BITS-1:0];
        state <= ACCOUNT;
      end
      ACCOUNT: begin
        if (!announced && worth && below > who.accounted) who.accounted <= below;
        if (announced) begin
          state <= needs_grants ? PLACE : IDLE;
          if (needs_grants) births <= births + 1;
        end else
          case (found.at)
            AT_QUEUE: state <= ends || worth ? PULL : IDLE;
            AT_SLOT: state <= ends ? BEST : START;
            default: state <= IDLE;
          endcase
      end
      PULL: if (op_ready) state <= ends ? IDLE : PLACE;
      PLACE: begin
        other <= better ? slots[victim_at] : who;
        other_blocked <= peer_hit;
        goes_on <= better;
        if (peer_hit) state <= PUSH;
        else if (room || better) state <= MARK;
        else state <= PUSH;
        if (!peer_hit && room) goes_on <= 0;
      end
      // With room nobody has to go.
      MARK: state <= goes_on ? PUSH : START;
      PUSH: if (op_ready) state <= goes_on ? START : IDLE;
      START: state <= WAIT;
      WAIT: begin
        if (done) begin
          who.granted <= granted;
          state <= PUT;
        end
      end
      PUT: state <= put ? IDLE : BEST;
      BEST: begin
        at <= best_id;
        if (!room || (best_known && !best_valid)) state <= IDLE;
        else if (best_known) state <= FETCH;
      end
      FETCH: state <= TAKE;
      default: begin  // TAKE
        who <= found.who;
        goes_on <= 0;
        if (op_ready) state <= MARK;
      end
    endcase
    if (rst) begin
      state <= CLEAR;
      at <= 0;
    end
  end
endmodule
