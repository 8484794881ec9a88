// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The blocks around a port: what stands between a card's DMA and its MAC. Each can be switched off
// in the registers. Signals of the host begin with h, those of the port with p.
module homa_nic
  import homa_nic_pkg::*;
  import homa_lro_pkg::*;
  import homa_regs_pkg::*;
#(
    parameter int WIDTH = 512,
    parameter int QUEUES = 16,
    parameter int QUEUE_BITS = 4,
    parameter int PAGES_BITS = 10,
    parameter int TAG_BITS = 8
) (
    input logic clk,
    input logic rst,

    // The host's registers, AXI-Lite.
    input logic reg_awvalid,
    output logic reg_awready,
    input logic [11:0] reg_awaddr,
    input logic reg_wvalid,
    output logic reg_wready,
    input logic [31:0] reg_wdata,
    input logic [3:0] reg_wstrb,
    output logic reg_bvalid,
    input logic reg_bready,
    output logic [1:0] reg_bresp,
    input logic reg_arvalid,
    output logic reg_arready,
    input logic [11:0] reg_araddr,
    output logic reg_rvalid,
    input logic reg_rready,
    output logic [31:0] reg_rdata,
    output logic [1:0] reg_rresp,

    // From the host: frames that may be super-frames.
    input logic hs_valid,
    output logic hs_ready,
    input logic [WIDTH-1:0] hs_data,
    input logic [WIDTH/8-1:0] hs_keep,
    input logic hs_last,
    input logic hs_split,
    input logic [15:0] hs_seg,
    input logic [TAG_BITS-1:0] hs_tag,

    // From the host: frames that do not wait behind those.
    input logic hb_valid,
    output logic hb_ready,
    input logic [WIDTH-1:0] hb_data,
    input logic [WIDTH/8-1:0] hb_keep,
    input logic hb_last,

    // To the host: what became of each frame of the first input.
    output logic hc_valid,
    input logic hc_ready,
    output logic [TAG_BITS-1:0] hc_tag,
    output logic [1:0] hc_status,
    output logic [15:0] hc_packets,

    // To the host: frames that have left the port.
    output logic hd_valid,
    input logic hd_ready,
    output logic hd_other,
    output logic [15:0] hd_number,
    output logic [47:0] hd_time,

    // To the host: what was received.
    output logic hm_valid,
    input logic hm_ready,
    output logic [WIDTH-1:0] hm_data,
    output logic [WIDTH/8-1:0] hm_keep,
    output logic hm_last,
    output logic hm_bad,
    output logic [QUEUE_BITS-1:0] hm_queue,
    output logic [31:0] hm_hash,
    output logic [2:0] hm_class,
    output logic [7:0] hm_at,
    output logic [PIECE_BITS:0] hm_pieces,
    output logic [13:0] hm_seg,
    output logic [47:0] hm_time,

    // To the host: what is in the units.
    output logic hl_valid,
    input logic hl_ready,
    output logic [31:0] hl_offset,
    output logic [13:0] hl_length,
    output logic hl_last,

    // From the host: it has taken a frame or unit of this queue.
    input logic taken,
    input logic [QUEUE_BITS-1:0] taken_queue,

    // To the port.
    output logic pm_valid,
    input logic pm_ready,
    output logic [WIDTH-1:0] pm_data,
    output logic [WIDTH/8-1:0] pm_keep,
    output logic pm_last,

    // From the port: bytes of these that have left it in this cycle.
    input logic [6:0] pm_left,

    // From the port.
    input logic ps_valid,
    output logic ps_ready,
    input logic [WIDTH-1:0] ps_data,
    input logic [WIDTH/8-1:0] ps_keep,
    input logic ps_last
);
  logic lso_on, lro_on, rss_on, rss_least, rss_tick, rss_set;
  logic [15:0] lro_limit, lro_patience;
  logic [7:0] rss_set_at;
  logic [QUEUE_BITS-1:0] rss_set_queue;
  logic [5:0] count_at;
  logic [63:0] count_value;
  logic refused;
  logic pace_on;
  logic [16:0] pace_limit;
  logic [23:0] pace_rate;
  logic [7:0] pace_extra;
  logic [31:0] in_port, time_step;
  logic [47:0] now;

  homa_registers #(
      .WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS), .PAGES_BITS(PAGES_BITS)
  ) registers (
      .clk, .rst,
      .awvalid(reg_awvalid), .awready(reg_awready), .awaddr(reg_awaddr),
      .wvalid(reg_wvalid), .wready(reg_wready), .wdata(reg_wdata), .wstrb(reg_wstrb),
      .bvalid(reg_bvalid), .bready(reg_bready), .bresp(reg_bresp),
      .arvalid(reg_arvalid), .arready(reg_arready), .araddr(reg_araddr),
      .rvalid(reg_rvalid), .rready(reg_rready), .rdata(reg_rdata), .rresp(reg_rresp),
      .lso_on, .lro_on, .lro_limit, .lro_patience, .rss_on, .rss_least, .rss_tick, .rss_set,
      .rss_set_at, .rss_set_queue, .pace_on, .pace_limit, .pace_rate, .pace_extra, .in_port,
      .time_step, .now, .count_at, .count_value, .refused);

  homa_clock clock (.clk, .rst, .step(time_step), .now);

  // ---- transmit ----

  logic t_valid, t_ready, t_last, t_other;
  logic [WIDTH-1:0] t_data;
  logic [WIDTH/8-1:0] t_keep;

  // Without segmentation a super-frame is refused, as one with segments of no bytes is.
  homa_lso #(.WIDTH(WIDTH), .TAG_BITS(TAG_BITS)) lso (
      .clk, .rst,
      .s_valid(hs_valid), .s_ready(hs_ready), .s_data(hs_data), .s_keep(hs_keep),
      .s_last(hs_last), .s_split(hs_split), .s_seg(lso_on ? hs_seg : 16'd0), .s_tag(hs_tag),
      .b_valid(hb_valid), .b_ready(hb_ready), .b_data(hb_data), .b_keep(hb_keep),
      .b_last(hb_last),
      .m_valid(t_valid), .m_ready(t_ready), .m_data(t_data), .m_keep(t_keep), .m_last(t_last),
      .m_other(t_other),
      .c_valid(hc_valid), .c_ready(hc_ready), .c_tag(hc_tag), .c_status(hc_status),
      .c_packets(hc_packets));

  logic waited, lied, untaken, crowded;

  // Whether a frame may begin is known late in the cycle, and segmentation reads a memory if it may:
  // there is a register between them.
  localparam int BEAT = WIDTH + WIDTH / 8 + 2;
  logic q_valid, q_ready, q_last, q_other;
  logic [WIDTH-1:0] q_data;
  logic [WIDTH/8-1:0] q_keep;
  homa_skid #(.BITS(BEAT)) skid (
      .clk, .rst, .s_valid(t_valid), .s_ready(t_ready), .s_data({t_data, t_keep, t_last, t_other}),
      .m_valid(q_valid), .m_ready(q_ready), .m_data({q_data, q_keep, q_last, q_other}));

  homa_pace #(.WIDTH(WIDTH)) pace (
      .clk, .rst, .on(pace_on), .limit(pace_limit), .rate(pace_rate), .extra(pace_extra), .now,
      .s_valid(q_valid), .s_ready(q_ready), .s_data(q_data), .s_keep(q_keep), .s_last(q_last),
      .s_other(q_other),
      .m_valid(pm_valid), .m_ready(pm_ready), .m_data(pm_data), .m_keep(pm_keep),
      .m_last(pm_last), .left(pm_left), .in_port,
      .d_valid(hd_valid), .d_ready(hd_ready), .d_other(hd_other), .d_number(hd_number),
      .d_time(hd_time), .waited, .lied, .untaken, .crowded);

  // ---- receive ----

  logic [EVENTS-1:0] lro_events;
  logic [7:0] classes;
  logic undecoded, placed;

  homa_receive #(
      .WIDTH(WIDTH), .QUEUES(QUEUES), .QUEUE_BITS(QUEUE_BITS), .PAGES_BITS(PAGES_BITS)
  ) receive (
      .clk, .rst, .lro_on, .lro_limit, .lro_patience, .rss_on, .rss_least, .rss_tick, .rss_set,
      .rss_set_at, .rss_set_queue, .taken, .taken_queue,
      .s_valid(ps_valid), .s_ready(ps_ready), .s_data(ps_data), .s_keep(ps_keep),
      .s_last(ps_last), .now,
      .m_valid(hm_valid), .m_ready(hm_ready), .m_data(hm_data), .m_keep(hm_keep),
      .m_last(hm_last), .m_bad(hm_bad), .m_queue(hm_queue), .m_hash(hm_hash),
      .m_class(hm_class), .m_at(hm_at), .m_pieces(hm_pieces), .m_seg(hm_seg),
      .m_time(hm_time),
      .l_valid(hl_valid), .l_ready(hl_ready), .l_offset(hl_offset), .l_length(hl_length),
      .l_last(hl_last), .lro_events, .classes, .undecoded, .placed);

  // ---- statistics ----

  function automatic logic [6:0] bytes_of(input logic [WIDTH/8-1:0] keep);
    bytes_of = 0;
    for (int i = 0; i < WIDTH / 8; i++) bytes_of += 7'(keep[i]);
  endfunction

  logic [6:0] sums[COUNT_SUMS];
  logic [COUNT-1:COUNT_SUMS] events;
  wire tx = pm_valid && pm_ready;
  wire rx = ps_valid && ps_ready;

  always_ff @(posedge clk) begin
    sums[COUNT_TX_BYTES] <= tx ? bytes_of(pm_keep) : 0;
    sums[COUNT_RX_BYTES] <= rx ? bytes_of(ps_keep) : 0;
    events[COUNT_TX_FRAMES] <= tx && pm_last;
    events[COUNT_TX_STALLED] <= pm_valid && !pm_ready;
    events[COUNT_RX_FRAMES] <= rx && ps_last;
    events[COUNT_RX_STALLED] <= ps_valid && !ps_ready;
    events[COUNT_HOST_STALLED] <= hm_valid && !hm_ready;
    events[COUNT_LSO_SENT] <= hc_valid && hc_ready && hc_status == DONE_SENT;
    events[COUNT_LSO_REFUSED] <= hc_valid && hc_ready && hc_status == DONE_REFUSED;
    events[COUNT_LSO_CUT] <= hc_valid && hc_ready && hc_status == DONE_CUT;
    events[COUNT_LSO_OTHER] <= hb_valid && hb_ready && hb_last;
    events[COUNT_LSO_WAITED] <= hc_valid && !hc_ready;
    events[COUNT_LRO_FRAME+:EVENTS] <= lro_events;
    events[COUNT_RSS_NOT_IP+:8] <= classes;
    events[COUNT_RSS_UNDECODED] <= undecoded;
    events[COUNT_RSS_PLACED] <= placed;
    events[COUNT_REGISTER_REFUSED] <= refused;
    events[COUNT_PACE_WAITED] <= waited;
    events[COUNT_PACE_LIED] <= lied;
    events[COUNT_STAMP_UNTAKEN] <= untaken;
    events[COUNT_STAMP_CROWDED] <= crowded;
    // What is told in the cycle of a reset was before it.
    if (rst) begin
      for (int i = 0; i < COUNT_SUMS; i++) sums[i] <= 0;
      events <= 0;
    end
  end

  homa_stats #(.COUNTERS(COUNT), .SUMS(COUNT_SUMS)) stats (
      .clk, .rst, .sums, .events, .read_at(count_at), .q_value(count_value));
endmodule
