-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
--
-- Which packets of a capture belong to one RPC: they have the two addresses and the
-- RPC's id at the client in common. homa.lua loads this file and asks it about each
-- packet, with a table that says what the packet is (number, encap, name, id,
-- from_client, and for DATA offset, length, payload_length, retransmit). This file
-- looks at no bytes and adds nothing to the tree. Loaded alone, it does nothing.

local M = {}

local REUSE_S = 1 -- a finished RPC's id after so much silence is another RPC's
local MOST_RANGES = 1024 -- of a message that is incomplete, with gaps between them

-- key -> newest RPC; frame -> number of the packet in it -> RPC; how many
local rpcs, by_frame, streams = {}, {}, 0

-- A capture is read anew: nothing of the last one holds.
function M.forget()
	rpcs, by_frame, streams = {}, {}, 0
end

-- Bytes of a message seen so far, as sorted disjoint ranges {from, to} and their total; nil
-- if there are too many of them. Whoever made the packets chose the number of gaps, and a
-- look at each of them for each packet would keep Wireshark busy for hours.
local function cover(seen, p)
	local from, to = p.offset, p.offset + p.payload_length
	local i, high = 1, #seen + 1

	while i < high do -- the first range that does not end before this one begins
		local middle = math.floor((i + high) / 2)
		if seen[middle][2] < from then
			i = middle + 1
		else
			high = middle
		end
	end
	while seen[i] and seen[i][1] <= to do
		seen.total = seen.total - (seen[i][2] - seen[i][1])
		from, to = math.min(from, seen[i][1]), math.max(to, seen[i][2])
		table.remove(seen, i)
	end
	if #seen == MOST_RANGES then
		return nil
	end
	table.insert(seen, i, { from, to })
	seen.total = seen.total + to - from
	return seen.total
end

-- Whether this packet completes its message. One in too many pieces is not followed further.
local function completes(message, p)
	local total = message.seen and cover(message.seen, p)
	if message.seen and not total then
		message.seen = nil
	end
	return total and total >= p.length
end

-- A packet of a complete message that was seen already: a capture at both ends has
-- everything twice, and then the message is complete where it arrives.
local function is_copy(message, p)
	return not p.retransmit or message.last_resent == p.offset
end

local function rpc_key(p, pinfo)
	local client, server = tostring(pinfo.src), tostring(pinfo.dst)

	if p.encap == "UDP" then
		client, server = client .. "+" .. pinfo.src_port, server .. "+" .. pinfo.dst_port
	end
	if not p.from_client then
		client, server = server, client
	end
	return client .. " " .. server .. " " .. tostring(p.id)
end

-- The RPC a packet belongs to, from the first pass over the capture.
function M.find(p, pinfo)
	local known = by_frame[pinfo.number]
	if not known then
		known = {}
		by_frame[pinfo.number] = known
	end
	if known[p.number] or pinfo.visited then
		return known[p.number]
	end
	local key = rpc_key(p, pinfo)
	local rpc = rpcs[key]
	local begins = p.name == "DATA" or p.name == "START_MSG"

	if rpc and rpc.response.finish and begins and p.from_client and not p.retransmit
		and pinfo.rel_ts - rpc.last > REUSE_S then
		rpc = nil
	end
	if not rpc then
		rpc = { stream = streams, request = { seen = { total = 0 } },
			response = { seen = { total = 0 } } }
		streams = streams + 1
		rpcs[key] = rpc
	end
	rpc.last = pinfo.rel_ts
	known[p.number] = rpc
	local message = p.from_client and rpc.request or rpc.response
	if begins and not message.begin then
		message.begin, message.begin_ts, message.first = pinfo.number, pinfo.rel_ts, p.number
	end
	if p.payload_length and (completes(message, p)
		or message.finish and is_copy(message, p)) then
		message.finish, message.finish_ts, message.last = pinfo.number, pinfo.rel_ts, p.number
		message.last_resent = p.retransmit and p.offset
		message.seen = nil
	end
	return rpc
end

return M
