// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Large segmentation: a super-frame, that is one header and up to 64 KB of a message, becomes
// packets with `seg` bytes of the message each. It stands behind the parser, whose meta says where
// the headers are, and before a homa_frame_fifo, which takes back what is cut short.
//
// The first 192 bytes of a frame are kept. Then each segment is written beat by beat: bytes of the
// header come from there, with the fields that differ replaced; the others from the frame itself.
// Byte x of segment n is byte x + n * seg of the frame, so a beat is cut out of two neighbouring
// beats of the frame, of which a window holds two at a time. Here is decided which bytes these are;
// homa_segment_build puts them together.
//
// What is decided for a beat rests on registers: what follows from a packet's place and length is
// computed while the packet before it is written, in three steps (plan_*), and what follows from
// the number of a beat while the beat before it is. A packet begins after the second step; its
// header's length and checksum, which follow from the third one, are ready when its first beat is
// put together. Of IPv4's header the parser has summed up the fixed part. Options are added here.
//
// A frame that is not to be segmented passes as it is. One that cannot be is refused: seg is 0, a
// packet would be longer than LONGEST, Homa's header begins after byte 112, it is no DATA that
// decodes, it is inside TCP, whose checksum would be wrong, or inside UDP over IPv6, which must
// have one. So is one longer than LONGEST that is not to be segmented. A frame that ends before its
// headers say is cut: the segments before that are sent, what is left is not. In each case there is
// one completion, with what happened.
module homa_segment
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int TAG_BITS = 8,
    parameter int LONGEST = 9216  // bytes of a packet; the FIFO behind must hold more
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    output logic s_ready,
    input logic [WIDTH-1:0] s_data,
    input logic [WIDTH/8-1:0] s_keep,
    input logic s_last,
    input logic s_bad,
    input logic s_meta_valid,
    /* verilator lint_off UNUSEDSIGNAL */
    input homa_meta_t s_meta,  // not all of it matters here
    /* verilator lint_on UNUSEDSIGNAL */
    input logic s_split,               // segment it; of the frame, steady
    input logic [15:0] s_seg,          // bytes of the message in a packet; the same
    input logic [TAG_BITS-1:0] s_tag,  // comes back with the completion; the same

    output logic m_valid,              // for homa_segment_build, which says what each is
    input logic m_ready,
    output logic m_last,
    output logic m_abort,
    output logic [WIDTH/8-1:0] m_keep,
    output logic [WIDTH-1:0] m_raw,
    output logic [2*WIDTH-1:0] m_pair,
    output logic [$clog2(WIDTH/8)-1:0] m_turn,
    output logic m_whole,
    output logic [$clog2(WIDTH/8)-1:0] m_head,
    output logic m_replace,
    output logic [7:0] m_ip,
    output logic [7:0] m_homa,

    output logic packet_v4,            // of the packet, with its beats and a cycle longer
    output logic packet_udp,
    // The same, in the cycle after each of its beats.
    output logic [15:0] packet_length,      // as IP's header says it
    output logic [15:0] packet_id,
    output logic [15:0] packet_checksum,
    output logic [15:0] packet_udp_length,
    output logic [31:0] packet_offset,      // in the message

    output logic c_valid,              // a frame is done with
    input logic c_ready,
    output logic [TAG_BITS-1:0] c_tag,
    output logic [1:0] c_status,       // DONE_*
    output logic [15:0] c_packets      // that were made of it
);
  localparam int BYTES = WIDTH / 8;
  localparam int LOG = $clog2(BYTES);
  localparam int KEPT_BYTES = 192;
  localparam int KEPT = KEPT_BYTES / BYTES;
  localparam int KEPT_BITS = $clog2(KEPT);
  localparam int INDEX_BITS = 18 - LOG;
  localparam int PLAIN_AT = 18;        // IPv4's id in a frame, without and with a VLAN tag; both
  localparam int TAGGED_AT = 22;       // are in one beat

  localparam logic [3:0] HEAD = 0;   // the beats up to meta come
  localparam logic [3:0] SUM = 1;    // IPv4's options are added up
  localparam logic [3:0] PLAN = 2;   // what is the next segment?
  localparam logic [3:0] WRITE = 3;  // its beats leave
  localparam logic [3:0] PASS = 4;   // a frame that is not segmented: the kept beats
  localparam logic [3:0] REST = 5;   // the same: all others
  localparam logic [3:0] DRAIN = 6;  // take what is left of the frame
  localparam logic [3:0] DONE = 7;   // say so
  localparam logic [3:0] CHECK = 8;  // can it be segmented?

  logic [3:0] state;
  logic [WIDTH-1:0] kept[1 << KEPT_BITS];
  logic [BYTES-1:0] kept_keep;       // of the frame's last beat, if that is a kept one
  logic [INDEX_BITS-1:0] got;        // kept beats
  logic ended, cut;                  // the last beat has come; it was bad
  logic [1:0] status;
  logic [15:0] packets;

  // Of the frame, once meta has come.
  logic v4, udp;
  logic fine;                        // it is DATA whose headers can be multiplied
  logic [7:0] l3_at, homa_at;        // halfwords
  logic [8:0] hdr;                   // bytes before the message's
  logic [15:0] seg;
  logic [20:0] sum;                  // of IPv4's header, without length, id and checksum
  logic options;                     // IPv4's header has options
  logic [7:0] sum_at;                // the halfword of them that is read: its place in the frame
  logic [7:0] sum_last;              // the last one of IP's header
  logic sum_adds;                    // `half` is to be added
  logic [15:0] half;
  logic [15:0] id_plain, id_tagged;  // IPv4's id, without and with a VLAN tag

  // Of the segments that are not planned yet.
  logic [16:0] left;                 // bytes of the message
  logic [31:0] start;                // where they begin in the message; the same for all segments
  logic [15:0] id;
  logic [17:0] base;                 // n * seg, for the next segment n

  // The next segment. `settle` says how many steps are not done: 2 after the first, 0 after all.
  // In the cycle after `commit` all are.
  logic [1:0] settle;
  logic [16:0] plan_part;            // 1: its bytes of the message
  logic plan_all;                    // 1: they are all
  logic [8:0] plan_less;             // 1: hdr - 1
  logic [15:0] plan_before;          // 1: bytes of IP and UDP headers and Homa's
  logic [17:0] plan_end;             // 2: number of its last byte
  logic [15:0] plan_length4;         // 2: IP's header included
  logic [15:0] plan_udp;             // 2
  logic [20:0] plan_sum;             // 3
  logic [15:0] plan_length;          // 3: as it is said in the header

  // The segment that is written.
  logic last_packet;
  logic begins;                      // this is the first cycle in which a beat can be written
  logic [INDEX_BITS-1:0] x;          // number of its beat
  logic [INDEX_BITS-1:0] end_row;    // of its last one
  logic [LOG-1:0] end_lane;          // the last byte of that
  logic [LOG-1:0] turn;              // where byte 0 of the segment would be in a beat of the frame
  logic turns;                       // that is not 0
  logic body_above;                  // its first byte of the message is in a row further than that
  logic end_above, next_above;       // the same of its last byte, and of the byte behind that
  logic head_only, mixed, ends;      // the beat: header only, header and message, the last one
  logic aligned;                     // its row is that of the window
  logic full;                        // of a frame that passes: x beats are all that there may be
  logic two;                         // it needs both beats of the window
  logic slides;                      // the beat after it does not need the first of them

  // Two beats of the frame: the one with the first byte that the beat needs, and that after it.
  logic [INDEX_BITS-1:0] fetch;      // the next beat to be put into the window
  logic from_kept;                   // it is one of those that were kept
  logic [WIDTH-1:0] cur, nxt;
  logic have_cur, have_nxt;

  wire homa = s_meta.class_ == CLASS_HOMA || s_meta.class_ == CLASS_HOMA_UDP;
  wire is_udp = s_meta.class_ == CLASS_HOMA_UDP;
  wire splits = fine && seg != 0 && plan_end < 18'(LONGEST);
  // A packet begins in the next cycle. If the frame turns out to be none to segment, that does not
  // matter.
  wire commit = settle <= 1 && (state == PLAN || (state == CHECK && !options));

  // The kept beat that is looked at: for the sum, to be passed, or of the header.
  wire [KEPT_BITS-1:0] look_at = state == SUM ? KEPT_BITS'(sum_at >> (LOG - 1)) : x[KEPT_BITS-1:0];
  wire [WIDTH-1:0] look = kept[look_at];

  // ---- IPv4's options, a halfword per cycle ----

  function automatic logic [15:0] fold(input logic [20:0] value);
    logic [16:0] once;
    once = {1'b0, value[15:0]} + {12'd0, value[20:16]};
    fold = once[15:0] + {15'd0, once[16]};
  endfunction

  wire [LOG-2:0] lane = sum_at[LOG-2:0];
  wire sum_ends = sum_at == sum_last;

  // ---- the beat to be written ----

  // Byte 0 of a segment would be in lane `turn` of a row p of the frame. What the first beat with
  // bytes of the message needs first is in row p or p + 1; that is where the window is then. From
  // there on both go on by a row in each beat.
  wire there = head_only || (have_cur && (!two || have_nxt));
  wire offers = state == WRITE && there && !cut;
  wire give = offers && m_ready;
  wire slide = give && slides;
  wire [INDEX_BITS-1:0] x_next = x + 1'b1;
  wire [INDEX_BITS-1:0] hdr_row = INDEX_BITS'(hdr >> LOG);
  wire [LOG-1:0] hdr_lane = hdr[LOG-1:0];
  wire next_head_only = head_only && x_next != hdr_row;
  wire next_mixed = x_next == hdr_row && hdr_lane != 0;
  wire next_ends = x_next == end_row;
  wire next_aligned = !(next_mixed && body_above);

  // ---- the window ----

  // The last is `slide`: with both beats there, no beat has to wait for one.
  wire room = !have_cur || !have_nxt || (m_ready && !cut && slides);
  wire want = state == WRITE && room;
  wire fetched = want && (from_kept || (s_valid && !ended));
  wire [KEPT_BITS:0] kept_next = fetch[KEPT_BITS:0] + 1'b1;  // of kept beats these bits are all
  wire [WIDTH-1:0] fetch_data = from_kept ? kept[fetch[KEPT_BITS-1:0]] : s_data;

  wire take_head = state == HEAD && s_valid;
  wire last_kept = got == INDEX_BITS'(KEPT - 1);
  wire pass_kept = state == PASS;
  wire too_long = state == REST && full;
  // While kept beats are passed there are no more beats than these bits count.
  wire pass_last = x_next[KEPT_BITS:0] == got[KEPT_BITS:0];
  wire pass_end = ended && pass_last;

  assign s_ready = state == HEAD || (want && !from_kept && !ended) || state == DRAIN ||
                   (state == REST && m_ready && !too_long);
  assign m_valid = offers || pass_kept || (state == REST && s_valid && !too_long);
  assign m_abort = (state == WRITE && cut) || too_long;
  assign c_valid = state == DONE;
  assign c_status = status;
  assign c_packets = packets;

  assign packet_v4 = v4;
  assign packet_udp = udp;
  assign m_raw = state == REST ? s_data : look;
  assign m_pair = {aligned ? nxt : cur, cur};
  assign m_turn = turn;
  assign m_whole = head_only || state != WRITE;
  assign m_head = mixed ? hdr_lane : '0;
  assign m_replace = state == WRITE;
  always_comb begin
    for (int i = 0; i < BYTES; i++) m_keep[i] = !ends || LOG'(i) <= end_lane;
    m_last = ends;
    if (pass_kept) begin
      m_keep = pass_end ? kept_keep : '1;
      m_last = pass_end;
    end else if (state == REST) begin
      m_keep = s_keep;
      m_last = s_last;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= HEAD;
      got <= 0;
      ended <= 0;
      cut <= 0;
    end else begin
      if (s_valid && s_ready && s_last) begin
        ended <= 1;
        cut <= s_bad && (s_meta_valid ? s_split : state == WRITE);
      end
      case (state)
        HEAD:
          if (take_head) begin
            got <= got + 1;
            if (s_meta_valid) state <= s_split ? CHECK : PASS;
            else if (last_kept) state <= s_split ? DRAIN : PASS;
          end
        CHECK:
          if (settle == 1) begin
            if (splits && !cut) state <= options ? SUM : WRITE;
            else state <= ended ? DONE : DRAIN;
          end
        SUM: if (sum_ends) state <= PLAN;
        PLAN: if (commit) state <= WRITE;
        WRITE:
          if (cut) state <= DONE;
          else if (give && ends) begin
            // The window may just be taking the last beat, of what follows the IP packet.
            if (last_packet) state <= ended || (s_valid && s_ready && s_last) ? DONE : DRAIN;
            else state <= PLAN;
          end
        PASS:
          if (m_ready) begin
            if (pass_end) state <= DONE;
            else if (pass_last) state <= REST;
          end
        REST:
          if (too_long) state <= DRAIN;
          else if (s_valid && m_ready && s_last) state <= DONE;
        DRAIN: if (s_valid && s_last) state <= DONE;
        default:
          if (c_ready) begin
            state <= HEAD;
            got <= 0;
            ended <= 0;
            cut <= 0;
          end
      endcase
    end
  end

  // ---- the next segment ----

  always_ff @(posedge clk) begin
    plan_part <= left < {1'b0, seg} ? left : {1'b0, seg};
    plan_all <= left <= {1'b0, seg};
    plan_less <= hdr - 9'd1;
    plan_before <= 16'(hdr) - {7'd0, l3_at, 1'b0};
    plan_end <= {9'd0, plan_less} + {1'b0, plan_part};
    plan_length4 <= plan_before + plan_part[15:0];
    plan_udp <= plan_part[15:0] + DATA_HDR[15:0] + 16'd8;
    plan_sum <= sum + {5'd0, plan_length4} + {5'd0, id};
    plan_length <= v4 ? plan_length4 : plan_length4 - 16'd40;
    sum_last <= (udp ? homa_at - 8'd4 : homa_at) - 8'd1;  // UDP's header or Homa's follows
    options <= v4 && sum_last >= sum_at;
    sum_adds <= state == SUM;
    half <= {look[16*32'(lane)+:8], look[16*32'(lane)+8+:8]};
    begins <= commit;
    if (begins) begin
      packet_length <= plan_length;
      packet_checksum <= ~fold(plan_sum);
    end

    if (state == HEAD || commit) settle <= 3;
    else if (state == SUM) settle <= 2;  // the last halfword is added a cycle later
    else if (settle != 0) settle <= settle - 2'd1;
  end

  // A place without a beat takes what there is in each cycle, for whether it is one is known late.
  always_ff @(posedge clk) begin
    if (slide || !have_cur) cur <= have_nxt ? nxt : fetch_data;
    if (slide || !have_nxt) nxt <= fetch_data;
  end

  // ---- a segment begins, and its beats ----

  wire [LOG:0] body_lane = {1'b0, base[LOG-1:0]} + {1'b0, hdr_lane};
  wire [LOG+1:0] last_lane = {2'd0, base[LOG-1:0]} + {2'd0, plan_end[LOG-1:0]};
  wire [LOG+1:0] next_lane = last_lane + 1'b1;

  always_ff @(posedge clk) begin
    if (commit) begin
      left <= left - plan_part;
      id <= id + 1;
      base <= base + {2'd0, seg};
      last_packet <= plan_all;
      packet_id <= id;
      packet_udp_length <= plan_udp;
      packet_offset <= start + {14'd0, base};
      end_row <= INDEX_BITS'(plan_end >> LOG);
      end_lane <= plan_end[LOG-1:0];
      turn <= base[LOG-1:0];
      turns <= base[LOG-1:0] != 0;
      body_above <= body_lane[LOG];
      end_above <= last_lane[LOG];
      next_above <= next_lane[LOG];
      x <= 0;
      head_only <= 1;                  // no header is shorter than a beat
      mixed <= 0;
      ends <= 0;
      aligned <= 1;
      two <= 0;
      slides <= 0;
      m_ip <= -l3_at;
      m_homa <= -homa_at;
    end
    case (state)
      HEAD: begin
        if (take_head) begin
          kept[got[KEPT_BITS-1:0]] <= s_data;
          kept_keep <= s_keep;
          c_tag <= s_tag;
          seg <= s_seg;
        end
        x <= 0;
        full <= 0;
        packets <= 0;
        status <= take_head && s_split && !s_meta_valid && last_kept ? DONE_REFUSED : DONE_SENT;
        v4 <= s_meta.l3.v4;
        udp <= is_udp;
        fine <= homa && s_meta.error == WIRE_OK && !(is_udp && s_meta.l3.v6) &&
                s_meta.hdr[8*HDR_BYTES-8-8*COMMON_TYPE_AT+:8] == TYPE_DATA &&
                s_meta.at <= 8'(KEPT_BYTES - HDR_BYTES);
        l3_at <= s_meta.l3.vlan ? 8'd9 : 8'd7;
        sum_at <= s_meta.l3.vlan ? 8'd19 : 8'd17;
        if (take_head && got == INDEX_BITS'(PLAIN_AT / BYTES)) begin
          id_plain <= {s_data[8*(PLAIN_AT%BYTES)+:8], s_data[8*(PLAIN_AT%BYTES)+8+:8]};
          id_tagged <= {s_data[8*(TAGGED_AT%BYTES)+:8], s_data[8*(TAGGED_AT%BYTES)+8+:8]};
        end
        homa_at <= {1'b0, s_meta.at[7:1]};
        hdr <= {1'b0, s_meta.at} + DATA_HDR[8:0];
        left <= s_meta.bytes - DATA_HDR[16:0];
        start <= s_meta.offset;
        base <= 0;
        sum <= {1'b0, s_meta.l3.sum_kept};
        fetch <= INDEX_BITS'(32'(s_meta.at) + DATA_HDR >> LOG);
        have_cur <= 0;
        have_nxt <= 0;
      end
      CHECK: begin
        from_kept <= fetch < got;
        if (settle == 3) id <= l3_at == 7 ? id_plain : id_tagged;
        if (settle == 1) begin
          if (cut) status <= DONE_CUT;
          else if (!splits) status <= DONE_REFUSED;
        end
      end
      SUM: sum_at <= sum_at + 1;
      WRITE: begin
        if (give) begin
          x <= x_next;
          head_only <= next_head_only;
          mixed <= next_mixed;
          ends <= next_ends;
          aligned <= next_aligned;
          two <= next_aligned && (next_ends ? end_above : turns);
          slides <= !next_head_only && next_aligned && (!next_ends || next_above);
          m_ip <= m_ip + 8'(BYTES / 2);
          m_homa <= m_homa + 8'(BYTES / 2);
          if (ends) packets <= packets + 1;
        end
        if (cut) status <= DONE_CUT;
        if (slide) begin
          have_cur <= have_nxt || fetched;
          have_nxt <= have_nxt && fetched;
        end else if (fetched) begin
          have_cur <= 1;
          have_nxt <= have_cur;
        end
        if (fetched) begin
          fetch <= fetch + 1;
          from_kept <= from_kept && kept_next != got[KEPT_BITS:0];
        end
      end
      PASS:
        if (m_ready) begin
          x <= x_next;
          full <= 32'(x_next) == LONGEST / BYTES;
          packets <= 16'(pass_end);
        end
      REST:
        if (too_long) status <= DONE_REFUSED;
        else if (s_valid && m_ready) begin
          x <= x_next;
          full <= 32'(x_next) >= LONGEST / BYTES;
          packets <= 16'(s_last);
        end
      default: ;
    endcase
    if (sum_adds) sum <= sum + {5'd0, half};
  end
endmodule
