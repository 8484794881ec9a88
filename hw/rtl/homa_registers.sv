// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The registers of homa_nic (hw/registers.toml), behind AXI-Lite. A register has its new value in
// the cycle after the write. Counters have two words: reading the low one keeps the high one, which
// may be read next. Reading any other high word is an error, so that nobody puts words of two
// counters, or of two moments, together.
//
// After a reset the indirection table is written, entry n with n modulo QUEUES; writes wait for
// that, 256 cycles.
module homa_registers
  import homa_regs_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4,
    parameter int PAGES_BITS = 10
) (
    input logic clk,
    input logic rst,

    input logic awvalid,
    output logic awready,
    input logic [11:0] awaddr,
    input logic wvalid,
    output logic wready,
    input logic [31:0] wdata,
    input logic [3:0] wstrb,
    output logic bvalid,
    input logic bready,
    output logic [1:0] bresp,
    input logic arvalid,
    output logic arready,
    input logic [11:0] araddr,
    output logic rvalid,
    input logic rready,
    output logic [31:0] rdata,
    output logic [1:0] rresp,

    output logic lso_on,
    output logic lro_on,
    output logic [15:0] lro_limit,
    output logic [15:0] lro_patience,
    output logic rss_on,
    output logic rss_least,
    output logic rss_tick,
    output logic rss_set,
    output logic [7:0] rss_set_at,
    output logic [QUEUE_BITS-1:0] rss_set_queue,

    output logic pace_on,
    output logic [16:0] pace_limit,
    output logic [23:0] pace_rate,
    output logic [7:0] pace_extra,
    input logic [31:0] in_port,
    output logic [31:0] time_step,
    input logic [47:0] now,

    output logic [5:0] count_at,
    input logic [63:0] count_value,      // a cycle later
    output logic refused
);
  logic write, write_ok, read, read_done, read_ok, filling;
  logic [11:0] write_at, read_at;
  logic [31:0] write_data, read_data;

  homa_axil axil (
      .clk, .rst, .awvalid, .awready, .awaddr, .wvalid, .wready, .wdata, .wstrb, .bvalid, .bready,
      .bresp, .arvalid, .arready, .araddr, .rvalid, .rready, .rdata, .rresp, .busy(filling),
      .write, .write_at, .write_data, .write_ok, .read, .read_at, .read_done, .read_data,
      .read_ok, .refused);

  // ---- writes ----

  localparam int CONTROL_BITS = $clog2(CONTROL_MOST + 1);
  logic [CONTROL_BITS-1:0] control;
  logic [31:0] tick_cycles, tick_left;
  logic tick_begins;               // with the number of cycles that was just set

  function automatic logic in_range(input logic [31:0] value, input logic [31:0] least,
                                  input logic [31:0] most);
    // Less than a power of two, as most of these are, is a look at the bits from there on.
    in_range = value >= least && {1'b0, value} < {1'b0, most} + 33'd1;
  endfunction

  wire write_table = write_at[11:10] == RSS_TABLE_AT[11:10];

  always_ff @(posedge clk) begin
    write_ok <= 0;
    case (write_at)
      CONTROL_AT: write_ok <= in_range(write_data, CONTROL_LEAST, CONTROL_MOST);
      LRO_LIMIT_AT: write_ok <= in_range(write_data, LRO_LIMIT_LEAST, LRO_LIMIT_MOST);
      LRO_PATIENCE_AT: write_ok <= in_range(write_data, LRO_PATIENCE_LEAST, LRO_PATIENCE_MOST);
      RSS_TICK_AT: write_ok <= in_range(write_data, RSS_TICK_LEAST, RSS_TICK_MOST);
      PACE_LIMIT_AT: write_ok <= in_range(write_data, PACE_LIMIT_LEAST, PACE_LIMIT_MOST);
      PACE_RATE_AT: write_ok <= in_range(write_data, PACE_RATE_LEAST, PACE_RATE_MOST);
      PACE_EXTRA_AT: write_ok <= in_range(write_data, PACE_EXTRA_LEAST, PACE_EXTRA_MOST);
      TIME_STEP_AT: write_ok <= in_range(write_data, TIME_STEP_LEAST, TIME_STEP_MOST);
      default: if (write_table) write_ok <= write_data < QUEUES;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      control <= CONTROL_RESET[CONTROL_BITS-1:0];
      lro_limit <= LRO_LIMIT_RESET[15:0];
      lro_patience <= LRO_PATIENCE_RESET[15:0];
      tick_cycles <= RSS_TICK_RESET;
      pace_limit <= PACE_LIMIT_RESET[16:0];
      pace_rate <= PACE_RATE_RESET[23:0];
      pace_extra <= PACE_EXTRA_RESET[7:0];
      time_step <= TIME_STEP_RESET;
    end else if (write && write_ok)
      case (write_at)
        CONTROL_AT: control <= write_data[CONTROL_BITS-1:0];
        LRO_LIMIT_AT: lro_limit <= write_data[15:0];
        LRO_PATIENCE_AT: lro_patience <= write_data[15:0];
        RSS_TICK_AT: tick_cycles <= write_data;
        PACE_LIMIT_AT: pace_limit <= write_data[16:0];
        PACE_RATE_AT: pace_rate <= write_data[23:0];
        PACE_EXTRA_AT: pace_extra <= write_data[7:0];
        TIME_STEP_AT: time_step <= write_data;
        default: ;
      endcase
  end

  assign lso_on = control[CONTROL_LSO];
  assign lro_on = control[CONTROL_LRO];
  assign rss_on = control[CONTROL_RSS];
  assign rss_least = control[CONTROL_BY_LOAD];
  assign pace_on = control[CONTROL_PACE];

  always_ff @(posedge clk) begin
    tick_begins <= rst || (write && write_ok && write_at == RSS_TICK_AT);
    if (tick_begins || tick_left == 1) tick_left <= tick_cycles;
    else tick_left <= tick_left - 1;
    rss_tick <= !rst && !tick_begins && tick_left == 1;
  end

  // ---- the indirection table: a copy, for those who read it ----

  logic [QUEUE_BITS-1:0] entries[RSS_TABLE_ENTRIES];
  logic [QUEUE_BITS-1:0] entry, kept_entry, fill_queue;
  logic [7:0] fill_at;

  always_ff @(posedge clk) begin
    if (rst) begin
      filling <= 1;
      fill_at <= 0;
      fill_queue <= 0;
      rss_set <= 0;
    end else begin
      fill_at <= fill_at + 1;
      fill_queue <= fill_queue == QUEUE_BITS'(QUEUES - 1) ? '0 : fill_queue + 1'b1;
      if (fill_at == '1) filling <= 0;
      rss_set <= filling || (write && write_ok && write_table);
    end
    rss_set_at <= filling ? fill_at : write_at[9:2];
    rss_set_queue <= filling ? fill_queue : write_data[QUEUE_BITS-1:0];
    if (rss_set) entries[rss_set_at] <= rss_set_queue;
    entry <= entries[read_at[9:2]];
    kept_entry <= entry;
  end

  // ---- reads: in the second cycle the counter and the table's entry are there ----

  // What is said is kept then, and chosen in the third: the counter comes late in its cycle.
  logic [2:0] on_the_way;
  logic [31:0] fixed, low, high;           // fixed: what has an address of its own
  logic fixed_ok, is_counter, is_entry, high_ok;
  logic [15:0] time_high;
  logic [11:0] high_at;    // whose high word is kept
  logic high_kept;

  localparam logic [11:0] COUNTERS_END = COUNTER_AT + 12'(8 * COUNT);
  wire counter = read_at >= COUNTER_AT && read_at < COUNTERS_END;
  assign count_at = 6'(read_at[11:3] - COUNTER_AT[11:3]);
  wire low_word = counter && !read_at[2];

  always_ff @(posedge clk) begin
    low <= count_value[31:0];
    if (on_the_way[1] && !read_at[2]) high <= count_value[63:32];
    high_ok <= high_kept && high_at == read_at;
    is_counter <= counter;
    is_entry <= read_at[11:10] == RSS_TABLE_AT[11:10];
    fixed_ok <= 1;
    case (read_at)
      ID_AT: fixed <= MAP_ID;
      VERSION_AT: fixed <= MAP_VERSION;
      WIDTH_AT: fixed <= WIDTH;
      QUEUES_AT: fixed <= QUEUES;
      COUNTERS_AT: fixed <= COUNT;
      PAGES_AT: fixed <= 1 << PAGES_BITS;
      CONTROL_AT: fixed <= 32'(control);
      LRO_LIMIT_AT: fixed <= {16'd0, lro_limit};
      LRO_PATIENCE_AT: fixed <= {16'd0, lro_patience};
      RSS_TICK_AT: fixed <= tick_cycles;
      PACE_LIMIT_AT: fixed <= {15'd0, pace_limit};
      PACE_RATE_AT: fixed <= {8'd0, pace_rate};
      PACE_EXTRA_AT: fixed <= {24'd0, pace_extra};
      PACE_IN_PORT_AT: fixed <= in_port;
      TIME_STEP_AT: fixed <= time_step;
      TIME_LOW_AT: fixed <= now[31:0];
      TIME_HIGH_AT: fixed <= {16'd0, time_high};
      default: begin
        fixed <= 0;
        fixed_ok <= 0;
      end
    endcase
  end

  always_comb begin
    read_data = fixed;
    read_ok = fixed_ok;
    if (is_counter) begin
      read_data = read_at[2] ? high : low;
      read_ok = !read_at[2] || high_ok;
    end else if (is_entry) begin
      read_data = 32'(kept_entry);
      read_ok = 1;
    end
  end

  assign read_done = on_the_way[2];

  always_ff @(posedge clk) begin
    if (rst) begin
      on_the_way <= 0;
      high_kept <= 0;
    end else begin
      on_the_way <= {on_the_way[1:0], read};
      // Reading anything else than the high word lets it go.
      if (read_done) high_kept <= low_word && read_at[1:0] == 0;
    end
    if (rst) time_high <= 0;
    else if (on_the_way[1] && read_at == TIME_LOW_AT) time_high <= now[47:32];
    if (read_done) high_at <= read_at + 12'd4;
  end
endmodule
