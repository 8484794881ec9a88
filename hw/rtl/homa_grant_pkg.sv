// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What the parts of the grant scheduler tell each other. No part needs all of it.
/* verilator lint_off UNUSEDPARAM */
package homa_grant_pkg;

  localparam int LENGTH_BITS = 20;   // of a message's bytes: HOMA_MAX_MESSAGE is 1,000,000
  localparam int BIRTH_BITS = 20;    // beyond, only the order of messages with equal bytes is wrong
  localparam int ID_BITS = 11;       // messages that are known; more than may wait
  localparam int PEER_BITS = 10;
  localparam int SLOTS = 8;          // messages that are granted to

  // What came.
  localparam logic [1:0] EVENT_ANNOUNCE = 2'd0;
  localparam logic [1:0] EVENT_DATA = 2'd1;
  localparam logic [1:0] EVENT_END = 2'd2;

  // Where a message is.
  localparam logic [1:0] AT_NOWHERE = 2'd0;   // nobody knows it
  localparam logic [1:0] AT_REST = 2'd1;      // all of it was granted, or needs no grant
  localparam logic [1:0] AT_QUEUE = 2'd2;     // it waits
  localparam logic [1:0] AT_SLOT = 2'd3;      // it is granted to

  // A message: struct homa_grantee of engine/homa/homa_grant.h, with what is left instead of what
  // was received.
  typedef struct packed {
    logic [ID_BITS-1:0] id;
    logic [PEER_BITS-1:0] peer;
    logic [BIRTH_BITS-1:0] birth;
    logic [LENGTH_BITS-1:0] length;
    logic [LENGTH_BITS-1:0] left;       // bytes that have not come
    logic [LENGTH_BITS-1:0] granted;    // bytes before this one may come
    logic [LENGTH_BITS-1:0] accounted;  // see homa_grant.sv
  } grantee_t;

  // What the memory has of each. While it is in a slot only `at` is true.
  typedef struct packed {
    logic [1:0] at;
    logic [LENGTH_BITS-1:0] key;        // its key in the queue
    grantee_t who;
  } record_t;

  // Settings, as the engine has them.
  typedef struct packed {
    logic [LENGTH_BITS-1:0] rtt;        // RTTbytes: the window, and what is granted at the end of a
                                        // message on an unscheduled level
    logic [13:0] seg;                   // message bytes of a packet; grants end on a multiple
    logic [13:0] step;                  // bytes of a waiting message that change its place
    logic [3:0] overcommit;             // messages that are granted to, at most SLOTS
    logic [3:0] levels;                 // for scheduled bytes
    logic [7:1][LENGTH_BITS-1:0] cutoffs;
  } grant_settings_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
