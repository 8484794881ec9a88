// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What the blocks of large receive tell each other, and what of a frame's meta matters to them.
package homa_lro_pkg;
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;

  localparam int SLOTS = 16;         // units that are being collected, or wait to leave
  localparam int SLOT_BITS = 4;
  localparam int PIECES = 64;        // packets in a unit, at most
  localparam int PIECE_BITS = 6;
  localparam int PAGE_BYTES = 256;   // memory is given in pages; a header that merges fits into one
  localparam int LONGEST = 9216;     // bytes that are kept of a frame
  localparam int HDR_BITS = 8 * HDR_BYTES;

  // A unit with several packets has this where its first packet had its data offset.
  localparam logic [7:0] DOFF_UNIT = {DOFF_GSO[3:0], 4'd0};
  // What is left out of the headers of the packets that follow: all before the message offset.
  localparam logic [7:0] SKIP = 8'(DATA_SEG_OFFSET_AT);

  // All in which two packets of a unit are alike: everything but lengths, checksums and offsets.
  typedef struct packed {
    logic [15:0] tci;
    logic vlan;
    logic v4;
    logic [7:0] tos;
    logic [127:0] src;
    logic [127:0] dst;
    logic [2:0] class_;
    logic [31:0] out_ports;  // UDP's, and of what is CLASS_PORTS; 0 without
    logic [31:0] ports;
    logic [351:0] hdr;       // bytes 8 to 51 of the Homa header
  } homa_lro_key_t;

  // What of a frame is hashed for receive side scaling.
  typedef struct packed {
    logic [2:0] class_;
    logic v4;
    logic [127:0] src;
    logic [127:0] dst;
    logic [31:0] out_ports;
    logic [31:0] ports;
    logic [63:0] id;
  } homa_lro_hashed_t;

  // What is known of a frame that is in memory. Its key stands in a memory beside its first page.
  typedef struct packed {
    logic [13:0] bytes;      // that are in memory
    logic bad;               // m_bad, or it was longer than LONGEST
    logic rpc;               // it has an RPC, if what it says is true
    logic homa;              // the same, and it is true
    logic merges;            // it may be one of several packets of a unit
    logic ends;              // it has the last byte of its message
    logic [15:0] digest;     // of the RPC: alike for all of its packets of one direction
    logic [7:0] at;          // as in homa_meta_t
    logic [31:0] offset;
    logic [13:0] length;     // bytes of the message in it
    homa_lro_hashed_t hashed;
  } homa_lro_info_t;

  // What the host wants to know of a frame, or of the first packet of a unit, and what receive side
  // scaling does. It stands in a memory beside the frame's first page.
  typedef struct packed {
    logic [47:0] arrived;    // when
    logic [2:0] class_;      // CLASS_*
    logic [7:0] at;          // as in homa_meta_t
    logic homa;              // it has an RPC
    logic first;             // it is the first of its message: DATA of its first byte
    logic undecoded;         // it has a Homa header that does not decode
  } homa_lro_about_t;

  // What is counted: a bit for a cycle in which it happens.
  localparam int EVENTS = 12;
  localparam logic [3:0] EVENT_FRAME = 4'd0;     // a frame came
  localparam logic [3:0] EVENT_PASSED = 4'd1;    // it passed by itself
  localparam logic [3:0] EVENT_MERGED = 4'd2;    // it was put behind another
  localparam logic [3:0] EVENT_OPENED = 4'd3;    // it began a unit
  // Why a unit was closed; together as many as units.
  localparam logic [3:0] EVENT_ENDED = 4'd4;     // it has the end of the message
  localparam logic [3:0] EVENT_FULL = 4'd5;      // it has all that fits, or a shorter packet
  localparam logic [3:0] EVENT_URGENT = 4'd6;    // a packet of the RPC that cannot be in a unit
  localparam logic [3:0] EVENT_DIFFERS = 4'd7;   // one with another header, or another digest
  localparam logic [3:0] EVENT_TIMED = 4'd8;     // nothing more came in time
  localparam logic [3:0] EVENT_EVICTED = 4'd9;   // its slot or its memory was needed
  // Frames that contradict themselves; they pass.
  localparam logic [3:0] EVENT_BAD = 4'd10;      // headers and length
  localparam logic [3:0] EVENT_LONG = 4'd11;     // longer than LONGEST: cut there

endpackage
