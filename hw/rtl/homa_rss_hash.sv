// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The hash of a frame for receive side scaling, two cycles after its meta. It begins with what the
// parser knows early, so the first of its three steps is done while the parser looks for the
// payload's place.
module homa_rss_hash
  import homa_nic_pkg::*;
#(
    parameter logic [319:0] KEY = HASH_KEY
) (
    input logic clk,
    input logic [2:0] adv,        // s_early is about to become meta; meta moves; what follows it does
    input homa_meta_t s_early,
    output logic q_homa,          // with meta: it has an RPC
    output logic [31:0] q_hash
);
  logic homa;
  logic [287:0] tuple;

  homa_rss_tuple rss_tuple (.meta(s_early), .homa, .tuple);
  homa_toeplitz #(.KEY(KEY)) toeplitz (.clk, .adv, .in_tuple(tuple), .q_hash);
  always_ff @(posedge clk) if (adv[0]) q_homa <= homa;
endmodule
