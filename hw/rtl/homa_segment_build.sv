// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What homa_segment decided becomes a beat, three cycles later: bytes of the header with the fields
// that differ replaced, and bytes of the message turned to their places. Nothing holds it back, so
// whoever stands behind must have room for what is in it.
//
//   1  the two beats of the frame are turned by a large step, the header's beat is read
//   2  they are turned by a smaller one, the header's fields are replaced
//   3  each byte is the header's, or the message's, of which it is the byte here or that behind it
module homa_segment_build #(
    parameter int WIDTH = 512
) (
    input logic clk,
    input logic rst,

    input logic s_valid,
    input logic s_last,
    input logic s_abort,               // what was written of this packet is not to be sent
    input logic [WIDTH/8-1:0] s_keep,
    input logic [WIDTH-1:0] s_raw,     // the header's beat, or one that passes
    input logic [2*WIDTH-1:0] s_pair,  // two beats of the frame
    input logic [$clog2(WIDTH/8)-1:0] s_turn,  // the first byte of them that is meant
    input logic s_whole,               // all of s_raw
    input logic [$clog2(WIDTH/8)-1:0] s_head,  // else so many bytes of it
    input logic s_replace,             // it is a packet's header, whose fields differ
    input logic [7:0] s_ip,            // number of its first halfword in IP's header
    input logic [7:0] s_homa,          // and in Homa's

    input logic v4,                    // of the packet, from s_valid on
    input logic udp,
    // The same, one cycle after s_valid.
    input logic [15:0] ip_length,
    input logic [15:0] ip_id,
    input logic [15:0] ip_checksum,
    input logic [15:0] udp_length,
    input logic [31:0] offset,

    output logic m_valid,
    output logic m_last,
    output logic m_abort,
    output logic [WIDTH/8-1:0] m_keep,
    output logic [WIDTH-1:0] m_data
);
  localparam int BYTES = WIDTH / 8;
  localparam int LOG = $clog2(BYTES);
  // Bits of s_turn that are for the second and third step, and for the third. A look-up table
  // chooses one of four bits, and also one of two or the header's.
  localparam int LATE = 1;
  localparam int LATER = LOG > 3 ? 3 : 1;
  localparam int WIDE = WIDTH + 8 * ((1 << LATER) - 1);
  localparam int NARROW = WIDTH + 8 * ((1 << LATE) - 1);

  // What belongs to a beat and changes no more on the way.
  typedef struct packed {
    logic valid;
    logic last;
    logic undo;
    logic [BYTES-1:0] keep;
    logic whole;
    logic [LOG-1:0] head;
  } beat_t;

  beat_t one, two;
  logic [WIDTH-1:0] raw, header, changed;
  logic [WIDE-1:0] turned;
  logic [LATER-1:0] later;
  logic [NARROW-1:0] bytes;
  logic late;
  logic replace;

  homa_segment_head #(.WIDTH(WIDTH)) head (
      .clk, .in_ip(s_ip), .in_homa(s_homa), .v4, .udp, .in_data(raw), .ip_length, .ip_id,
      .ip_checksum, .udp_length, .offset, .out_data(changed));

  always_ff @(posedge clk) begin
    one <= {s_valid, s_last, s_abort, s_keep, s_whole, s_head};
    raw <= s_raw;
    turned <= WIDE'(s_pair >> {s_turn[LOG-1:LATER], {(LATER + 3) {1'b0}}});
    later <= s_turn[LATER-1:0];
    replace <= s_replace;

    two <= one;
    header <= replace ? changed : raw;
    bytes <= NARROW'(turned >> {later & ~LATER'(1), 3'd0});
    late <= later[0];

    m_valid <= two.valid;
    m_last <= two.last;
    m_abort <= two.undo;
    m_keep <= two.keep;
    for (int i = 0; i < BYTES; i++)
      m_data[8*i+:8] <= two.whole || LOG'(i) < two.head ? header[8*i+:8]
                      : late ? bytes[8*i+8+:8] : bytes[8*i+:8];

    if (rst) begin
      {one.valid, one.undo, two.valid, two.undo} <= 0;
      m_valid <= 0;
      m_abort <= 0;
    end
  end
endmodule
