-- What the gate does for a request, as a filter of nginx: the key's SHA-256 is looked up in memory,
-- the limiter's own script runs in Redis, the headers tell the client how it stands, and the
-- service is told who asks, signed.
local ffi = require "ffi"
local redis = require "nginx.redis"

-- OpenSSL's, which nginx is linked with.
ffi.cdef [[
    unsigned char *SHA256(const unsigned char *text, size_t length, unsigned char *digest);
    const void *EVP_sha256(void);
    unsigned char *HMAC(const void *hash, const void *key, int key_length,
                        const unsigned char *text, size_t length,
                        unsigned char *mac, unsigned int *mac_length);
]]

local buffer = ffi.new("unsigned char[32]")
local sha256_of_openssl = ffi.C.EVP_sha256()

local function sha256(text)
    ffi.C.SHA256(text, #text, buffer)
    return ffi.string(buffer, 32)
end

local function hmac(key, text)
    ffi.C.HMAC(sha256_of_openssl, key, #key, text, #text, buffer, nil)
    return ffi.string(buffer, 32)
end

local digits = {}
for byte = 0, 255 do digits[string.char(byte)] = string.format("%02x", byte) end

local function hex(bytes) return (bytes:gsub(".", digits)) end

local function bytes(text)
    return (text:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end))
end

-- Lines of: SHA-256 in hex, key id, account, plan.
local function read_records(file, instance)
    local records = {}
    for line in io.lines(file) do
        local hash, key, account, plan = line:match("^(%x+) (%S+) (%S+) (%S+)$")
        local counter = "wd:rl:{" .. account .. "}:" .. instance
        records[bytes(hash)] = {
            key = key, account = account, plan = plan,
            minute = counter .. ":m", day = counter .. ":d",
        }
    end
    return records
end

local function charge(settings, record)
    local connection = redis:new()
    connection:set_timeout(500)
    local server = settings.redis
    if not connection:connect("127.0.0.1", server.port) then return nil end
    if connection:get_reused_times() == 0 then connection:auth(server.user, server.password) end
    local limits = settings.limits
    local reply, problem = connection:evalsha(
        settings.script, 2, record.minute, record.day, limits.minute, limits.day)
    if not reply then
        ngx.log(ngx.ERR, "the limiter did not answer: ", problem)
        return nil
    end
    connection:set_keepalive(60000, 64)
    local numbers = {}
    for number in reply:gmatch("%d+") do numbers[#numbers + 1] = tonumber(number) end
    return numbers
end

-- The reply is: accepted, now in us, used and time to the next slot of the minute, of the day.
local function label(limits, reply)
    local minute_left, day_left = limits.minute - reply[3], limits.day - reply[5]
    local minute_opens, day_opens = math.ceil(reply[4] / 1e6), math.ceil(reply[6] / 1e6)
    local headers = ngx.header
    headers["RateLimit-Policy"] = '"minute";q=' .. limits.minute .. ';w=60, "day";q=' .. limits.day
        .. ";w=86400"
    headers["RateLimit"] = '"minute";r=' .. minute_left .. ";t=" .. minute_opens
        .. ', "day";r=' .. day_left .. ";t=" .. day_opens
    local limit, left, opens = limits.minute, minute_left, reply[4]
    if day_left < minute_left then limit, left, opens = limits.day, day_left, reply[6] end
    headers["X-RateLimit-Limit"] = limit
    headers["X-RateLimit-Remaining"] = left
    headers["X-RateLimit-Reset"] = string.format("%.0f", math.ceil((reply[2] + opens) / 1e6))
end

local function identity(key, record)
    local text = "v1;account=" .. record.account .. ";key=" .. record.key .. ";plan="
        .. record.plan .. ";exp=" .. string.format("%.0f", ngx.now() * 1000 + 30000)
    local mac = hmac(key, text .. "\n" .. ngx.var.request_method .. "\n" .. ngx.var.request_uri)
    return text .. ";mac=" .. hex(mac)
end

return function(settings)
    local records = read_records(settings.keys, settings.instance)
    local signing_key = bytes(settings.identity)
    return function()
        local field = ngx.var.http_authorization
        if not field or field:sub(1, 7) ~= "Bearer " then return ngx.exit(401) end
        local record = records[sha256(field:sub(8))]
        if not record then return ngx.exit(401) end
        local reply = charge(settings, record)
        if not reply then return ngx.exit(503) end
        if reply[1] ~= 1 then return ngx.exit(429) end
        label(settings.limits, reply)
        local variables = ngx.var
        variables.account, variables.key, variables.plan = record.account, record.key, record.plan
        ngx.req.set_header("X-Water-Identity", identity(signing_key, record))
    end
end
