// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The parser's last three stages: the Homa header is collected, cut into fields, judged. They do
// what homa_packet_decode() of engine/wire/homa/homa_codec.c does and in its order, so that both
// give one reason for a packet that is wrong in two ways.
//
// A frame's meta goes with the beat that completes the 80 bytes that the longest header has, or
// with the last one. That later beats are missing is then not yet known: q_bad tells with the last
// beat, and whoever acts on meta before must be able to take it back.
module homa_parse_body
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter bit CONTROL = 1    // offset and length are those of GRANT and RESEND, too
) (
    input logic clk,
    input logic rst,
    input logic [2:0] adv,       // its three stages move: one signal for each, and all are alike

    input logic in_valid,
    input logic [WIDTH-1:0] in_data,
    /* verilator lint_off UNUSEDSIGNAL */
    input logic [WIDTH-1:0] in_turned,  // with beats of 8 bytes: the header begins in lane 0
    /* verilator lint_on UNUSEDSIGNAL */
    input logic [WIDTH/8-1:0] in_keep,
    input logic in_last,
    input logic in_first,
    input logic in_begin,        // the header begins in this beat; what was said before is void
    input logic [7:0] in_since,  // beats since that with the begin; negative ones fit nothing
    input homa_l3_t in_l3,
    input logic in_ready,
    input logic [2:0] in_class,
    input logic in_broken,
    input logic [15:0] in_sport,
    input logic [15:0] in_dport,
    input logic [6:0] in_at,
    input logic [16:0] in_left,
    input logic in_udp,
    input logic [15:0] in_udp_length,
    input logic in_udp_bad,
    input logic [1:0] in_ours,
    input logic in_no_sum,

    output logic q_valid,
    output logic q_next_valid,  // what q_valid is once the stages have moved
    output logic [WIDTH-1:0] q_data,
    output logic [WIDTH/8-1:0] q_keep,
    output logic q_last,
    output logic q_bad,         // with q_last: the frame contradicts itself, whatever meta said
    output logic q_meta_valid,  // once per frame
    output homa_meta_t q_meta,
    output homa_meta_t q_early  // what q_meta is about to be, but for error and what follows it
);
  localparam int HALVES = WIDTH / 16;
  localparam int LANE_BITS = $clog2(HALVES);
  localparam int HDR_BITS = 8 * HDR_BYTES;

  // ---- stage 1: collect ----

  logic c_valid, c_last, c_broken, c_emit, c_sent, c_no_sum;
  logic [WIDTH-1:0] c_data;
  logic [WIDTH/8-1:0] c_keep;
  homa_l3_t c_l3;
  logic [2:0] c_class;
  logic [15:0] c_sport, c_dport;
  logic [6:0] c_at;
  logic [16:0] c_bytes, c_payload;  // c_payload: if it is DATA
  logic [HDR_BITS-1:0] c_hdr;  // first byte highest

  localparam logic [16:0] UDP_HDR = 17'd8;
  wire ours = |in_ours;
  wire in_homa_udp = in_class == CLASS_HOMA_UDP && ours;
  wire homa = in_class == CLASS_HOMA || (in_homa_udp && !in_udp_bad) || in_class == CLASS_HOMA_TCP;
  // All headers have an odd number of halfwords before them (homa_parse_ext.sv).
  wire [LANE_BITS-1:0] turn = {in_at[LANE_BITS-1:1], 1'b1};
  wire [7:0] end_since = 8'((32'(turn) + HDR_HALVES - 1) / HALVES);
  wire full = in_ready && (!homa || (!in_since[7] && in_since >= end_since));
  wire sent_before = c_sent && !in_first;
  wire emit = (full || in_last) && !sent_before;

  // The beat, turned so that the header's halfword h stands in lane h modulo HALVES.
  logic [WIDTH-1:0] turned;
  always_comb begin
    turned = HALVES == 4 ? in_turned : in_data;
    for (int bit_ = 0; bit_ < LANE_BITS; bit_++)
      if (HALVES != 4 && turn[bit_])
        turned = (turned >> (16 << bit_)) | (turned << (WIDTH - (16 << bit_)));
  end

  // Is this beat so many behind the one with the begin? Before the begin is known, beats may seem to
  // be behind one: what they put into the header is replaced by what comes later.
  localparam int ROWS = (HALVES - 1 + HDR_HALVES - 1) / HALVES + 1;
  logic [ROWS-2:0] passed;
  wire [ROWS-1:0] row = {passed, in_begin};

  always_ff @(posedge clk) begin
    if (rst) c_valid <= 0;
    else if (adv[0]) c_valid <= in_valid;
    if (rst) passed <= 0;
    else if (adv[0] && in_valid) passed <= in_last ? '0 : row[ROWS-2:0];
    if (adv[0] && in_valid) begin
      c_data <= in_data;
      c_keep <= in_keep;
      c_last <= in_last;
      c_broken <= in_broken;
      c_l3 <= in_l3;
      if (in_broken || (in_homa_udp && in_udp_bad)) c_class <= CLASS_BAD;
      else c_class <= in_class == CLASS_HOMA_UDP && !ours ? CLASS_PORTS : in_class;
      c_sport <= in_sport;
      c_dport <= in_dport;
      c_at <= in_at;
      c_bytes <= in_udp ? {1'b0, in_udp_length} - UDP_HDR : in_left;
      c_payload <= (in_udp ? -(UDP_HDR + DATA_HDR[16:0]) : -DATA_HDR[16:0]) +
                   (in_udp ? {1'b0, in_udp_length} : in_left);
      c_no_sum <= in_no_sum;
      c_emit <= emit;
      c_sent <= emit || sent_before;
      for (int h = 0; h < HDR_HALVES; h++)
        if (32'(turn) + h % HALVES < HALVES ? row[h/HALVES] : row[(h+HALVES)/HALVES])
          c_hdr[HDR_BITS-16-16*h+:16] <= {turned[16*(h%HALVES)+:8], turned[16*(h%HALVES)+8+:8]};
    end
  end

  // ---- stage 2: fields ----

  function automatic logic [31:0] word(input logic [HDR_BITS-1:0] hdr, input int at);
    word = hdr[HDR_BITS-32-8*at+:32];
  endfunction

  function automatic logic [15:0] short(input logic [HDR_BITS-1:0] hdr, input int at);
    short = hdr[HDR_BITS-16-8*at+:16];
  endfunction

  function automatic logic [7:0] octet(input logic [HDR_BITS-1:0] hdr, input int at);
    octet = hdr[HDR_BITS-8-8*at+:8];
  endfunction

  function automatic logic [31:0] clamp(input logic [31:0] value);
    clamp = value > MAX_WIRE_LENGTH ? MAX_WIRE_LENGTH : value;
  endfunction

  function automatic logic [2:0] clamp_level(input logic [7:0] value);
    clamp_level = value > 8'(PRIORITIES - 1) ? 3'(PRIORITIES - 1) : value[2:0];
  endfunction

  function automatic logic length_ok(input logic [31:0] length);
    length_ok = length != 0 && length <= MAX_WIRE_LENGTH;
  endfunction

  logic d_valid, d_last, d_broken, d_emit;
  logic [WIDTH-1:0] d_data;
  logic [WIDTH/8-1:0] d_keep;
  homa_meta_t d_meta;  // offset, length, level: of DATA and of GRANT and RESEND in d_ctrl_*
  logic d_in_sequence;
  logic [31:0] d_sequence, d_ctrl_length;
  logic [32:0] d_room;  // where the payload may begin at most; negative: nowhere
  logic [31:0] d_ctrl_offset;
  logic d_data_type;
  logic d_beyond;            // more is incoming than there is

  wire [7:0] kind = octet(c_hdr, COMMON_TYPE_AT);
  wire disguised = octet(c_hdr, COMMON_FLAGS_AT) == FLAGS[7:0] &&
                   short(c_hdr, COMMON_URGENT_AT) == URGENT[15:0];
  wire [31:0] length = word(c_hdr, DATA_LENGTH_AT);

  logic [7:0] size;
  always_comb begin
    case (kind)
      TYPE_DATA: size = DATA_HDR[7:0];
      TYPE_GRANT: size = GRANT_LEN[7:0];
      TYPE_RESEND: size = RESEND_LEN[7:0];
      TYPE_CUTOFFS: size = CUTOFFS_LEN[7:0];
      TYPE_ACK: size = ACK_LEN[7:0];
      TYPE_START_MSG: size = START_LEN[7:0];
      TYPE_RPC_UNKNOWN, TYPE_BUSY, TYPE_FREEZE, TYPE_NEED_ACK: size = COMMON_HDR[7:0];
      default: size = 0;
    endcase
  end

  // Has the packet fewer bytes than this, which are less than 128?
  wire few = c_bytes[16:7] == 0;
  function automatic logic below(input logic [6:0] bytes);
    below = few && c_bytes[6:0] < bytes;
  endfunction

  // It has fewer than `size`: each number is compared by itself, not the one that was chosen.
  logic cut;
  always_comb begin
    case (kind)
      TYPE_DATA: cut = below(DATA_HDR[6:0]);
      TYPE_GRANT: cut = below(GRANT_LEN[6:0]);
      TYPE_RESEND: cut = below(RESEND_LEN[6:0]);
      TYPE_CUTOFFS: cut = below(CUTOFFS_LEN[6:0]);
      TYPE_ACK: cut = below(ACK_LEN[6:0]);
      TYPE_START_MSG: cut = below(START_LEN[6:0]);
      default: cut = 0;
    endcase
  end

  // All reasons but the one that needs the payload's place.
  logic [2:0] early;
  always_comb begin
    early = WIRE_OK;
    if (below(COMMON_HDR[6:0])) early = WIRE_SHORT;
    else if (size == 0) early = WIRE_TYPE;
    else if (cut) early = WIRE_SHORT;
    else
      case (kind)
        TYPE_DATA: begin
          if (c_bytes == DATA_HDR[16:0]) early = WIRE_EMPTY;
          else if (!length_ok(length)) early = WIRE_LENGTH;
        end
        TYPE_ACK: if (short(c_hdr, ACKS_NUM_AT) > MAX_ACKS[15:0]) early = WIRE_COUNT;
        TYPE_START_MSG: if (!length_ok(length)) early = WIRE_LENGTH;
        default: ;
      endcase
  end

  always_ff @(posedge clk) begin
    if (rst) d_valid <= 0;
    else if (adv[1]) d_valid <= c_valid;
    if (adv[1] && c_valid) begin
      d_data <= c_data;
      d_keep <= c_keep;
      d_last <= c_last;
      d_broken <= c_broken;
      d_emit <= c_emit;
      if (c_emit) begin
        d_meta.l3 <= c_l3;
        d_meta.class_ <= c_class == CLASS_HOMA_TCP && !disguised ? CLASS_PORTS : c_class;
        d_meta.out_sport <= c_sport;
        d_meta.out_dport <= c_dport;
        d_meta.at <= {c_at, 1'b0};
        d_meta.bytes <= c_bytes;
        d_meta.no_sum <= c_no_sum;
        d_meta.error <= early;
        d_meta.hdr_len <= size;
        d_meta.offset <= word(c_hdr, DATA_SEG_OFFSET_AT);
        d_meta.ends <= 0;
        d_meta.length <= length;
        d_meta.incoming <= word(c_hdr, DATA_INCOMING_AT);
        d_beyond <= word(c_hdr, DATA_INCOMING_AT) > length;
        d_meta.level <= clamp_level(octet(c_hdr, kind == TYPE_GRANT ? GRANT_PRIORITY_AT
                                                                    : RESEND_PRIORITY_AT));
        d_meta.hdr <= c_hdr;
        d_in_sequence <= &word(c_hdr, DATA_SEG_OFFSET_AT);
        d_sequence <= word(c_hdr, COMMON_SEQUENCE_AT);
        d_room <= {1'b0, length} - {16'd0, c_payload};
        d_ctrl_offset <= clamp(word(c_hdr, GRANT_OFFSET_AT));
        d_ctrl_length <= word(c_hdr, RESEND_LENGTH_AT) == RESEND_ALL
                             ? RESEND_ALL : clamp(word(c_hdr, RESEND_LENGTH_AT));
        d_data_type <= kind == TYPE_DATA;
      end
    end
  end

  // ---- stage 3: the payload's place ----

  assign q_early = d_meta;
  assign q_next_valid = d_valid;

  wire [31:0] offset = d_in_sequence ? d_sequence : d_meta.offset;
  wire reaches_beyond = d_room[32] || offset > d_room[31:0];

  always_ff @(posedge clk) begin
    if (rst) q_valid <= 0;
    else if (adv[2]) q_valid <= d_valid;
    if (adv[2] && d_valid) begin
      q_data <= d_data;
      q_keep <= d_keep;
      q_last <= d_last;
      q_bad <= d_broken;
      q_meta_valid <= d_emit;
      if (d_emit) begin
        q_meta <= d_meta;
        q_meta.error <= d_meta.error == WIRE_OK && d_data_type && reaches_beyond ? WIRE_OFFSET
                                                                                 : d_meta.error;
        if (d_data_type) begin
          q_meta.offset <= offset;
          q_meta.ends <= !d_room[32] && offset == d_room[31:0];
          if (d_beyond) q_meta.incoming <= d_meta.length;
        end else if (CONTROL) begin
          q_meta.offset <= d_ctrl_offset;
          // A START_MSG has its length where a RESEND has its offset.
          if (d_meta.hdr_len == RESEND_LEN[7:0]) q_meta.length <= d_ctrl_length;
        end
      end
    end
  end
endmodule
