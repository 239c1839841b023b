-- Posts one body over and over; the request is built once, so that wrk spends as little as it can.
-- Driven by load.rs: BENCH_BODY names the file to post, the line that starts with RESULT is read back.

local file = assert(io.open(assert(os.getenv("BENCH_BODY"), "BENCH_BODY is not set"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%.0f,"microseconds":%.0f,"bytes":%.0f,"p50":%.0f,"p99":%.0f,'
      .. '"errors":{"connect":%.0f,"read":%.0f,"write":%.0f,"timeout":%.0f,"status":%.0f}}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
