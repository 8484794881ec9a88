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

  // ---- the indirection table ----

  logic [QUEUE_BITS-1:0] fill_queue;
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
  end

  // ---- what was written, for those who read it ----

  // One block RAM with a word for each address, and beside it whether there is a register. The second
  // half is only read: it has what the registers of the first 128 bytes say until they are written,
  // so nothing has to be restored after a reset.
  localparam int SECOND = 512;
  localparam logic [31:0] WRITABLE =
      32'd1 << CONTROL_AT[6:2] | 32'd1 << LRO_LIMIT_AT[6:2] | 32'd1 << LRO_PATIENCE_AT[6:2] |
      32'd1 << RSS_TICK_AT[6:2] | 32'd1 << PACE_LIMIT_AT[6:2] | 32'd1 << PACE_RATE_AT[6:2] |
      32'd1 << PACE_EXTRA_AT[6:2] | 32'd1 << TIME_STEP_AT[6:2];
  (* ram_style = "block" *) logic [32:0] words[2*SECOND];
  logic [32:0] word, said;                 // said: a cycle later, for a memory tells late
  logic [31:0] written;                    // which of these were, since the reset
  wire own = read_at[11:7] == 0;
  wire first_word = own && !written[read_at[6:2]];

  initial begin
    for (int i = 0; i < 2 * SECOND; i++) words[i] = {i >= SECOND / 2 && i < SECOND, 32'd0};
    words[SECOND+32'(ID_AT[6:2])] = {1'b1, MAP_ID};
    words[SECOND+32'(VERSION_AT[6:2])] = {1'b1, MAP_VERSION};
    words[SECOND+32'(WIDTH_AT[6:2])] = {1'b1, 32'(WIDTH)};
    words[SECOND+32'(QUEUES_AT[6:2])] = {1'b1, 32'(QUEUES)};
    words[SECOND+32'(COUNTERS_AT[6:2])] = {1'b1, 32'(COUNT)};
    words[SECOND+32'(PAGES_AT[6:2])] = {1'b1, 32'(1 << PAGES_BITS)};
    words[SECOND+32'(CONTROL_AT[6:2])] = {1'b1, CONTROL_RESET};
    words[SECOND+32'(LRO_LIMIT_AT[6:2])] = {1'b1, LRO_LIMIT_RESET};
    words[SECOND+32'(LRO_PATIENCE_AT[6:2])] = {1'b1, LRO_PATIENCE_RESET};
    words[SECOND+32'(RSS_TICK_AT[6:2])] = {1'b1, RSS_TICK_RESET};
    words[SECOND+32'(PACE_LIMIT_AT[6:2])] = {1'b1, PACE_LIMIT_RESET};
    words[SECOND+32'(PACE_RATE_AT[6:2])] = {1'b1, PACE_RATE_RESET};
    words[SECOND+32'(PACE_EXTRA_AT[6:2])] = {1'b1, PACE_EXTRA_RESET};
    words[SECOND+32'(TIME_STEP_AT[6:2])] = {1'b1, TIME_STEP_RESET};
    // What changes by itself is added to this.
    words[SECOND+32'(PACE_IN_PORT_AT[6:2])] = {1'b1, 32'd0};
    words[SECOND+32'(TIME_LOW_AT[6:2])] = {1'b1, 32'd0};
    words[SECOND+32'(TIME_HIGH_AT[6:2])] = {1'b1, 32'd0};
  end

  wire put = filling || (write && write_ok);
  wire [8:0] put_at = filling ? {RSS_TABLE_AT[10], fill_at} : write_at[10:2];
  wire [32:0] put_word = {1'b1, write_data[31:QUEUE_BITS],
                          filling ? fill_queue : write_data[QUEUE_BITS-1:0]};

  always_ff @(posedge clk) begin
    if (put) words[{1'b0, put_at}] <= put_word;
    word <= words[{first_word, read_at[10:2]}];
    said <= word;
    // Of the table's entries only these bits were written.
    if (read_at[10]) said[31:QUEUE_BITS] <= 0;
    for (int i = 0; i < 32; i++)
      if (rst) written[i] <= 0;
      else if (WRITABLE[i] && write && write_ok && write_at[11:2] == 10'(i)) written[i] <= 1;
  end

  // ---- reads: in the second cycle the counter and that word are there ----

  // What is said is kept then, and chosen in the third: the counter comes late in its cycle.
  logic [2:0] on_the_way;
  logic [31:0] moving, low, high;          // moving: what changes by itself
  logic is_counter, high_ok;
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
    case (read_at)
      PACE_IN_PORT_AT: moving <= in_port;
      TIME_LOW_AT: moving <= now[31:0];
      TIME_HIGH_AT: moving <= {16'd0, time_high};
      default: moving <= 0;
    endcase
  end

  assign read_data = !is_counter ? said[31:0] | moving : read_at[2] ? high : low;
  assign read_ok = !is_counter ? said[32] && !read_at[11] : !read_at[2] || high_ok;

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
