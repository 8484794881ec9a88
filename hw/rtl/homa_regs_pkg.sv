// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The registers of homa_nic: written by hw/generate.py from hw/registers.toml, do not edit.
// *_AT is a byte offset, *_LEAST and *_MOST are what may be written, COUNT_* the number of a
// counter. No block needs all of it.
/* verilator lint_off UNUSEDPARAM */
package homa_regs_pkg;
  localparam logic [31:0] MAP_ID = 32'h484f4d41;
  localparam logic [31:0] MAP_VERSION = 32'h00010000;
  localparam logic [11:0] ID_AT = 12'h000;
  localparam logic [11:0] VERSION_AT = 12'h004;
  localparam logic [11:0] WIDTH_AT = 12'h008;
  localparam logic [11:0] QUEUES_AT = 12'h00c;
  localparam logic [11:0] COUNTERS_AT = 12'h010;
  localparam logic [11:0] PAGES_AT = 12'h014;
  localparam logic [11:0] CONTROL_AT = 12'h020;
  localparam logic [31:0] CONTROL_RESET = 32'h7;
  localparam logic [31:0] CONTROL_LEAST = 32'h0;
  localparam logic [31:0] CONTROL_MOST = 32'hf;
  localparam int CONTROL_LSO = 0;
  localparam int CONTROL_LRO = 1;
  localparam int CONTROL_RSS = 2;
  localparam int CONTROL_BY_LOAD = 3;
  localparam logic [11:0] LRO_LIMIT_AT = 12'h024;
  localparam logic [31:0] LRO_LIMIT_RESET = 32'hffff;
  localparam logic [31:0] LRO_LIMIT_LEAST = 32'h0;
  localparam logic [31:0] LRO_LIMIT_MOST = 32'hffff;
  localparam logic [11:0] LRO_PATIENCE_AT = 12'h028;
  localparam logic [31:0] LRO_PATIENCE_RESET = 32'h9c4;
  localparam logic [31:0] LRO_PATIENCE_LEAST = 32'h0;
  localparam logic [31:0] LRO_PATIENCE_MOST = 32'hfff0;
  localparam logic [11:0] RSS_TICK_AT = 12'h02c;
  localparam logic [31:0] RSS_TICK_RESET = 32'h3d090;
  localparam logic [31:0] RSS_TICK_LEAST = 32'h1;
  localparam logic [31:0] RSS_TICK_MOST = 32'hffffffff;
  localparam logic [11:0] RSS_TABLE_AT = 12'h400;
  localparam int RSS_TABLE_ENTRIES = 256;
  localparam logic [11:0] COUNTER_AT = 12'h100;
  localparam int COUNT = 35;
  localparam int COUNT_SUMS = 2;
  localparam int COUNT_TX_BYTES = 0;
  localparam int COUNT_RX_BYTES = 1;
  localparam int COUNT_TX_FRAMES = 2;
  localparam int COUNT_TX_STALLED = 3;
  localparam int COUNT_RX_FRAMES = 4;
  localparam int COUNT_RX_STALLED = 5;
  localparam int COUNT_HOST_STALLED = 6;
  localparam int COUNT_LSO_SENT = 7;
  localparam int COUNT_LSO_REFUSED = 8;
  localparam int COUNT_LSO_CUT = 9;
  localparam int COUNT_LSO_OTHER = 10;
  localparam int COUNT_LSO_WAITED = 11;
  localparam int COUNT_LRO_FRAME = 12;
  localparam int COUNT_LRO_PASSED = 13;
  localparam int COUNT_LRO_MERGED = 14;
  localparam int COUNT_LRO_OPENED = 15;
  localparam int COUNT_LRO_ENDED = 16;
  localparam int COUNT_LRO_FULL = 17;
  localparam int COUNT_LRO_URGENT = 18;
  localparam int COUNT_LRO_DIFFERS = 19;
  localparam int COUNT_LRO_TIMED = 20;
  localparam int COUNT_LRO_EVICTED = 21;
  localparam int COUNT_LRO_BAD = 22;
  localparam int COUNT_LRO_LONG = 23;
  localparam int COUNT_RSS_NOT_IP = 24;
  localparam int COUNT_RSS_BAD = 25;
  localparam int COUNT_RSS_FRAGMENT = 26;
  localparam int COUNT_RSS_IP = 27;
  localparam int COUNT_RSS_PORTS = 28;
  localparam int COUNT_RSS_HOMA = 29;
  localparam int COUNT_RSS_HOMA_UDP = 30;
  localparam int COUNT_RSS_HOMA_TCP = 31;
  localparam int COUNT_RSS_UNDECODED = 32;
  localparam int COUNT_RSS_PLACED = 33;
  localparam int COUNT_REGISTER_REFUSED = 34;
endpackage
/* verilator lint_on UNUSEDPARAM */
