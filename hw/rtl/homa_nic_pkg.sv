// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What the blocks tell each other about a frame. The parser fills homa_meta_t once per frame; every
// other block reads it instead of looking into the frame again. No block needs all constants.
/* verilator lint_off UNUSEDPARAM */
package homa_nic_pkg;

  // What a frame is. The order matters to nobody.
  localparam logic [2:0] CLASS_NOT_IP = 3'd0;      // neither IPv4 nor IPv6, or too short to say
  localparam logic [2:0] CLASS_BAD = 3'd1;         // an IP or UDP header that contradicts the frame
  localparam logic [2:0] CLASS_FRAGMENT = 3'd2;    // a fragment: its ports may be elsewhere
  localparam logic [2:0] CLASS_IP = 3'd3;          // some other protocol, without ports
  localparam logic [2:0] CLASS_PORTS = 3'd4;       // TCP or UDP that is not ours, with ports
  localparam logic [2:0] CLASS_HOMA = 3'd5;        // Homa directly on IP
  localparam logic [2:0] CLASS_HOMA_UDP = 3'd6;    // Homa inside UDP
  localparam logic [2:0] CLASS_HOMA_TCP = 3'd7;    // Homa that looks like TCP

  // Why a Homa packet does not decode: enum homa_wire_error of engine/wire/homa/homa_codec.h.
  localparam logic [2:0] WIRE_OK = 3'd0;
  localparam logic [2:0] WIRE_SHORT = 3'd1;
  localparam logic [2:0] WIRE_TYPE = 3'd2;
  localparam logic [2:0] WIRE_LENGTH = 3'd3;
  localparam logic [2:0] WIRE_OFFSET = 3'd4;
  localparam logic [2:0] WIRE_EMPTY = 3'd5;
  localparam logic [2:0] WIRE_COUNT = 3'd6;

  // What became of a frame that was to be segmented.
  localparam logic [1:0] DONE_SENT = 2'd0;         // all of it was sent
  localparam logic [1:0] DONE_REFUSED = 2'd1;      // nothing was: it cannot be segmented
  localparam logic [1:0] DONE_CUT = 2'd2;          // it ended too early: some packets may have left

  // The most bytes of a Homa header, HOMA_MAX_HDR; and in halfwords of 16 bits.
  localparam int HDR_BYTES = 80;
  localparam int HDR_HALVES = HDR_BYTES / 2;

  // Where the headers below Homa's end, and what they say.
  typedef struct packed {
    logic vlan;              // there is a VLAN tag
    logic [15:0] tci;        // what the tag says; 0 without one
    logic v4;                // it is IPv4
    logic v6;                // it is IPv6
    logic [7:0] tos;         // type of service, traffic class: priority in the three highest bits
    logic [127:0] src;       // addresses; those of IPv4 in the lowest 32 bits, the rest 0
    logic [127:0] dst;
    logic [19:0] sum;        // IPv4: of the 10 halfwords of the fixed header
    logic [19:0] sum_kept;   // the same without length, id and checksum
  } homa_l3_t;

  // What of the sum of IPv4's fixed header is not in homa_l3_t yet, behind the parser's first stages.
  typedef struct packed {
    logic [16:0] kept;       // belongs to sum_kept
    logic [16:0] rest;       // two of the addresses' halfwords, as well
    logic [15:0] last;       // the third one
    logic [15:0] checksum;   // belongs to sum
  } homa_parts_t;

  // All that is said of a frame. Fields after `error` are valid if class is one of CLASS_HOMA*
  // and error is WIRE_OK, and of them those of the type only.
  typedef struct packed {
    homa_l3_t l3;
    logic [2:0] class_;
    logic [15:0] out_sport;  // ports of TCP or UDP as they stand in the frame; CLASS_PORTS and up
    logic [15:0] out_dport;  // but for CLASS_HOMA
    logic [7:0] at;          // begin of the Homa header, in bytes from the frame's
    logic [16:0] bytes;      // Homa header and payload, bytes
    logic no_sum;            // CLASS_HOMA_UDP: UDP's checksum is 0, that is, there is none
    logic [2:0] error;       // WIRE_*
    logic [7:0] hdr_len;     // bytes of header and body without payload
    logic [31:0] offset;     // DATA: message offset of the payload. GRANT, RESEND: clamped
    logic ends;              // DATA: it has the last byte of its message
    logic [31:0] length;     // DATA, START_MSG: bytes in the message. RESEND: clamped
    logic [31:0] incoming;   // DATA: at most `length`
    logic [2:0] level;       // GRANT, RESEND: priority, clamped
    logic [8*HDR_BYTES-1:0] hdr;  // the header as it stands there, first byte highest
  } homa_meta_t;

  // The key of receive side scaling: Microsoft's, which everybody's tests use. First byte highest.
  localparam logic [319:0] HASH_KEY =
      320'h6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa;

  // What a byte of what is hashed adds to the hash of Toeplitz, if `begin_` bits come before it: bit
  // i of all adds the 32 bits of the key from bit i on, counted from the first one.
  function automatic logic [31:0] hash_product(input logic [319:0] key, input logic [7:0] value,
                                               input int begin_);
    hash_product = 0;
    for (int i = 0; i < 8; i++) if (value[7-i]) hash_product ^= key[319-begin_-i-:32];
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
