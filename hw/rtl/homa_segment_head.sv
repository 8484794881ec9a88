// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The header of one segment: the super-frame's, with the fields that differ from segment to segment
// replaced on the way. Those are IP's length, IPv4's id and checksum, UDP's length and checksum (0,
// none), and the two places where Homa says the offset. All of them are whole halfwords of 16 bits
// whose places follow from where IP's and Homa's headers begin. IP's begins at halfword 7 or 9 of
// the frame, and Homa's at an odd one (homa_parse_ext.sv). So a lane can have some of the fields only.
module homa_segment_head #(
    parameter int WIDTH = 512
) (
    input logic clk,
    // A cycle before the rest, of the next beat:
    input logic [7:0] in_ip,            // its first halfword's number in IP's header, modulo 256
    input logic [7:0] in_homa,          // and in Homa's
    input logic v4,
    input logic udp,
    input logic [WIDTH-1:0] in_data,    // a beat of the header
    input logic [15:0] ip_length,       // as it stands in the header, of either version
    input logic [15:0] ip_id,
    input logic [15:0] ip_checksum,
    input logic [15:0] udp_length,
    input logic [31:0] offset,
    output logic [WIDTH-1:0] out_data
);
  import homa_wire_pkg::*;
  localparam int HALVES = WIDTH / 16;
  localparam int SEQUENCE = COMMON_SEQUENCE_AT / 2;
  localparam int SEG_OFFSET = DATA_SEG_OFFSET_AT / 2;

  // Can halfword `number` of a header be in this lane?
  function automatic bit of_ip(input int number, input int lane);
    of_ip = (7 + number) % HALVES == lane || (9 + number) % HALVES == lane;
  endfunction
  function automatic bit of_homa(input int number, input int lane);
    of_homa = (HALVES + 1 + number) % 2 == lane % 2;
  endfunction

  // Lanes that never have two fields in one beat share what is put there: in a beat of four
  // halfwords those of one parity, for no two fields of one parity are neighbours.
  localparam int GROUPS = HALVES > 4 ? HALVES : 2;
  logic [HALVES-1:0] is_length, is_id, is_checksum, is_udp, is_zero, is_high, is_low, is_field;
  always_comb
    for (int i = 0; i < HALVES; i++) begin
      is_length[i] = (of_ip(1, i) && v4 && in_ip == 8'(1 - i)) ||
                     (of_ip(2, i) && !v4 && in_ip == 8'(2 - i));
      is_id[i] = of_ip(2, i) && v4 && in_ip == 8'(2 - i);
      is_checksum[i] = of_ip(5, i) && v4 && in_ip == 8'(5 - i);
      is_udp[i] = of_homa(-2, i) && udp && in_homa == 8'(-2 - i);
      is_zero[i] = of_homa(-1, i) && udp && in_homa == 8'(-1 - i);
      is_high[i] = (of_homa(SEQUENCE, i) && in_homa == 8'(SEQUENCE - i)) ||
                   (of_homa(SEG_OFFSET, i) && in_homa == 8'(SEG_OFFSET - i));
      is_low[i] = (of_homa(SEQUENCE + 1, i) && in_homa == 8'(SEQUENCE + 1 - i)) ||
                  (of_homa(SEG_OFFSET + 1, i) && in_homa == 8'(SEG_OFFSET + 1 - i));
      is_field[i] = is_length[i] || is_id[i] || is_checksum[i] || is_udp[i] || is_zero[i] ||
                    is_high[i] || is_low[i];
    end

  // What is put where in the beat that is here.
  logic [HALVES-1:0] put_length, put_id, put_checksum, put_udp, put_high, put_low, put_field;
  always_ff @(posedge clk) begin
    put_length <= is_length;
    put_id <= is_id;
    put_checksum <= is_checksum;
    put_udp <= is_udp;
    put_high <= is_high;
    put_low <= is_low;
    put_field <= is_field;
  end

  logic [GROUPS-1:0][15:0] field;
  always_comb begin
    field = 0;
    for (int i = 0; i < HALVES; i++) begin
      if (put_length[i]) field[i%GROUPS] |= ip_length;
      if (put_id[i]) field[i%GROUPS] |= ip_id;
      if (put_checksum[i]) field[i%GROUPS] |= ip_checksum;
      if (put_udp[i]) field[i%GROUPS] |= udp_length;
      if (put_high[i]) field[i%GROUPS] |= offset[31:16];
      if (put_low[i]) field[i%GROUPS] |= offset[15:0];
    end
  end

  for (genvar i = 0; i < HALVES; i++) begin : lane
    assign out_data[16*i+:16] = put_field[i] ? {field[i%GROUPS][7:0], field[i%GROUPS][15:8]}
                                            : in_data[16*i+:16];
  end
endmodule
