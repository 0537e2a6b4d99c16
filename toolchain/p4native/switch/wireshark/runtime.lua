-- Runs the parser of a P4 program on each captured frame and shows what it extracts. The functions
-- that the program's own part below calls are header, stack, union_stack and state; extract, advance,
-- verify and set in its states; and those for expressions.
--
-- A value is a number below 2^48, or a text of hexadecimal digits for a larger number. It is nil if a
-- capture does not hold it, such as the port at which a packet arrived. What is computed from nil is
-- nil, and a parser that branches on nil ends with a note.
--
-- A program parses what is sent to its switch. What the switch answers has sender and receiver
-- swapped, and may mean nothing to the parser. So each frame is also parsed with these swapped, and
-- shown in the way that explains more of it.

local MAX_STEPS = 4096
local HALF = 2 ^ 24
local LIMIT = 2 ^ 48

local headers = {} -- by name: label, fields, and whether it is metadata
local stacks = {} -- by name: the names of the headers
local states = {}
local opposites = {} -- of a header's field, such as `src` for `dst`
local proto_fields = {}
local encapsulation = Field.new("frame.encap_type")
local ETHERNET = 1

local protocol = Proto(PROGRAM, "P4 program " .. PROGRAM)
local note = ProtoExpert.new(PROGRAM .. ".note", "The parser", expert.group.PROTOCOL, expert.severity.NOTE)
local fault = ProtoExpert.new(PROGRAM .. ".error", "Parser error", expert.group.MALFORMED, expert.severity.WARN)
local PORT = "ingress_port"
protocol.prefs[PORT] = Pref.string("Port at which the frames arrived", "", "If a program depends on it")
local payload = ProtoField.bytes(PROGRAM .. ".payload", "payload")

-- Values ---------------------------------------------------------------------------------------

local function canonical(digits)
  digits = digits:gsub("^0+", "")
  if #digits <= 12 then return digits == "" and 0 or tonumber(digits, 16) end
  return digits
end

local function hex(value)
  if type(value) == "string" then return value end
  return string.format("%06x%06x", math.floor(value / HALF), value % HALF)
end

local function exact(number)
  if number > -LIMIT and number < LIMIT then return number end
  return nil
end

-- The bits of a frame as a value. offset: in bits, from the frame's beginning.
local function bits(d, offset, count)
  local digits = {}
  local first = count % 32
  if first > 0 then
    digits[1] = string.format("%x", d.tvb:range(math.floor(offset / 8)):bitfield(offset % 8, first))
  end
  for at = first, count - 1, 32 do
    local place = offset + at
    digits[#digits + 1] = string.format("%08x", d.tvb:range(math.floor(place / 8)):bitfield(place % 8, 32))
  end
  return canonical(table.concat(digits))
end

-- Makes a function that combines the bits of two values. rule: its result for two single bits.
local function bitwise(rule)
  local results = {}
  for a = 0, 15 do
    for b = 0, 15 do
      local sum = 0
      for i = 0, 3 do
        sum = sum + 2 ^ i * rule(math.floor(a / 2 ^ i) % 2, math.floor(b / 2 ^ i) % 2)
      end
      results[16 * a + b] = string.format("%x", sum)
    end
  end
  return function(a, b)
    if a == nil or b == nil then return nil end
    a, b = hex(a), hex(b)
    local length = math.max(#a, #b)
    a, b = string.rep("0", length - #a) .. a, string.rep("0", length - #b) .. b
    local digits = {}
    for i = 1, length do
      digits[i] = results[16 * tonumber(a:sub(i, i), 16) + tonumber(b:sub(i, i), 16)]
    end
    return canonical(table.concat(digits))
  end
end

-- Negative numbers, which `~` and `-` make, are used as their two's complement.
local function natural(operation)
  return function(a, b)
    if type(a) == "number" and a < 0 then a = type(b) == "number" and a % LIMIT or nil end
    if type(b) == "number" and b < 0 then b = type(a) == "number" and b % LIMIT or nil end
    return operation(a, b)
  end
end

local band = natural(bitwise(function(x, y) return x * y end))
local bor = natural(bitwise(math.max))
local bxor = natural(bitwise(function(x, y) return (x + y) % 2 end))

-- The lowest bits of a value; of a negative number, those of its two's complement.
local function low_bits(value, count)
  if value == nil then return nil end
  if type(value) == "number" and count <= 48 then return value % 2 ^ count end
  if type(value) == "number" and value < 0 then return nil end
  local digits = hex(value)
  local kept = math.ceil(count / 4)
  digits = string.rep("0", kept - #digits) .. digits:sub(-kept)
  local top = tonumber(digits:sub(1, 1), 16) % 2 ^ ((count - 1) % 4 + 1)
  return canonical(string.format("%x", top) .. digits:sub(2))
end

local function arithmetic(operation)
  return function(a, b)
    if type(a) ~= "number" or type(b) ~= "number" then return nil end
    return exact(operation(a, b))
  end
end

local add = arithmetic(function(a, b) return a + b end)
local subtract = arithmetic(function(a, b) return a - b end)
local multiply = arithmetic(function(a, b) return a * b end)
local shift_left = arithmetic(function(a, b) return a * 2 ^ b end)
local shift_right = arithmetic(function(a, b) return math.floor(a / 2 ^ b) end)
local saturated = arithmetic(function(a, b) return math.max(0, math.min(a, 2 ^ b - 1)) end)
local saturated_signed = arithmetic(function(a, b)
  return math.max(-2 ^ (b - 1), math.min(a, 2 ^ (b - 1) - 1))
end)

local function divide(a, b)
  if type(a) ~= "number" or type(b) ~= "number" or a < 0 or b <= 0 then return nil end
  return math.floor(a / b)
end

local function modulo(a, b)
  if type(a) ~= "number" or type(b) ~= "number" or a < 0 or b <= 0 then return nil end
  return a % b
end

-- The value of a number in two's complement of this many bits.
local function signed(value, count)
  value = low_bits(value, count)
  if type(value) ~= "number" or count > 48 then return nil end
  return value < 2 ^ (count - 1) and value or value - 2 ^ count
end

local function choose(condition, yes, no)
  if condition == nil then return nil end
  if condition then return yes end
  return no
end

local function number_of(truth)
  return choose(truth, 1, 0)
end

local function is_not(truth)
  if truth == nil then return nil end
  return not truth
end

local function is_equal(a, b)
  if a == nil or b == nil then return nil end
  return a == b
end

local function is_less(a, b)
  if a == nil or b == nil then return nil end
  if type(a) == "number" and type(b) == "number" then return a < b end
  if type(a) ~= type(b) then return type(a) == "number" end
  if #a ~= #b then return #a < #b end
  return a < b
end

local function both(a, b)
  if a == false or b == false then return false end
  if a == nil or b == nil then return nil end
  return true
end

local function either(a, b)
  return is_not(both(is_not(a), is_not(b)))
end

-- Headers --------------------------------------------------------------------------------------

local KINDS = {
  number = function(name, label, count)
    if count <= 32 then return ProtoField.uint32(name, label, base.DEC_HEX) end
    return ProtoField.uint64(name, label, base.DEC_HEX)
  end,
  bytes = function(name, label) return ProtoField.bytes(name, label) end,
  digits = function(name, label) return ProtoField.string(name, label) end,
  ether = function(name, label) return ProtoField.ether(name, label) end,
  ipv4 = function(name, label) return ProtoField.ipv4(name, label) end,
  ipv6 = function(name, label) return ProtoField.ipv6(name, label) end,
}

local function key_of(name, member)
  return name .. "\0" .. member
end

-- Declares a header. fields: {name, bits, kind, name in filters, opposite}; the bits of a field of
-- variable width are 0, and most fields have no opposite.
local function header(name, filter, fields)
  for _, each in ipairs(fields) do
    opposites[key_of(name, each[1])] = each[5]
    local abbreviation = PROGRAM .. "." .. filter .. "." .. each[4]
    local unique = abbreviation .. each[3] .. (each[2] <= 32 and "" or "long")
    proto_fields[unique] = proto_fields[unique] or KINDS[each[3]](abbreviation, each[1], each[2])
    each.field = proto_fields[unique]
  end
  headers[name] = { fields = fields }
end

local function stack(name, members)
  stacks[name] = members
end

local function state(name, run)
  states[name] = run
end

-- What ends a parser early. kind: `note` or `fault`.
local function stop(d, kind, text)
  d.remarks[#d.remarks + 1] = { kind, text }
  error(d.ended, 0)
end

local function need(d, count)
  if d.at + count > d.captured then
    if d.captured < d.length then stop(d, note, "ends where the capture of this frame ends") end
    stop(d, fault, "PacketTooShort")
  end
end

local function as_numbers(range)
  local shown = {}
  for at = 0, math.min(range:len(), 32) - 4, 4 do
    shown[#shown + 1] = tostring(range:range(at, 4):int())
  end
  return " (as 32-bit numbers: " .. table.concat(shown, ", ") .. (range:len() > 32 and ", ..." or "") .. ")"
end

-- Extracts a header at the parser's position. variable: the bits of its field of variable width.
-- longest: the bytes that the header has at most.
local function extract(d, name, variable)
  local about, total = headers[name], variable or 0
  for _, each in ipairs(about.fields) do total = total + each[2] end
  need(d, total / 8)
  local offset = 8 * d.at
  local placed = {}
  for _, each in ipairs(about.fields) do
    local count = each[2] > 0 and each[2] or variable or 0
    placed[each[1]] = { offset, count }
    offset = offset + count
  end
  d.headers[name], d.values[name] = placed, nil
  d.extracted[#d.extracted + 1] = { name = name, at = d.at, length = total / 8, placed = placed }
  d.at = d.at + total / 8
end

local function extract_variable(d, name, variable, longest)
  if variable == nil then stop(d, note, "cannot tell how long " .. name .. " is") end
  if variable % 8 ~= 0 or variable < 0 then stop(d, fault, "ParserInvalidArgument") end
  local fixed = 0
  for _, each in ipairs(headers[name].fields) do fixed = fixed + each[2] end
  need(d, (fixed + variable) / 8)
  if (fixed + variable) / 8 > longest then stop(d, fault, "HeaderTooShort") end
  extract(d, name, variable)
end

-- The name of the next header of a stack, which becomes its last one.
local function next_of(d, name)
  local count = (d.counts[name] or 0) + 1
  if count > #stacks[name] then stop(d, fault, "StackOutOfBounds") end
  d.counts[name] = count
  return stacks[name][count]
end

local function set(d, name, member, value)
  if name == nil then return end
  d.values[name] = d.values[name] or {}
  d.values[name][member] = { value = value }
end

local function make_invalid(d, names)
  for _, name in ipairs(names) do d.headers[name], d.values[name] = nil, nil end
end

local function make_valid(d, name)
  if name and not d.headers[name] then d.headers[name] = {} end
end

local function copy_header(d, to, from)
  if to == nil or from == nil then return end
  d.headers[to], d.values[to] = d.headers[from], nil
  for member, kept in pairs(d.values[from] or {}) do set(d, to, member, kept.value) end
end

local function count_of(d, name)
  return d.counts[name] or 0
end

local function last_of(d, name)
  return stacks[name][count_of(d, name)]
end

local function element(name, index)
  return index and stacks[name][index + 1]
end

local function is_valid(d, name)
  return name ~= nil and d.headers[name] ~= nil
end

-- The value of a field; 0 if the program has not set it.
local function field(d, name, member)
  if name == nil then return 0 end
  if d.is_swapped then member = opposites[key_of(name, member)] or member end
  local kept = d.values[name] and d.values[name][member]
  if kept ~= nil then return kept.value end
  local placed = d.headers[name] and d.headers[name][member]
  return placed and bits(d, placed[1], placed[2]) or 0
end

local function lookahead(d, offset, count)
  need(d, math.ceil((offset + count) / 8))
  return bits(d, 8 * d.at + offset, count)
end

local function advance(d, count)
  if count == nil then stop(d, note, "cannot tell how many bits the program skips") end
  if count % 8 ~= 0 then stop(d, fault, "ParserInvalidArgument") end
  need(d, count / 8)
  d.at = d.at + count / 8
end

local function verify(d, condition, code)
  if condition == nil then stop(d, note, "cannot tell whether a condition of `verify` holds") end
  if not condition then stop(d, fault, code) end
end

local function without_entries(d, name)
  d.remarks[#d.remarks + 1] = { note, "takes the value set " .. name .. " to be empty" }
end

local function unfollowed(d, text)
  stop(d, note, "is not followed further: the program executes " .. text)
end

-- Whether all values of a key are those wanted. wanted: {value, mask}, where mask may be absent.
local function matches(d, key, wanted)
  for i, each in ipairs(wanted) do
    local value = key[i].value
    if each[2] ~= 0 then
      if value == nil then stop(d, note, "cannot know " .. key[i].text) end
      if (each[2] and band(value, each[2]) or value) ~= each[1] then return false end
    end
  end
  return true
end

-- The dissector --------------------------------------------------------------------------------

local function show(d, tree, each, offset, count)
  local first, last = math.floor(offset / 8), math.ceil((offset + count) / 8)
  local range = d.tvb:range(first, last - first)
  if each[3] == "digits" then
    tree:add(each.field, range, "0x" .. hex(bits(d, offset, count)))
  elseif each[3] == "number" then
    tree:add(each.field, range, range:bitfield(offset % 8, count))
  else
    local item = tree:add(each.field, range)
    if each[3] == "bytes" and range:len() % 4 == 0 then item:append_text(as_numbers(range)) end
  end
end

local function run(d, first)
  local name = first
  for _ = 1, MAX_STEPS do
    if name == nil then return end
    name = states[name](d)
  end
  stop(d, fault, "ParserTimeout")
end

-- unknown: pairs of a header's and a field's name whose values a capture does not hold.
local function parse(tvb, first, unknown, is_swapped)
  local d = { tvb = tvb, at = 0, headers = {}, counts = {}, values = {}, extracted = {}, remarks = {} }
  d.captured, d.length, d.is_swapped, d.ended = tvb:len(), tvb:reported_len(), is_swapped, {}
  for _, each in ipairs(unknown) do set(d, each[1], each[2], tonumber(each[2] == PORT and protocol.prefs[PORT] or nil)) end
  local went, message = pcall(run, d, first)
  if not went and message ~= d.ended then error(message, 0) end
  return d
end

local function show_all(d, root)
  local tree = root:add(protocol, d.tvb:range(0), "P4 program " .. PROGRAM)
  if d.is_swapped then tree:append_text(" (an answer: sender and receiver are swapped)") end
  for _, each in ipairs(d.extracted) do
    local below = tree:add(d.tvb:range(each.at, each.length), each.name)
    for _, about in ipairs(headers[each.name].fields) do
      local offset, count = each.placed[about[1]][1], each.placed[about[1]][2]
      if count > 0 then show(d, below, about, offset, count) end
    end
  end
  for _, each in ipairs(d.remarks) do tree:add_proto_expert_info(each[1], each[2]) end
  if d.at < d.captured then tree:add(payload, d.tvb:range(d.at)) end
end

local function all_fields()
  local every = { payload }
  for _, each in pairs(proto_fields) do every[#every + 1] = each end
  return every
end

local function dissect(first, unknown)
  return function(tvb, pinfo, root)
    local encap = encapsulation()
    if not encap or encap.value ~= ETHERNET or tvb:len() == 0 then return end
    local sent, answered = parse(tvb, first, unknown, false), parse(tvb, first, unknown, true)
    show_all(answered.at > sent.at and answered or sent, root)
  end
end
