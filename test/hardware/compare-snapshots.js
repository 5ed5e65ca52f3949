// Compares what `gpuwarden snapshot` reads from the files of memory_snapshots.py with what PyTorch said when it wrote them. Exit code 1 when something differs.
// node test/hardware/compare-snapshots.js FOLDER; needs a build.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../bin/gpuwarden.js', import.meta.url))
const [, , folder = '.'] = process.argv

for (const name of readdirSync(folder).filter((one) => one.endsWith('.pickle.gz'))) {
  const truth = JSON.parse(readFileSync(join(folder, name.replace('.pickle.gz', '.truth.json')), 'utf8'))
  const { stdout, stderr, status } = spawnSync(process.execPath, [PROGRAM, 'snapshot', join(folder, name), '--json'], {
    maxBuffer: 1 << 28,
  })
  if (status !== 0) throw new Error(`${name}: ${stderr}`)
  const [device] = JSON.parse(stdout).devices
  const figures = [
    ['peak', device.peak.allocated_bytes, truth.requested_bytes.peak],
    ['end', device.end.allocated_bytes, truth.requested_bytes.current],
    ['reserved peak', device.reserved_peak.reserved_bytes, truth.reserved_bytes.peak],
    ['reserved end', device.end.reserved_bytes, truth.reserved_bytes.current],
    ['identity', device.identity.difference_bytes, 0],
    ['retries', device.retries.count, truth.retries],
    ['ooms', device.out_of_memory.length, truth.ooms],
    ['leak', device.leak.candidates[0]?.bytes_per_step, truth.leak_bytes_per_step],
  ]
  const wrong = figures.filter(([, ours, theirs]) => ours !== theirs)
  console.log(
    `${name}: ${wrong.length === 0 ? `all ${figures.length} figures agree` : wrong.map(([what, ours, theirs]) => `${what} ${ours}, PyTorch ${theirs}`).join('; ')}`,
  )
  if (wrong.length > 0) process.exitCode = 1
}
