-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
--
-- Homa for Wireshark and tshark (tested with 4.0): every packet type of wire
-- revision jul26, natively (IP protocol 146), in UDP (port 54321, or any other
-- by its markers) and disguised as TCP. docs/wireshark.md says how to install
-- and use it.
--
-- homa_wire.lua says where each field stands; generate.py writes it from the C
-- header. homa_rpcs.lua says which packets are of one RPC. This file loads both
-- from its own folder and says how everything is shown. It believes nothing it
-- reads: a field is only looked at when its bytes are there. Packets of one RPC
-- are tied together by the two addresses and the RPC's id at the client: that
-- gives each RPC a number (homa.stream), links from request to response, and
-- the time between them. That is done when packets are first read, when there
-- may be no tree and no other protocol's fields.

-- The two other files are beside this one, wherever that is: given by -X lua_script, or
-- in a folder for plug-ins.
local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local wire = dofile(here .. "homa_wire.lua")
local rpcs = dofile(here .. "homa_rpcs.lua")

local const = wire.const
local BODY = { -- structure of each type; the others are the common header alone
	DATA = "data", GRANT = "grant", RESEND = "resend", CUTOFFS = "cutoffs", ACK = "acks",
	START_MSG = "start",
}

local homa = Proto("homa", "Homa Transport")

---- fields ----

local type_names, type_body, type_texts = {}, {}, {}
for _, t in ipairs(wire.types) do
	type_names[t.code] = t.name
	type_body[t.code] = BODY[t.name] or "common"
	type_texts[t.code] = t.text
end

local place = {} -- "struct.member" -> where
for struct, fields in pairs(wire.fields) do
	for _, f in ipairs(fields) do
		place[struct .. "." .. f.name] = f
	end
end

-- A member's bytes; the caller knows that they are there.
local function part(tvb, name)
	return tvb(place[name].at, place[name].size)
end

local make_int = { ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32,
	nil, nil, nil, ProtoField.uint64 }
local HEX = { flags = true, checksum = true, urgent = true, ext = true }

local TITLE = {
	sport = "Source port", dport = "Destination port", doff = "Header length (doff)",
	ext = "Extension bits", resp_limit_kib = "Response limit, KiB", seg_offset = "Segment offset",
	num = "Number of acks", sender_id = "Id at the sender", client_id = "Id at the client",
}

local function title(name)
	return TITLE[name] or (name:sub(1, 1):upper() .. name:sub(2):gsub("_", " "))
end

local pf = {} -- ProtoFields by filter name without "homa."

local function describe(prefix, f)
	local abbr = prefix .. f.name
	local text = f.text ~= "" and f.text or nil

	if f.name == "type" then
		pf[abbr] = ProtoField.uint8("homa.type", "Type", base.HEX, type_names, nil, text)
	elseif f.size == 1 and f.count then
		pf[abbr] = ProtoField.bytes("homa." .. abbr, title(f.name), base.NONE, text)
	elseif not f.struct then
		pf[abbr] = make_int[f.size]("homa." .. abbr, title(f.name),
			HEX[f.name] and base.HEX or base.DEC, nil, nil, text)
	end
end

for struct, fields in pairs(wire.fields) do
	for _, f in ipairs(fields) do
		describe(struct == "common" and "" or struct .. ".", f)
	end
end

pf.incast = ProtoField.bool("homa.data.ext.incast", "Incast: limit the unscheduled response", 8,
	nil, const.ext_incast)
pf.congested = ProtoField.bool("homa.data.ext.congested", "Sender's uplink is the bottleneck", 8,
	nil, const.ext_congested)
pf.reject = ProtoField.bool("homa.data.ext.reject",
	"Rejection: a client understands it, a server sends it", 8, nil, const.ext_reject)
pf.left = ProtoField.bool("homa.data.ext.left", "The client says how long it waits", 8, nil,
	const.ext_left)
pf.ack = ProtoField.none("homa.ack", "Acknowledged RPC")
-- What follows is said by no byte alone.
for _, f in ipairs({
	{ "payload", "bytes", "Payload" },
	{ "trailer", "bytes", "Trailing bytes" },
	{ "port", "uint16", "Source or destination port" },
	{ "id", "uint64", "RPC (id at the client)" },
	{ "from_client", "bool", "Sent by the client" },
	{ "priority", "uint8", "Priority (TOS or traffic class)" },
	{ "encap", "string", "Encapsulation" },
	{ "offset", "uint32", "Payload's offset in the message" },
	{ "payload_length", "uint32", "Payload length" },
	{ "message_length", "uint32", "Message length" },
	{ "unscheduled", "bool", "Within what needs no grant" },
	{ "stream", "uint32", "RPC number in this capture" },
	{ "response_time", "relative_time",
	  "Time from the request's first packet to the response's last" },
	{ "time_left", "relative_time", "How much longer the client waits, as it says" },
	{ "service_time", "relative_time",
	  "Time from the request's last packet to the response's first" },
}) do
	pf[f[1]] = ProtoField[f[2]]("homa." .. f[1], f[3])
end
for _, f in ipairs({
	{ "request_in", "Request begins in frame", frametype.REQUEST },
	{ "response_in", "Response begins in frame", frametype.RESPONSE },
	{ "request_complete_in", "Request complete in frame", frametype.NONE },
	{ "response_complete_in", "Response complete in frame", frametype.NONE },
}) do
	pf[f[1]] = ProtoField.framenum("homa." .. f[1], f[2], base.NONE, f[3])
end
homa.fields = pf

local ef, group, severity = {}, expert.group, expert.severity
homa.experts = {}
for _, e in ipairs({
	{ "short", "MALFORMED", "ERROR", "Packet is shorter than its type" },
	{ "type", "MALFORMED", "ERROR", "Unknown packet type" },
	{ "length", "MALFORMED", "ERROR", "Message length out of range" },
	{ "empty", "MALFORMED", "ERROR", "DATA without payload" },
	{ "offset", "MALFORMED", "ERROR", "Payload goes beyond the message's end" },
	{ "count", "MALFORMED", "ERROR", "More acks than a packet holds" },
	{ "priority", "PROTOCOL", "WARN", "There are only eight priorities" },
	{ "side", "PROTOCOL", "WARN", "By the parity of its id the wrong side sent this" },
	{ "markers", "PROTOCOL", "NOTE", "Flags or urgent are not Homa's" },
	{ "trailer", "PROTOCOL", "NOTE", "Bytes after the last field (another revision?)" },
	{ "unsegmented", "PROTOCOL", "NOTE",
	  "Captured before the device cut it up: offsets are interleaved with the payload" },
	{ "retransmit", "SEQUENCE", "NOTE", "Retransmission" },
	{ "resend", "SEQUENCE", "NOTE", "Bytes are missing at the receiver" },
	{ "rpc_unknown", "SEQUENCE", "NOTE", "The peer does not have this RPC" },
}) do
	ef[e[1]] = ProtoExpert.new("homa.expert." .. e[1], e[4], group[e[2]], severity[e[3]])
	table.insert(homa.experts, ef[e[1]])
end

homa.prefs.ports = Pref.range("UDP ports", tostring(const.udp_port),
	"UDP ports whose datagrams are Homa packets", 65535)
homa.prefs.any_port = Pref.bool("Recognise Homa on other UDP ports", true,
	"Take a datagram for Homa if its flags, urgent and type are Homa's")
homa.prefs.tcp = Pref.bool("Recognise Homa disguised as TCP", true,
	"Take a TCP segment with SYN, RST and urgent 0xb97d for Homa")

local get_tos = Field.new("ip.dsfield")
local get_class = Field.new("ipv6.tclass")
local by_port = DissectorTable.new("homa.port", "Homa port", ftypes.UINT16, base.DEC, homa)

---- RPCs ----

function homa.init()
	rpcs.forget()
end

local function interval(seconds)
	local whole = math.floor(seconds)
	return NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5))
end

local function link(p, pinfo, tree)
	local rpc = rpcs.find(p, pinfo)
	if not rpc then
		return
	end
	local ask, answer = rpc.request, rpc.response
	local frame = pinfo.number

	tree:add(pf.stream, rpc.stream):set_generated()
	for field, other in pairs({ request_in = ask.begin, request_complete_in = ask.finish,
		response_in = answer.begin, response_complete_in = answer.finish }) do
		if other and other ~= frame then
			tree:add(pf[field], other):set_generated()
		end
	end
	if frame == answer.begin and p.number == answer.first
		and ask.finish_ts and answer.begin_ts >= ask.finish_ts then
		tree:add(pf.service_time, interval(answer.begin_ts - ask.finish_ts)):set_generated()
	end
	if frame == answer.finish and p.number == answer.last
		and ask.begin_ts and answer.finish_ts >= ask.begin_ts then
		tree:add(pf.response_time, interval(answer.finish_ts - ask.begin_ts)):set_generated()
	end
end

---- packets ----

local function add_ack(p, range, tree)
	local fields = wire.fields.ack
	local id = range(fields[1].at, fields[1].size)
	local port = range(fields[2].at, fields[2].size)

	if id:uint64() == UInt64(0) then
		tree:add(pf.ack, range):set_text("No acknowledgment")
		return
	end
	local item = tree:add(pf.ack, range)
	item:set_text("Acknowledged RPC " .. tostring(id:uint64()) .. " of server port " .. port:uint())
	item:add(pf["ack.client_id"], id)
	item:add(pf["ack.server_port"], port)
	p.acks = (p.acks or 0) + 1
end

-- Shows all members whose bytes were captured; returns values and items by name.
local function add_struct(p, struct, tvb, tree)
	local prefix = struct == "common" and "" or struct .. "."
	local value, item = {}, {}

	for _, f in ipairs(wire.fields[struct]) do
		local all = f.size * (f.count or 1)
		if f.at + all > tvb:len() or f.struct == "common" then
			-- not captured, or shown already
		elseif f.struct then
			for i = 0, (f.count or 1) - 1 do
				if not f.count or i < math.min(value.num, f.count) then
					add_ack(p, tvb(f.at + i * f.size, f.size), tree)
				end
			end
		elseif f.count and f.size > 1 then
			value[f.name] = {}
			for i = 0, f.count - 1 do
				local range = tvb(f.at + i * f.size, f.size)
				value[f.name][i] = range:uint()
				tree:add(pf[prefix .. f.name], range):prepend_text(i .. ": ")
			end
		else
			local range = tvb(f.at, all)
			item[f.name] = tree:add(pf[prefix .. f.name], range)
			if f.size == 8 then
				value[f.name] = range:uint64()
			elseif not f.count then
				value[f.name] = range:uint()
			end
		end
	end
	return value, item
end

local function check_length(value, item)
	if value.length == 0 or value.length > const.max_wire_length then
		item.length:add_proto_expert_info(ef.length)
		return false
	end
	return true
end

-- The time that a code of the wire means, a small floating-point number.
local function left(code)
	local units = 2 ^ const.left_bits
	local ns = code % units * 2 ^ (math.floor(code / units) + const.left_shift)

	return interval(ns / 1e9)
end

local show = {}

function show.DATA(p, v, item, tvb, tree, root)
	local captured = tvb:len() - wire.size.data
	local size = math.max(p.reported - wire.size.data, 0)

	item.ext:add(pf.incast, part(tvb, "data.ext"))
	item.ext:add(pf.congested, part(tvb, "data.ext"))
	item.ext:add(pf.reject, part(tvb, "data.ext"))
	item.ext:add(pf.left, part(tvb, "data.ext"))
	if math.floor(v.ext / const.ext_left) % 2 == 1 and p.from_client and p.window ~= 0 then
		tree:add(pf.time_left, part(tvb, "common.window"), left(p.window))
	end
	local in_sequence = v.seg_offset == const.offset_in_sequence
	p.offset = in_sequence and p.sequence or v.seg_offset
	p.retransmit = v.retransmit ~= 0
	local last = p.offset + size
	tree:add(pf.offset, p.offset):set_generated()
	tree:add(pf.message_length, v.length):set_generated()
	if p.joined and last > v.length then
		return string.format("[%d..] of %d, cut off by the capture", p.offset, v.length)
	end
	tree:add(pf.payload_length, size):set_generated()
	tree:add(pf.unscheduled, p.offset < v.incoming):set_generated()
	if in_sequence then
		item.seg_offset:append_text(" (the offset is in sequence)")
	end
	if p.retransmit then
		item.retransmit:add_proto_expert_info(ef.retransmit)
	end
	if size == 0 then
		tree:add_proto_expert_info(ef.empty)
	elseif not check_length(v, item) then
		-- said already
	elseif last <= v.length then
		p.length, p.payload_length = v.length, size
	elseif p.doff == const.doff_gso then
		item.seg_offset:add_proto_expert_info(ef.unsegmented)
	else
		item.length:add_proto_expert_info(ef.offset)
	end
	if captured > 0 then
		p.payload = tvb(wire.size.data)
		tree:add(pf.payload, p.payload)
	end
	return string.format("[%d..%d] of %d%s%s%s", p.offset, math.max(last, p.offset + 1) - 1,
		v.length, p.offset >= v.incoming and ", scheduled" or "",
		p.retransmit and ", retransmission" or "", p.acks and ", with an ack" or "")
end

local function check_priority(v, item)
	if v.priority and v.priority >= const.priorities then
		item.priority:add_proto_expert_info(ef.priority)
	end
end

function show.GRANT(_, v, item)
	check_priority(v, item)
	return string.format("to %d at priority %d", v.offset, v.priority)
end

function show.RESEND(_, v, item)
	check_priority(v, item)
	item.offset:add_proto_expert_info(ef.resend)
	if v.length == const.resend_all then
		item.length:append_text(" (all that was sent)")
		return string.format("[%d..] at priority %d", v.offset, v.priority)
	end
	return string.format("[%d..%d] at priority %d", v.offset,
		v.offset + math.max(v.length, 1) - 1, v.priority)
end

function show.CUTOFFS(_, v)
	local list = {}
	for i = const.priorities - 1, 0, -1 do
		table.insert(list, tostring(v.cutoff[i]))
	end
	return string.format("version %d, level 7 to 0: %s", v.version, table.concat(list, " "))
end

function show.ACK(p, v, item)
	if v.num > const.max_acks then
		item.num:add_proto_expert_info(ef.count)
	end
	return p.acks and "and " .. p.acks .. " more" or ""
end

function show.START_MSG(_, v, item, _, tree)
	check_length(v, item)
	tree:add(pf.message_length, v.length):set_generated()
	return "of " .. v.length
end

function show.RPC_UNKNOWN(_, _, _, _, tree)
	tree:add_proto_expert_info(ef.rpc_unknown)
	return ""
end

-- Priority of the innermost IP header.
local function priority()
	local tos = { get_tos() }
	local class = { get_class() }
	local field = class[#class] or tos[#tos]

	return field and math.floor(tonumber(field.value) / 32)
end

local function from_client(tvb)
	return tvb(place["common.sender_id"].at + 7, 1):uint() % 2 == 0
end

-- The id at the client, from the one at the sender.
local function client_id(tvb, odd)
	local id = part(tvb, "common.sender_id"):uint64()
	return odd and id - UInt64(1) or id
end

local function add_common(p, tvb, root)
	local v, item = add_struct(p, "common", tvb, root)

	root:add(pf.port, part(tvb, "common.sport")):set_hidden()
	root:add(pf.port, part(tvb, "common.dport")):set_hidden()
	item.doff:append_text(" (" .. math.floor(v.doff / 16) .. " words)")
	p.type, p.name = v.type, type_names[v.type]
	p.sequence, p.doff, p.window = v.sequence, math.floor(v.doff / 16), v.window
	p.from_client = from_client(tvb)
	p.id = client_id(tvb, not p.from_client)
	root:add(pf.id, p.id):set_generated()
	root:add(pf.from_client, p.from_client):set_generated()
	if not p.name then
		item.type:add_proto_expert_info(ef.type)
	elseif (p.name == "NEED_ACK" and p.from_client) or (p.name == "ACK" and not p.from_client) then
		item.sender_id:add_proto_expert_info(ef.side)
	end
	if v.flags ~= const.flags or v.urgent ~= const.urgent then
		item.flags:add_proto_expert_info(ef.markers)
	end
	p.ports = v.sport .. " → " .. v.dport
	p.dport, p.sport = v.dport, v.sport
end

-- What the type's own fields say, for the info column.
local function add_body(p, tvb, root)
	local body = type_body[p.type]
	if not body then
		return string.format("type 0x%02x", p.type)
	end
	local size = wire.size[body]
	if p.reported < size and not p.quoted then
		root:add_proto_expert_info(ef.short, p.name .. " has " .. size .. " bytes, this packet "
			.. p.reported)
	end
	local branch, v, item = root, {}, {}
	if body ~= "common" and tvb:len() > wire.size.common then
		branch = root:add(tvb(wire.size.common, math.min(size, tvb:len()) - wire.size.common), p.name)
		v, item = add_struct(p, body, tvb, branch)
	end
	if tvb:len() < size then
		return p.reported < size and "malformed" or "cut off by the capture"
	end
	if p.name ~= "DATA" and tvb:len() > size then
		root:add(pf.trailer, tvb(size)):add_proto_expert_info(ef.trailer)
	end
	return show[p.name] and show[p.name](p, v, item, tvb, branch, root) or ""
end

-- One Homa packet, the number-th of its frame. `reported`: its bytes before the capture cut
-- them off, if the tvb does not say. `joined`: others may follow it, which were cut off, so
-- nobody knows where it ends.
local function dissect(tvb, pinfo, tree, encap, number, reported, joined)
	-- Quoted: ICMP has the beginning of a packet that was sent earlier.
	local p = { encap = encap, quoted = pinfo.in_error_pkt, number = number or 1,
		reported = reported or tvb:reported_len(), joined = joined }
	local root = tree:add(homa, tvb())

	pinfo.cols.protocol = "Homa"
	if tvb:len() < wire.size.common then
		if p.reported < wire.size.common and not p.quoted then
			root:add_proto_expert_info(ef.short)
		end
		if tvb:len() >= place["common.sequence"].at then
			root:add(pf.sport, part(tvb, "common.sport"))
			root:add(pf.dport, part(tvb, "common.dport"))
		end
		pinfo.cols.info = "Homa, cut off"
		return
	end
	add_common(p, tvb, root)
	local detail = add_body(p, tvb, root)
	local name = p.name or string.format("unknown type 0x%02x", p.type)
	local level = priority()

	detail = "RPC " .. tostring(p.id) .. (detail ~= "" and ", " or "") .. detail
	root:append_text(", " .. name .. ", " .. p.ports .. ", " .. detail)
	root:add(pf.encap, encap):set_generated()
	if level then
		root:add(pf.priority, level):set_generated()
	end
	if p.quoted then
		return
	end
	if p.number == 1 then
		pinfo.cols.info = p.ports .. " " .. name .. " " .. detail
	end
	if p.name then
		link(p, pinfo, root)
	end
	if p.payload and p.payload_length == p.length and p.payload:len() == p.length then
		local above = by_port:get_dissector(p.from_client and p.dport or p.sport)
		if above then
			pinfo.cols.info:fence()
			above:call(p.payload:tvb(), pinfo, tree)
		end
	end
end

---- where Homa is found ----

local function has_markers(tvb)
	return tvb:len() >= wire.size.common and part(tvb, "common.flags"):uint() == const.flags
		and part(tvb, "common.urgent"):uint() == const.urgent
end

local function known_type(tvb)
	return type_names[part(tvb, "common.type"):uint()] ~= nil
end

function homa.dissector(tvb, pinfo, tree)
	dissect(tvb, pinfo, tree, "native")
	return tvb:len()
end

-- A host that hands the kernel many packets at once (UDP_SEGMENT), or gets them
-- so (UDP_GRO), shows them to a capture as one datagram: packets of one size, the
-- last may be shorter. That size, or nil. Behind DATA the second packet has the
-- first one's ports where it begins, and markers; the others' sizes are known.
local function segment_size(tvb)
	local body = known_type(tvb) and type_body[part(tvb, "common.type"):uint()]
	local size = body and wire.size[body]

	if not size or tvb:len() < size + wire.size.common then
		return nil
	end
	if body ~= "data" then
		local behind = tvb(size):tvb()
		return has_markers(behind) and known_type(behind) and size or nil
	end

	local urgent = place["common.urgent"].at
	local bytes = tvb:raw()
	local found = size + urgent

	while found do
		found = bytes:find(bytes:sub(urgent + 1, urgent + 2), found + 1, true)
		local at = found and found - 1 - urgent
		if at and at + wire.size.common <= #bytes and bytes:sub(at + 1, at + 4) == bytes:sub(1, 4)
			and has_markers(tvb(at):tvb()) and known_type(tvb(at):tvb()) then
			return at
		end
	end
	return nil
end

local udp = Proto("homa_udp", "Homa in UDP")
function udp.dissector(tvb, pinfo, tree)
	-- 54321 may also be somebody's ephemeral port.
	if tvb:len() >= wire.size.common and not known_type(tvb) and not has_markers(tvb) then
		return 0
	end
	local size, number = has_markers(tvb) and segment_size(tvb), 1
	if not size then
		dissect(tvb, pinfo, tree, "UDP", number, nil, tvb:len() < tvb:reported_len())
		return tvb:len()
	end
	dissect(tvb(0, size):tvb(), pinfo, tree, "UDP")
	for at = size, tvb:len() - 1, size do
		number = number + 1
		dissect(tvb(at, math.min(size, tvb:len() - at)):tvb(), pinfo, tree, "UDP", number,
			math.min(size, tvb:reported_len() - at))
	end
	if number > 1 then
		pinfo.cols.info:append(" (" .. number .. " packets)")
	end
	return tvb:len()
end

udp:register_heuristic("udp", function(tvb, pinfo, tree)
	if not homa.prefs.any_port or not has_markers(tvb) or not known_type(tvb) then
		return false
	end
	return udp.dissector(tvb, pinfo, tree) > 0
end)

local by_protocol = DissectorTable.get("ip.proto")
local real_tcp = by_protocol:get_dissector(const.ipproto_hijack)
local tcp = Proto("homa_tcp", "Homa disguised as TCP")
function tcp.dissector(tvb, pinfo, tree)
	if has_markers(tvb) then
		dissect(tvb, pinfo, tree, "TCP")
		return tvb:len()
	end
	-- A TCP header that is cut off raises an error, which would look like ours.
	local good, result = pcall(real_tcp.call, real_tcp, tvb, pinfo, tree)
	if not good then
		tree:add(tcp, tvb()):set_text("[" .. tostring(result):gsub("^.*: ", "") .. ": TCP]")
		return tvb:len()
	end
	return result
end

local by_udp_port = DissectorTable.get("udp.port")
local ports, hijack = "", false

local function apply_prefs()
	if ports ~= homa.prefs.ports then
		if ports ~= "" then
			by_udp_port:remove(ports, udp)
		end
		ports = homa.prefs.ports
		if ports ~= "" then
			by_udp_port:add(ports, udp)
		end
	end
	if real_tcp and hijack ~= homa.prefs.tcp then
		hijack = homa.prefs.tcp
		by_protocol:add(const.ipproto_hijack, hijack and tcp or real_tcp)
	end
end

homa.prefs_changed = apply_prefs
by_protocol:add(const.ipproto, homa)
apply_prefs()
