// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Receive side scaling: which queue gets a frame. It is told the frame's hash beside one of its
// beats, and tells the queue beside the same beat, four cycles later, and beside those that follow.
//
// Homa packets are hashed over what both directions of an RPC share: the exclusive or of the
// addresses, that of the ports, and the RPC's id without its lowest bit. So all packets of an RPC,
// of either direction, come to one queue, and the RPCs of one pair of hosts to many. Other packets
// get the usual hash: addresses, and ports of TCP and UDP; fragments have addresses only. What is
// not IP, or broken, has the hash 0.
//
// The hash's lowest 8 bits choose an entry of the indirection table. With `least` set, the first
// packet of a message goes to the queue with the fewest packets waiting instead, and a table of
// RPCs keeps all that follows there. An entry belongs to its RPC until nothing of it has come for
// two ticks; until then another RPC that falls on it goes by the indirection table, so that
// strangers cannot push an RPC out of its queue. (The ticks are counted modulo 7: an entry of long
// ago may count as fresh for a while, which has the same harmless effect.)
//
// After a reset the tables are cleared in 1,024 cycles: the indirection table, in the first 256 of
// them, to the queues in turn. Until then no table of RPCs is used, and `set` has to wait.
module homa_rss #(
    parameter int WIDTH = 512,
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4,
    // 2^that many RPCs are remembered. 8 at least: with fewer the table stays empty in part, which
    // only a proof does not mind.
    parameter int RPC_BITS = 10,
    parameter int SIDE = 1               // bits that go on beside each beat
) (
    input logic clk,
    input logic rst,

    input logic on,                     // else all frames go to queue 0
    input logic least,                  // choose by load
    input logic tick,                   // a millisecond or so has passed
    input logic set,                    // write set_queue to entry set_at of the indirection table
    input logic [7:0] set_at,
    input logic [QUEUE_BITS-1:0] set_queue,
    input logic taken,                  // the host took a packet of taken_queue
    input logic [QUEUE_BITS-1:0] taken_queue,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_bad,
    input logic [SIDE-1:0] s_side,
    input logic s_meta_valid,               // with one beat of each frame, and the next three:
    input logic s_homa,                     // it has an RPC
    input logic s_first,                    // it is the first of a message: DATA of its first byte
    input logic [31:0] s_hash,              // as homa_rss_hash says

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_bad,
    output logic [SIDE-1:0] m_side,
    output logic m_meta_valid,
    output logic [QUEUE_BITS-1:0] m_queue,  // from m_meta_valid on
    output logic [31:0] m_hash,             // the same
    output logic placed                     // in this cycle an RPC's queue is chosen by load
);
  localparam int BYTES = WIDTH / 8;
  localparam int STAGES = 3;  // before the last: tables, what they say is kept, comparison
  localparam int TAG_BITS = 32 - RPC_BITS;

  wire adv = m_ready || !m_valid;
  assign s_ready = adv;

  // ---- the beat on its way ----

  logic [STAGES-1:0] p_valid, p_last, p_bad, p_meta_valid, p_homa, p_first;
  logic [WIDTH-1:0] p_data[STAGES];
  logic [BYTES-1:0] p_keep[STAGES];
  logic [SIDE-1:0] p_side[STAGES];
  logic [31:0] r_hash, g_hash, j_hash;

  always_ff @(posedge clk) begin
    if (rst) p_valid <= 0;
    else if (adv) p_valid <= {p_valid[STAGES-2:0], s_valid};
    if (adv) begin
      p_last <= {p_last[STAGES-2:0], s_last};
      p_bad <= {p_bad[STAGES-2:0], s_bad};
      p_meta_valid <= {p_meta_valid[STAGES-2:0], s_meta_valid};
      p_homa <= {p_homa[STAGES-2:0], s_homa};
      p_first <= {p_first[STAGES-2:0], s_first};
      r_hash <= s_hash;
      g_hash <= r_hash;
      j_hash <= g_hash;
    end
    // A stage that is empty keeps what it had. Otherwise these would be shift registers, which take
    // a look-up table for each bit.
    if (adv && s_valid) begin
      p_data[0] <= s_data;
      p_keep[0] <= s_keep;
      p_side[0] <= s_side;
    end
    for (int i = 1; i < STAGES; i++)
      if (adv && p_valid[i-1]) begin
        p_data[i] <= p_data[i-1];
        p_keep[i] <= p_keep[i-1];
        p_side[i] <= p_side[i-1];
      end
  end

  // ---- the tables ----

  logic [RPC_BITS-1:0] clear_at;
  logic clearing;
  logic write;                // the entry of an RPC
  logic [STAGES-1:0] p_void;  // of each stage: the beat read the table of RPCs while it was cleared

  logic [QUEUE_BITS-1:0] table_[256];
  logic [QUEUE_BITS-1:0] by_table, g_table;

  typedef struct packed {
    logic [TAG_BITS-1:0] tag;
    logic [2:0] seen;           // in which tick; 0: never
    logic [QUEUE_BITS-1:0] dest;
  } rpc_t;

  rpc_t stored, held;         // held: a beat later, for a memory tells late in its cycle
  logic [2:0] now;    // 1..7: number of the tick
  logic [7:0] fresh;  // of each number: it is this tick or one of the two before it
  wire [2:0] later = now == 7 ? 3'd1 : now + 3'd1;

  always_ff @(posedge clk) begin
    if (set) table_[set_at] <= set_queue;
    else if (clearing && clear_at < 256) table_[8'(clear_at)] <= QUEUE_BITS'(32'(clear_at) % QUEUES);
    if (adv) by_table <= table_[s_hash[7:0]];
    if (adv) begin
      g_table <= by_table;
      held <= stored;
      p_void <= {p_void[STAGES-2:0], clearing};
    end
  end

  always_ff @(posedge clk)
    if (rst) begin
      now <= 1;
      fresh <= 8'b1100_0010;
    end else if (tick) begin
      now <= later;
      // Numbers 1 to 7 go round.
      fresh <= {fresh[6:1], fresh[7], 1'b0};
    end

  // ---- what is looked at, at g_hash, and used a beat later, at j_hash ----

  logic [QUEUE_BITS-1:0] fewest, dest;

  // A memory tells what was written before the cycle in which it is read. The three beats before
  // this one write in that cycle or later. So their places and tags are compared as well, and if a
  // place is the same, nothing matters that the memory said.
  localparam int PARTS = 4;
  localparam int PART = (TAG_BITS + PARTS - 1) / PARTS;
  wire [PARTS*PART-1:0] differing = (PARTS * PART)'(held.tag ^ g_hash[31:RPC_BITS]);
  logic [PARTS-1:0] same_part;
  logic [2:0] at_writer, same_writer;  // the place is that of the beat so many before, and the tag
  logic stored_live;
  logic [QUEUE_BITS-1:0] stored_dest, j_table;
  logic wrote, wrote_before, wrote_first;  // the beat before this one wrote; those before that
  logic [31:0] wrote_hash, wrote_hash_before;
  logic [QUEUE_BITS-1:0] wrote_dest, wrote_dest_before, wrote_dest_first;

  always_ff @(posedge clk) begin
    if (rst) {wrote_first, wrote_before, wrote} <= 0;
    else if (adv) {wrote_first, wrote_before, wrote} <= {wrote_before, wrote, write};
    if (adv) begin
      for (int i = 0; i < PARTS; i++) same_part[i] <= differing[PART*i+:PART] == 0;
      at_writer[0] <= g_hash[RPC_BITS-1:0] == j_hash[RPC_BITS-1:0];
      same_writer[0] <= g_hash[31:RPC_BITS] == j_hash[31:RPC_BITS];
      at_writer[1] <= g_hash[RPC_BITS-1:0] == wrote_hash[RPC_BITS-1:0];
      same_writer[1] <= g_hash[31:RPC_BITS] == wrote_hash[31:RPC_BITS];
      at_writer[2] <= g_hash[RPC_BITS-1:0] == wrote_hash_before[RPC_BITS-1:0];
      same_writer[2] <= g_hash[31:RPC_BITS] == wrote_hash_before[31:RPC_BITS];
      stored_live <= fresh[held.seen];
      stored_dest <= held.dest;
      j_table <= g_table;
      wrote_hash <= j_hash;
      wrote_hash_before <= wrote_hash;
      wrote_dest <= dest;
      wrote_dest_before <= wrote_dest;
      wrote_dest_first <= wrote_dest_before;
    end
  end

  // ---- the choice ----

  wire by_last = wrote && at_writer[0];
  wire by_last_but_one = wrote_before && at_writer[1];
  wire by_first = wrote_first && at_writer[2];
  wire live = by_last || by_last_but_one || by_first || stored_live;
  wire hit = by_last ? same_writer[0]
           : by_last_but_one ? same_writer[1]
           : by_first ? same_writer[2] : live && &same_part;
  wire [QUEUE_BITS-1:0] kept = by_last ? wrote_dest
                             : by_last_but_one ? wrote_dest_before
                             : by_first ? wrote_dest_first : stored_dest;
  wire choose = on && least && p_homa[STAGES-1] && !p_void[STAGES-1];
  wire here = p_valid[STAGES-1] && p_meta_valid[STAGES-1];
  assign write = adv && here && choose && (hit || !live);

  always_comb begin
    dest = j_table;
    if (choose && hit) dest = kept;
    else if (choose && !live && p_first[STAGES-1]) dest = fewest;
    if (!on) dest = 0;
  end
  assign placed = write && !hit && p_first[STAGES-1];

  // The table of RPCs is cleared after a reset; until then all go by the indirection table.
  always_ff @(posedge clk) begin
    if (rst) begin
      clearing <= 1;
      clear_at <= 0;
    end else if (clearing) begin
      clear_at <= clear_at + 1;
      clearing <= clear_at != '1;
    end
  end

  // A place may be written in the cycle in which it is read.
  rpc_t written;
  assign written = clearing ? '0 : {j_hash[31:RPC_BITS], now, dest};
  homa_memory #(.BITS($bits(rpc_t)), .AT_BITS(RPC_BITS)) rpcs (
      .clk, .write(clearing || write), .write_at(clearing ? clear_at : j_hash[RPC_BITS-1:0]),
      .write_data(written), .read(adv), .read_at(s_hash[RPC_BITS-1:0]), .q(stored));

  // Counted a cycle after it was chosen.
  logic given;
  always_ff @(posedge clk) given <= !rst && adv && here;
  homa_least #(.QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS)) load (
      .clk, .rst, .given, .given_queue(m_queue), .taken, .taken_queue, .q_least(fewest));

  always_ff @(posedge clk) begin
    if (rst) m_valid <= 0;
    else if (adv) m_valid <= p_valid[STAGES-1];
    if (adv && p_valid[STAGES-1]) begin
      m_data <= p_data[STAGES-1];
      m_keep <= p_keep[STAGES-1];
      m_last <= p_last[STAGES-1];
      m_bad <= p_bad[STAGES-1];
      m_meta_valid <= p_meta_valid[STAGES-1];
      m_side <= p_side[STAGES-1];
      if (p_meta_valid[STAGES-1]) begin
        m_queue <= dest;
        m_hash <= j_hash;
      end
    end
  end
endmodule
