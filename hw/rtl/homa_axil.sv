// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// The host's side of the registers: AXI-Lite (without the signals of protection, which nothing here
// depends on) becomes one read or one write at a time. Whoever knows the registers answers whether
// it is allowed; what is not has no effect and gets SLVERR. Writes of single bytes and addresses
// inside of a word are refused here.
module homa_axil #(
    parameter int AT_BITS = 12
) (
    input logic clk,
    input logic rst,

    input logic awvalid,
    output logic awready,
    input logic [AT_BITS-1:0] awaddr,
    input logic wvalid,
    output logic wready,
    input logic [31:0] wdata,
    input logic [3:0] wstrb,
    output logic bvalid,
    input logic bready,
    output logic [1:0] bresp,
    input logic arvalid,
    output logic arready,
    input logic [AT_BITS-1:0] araddr,
    output logic rvalid,
    input logic rready,
    output logic [31:0] rdata,
    output logic [1:0] rresp,

    input logic busy,                  // no write now
    output logic write,                // for a cycle
    output logic [AT_BITS-1:0] write_at,    // from the cycle before it on
    output logic [31:0] write_data,
    input logic write_ok,              // whether these two are allowed, as they were a cycle ago

    output logic read,                 // for a cycle; the answer comes with read_done
    output logic [AT_BITS-1:0] read_at,
    input logic read_done,
    input logic [31:0] read_data,
    input logic read_ok,

    output logic refused               // an access that gets SLVERR; at most one is counted in a cycle
);
  localparam logic [1:0] OKAY = 2'b00;
  localparam logic [1:0] SLVERR = 2'b10;

  logic has_at, has_data, settled, whole, reading;
  wire now = settled && !bvalid && !busy;
  wire good = whole && write_at[1:0] == 0;
  wire write_bad = now && !(good && write_ok);
  wire read_bad = read_done && !(read_ok && read_at[1:0] == 0);

  assign awready = !has_at;
  assign wready = !has_data;
  assign write = now && good;
  assign arready = !reading && !rvalid && !read;

  always_ff @(posedge clk) begin
    if (rst) begin
      has_at <= 0;
      has_data <= 0;
      settled <= 0;
      bvalid <= 0;
      reading <= 0;
      read <= 0;
      rvalid <= 0;
      refused <= 0;
    end else begin
      if (awvalid && awready) has_at <= 1;
      else if (now) has_at <= 0;
      if (wvalid && wready) has_data <= 1;
      else if (now) has_data <= 0;
      settled <= has_at && has_data && !now;
      bvalid <= now || (bvalid && !bready);
      read <= arvalid && arready;
      reading <= read || (reading && !read_done);
      rvalid <= read_done || (rvalid && !rready);
      refused <= write_bad || read_bad;
    end
    if (awvalid && awready) write_at <= awaddr;
    if (wvalid && wready) begin
      write_data <= wdata;
      whole <= &wstrb;
    end
    if (now) bresp <= write_bad ? SLVERR : OKAY;
    if (arvalid && arready) read_at <= araddr;
    if (read_done) begin
      rdata <= read_bad ? 0 : read_data;
      rresp <= read_bad ? SLVERR : OKAY;
    end
  end
endmodule
