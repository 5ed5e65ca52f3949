import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DCGM_METRICS } from './dcgm.ts'
import { createExporter, type Exporter } from './exporter.ts'
import { readExposition } from './exposition.contract.ts'
import { FIXED_ALERTS, FIXED_STATE, FIXED_TIME, FIXED_USAGE, fixedTraining, fixedXids, naming } from './fixed-state.contract.ts'
import type { Format } from './metric.ts'
import { NVIDIA_SMI_METRICS } from './nvidia-smi.ts'
import { NVIDIA_SMI_PROCESSES } from './nvidia-smi-processes.ts'

const GOLDEN = fileURLToPath(new URL('all-sets.golden.txt', import.meta.url))

function exporter(): Exporter {
  const ticks = [0, 1.5]
  const monotonicMs = () => ticks.shift() ?? 0
  const sets = ['native', 'dcgm', 'nvidia_smi'] as const
  const training = fixedTraining()
  const fed = {
    training,
    timeOf: () => FIXED_TIME,
    xids: fixedXids(),
    alerts: () => FIXED_ALERTS,
    usage: () => FIXED_USAGE,
    unfollowedRuns: () => ({ loss_nan: 0, straggler: 2 }),
  }
  return createExporter({ naming, state: FIXED_STATE, sets, maxProcesses: 3, ...fed, monotonicMs })
}

function page(format: Format = 'text'): string {
  return exporter().render(format).replace(`node="${process.version}"`, 'node="v20.0.0"')
}

const seriesLines = (text: string) => text.split('\n').filter((line) => !line.startsWith('#'))

describe('the whole page', () => {
  it('is the golden file (UPDATE_GOLDEN=1 writes it anew)', () => {
    const text = page()
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, text)
    expect(text).toBe(readFileSync(GOLDEN, 'utf8'))
  })

  it('is valid in both formats, with the same series', () => {
    expect(readExposition(page()).series.length).toBeGreaterThan(300)
    const open = page('openmetrics')
    readExposition(open, 'openmetrics')
    expect(seriesLines(open)).toEqual(seriesLines(page()))
    expect(open).toContain('# TYPE gpu_energy_joules counter\n# UNIT gpu_energy_joules joules\n')
    expect(open).toContain('# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n')
  })

  it('holds the same series, in the same order, as what is pushed', () => {
    const { types, series } = readExposition(page().replace('node="v20.0.0"', `node="${process.version}"`))
    const families = exporter().families()
    expect(families.map(({ name, type }) => [name, type])).toEqual([...types])
    expect(families.flatMap((family) => family.series.map(({ name, labels, value }) => [name, Object.fromEntries(labels), value]))).toEqual(
      series.map(({ name, labels, value }) => [name, labels, value]),
    )
    const all = families.flatMap((family) => family.series)
    expect(new Set(all.map(({ key }) => key)).size).toBe(all.length)
    expect(families.find(({ name }) => name === 'training_run_info')?.series[0]?.labels).toContainEqual(['name', 'gemma "3n"'])
  })
})

/** Ours from the beginning, with units that promtool would not choose. */
const FIRST_NAMES = ['gpu_memory_used_mb', 'gpu_memory_total_mb', 'memory_allocation_mb']
/** Other people's contracts. */
const THEIR_NAMES = [...DCGM_METRICS, ...NVIDIA_SMI_METRICS, ...NVIDIA_SMI_PROCESSES].map(({ name }) => name)

const promtool = spawnSync('promtool', ['--version'])

describe('promtool check metrics', () => {
  const reason = promtool.error === undefined ? '' : ' (skipped: promtool is not on the PATH; it comes with Prometheus)'
  it.skipIf(promtool.error !== undefined)(`has nothing to say but what was promised to others${reason}`, () => {
    const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], { input: page(), encoding: 'utf8' })
    const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line !== '')
    const accepted = new Set([...FIRST_NAMES, ...THEIR_NAMES])
    expect(complaints.filter((line) => !accepted.has(line.split(' ', 1)[0] ?? ''))).toEqual([])
    // 3: it read every line, and would have chosen other names.
    expect(status).toBe(3)
  })
})
