// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// May a frame be merged with others? What its meta says becomes what large receive needs, one cycle
// later; half of the answer is found while the parser looks for the payload's place.
//
// A packet merges if whoever takes the unit can have all of it back from the first header
// and its offset, and if nobody would have to check a checksum of the whole afterwards:
//
// * DATA that decodes, directly on IP or in UDP over IPv4 without a checksum;
// * no options of IPv4, whose header's checksum is right, and no extension headers of IPv6;
// * an offset in the packet's own field, not in the sequence number;
// * nothing behind the packet in its frame, which homa_lro sees once the frame has ended: who reads
//   the packets of a unit stops at their ends, and what is behind would keep its pages for ever;
// * not retransmitted, which somebody waits for, and not all of a message.
module homa_lro_judge
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
  import homa_lro_pkg::*;
(
    input logic clk,
    input logic early_adv,         // s_early is about to become s_meta
    /* verilator lint_off UNUSEDSIGNAL */
    input homa_meta_t s_early,     // not all of it matters here
    input logic adv,
    input homa_meta_t s_meta,
    /* verilator lint_on UNUSEDSIGNAL */
    output homa_lro_info_t q_info, // bytes, bad and hashed are not said here: 0
    output logic [16:0] q_end,     // of the Homa packet in its frame, bytes
    output homa_lro_key_t q_key
);
  // Are all bits of this sum 1, once its carries are added to it? That is so if the lowest 16 and the
  // carries give 16 ones: a sum that overflows is small.
  function automatic logic all_ones(input logic [19:0] value);
    all_ones = &value[15:4] && &(value[3:0] ^ value[19:16]);
  endfunction

  function automatic logic [15:0] fold32(input logic [31:0] value);
    fold32 = value[31:16] ^ value[15:0];
  endfunction

  // ---- what the parser knows early ----

  wire [7:0] kind = s_early.hdr[HDR_BITS-8-8*COMMON_TYPE_AT+:8];
  wire [31:0] early_offset = s_early.hdr[HDR_BITS-32-8*DATA_SEG_OFFSET_AT+:32];
  wire [7:0] retransmit = s_early.hdr[HDR_BITS-8-8*DATA_RETRANSMIT_AT+:8];
  wire early_udp = s_early.class_ == CLASS_HOMA_UDP;
  wire [7:0] plain_at = (s_early.l3.vlan ? 8'd18 : 8'd14) + (s_early.l3.v4 ? 8'd20 : 8'd40) +
                        (early_udp ? 8'd8 : 8'd0);

  logic carried;         // by something whose checksum does not cover the payload
  logic plain;           // no options and no extension headers
  logic right;           // IPv4's checksum is, or there is none
  logic data;            // DATA with its offset in its own field, and not retransmitted
  logic [16:0] length;   // bytes of the message in it

  always_ff @(posedge clk)
    if (early_adv) begin
      carried <= s_early.class_ == CLASS_HOMA ||
                 (early_udp && s_early.l3.v4 && s_early.no_sum);
      plain <= s_early.at == plain_at;
      right <= s_early.l3.v6 || all_ones(s_early.l3.sum);
      data <= kind == TYPE_DATA && !(&early_offset) && retransmit == 0;
      length <= s_early.bytes - DATA_HDR[16:0];
    end

  // ---- the rest ----

  wire [63:0] id = s_meta.hdr[HDR_BITS-64-8*COMMON_SENDER_ID_AT+:64];
  wire [31:0] ports = s_meta.hdr[HDR_BITS-32+:32];
  wire [31:0] seg_offset = s_meta.hdr[HDR_BITS-32-8*DATA_SEG_OFFSET_AT+:32];
  wire udp = s_meta.class_ == CLASS_HOMA_UDP;
  wire homa = (s_meta.class_ == CLASS_HOMA || udp || s_meta.class_ == CLASS_HOMA_TCP) &&
              s_meta.bytes >= COMMON_HDR[16:0];

  always_ff @(posedge clk)
    if (adv) begin
      q_info.bytes <= 0;
      q_info.bad <= 0;
      q_info.hashed <= 0;
      q_info.rpc <= homa;
      q_info.homa <= homa;
      q_info.merges <= homa && carried && plain && right && data && s_meta.error == WIRE_OK &&
                       {15'd0, length} != s_meta.length && length < 17'(LONGEST);
      q_info.ends <= s_meta.ends;
      q_info.digest <= fold32(id[63:32]) ^ fold32(id[31:0]) ^ fold32(ports) ^
                       fold32(s_meta.l3.src[31:0]);
      q_info.at <= s_meta.at;
      q_end <= {9'd0, s_meta.at} + s_meta.bytes;
      q_info.offset <= seg_offset;
      q_info.length <= length[13:0];
      q_key.tci <= s_meta.l3.tci;
      q_key.vlan <= s_meta.l3.vlan;
      q_key.v4 <= s_meta.l3.v4;
      q_key.tos <= s_meta.l3.tos;
      q_key.src <= s_meta.l3.src;
      q_key.dst <= s_meta.l3.dst;
      q_key.class_ <= s_meta.class_;
      q_key.out_ports <= udp || s_meta.class_ == CLASS_PORTS
                             ? {s_meta.out_sport, s_meta.out_dport} : 32'd0;
      q_key.ports <= ports;
      q_key.hdr <= s_meta.hdr[HDR_BITS-8*SKIP+:352];
    end
endmodule
