// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The hash of a frame for receive side scaling, made in large receive. The table there looks at a
// frame in four steps at least, and in each of them 8 of the first 32 bytes of what is hashed are
// looked up, in the last one the other four, too. So there are 12 tables in block RAM, of which 8
// have what a byte adds in each of four places. homa_rss_hash needs 36 for a hash in every cycle.
//
// What is hashed is what homa_rss_tuple says.
module homa_lro_hash
  import homa_nic_pkg::*;
  import homa_lro_pkg::*;
#(
    parameter logic [319:0] KEY = HASH_KEY
) (
    input logic clk,
    input logic [1:0] step,        // 0 begins anew; each of the others comes once
    /* verilator lint_off UNUSEDSIGNAL */
    input homa_lro_hashed_t info,  // of the frame; the id's lowest bit does not matter
    /* verilator lint_on UNUSEDSIGNAL */
    input logic has_rpc,           // it has an RPC
    output logic [31:0] q_hash     // in the third cycle after that with step 3, late, not longer
);
  localparam int WIDE = 8;         // bytes of a step
  localparam int TAIL = 4;         // bytes that are left for the last one

  // ---- the bytes of this step, first one highest ----

  wire [127:0] src = info.src, dst = info.dst;
  wire [62:0] id = info.id[63:1];
  wire [31:0] ports = info.class_ == CLASS_PORTS ? info.out_ports : 32'd0;
  wire something = info.class_ != CLASS_NOT_IP && info.class_ != CLASS_BAD;
  wire rpc = something && has_rpc;
  wire v4 = something && !rpc && info.v4;
  wire v6 = something && !rpc && !info.v4;

  logic [8*WIDE-1:0] chosen, word;        // word: a cycle later
  always_comb begin
    chosen = 0;
    if (step == 0 && (rpc || v6)) chosen ^= src[127:64];
    if ((step == 0 && rpc) || (step == 2 && v6)) chosen ^= dst[127:64];
    if (step == 0 && v4) chosen ^= {src[31:0], dst[31:0]};
    if (step == 1 && (rpc || v6)) chosen ^= src[63:0];
    if ((step == 1 && rpc) || (step == 3 && v6)) chosen ^= dst[63:0];
    if (step == 1 && v4) chosen ^= {ports, 32'd0};
    if (step == 2 && rpc) chosen ^= {1'b0, id};
  end

  logic [8*TAIL-1:0] chosen_tail, tail;
  always_comb begin
    chosen_tail = 0;
    if (step == 3 && rpc) chosen_tail = {info.ports[31:16] ^ info.ports[15:0], 16'd0};
    if (step == 3 && v6) chosen_tail = ports;
  end

  // ---- the tables ----

  // To choose what is looked up takes most of a cycle, and so does the output of a block RAM. So
  // both go into registers, and the sum of what the tables say does not.
  logic [31:0] part[WIDE+TAIL];
  logic [31:0] so_far;                    // the sum of the steps before
  logic [1:0] word_step, found_step, part_step;

  for (genvar n = 0; n < WIDE; n++) begin : piece
    (* ram_style = "block" *) logic [31:0] products[1024];
    logic [31:0] found;
    for (genvar k = 0; k < 4; k++) begin : place
      initial
        for (int i = 0; i < 256; i++)
          products[256*k+i] = hash_product(KEY, 8'(i), 8 * (WIDE * k + n));
    end
    always_ff @(posedge clk) begin
      found <= products[{word_step, word[8*WIDE-1-8*n-:8]}];
      part[n] <= found;
    end
  end
  for (genvar n = 0; n < TAIL; n++) begin : last_piece
    (* ram_style = "block" *) logic [31:0] products[256];
    logic [31:0] found;
    initial
      for (int i = 0; i < 256; i++) products[i] = hash_product(KEY, 8'(i), 8 * (4 * WIDE + n));
    always_ff @(posedge clk) begin
      found <= products[tail[8*TAIL-1-8*n-:8]];
      part[WIDE+n] <= found;
    end
  end

  always_comb begin
    q_hash = part_step == 0 ? 32'd0 : so_far;
    for (int n = 0; n < WIDE + TAIL; n++) q_hash ^= part[n];
  end

  always_ff @(posedge clk) begin
    word <= chosen;
    tail <= chosen_tail;
    word_step <= step;
    found_step <= word_step;
    part_step <= found_step;
    so_far <= q_hash;
  end
endmodule
