// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What receive side scaling hashes of a frame: of a Homa packet what both directions of its RPC
// share, of others addresses and ports, of what is not IP, or broken, nothing. First byte highest.
module homa_rss_tuple
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
(
    /* verilator lint_off UNUSEDSIGNAL */
    input homa_meta_t meta,       // not all of it matters here
    /* verilator lint_on UNUSEDSIGNAL */
    output logic homa,            // it has an RPC
    output logic [287:0] tuple
);
  localparam int HDR_BITS = 8 * HDR_BYTES;

  wire [62:0] id = meta.hdr[HDR_BITS-63-8*COMMON_SENDER_ID_AT+:63];  // but for its lowest bit
  wire [15:0] sport = meta.hdr[HDR_BITS-16-8*COMMON_SPORT_AT+:16];
  wire [15:0] dport = meta.hdr[HDR_BITS-16-8*COMMON_DPORT_AT+:16];
  wire nothing = meta.class_ == CLASS_NOT_IP || meta.class_ == CLASS_BAD;
  wire [31:0] ports = meta.class_ == CLASS_PORTS ? {meta.out_sport, meta.out_dport} : 32'd0;
  assign homa = (meta.class_ == CLASS_HOMA || meta.class_ == CLASS_HOMA_UDP ||
                 meta.class_ == CLASS_HOMA_TCP) && meta.bytes >= COMMON_HDR[16:0];

  always_comb begin
    if (nothing) tuple = 0;
    else if (homa) tuple = {meta.l3.src ^ meta.l3.dst, 1'b0, id, 64'd0, sport ^ dport, 16'd0};
    else if (meta.l3.v4) tuple = {meta.l3.src[31:0], meta.l3.dst[31:0], ports, 192'd0};
    else tuple = {meta.l3.src, meta.l3.dst, ports};
  end
endmodule
