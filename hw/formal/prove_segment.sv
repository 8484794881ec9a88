// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// homa_segment, 512 bits wide, by induction, so for any number of cycles. Each frame has one
// completion: when the first beat of a frame is taken, that of the frame before has been taken, and
// none is offered without a frame. It comes after the last beat of the frame and after the last
// beat of its last packet; it has the frame's tag and the number of packets; DONE_SENT says that
// all bytes of the message are in packets, and DONE_REFUSED that none are. No packet is longer than
// LONGEST, no beat is offered while one is taken back, and what is offered stays.
//
// And it goes on: while packets and completions are taken, and a beat comes whenever one can be,
// something moves in each run of `SLOWEST` cycles. Packets and completions are held back for as
// long as anybody likes.
//
// What the parser says is free within what it promises: it is said once for each frame; a header
// that decodes is there when that is said; a frame that is not bad has all bytes of its packet. No
// byte of the frame matters here: all are 0.
module prove_segment
  import homa_nic_pkg::*;
  import homa_wire_pkg::*;
#(
    parameter int LONGEST = 512,  // the longest packet that leaves has so many bytes
    parameter int MOST = 2048     // the Homa packet that comes has fewer bytes than this
) (
    input logic clk,
    input logic rst,
    input logic s_valid, s_last, s_bad, s_meta_valid, s_split, m_ready, c_ready,
    input logic [15:0] s_seg,
    input logic [1:0] s_tag,
    input logic vlan, v4, data,
    input logic [2:0] class_, error,
    input logic [7:0] at,
    input logic [16:0] bytes
);
  localparam int SLOWEST = 48;             // 39 halfwords of IPv4's options are the most by far
  localparam int HEADER = DATA_HDR;
  localparam logic [3:0] HEAD = 0, SUM = 1, PLAN = 2, WRITE = 3, PASS = 4, REST = 5, DRAIN = 6,
                         DONE = 7, CHECK = 8;  // as in homa_segment

  homa_meta_t s_meta;
  always_comb begin
    s_meta = 0;
    s_meta.class_ = class_;
    s_meta.error = error;
    s_meta.at = at;
    s_meta.bytes = bytes;
    s_meta.l3.vlan = vlan;
    s_meta.l3.v4 = v4;
    s_meta.l3.v6 = !v4;
    s_meta.hdr[8*HDR_BYTES-8-8*COMMON_TYPE_AT+:8] = data ? TYPE_DATA : TYPE_GRANT;
  end

  logic s_ready, m_valid, m_last, m_abort, c_valid;
  logic [511:0] m_raw;
  logic [1023:0] m_pair;
  logic [63:0] m_keep;
  logic [5:0] m_turn, m_head;
  logic [7:0] m_ip, m_homa;
  logic m_whole, m_replace, packet_v4, packet_udp;
  logic [15:0] packet_length, packet_id, packet_checksum, packet_udp_length;
  logic [31:0] packet_offset;
  logic [1:0] c_tag, c_status;
  logic [15:0] c_packets;
  homa_segment #(.WIDTH(512), .TAG_BITS(2), .LONGEST(LONGEST)) segment (
      .s_data(512'd0), .s_keep({64{1'b1}}), .*);

  wire take = s_valid && s_ready, give = m_valid && m_ready, told = c_valid && c_ready;
  wire udp = class_ == CLASS_HOMA_UDP;
  wire homa = class_ == CLASS_HOMA || udp;

  logic begun, s_waits, m_waits, c_waits;
  logic [55:0] s_shown;
  logic [64:0] m_shown;
  logic [19:0] c_shown;
  logic busy, amid, met, split, bad;       // a frame is inside; its last beat is not; meta was said
  logic [18:0] of_frame;
  logic [11:0] beats;                      // of the frame that were taken
  logic decoded;
  logic [17:0] end_;                       // of its packet, bytes
  logic [8:0] hdr;
  logic [16:0] rest;                       // bytes of its message that are in no packet that left
  logic [15:0] packets;
  logic [7:0] open;                        // beats of the packet that is leaving
  logic [5:0] still;                       // cycles in which nothing moves
  wire [11:0] now = amid ? beats : 12'd0;  // number of this beat
  wire [17:0] there = {now[11:0], 6'd0} + 18'd64;
  wire known = amid && met;
  initial begun = 0;
  always_ff @(posedge clk) begin
    begun <= 1;
    s_waits <= !rst && s_valid && !s_ready;
    s_shown <= {s_last, s_bad, s_meta_valid, s_split, s_seg, s_tag, vlan, v4, data, class_, error,
                at, bytes};
    m_waits <= !rst && m_valid && !m_ready;
    m_shown <= {m_last, m_keep};
    c_waits <= !rst && c_valid && !c_ready;
    c_shown <= {c_tag, c_status, c_packets};
    if (take && !amid) begin
      of_frame <= {s_split, s_seg, s_tag};
      packets <= 0;
    end
    if (take) beats <= now == 12'hfff ? now : now + 1;
    if (take && s_meta_valid) begin
      decoded <= homa && error == WIRE_OK && data;
      end_ <= {10'd0, at} + {1'b0, bytes};
      hdr <= {1'b0, at} + HEADER[8:0];
      rest <= bytes - HEADER[16:0];
    end
    if (take && s_last) bad <= s_bad;
    if (give) open <= m_last ? 8'd0 : open + 8'd1;
    if (give && m_last) begin
      packets <= packets + 1;
      rest <= rest < {1'b0, of_frame[17:2]} ? 17'd0 : rest - {1'b0, of_frame[17:2]};
    end
    if (m_abort) open <= 0;
    if (!m_ready || !c_ready || take || give || told || !busy || (s_ready && !s_valid)) still <= 0;
    else still <= still + 1;
    if (rst) begin
      {busy, amid, met} <= 0;
      open <= 0;
      still <= 0;
    end else begin
      if (take) begin
        busy <= 1;
        amid <= !s_last;
        met <= !s_last && (known || s_meta_valid);
      end
      if (told) busy <= 0;
    end
  end

  // What comes.
  always_comb begin
    if (!begun) assume (rst);
    if (begun) begin
      if (s_waits)
        assume (s_valid && s_shown == {s_last, s_bad, s_meta_valid, s_split, s_seg, s_tag, vlan, v4,
                                       data, class_, error, at, bytes});
      if (amid) assume ({s_split, s_seg, s_tag} == of_frame);
      if (known) assume (!s_meta_valid);
      if (s_valid && s_last && !known) assume (s_meta_valid);
      assume (bytes < MOST);
      if (s_valid && s_meta_valid && homa && error == WIRE_OK) begin
        assume (!at[0]);
        assume ({1'b0, at} >= (vlan ? 9'd18 : 9'd14) + (v4 ? 9'd20 : 9'd40) + (udp ? 9'd8 : 9'd0));
        if (data) assume (bytes > HEADER[16:0]);
        if (data && !(s_last && s_bad)) assume (there >= {10'd0, at} + HEADER[17:0]);
        if (data && s_last && !s_bad) assume (there >= {10'd0, at} + {1'b0, bytes});
      end
      if (s_valid && s_last && !s_bad && known && decoded) assume (there >= end_);
    end
  end
  assign split = of_frame[18];

  // What leaves.
  always_comb
    if (begun && !rst) begin
      if (take && !amid) assert (!busy);
      if (c_valid) begin
        assert (busy && !amid && open == 0 && !m_valid && !m_abort && !take);
        assert (c_tag == of_frame[1:0] && c_packets == packets);
        if (c_status == DONE_SENT && split) assert (rest == 0 && packets != 0);
        if (c_status == DONE_SENT && !split) assert (packets == 1);
        if (c_status == DONE_REFUSED) assert (packets == 0);
        if (c_status == DONE_CUT) assert (bad);
      end
      if (c_waits) assert (c_valid && c_shown == {c_tag, c_status, c_packets});
      if (m_waits && !m_abort) assert (m_valid && m_shown == {m_last, m_keep});
      if (m_valid) assert (busy && !m_abort && open < LONGEST / 64);
      if (m_valid && split) assert (rest != 0);
      assert (still < SLOWEST);
    end

  // What holds inside, without which the rest cannot be shown to hold for ever.
  wire [3:0] state = segment.state;
  wire plans = state == SUM || state == PLAN || state == WRITE;
  wire [16:0] seg = {1'b0, of_frame[17:2]};
  wire [16:0] part = rest < seg ? rest : seg;  // bytes of the message in this packet
  wire [16:0] next = segment.left < seg ? segment.left : seg;  // and in the one to be planned
  wire [7:0] sums = segment.sum_at - segment.l3_at;
  wire [7:0] halves = segment.homa_at - (segment.udp ? 8'd4 : 8'd0) - segment.l3_at;
  wire [11:0] window = {11'd0, segment.have_cur} + {11'd0, segment.have_nxt};
  // Of the packet that is written: its place in the frame, and the rows of what a beat needs.
  wire [17:0] base = segment.base - {1'b0, seg};
  wire [17:0] last = {9'd0, hdr} + {1'b0, part} - 18'd1;
  wire [17:0] from = {segment.x, 6'd0}, to = segment.ends ? last : from + 18'd63;
  wire [17:0] body = base + {9'd0, hdr};
  wire [11:0] first_row = 12'((base + from > body ? base + from : body) >> 6);
  wire [11:0] last_row = 12'((base + to) >> 6);
  wire [6:0] of_body = {1'b0, base[5:0]} + {1'b0, hdr[5:0]};
  wire [6:0] of_last = {1'b0, base[5:0]} + {1'b0, last[5:0]};
  always_comb
    if (begun && !rst) begin
      // Where a frame is in its life.
      assert (busy == !(state == HEAD && segment.got == 0));
      assert (state <= CHECK);
      if (!busy) assert (!amid && open == 0 && !segment.cut);
      if (state == HEAD) assert (!segment.ended && !segment.cut && segment.got < 3);
      if (busy) begin
        assert (segment.got <= 3);
        assert ({segment.seg, segment.c_tag} == of_frame[17:0]);
        assert (segment.ended == !amid);
        assert (state == HEAD || packets == segment.packets);
      end
      if (state == HEAD && busy) assert (amid && !met && beats == {10'd0, segment.got[1:0]});
      if (state == HEAD && busy) assert (packets == 0 && open == 0);
      if (state == REST || state == DRAIN) assert (amid);
      if (plans || state == CHECK || state == PASS || state == REST)
        assert (segment.status == DONE_SENT);
      if (segment.cut) assert (split && bad && !amid);
      if (segment.cut) assert (state == CHECK || state == PLAN || state == WRITE || state == DONE);
      // A frame that passes.
      if (state == PASS || state == REST) begin
        assert (!split && packets == 0);
        assert (segment.x <= LONGEST / 64 && segment.x == {4'd0, open});
        assert (segment.full == (segment.x == LONGEST / 64));
      end
      if (state == PASS) assert (segment.x < segment.got);
      // What was said of one that does not.
      if (state == CHECK) begin
        assert (split && (known || !amid) && packets == 0 && open == 0 && segment.base == 0);
        assert (beats == segment.got && segment.settle != 0 && !segment.have_cur);
        assert (segment.sum_at == segment.l3_at + 8'd10);
        if (segment.fine && segment.settle <= 1)
          assert (segment.options == (segment.v4 && halves > 10));
      end
      if (plans) assert (segment.fine && seg != 0 && rest != 0);
      if (plans || (state == CHECK && segment.fine)) begin
        assert (split && decoded && rest != 0 && (known || !amid));
        assert (segment.hdr == hdr && hdr <= 192 - 80 + HEADER && hdr >= 90 && !hdr[0]);
        assert ({segment.homa_at, 1'b0} + HEADER[8:0] == hdr);
        assert ({1'b0, packets} + rest < MOST);
        assert (end_ > {9'd0, hdr} && end_ - {9'd0, hdr} < MOST);
        assert (segment.l3_at == 7 || segment.l3_at == 9);
        assert (amid || segment.cut || (!bad && {beats[11:0], 6'd0} >= end_));
        if (segment.v4) assert (halves >= 10 && halves <= 49);
        if (state != CHECK || segment.settle <= 2)
          assert (segment.sum_last == segment.l3_at + halves - 8'd1);
      end
      if (plans) assert ({9'd0, hdr} + {1'b0, part} <= LONGEST);
      if (state == SUM) assert (segment.v4 && sums >= 10 && sums < halves && !segment.cut);
      // What the next packet has, once the steps are done.
      if (plans || state == CHECK) begin
        if (segment.settle <= 2) begin
          assert (segment.plan_part == next && segment.plan_all == (segment.left <= seg));
          assert (segment.plan_less == segment.hdr - 9'd1);
        end
        if (segment.settle <= 1)
          assert (segment.plan_end == {9'd0, segment.hdr - 9'd1} + {1'b0, next});
      end
      if (state == CHECK || state == SUM || state == PLAN)
        if (state != CHECK || segment.fine) begin
          assert (segment.left == rest && segment.base + {9'd0, hdr} + {1'b0, rest} == end_);
          assert (open == 0 && segment.base < MOST);
        end
      // Which bytes of it are where.
      if (state == CHECK && segment.fine) begin
        assert (segment.fetch == {9'd0, hdr[8:6]} && !segment.have_nxt);
        if (!segment.cut) assert ({beats[11:0], 6'd0} >= {9'd0, hdr});
      end
      if (state == SUM || state == PLAN)
        assert (segment.fetch == 12'((segment.base + {9'd0, hdr}) >> 6) + window);
      if (state == WRITE) begin
        assert (base < MOST && base + {9'd0, hdr} + {1'b0, rest} == end_);
        assert (segment.left == rest - part && segment.last_packet == (segment.left == 0));
        assert ({segment.end_row, segment.end_lane} == last);
        assert (segment.x == {4'd0, open} && segment.x <= segment.end_row);
        assert (segment.head_only == (from + 18'd64 <= {9'd0, hdr}));
        assert (segment.mixed == (!segment.head_only && from < {9'd0, hdr}));
        assert (segment.ends == (segment.x == segment.end_row));
        assert (segment.aligned == !(segment.mixed && of_body[6]));
        if (!segment.head_only)
          assert (segment.two == (segment.aligned && (segment.ends ? of_last[6] : base[5:0] != 0)));
        assert (segment.slides == (!segment.head_only && segment.aligned &&
                                   (!segment.ends || of_last >= 63)));
        assert (segment.turn == base[5:0] && segment.turns == (base[5:0] != 0));
        assert (segment.body_above == of_body[6] && segment.end_above == of_last[6]);
        assert (segment.next_above == (of_last >= 63));
        assert (segment.fetch == first_row + window);
        // What is written is there.
        if (m_valid && !segment.head_only) begin
          assert (segment.have_cur && last_row - first_row < window);
          assert (segment.aligned == (12'((base + from) >> 6) == first_row));
        end
      end
      if (plans) begin
        assert (!segment.have_nxt || segment.have_cur);
        assert (segment.from_kept == (segment.fetch < segment.got));
        assert (beats == (segment.fetch > segment.got ? segment.fetch : segment.got));
      end
      // The end.
      if (state == DRAIN) begin
        assert (open == 0 && segment.status != DONE_CUT);
        if (segment.status == DONE_SENT) assert (split && known && rest == 0 && packets != 0);
        if (segment.status == DONE_REFUSED) assert (packets == 0);
      end
      // How long nothing has moved.
      if (state == CHECK) assert (still + {4'd0, segment.settle} <= 3);
      if (state == SUM) assert (still + 7 <= sums);
      if (state == PLAN) assert (still + {4'd0, segment.settle} <= 44);
      if (state == PLAN && segment.settle == 0) assert (still == 0);
      if (state == WRITE) assert (still <= 44 + window);
      if (state == DRAIN) assert (still <= 3);
      if (state == HEAD || state == PASS || state == REST) assert (still == 0);
    end
endmodule
