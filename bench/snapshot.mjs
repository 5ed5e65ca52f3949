// `gpuwarden snapshot` on planted files of several sizes: is everything found, how fast, in how much memory; beside Python's pickle.load and,
// where they are given, PyTorch's _memory_viz.py (trace_plot) and Mosaic (its peak command): installed, or a checkout.
// node bench/snapshot.mjs [--sizes 10MB,100MB,1GB] [--memory-viz FILE] [--mosaic DIR] [--python python3] [--keep]
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { stepsFor, writePlanted } from './snapshot/planted.mjs'
import { plantedFaults } from './snapshot/planted-check.mjs'

const PROGRAM = fileURLToPath(new URL('../bin/gpuwarden.js', import.meta.url))
const GOAL_BYTES_PER_SECOND = 100e6
const GOAL_MEMORY = 400e6
/** Runs a command and prints on standard error: seconds, CPU seconds, most memory in KiB, exit status. */
const MEASURE = `
import resource, subprocess, sys, time
begun = time.time()
code = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], 'wb')).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.time() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss, code, file=sys.stderr)`

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10MB,100MB,1GB' },
    'memory-viz': { type: 'string' },
    mosaic: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    keep: { type: 'boolean', default: false },
  },
})
const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-bench-'))
const output = join(folder, 'output')

function measured(command, environment = {}) {
  const { stderr } = spawnSync(values.python, ['-c', MEASURE, output, ...command], {
    env: { ...process.env, ...environment },
    encoding: 'utf8',
  })
  const [seconds, cpu, kibibytes, code] = stderr.trim().split('\n').at(-1).split(' ').map(Number)
  return { seconds, cpu, memory: kibibytes * 1024, code, stderr }
}

const mosaicPath = values.mosaic ? { PYTHONPATH: values.mosaic } : {}
const hasMosaic =
  spawnSync(values.python, ['-c', 'import mosaic.cmd.get_memory_usage_peak'], { env: { ...process.env, ...mosaicPath } }).status === 0

/** Name → command that reads the file; null: not installed. */
function contestants(file) {
  const list = [
    ['gpuwarden snapshot', [process.execPath, PROGRAM, 'snapshot', file, '--json']],
    ['gpuwarden snapshot, gzip', [process.execPath, PROGRAM, 'snapshot', `${file}.gz`, '--json']],
    ['pickle.load', [values.python, '-c', `import pickle; pickle.load(open(${JSON.stringify(file)}, 'rb'))`]],
  ]
  const viz = values['memory-viz']
  if (viz) list.push(['_memory_viz.py trace_plot', [values.python, viz, 'trace_plot', file, '-o', `${file}.html`]])
  const peak = ['-m', 'mosaic.cmd.get_memory_usage_peak', '--snapshot', file, '--trace', '', '--allocation', '', '--paste', 'False']
  list.push(['Mosaic peak', hasMosaic ? [values.python, ...peak] : null, mosaicPath])
  return list
}

const bytesOf = (size) => {
  const [, amount, unit] = /^([\d.]+)([KMG])B?$/i.exec(size) ?? []
  return Number(amount) * { K: 1e3, M: 1e6, G: 1e9 }[unit.toUpperCase()]
}

try {
  for (const size of values.sizes.split(',')) {
    const file = join(folder, `${size}.pickle`)
    const out = openSync(file, 'w')
    const truth = writePlanted((bytes) => writeSync(out, bytes), { steps: stepsFor(bytesOf(size)) })
    closeSync(out)
    console.log(`\n${size}: ${truth.bytes} bytes, ${truth.events} events, ${truth.steps} steps; load ${loadavg()[0].toFixed(1)}`)
    execFileSync('gzip', ['-1', '-k', file])
    for (const [name, command, environment] of contestants(file)) {
      if (command === null) {
        console.log(`  ${name.padEnd(26)} not installed`)
        continue
      }
      const { seconds, cpu, memory, code, stderr } = measured(command, environment)
      const speed = `${(truth.bytes / 1e6 / cpu).toFixed(0)} MB per CPU second`
      console.log(
        `  ${name.padEnd(26)} ${seconds.toFixed(1)} s, ${cpu.toFixed(1)} s of CPU, ${(memory / 1e6).toFixed(0)} MB, ${speed}${code === 0 ? '' : `, FAILED (${code}): ${stderr.slice(-300)}`}`,
      )
      if (!name.startsWith('gpuwarden snapshot') || code !== 0) continue
      const faults = plantedFaults(JSON.parse(readFileSync(output, 'utf8')).devices[0], truth)
      console.log(
        faults.length === 0
          ? '    everything that was planted was found, and nothing else'
          : faults.map((fault) => `    WRONG: ${fault}`).join('\n'),
      )
      if (size === '1GB')
        console.log(
          `    goals: ${truth.bytes / cpu >= GOAL_BYTES_PER_SECOND ? 'kept' : 'MISSED'} (100 MB/s), ${memory <= GOAL_MEMORY ? 'kept' : 'MISSED'} (400 MB)`,
        )
      if (faults.length > 0) process.exitCode = 1
    }
    if (!values.keep) {
      for (const one of [file, `${file}.gz`, `${file}.html`]) rmSync(one, { force: true })
    }
  }
} finally {
  if (values.keep) console.log(`kept in ${folder}`)
  else rmSync(folder, { recursive: true })
}
