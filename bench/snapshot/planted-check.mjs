// What `gpuwarden snapshot --json` says of a planted file, held against its truth.

const LEAST_RIGHT = 0.95

/** `device`: its entry of the JSON. Gives one sentence for each thing that is wrong. */
export function plantedFaults(device, truth) {
  const faults = []
  const same = (what, found, expected) => {
    if (found !== expected) faults.push(`${what}: expected ${expected}, found ${found}`)
  }
  same('events', device.events, truth.events)
  same('peak bytes', device.peak.allocated_bytes, truth.peak.bytes)
  same('peak event', device.peak.index, truth.peak.event_index)
  same('peak time', device.peak.time_us, truth.peak.time_us)
  same('bytes at the end', device.end.allocated_bytes, truth.end.live)
  same('reserved at the end', device.end.reserved_bytes, truth.end.reserved)
  same('identity', device.identity.difference_bytes, 0)
  const lines = new Map(device.at.by_python_line.map(({ name, bytes }) => [name, bytes]))
  for (const [line, bytes] of Object.entries(truth.peak.by_line))
    if (line !== 'c++ only') same(`at the peak, ${line}`, lines.get(line), bytes)
  let right = 0
  for (const { name, bytes } of device.at.by_category) right += Math.min(bytes, truth.peak.by_category[name] ?? 0)
  if (right < LEAST_RIGHT * truth.peak.bytes)
    faults.push(`categories: ${((100 * right) / truth.peak.bytes).toFixed(1)}% of the bytes are right`)
  same('leaking lines', device.leak.candidates.map(({ line }) => line).join(), truth.leak.line.replace(' ', ' in '))
  same('leaked bytes per step', device.leak.candidates[0]?.bytes_per_step, truth.leak.bytes_per_step)
  const { fragmentation: found } = device
  const { fragmentation: expected } = truth
  same('request', found.request.bytes, expected.request)
  same('unusable share', found.unusable_ratio, 1)
  same('largest free piece', found.largest_free_bytes, expected.largest_free_block)
  same('fits if compacted', found.fits_if_compacted, true)
  same('pinned segments', found.pinned_segments, expected.pinned_segments)
  same('free in pinned segments', found.parts.pinned_bytes, expected.free_in_pinned)
  same('pinned by', found.pins.map(({ line }) => line).join(), expected.line.replace(' ', ' in '))
  same('retries', device.retries.list.at(-1)?.segments, truth.retries.segments)
  same('bytes given back', device.retries.list.at(-1)?.bytes, truth.retries.bytes)
  same('out of memory', device.out_of_memory.length, 1)
  return faults
}
