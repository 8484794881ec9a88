// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// Large segmentation: a super-frame, that is one header and up to 64 KB of a message, becomes
// packets with `seg` bytes of the message each. It stands behind the parser, whose meta says where
// the headers are, and before a homa_frame_fifo, which takes back what is cut short.
//
// The first 192 bytes of a frame are kept. Then each segment is written beat by beat: bytes of the
// header come from there, with the fields that differ replaced; the others from the frame itself.
// Byte x of segment n is byte x + n * seg of the frame, so a beat is cut out of two neighbouring
// beats of the frame, of which a window holds two at a time.
//
// A frame that is not to be segmented passes as it is. One that cannot be is refused: seg is 0, a
// packet would be longer than LONGEST, Homa's header begins after byte 112, it is no DATA that decodes, it is inside TCP, whose checksum
// would be wrong, or inside UDP over IPv6, which must have one. So is one longer than LONGEST that is not to be
// segmented. A frame that ends before its
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

    output logic m_valid,
    input logic m_ready,
    output logic [WIDTH-1:0] m_data,
    output logic [WIDTH/8-1:0] m_keep,
    output logic m_last,
    output logic m_abort,

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

  localparam logic [2:0] HEAD = 0;   // the beats up to meta come
  localparam logic [2:0] SUM = 1;    // IPv4's header is added up
  localparam logic [2:0] PLAN = 2;   // what is the next segment?
  localparam logic [2:0] WRITE = 3;  // its beats leave
  localparam logic [2:0] PASS = 4;   // a frame that is not segmented: the kept beats
  localparam logic [2:0] REST = 5;   // the same: all others
  localparam logic [2:0] DRAIN = 6;  // take what is left of the frame
  localparam logic [2:0] DONE = 7;   // say so

  logic [2:0] state;
  logic [WIDTH-1:0] kept[1 << KEPT_BITS];
  logic [BYTES-1:0] kept_keep;       // of the frame's last beat, if that is a kept one
  logic [INDEX_BITS-1:0] got;        // kept beats
  logic ended, cut;                  // the last beat has come; it was bad
  logic [1:0] status;
  logic [15:0] packets;

  // Of the frame, once meta has come.
  logic v4, udp;
  logic [7:0] l3_at, homa_at;        // halfwords
  logic [8:0] hdr;                   // bytes before the message's
  logic [16:0] left;                 // bytes of the message that are not in a segment yet
  logic [15:0] seg;
  logic [31:0] offset;               // of the segment in the message
  logic [15:0] id;
  logic [20:0] sum;                  // of IPv4's header, without length, id and checksum
  logic [7:0] sum_at;
  logic [17:0] base;                 // n * seg

  // Of the segment.
  logic [17:0] total, x;             // bytes of the packet; the first one of this beat
  logic [15:0] ip_length, udp_length, checksum;

  // Two beats of the frame: number `win`, and the one after it.
  logic [INDEX_BITS-1:0] win, fetch; // fetch: the next beat to be put into the window
  logic [WIDTH-1:0] cur, nxt;
  logic have_cur, have_nxt;

  wire homa = s_meta.class_ == CLASS_HOMA || s_meta.class_ == CLASS_HOMA_UDP;
  wire is_udp = s_meta.class_ == CLASS_HOMA_UDP;
  wire [16:0] message = s_meta.bytes - DATA_HDR[16:0];
  wire [16:0] largest = message < {1'b0, s_seg} ? message : {1'b0, s_seg};
  wire splits = homa && s_meta.error == WIRE_OK && !(is_udp && s_meta.l3.v6) && s_seg != 0 &&
                s_meta.hdr[8*HDR_BYTES-8-8*COMMON_TYPE_AT+:8] == TYPE_DATA &&
                {10'd0, s_meta.at} + DATA_HDR[17:0] + {1'b0, largest} <= 18'(LONGEST) &&
                s_meta.at <= 8'(KEPT_BYTES - HDR_BYTES);

  // The kept beat that is looked at: for the sum, to be passed, or of the header.
  logic [KEPT_BITS-1:0] look_at;
  always_comb begin
    look_at = KEPT_BITS'(x >> LOG);
    if (state == SUM) look_at = KEPT_BITS'(sum_at >> (LOG - 1));
    if (state == PASS) look_at = x[KEPT_BITS-1:0];
  end
  wire [WIDTH-1:0] look = kept[look_at];

  // ---- IPv4's header, a halfword per cycle ----

  function automatic logic [15:0] fold(input logic [20:0] value);
    logic [16:0] once;
    once = {1'b0, value[15:0]} + {12'd0, value[20:16]};
    fold = once[15:0] + {15'd0, once[16]};
  endfunction

  wire [LOG-2:0] lane = sum_at[LOG-2:0];
  wire [15:0] half = {look[16*32'(lane)+:8], look[16*32'(lane)+8+:8]};
  wire [7:0] sum_from = sum_at - l3_at;
  wire sum_skip = sum_from == 1 || sum_from == 2 || sum_from == 5;
  // UDP's header or Homa's follows.
  wire sum_ends = sum_at + 8'd1 == (udp ? homa_at - 8'd4 : homa_at);

  // ---- the beat to be written ----

  wire head_only = x + 18'(BYTES) <= {9'd0, hdr};
  wire [17:0] pos = base + x;                  // place in the frame of the beat's first byte
  wire [17:0] body = base + {9'd0, hdr};       // and of the segment's first byte of the message
  wire ends = x + 18'(BYTES) >= total;
  wire [INDEX_BITS-1:0] first_beat = INDEX_BITS'((pos > body ? pos : body) >> LOG);
  wire [INDEX_BITS-1:0] last_beat =
      INDEX_BITS'((base + (ends ? total : x + 18'(BYTES)) - 18'd1) >> LOG);
  wire there = head_only || (have_cur && win == first_beat && (last_beat == win || have_nxt));

  // What the beat after this one needs first.
  wire [17:0] next_pos = ends ? base + total : pos + 18'(BYTES);
  wire [INDEX_BITS-1:0] next_beat = INDEX_BITS'((next_pos > body ? next_pos : body) >> LOG);
  wire behind = have_cur && win != first_beat;  // the window is one beat behind
  wire slide = state == WRITE && ((m_valid && m_ready && !head_only &&
                                   next_beat != win) || (!head_only && behind));

  // Bytes of the frame from pos on; if pos is a beat before the window, those are the header's.
  wire [WIDTH-1:0] high = pos[17:LOG] == win ? nxt : cur;
  wire [WIDTH-1:0] bytes = WIDTH'({high, cur} >> {pos[LOG-1:0], 3'd0});

  logic [WIDTH-1:0] head_out;
  homa_segment_head #(.WIDTH(WIDTH)) head (
      .in_data(look), .in_at(x[8:1]), .l3_at, .homa_at, .v4, .udp, .ip_length, .ip_id(id),
      .ip_checksum(checksum), .udp_length, .offset, .out_data(head_out));

  logic [WIDTH-1:0] segment_data;
  logic [BYTES-1:0] segment_keep;
  always_comb
    for (int i = 0; i < BYTES; i++) begin
      segment_data[8*i+:8] = x + 18'(i) < {9'd0, hdr} ? head_out[8*i+:8] : bytes[8*i+:8];
      segment_keep[i] = x + 18'(i) < total;
    end

  // ---- the window ----

  wire from_kept = fetch < got;
  wire room = !have_cur || !have_nxt || slide;
  wire want = state == WRITE && room;
  wire fetched = want && (from_kept || (s_valid && !ended));
  wire [WIDTH-1:0] fetch_data = from_kept ? kept[fetch[KEPT_BITS-1:0]] : s_data;

  wire take_head = state == HEAD && s_valid;
  wire last_kept = got == INDEX_BITS'(KEPT - 1);
  wire pass_kept = state == PASS;
  wire too_long = state == REST && 32'(x) >= LONGEST / BYTES;  // x counts beats here
  wire pass_end = ended && x[INDEX_BITS-1:0] + 1 == got;

  assign s_ready = state == HEAD || (want && !from_kept && !ended) || state == DRAIN ||
                   (state == REST && m_ready && !too_long);
  assign m_valid = (state == WRITE && there && !cut) || pass_kept || (state == REST && s_valid && !too_long);
  assign m_abort = (state == WRITE && cut) || too_long;
  assign c_valid = state == DONE;
  assign c_status = status;
  assign c_packets = packets;

  always_comb begin
    m_data = segment_data;
    m_keep = segment_keep;
    m_last = ends;
    if (pass_kept) begin
      m_data = look;
      m_keep = pass_end ? kept_keep : '1;
      m_last = pass_end;
    end else if (state == REST) begin
      m_data = s_data;
      m_keep = s_keep;
      m_last = s_last;
    end
  end

  wire [16:0] part = left < {1'b0, seg} ? left : {1'b0, seg};
  wire [15:0] length4 = 16'(hdr) - {7'd0, l3_at, 1'b0} + part[15:0];
  wire [15:0] length = v4 ? length4 : length4 - 16'd40;
  wire [15:0] checked = ~fold(sum + {5'd0, length4} + {5'd0, id});

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
            if (s_meta_valid && s_split) begin
              if (splits && !(s_last && s_bad)) state <= s_meta.l3.v4 ? SUM : PLAN;
              else state <= s_last ? DONE : DRAIN;
            end else if (s_meta_valid || last_kept) begin
              if (!s_split) state <= PASS;
              else state <= s_last ? DONE : DRAIN;
            end
          end
        SUM: if (sum_ends) state <= PLAN;
        PLAN: state <= WRITE;
        WRITE:
          if (cut) state <= DONE;
          else if (m_valid && m_ready && ends) begin
            // The window may just be taking the last beat, of what follows the IP packet.
            if (left == 0) state <= ended || (s_valid && s_ready && s_last) ? DONE : DRAIN;
            else state <= PLAN;
          end
        PASS:
          if (m_ready) begin
            if (pass_end) state <= DONE;
            else if (x[INDEX_BITS-1:0] + 1 == got) state <= REST;
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

  always_ff @(posedge clk) begin
    case (state)
      HEAD: begin
        if (take_head) begin
          kept[got[KEPT_BITS-1:0]] <= s_data;
          kept_keep <= s_keep;
          c_tag <= s_tag;
          seg <= s_seg;
        end
        x <= 0;
        packets <= 0;
        status <= DONE_SENT;
        if (take_head && s_split && (s_meta_valid || last_kept)) begin
          if (!s_meta_valid || !splits) status <= DONE_REFUSED;
          if (s_meta_valid && s_last && s_bad) status <= DONE_CUT;
        end
        v4 <= s_meta.l3.v4;
        udp <= is_udp;
        l3_at <= s_meta.l3.vlan ? 8'd9 : 8'd7;
        sum_at <= s_meta.l3.vlan ? 8'd9 : 8'd7;
        homa_at <= {1'b0, s_meta.at[7:1]};
        hdr <= {1'b0, s_meta.at} + DATA_HDR[8:0];
        left <= message;
        offset <= s_meta.offset;
        base <= 0;
        sum <= 0;
        win <= INDEX_BITS'(32'(s_meta.at) + DATA_HDR >> LOG);
        fetch <= INDEX_BITS'(32'(s_meta.at) + DATA_HDR >> LOG);
        have_cur <= 0;
        have_nxt <= 0;
      end
      SUM: begin
        if (!sum_skip) sum <= sum + {5'd0, half};
        if (sum_from == 2) id <= half;
        sum_at <= sum_at + 1;
      end
      PLAN: begin
        x <= 0;
        total <= {9'd0, hdr} + {1'b0, part};
        left <= left - part;
        ip_length <= length;
        udp_length <= part[15:0] + DATA_HDR[15:0] + 16'd8;
        checksum <= checked;
      end
      WRITE: begin
        if (m_valid && m_ready) begin
          x <= x + 18'(BYTES);
          if (ends) begin
            packets <= packets + 1;
            base <= base + {2'd0, seg};
            offset <= offset + {16'd0, seg};
            id <= id + 1;
          end
        end
        if (cut) status <= DONE_CUT;
        if (slide) begin
          win <= win + 1;
          cur <= have_nxt ? nxt : fetch_data;
          have_cur <= have_nxt || fetched;
          nxt <= fetch_data;
          have_nxt <= have_nxt && fetched;
        end else if (fetched) begin
          if (have_cur) nxt <= fetch_data;
          else cur <= fetch_data;
          have_cur <= 1;
          have_nxt <= have_cur;
        end
        if (fetched) fetch <= fetch + 1;
      end
      PASS:
        if (m_ready) begin
          x <= x + 1;
          if (pass_end) packets <= 1;
        end
      REST:
        if (too_long) status <= DONE_REFUSED;
        else if (s_valid && m_ready) begin
          x <= x + 1;
          if (s_last) packets <= 1;
        end
      default: ;
    endcase
  end
endmodule
