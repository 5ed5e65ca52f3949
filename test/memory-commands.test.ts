/** profile, oom, leak, frag and the library's memory classes: the real program on simulated GPUs and on recordings. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ReportPageData } from '../src/core/report-page.ts'
import { demoRecording } from './demo-recording.ts'
import { BIN, FIXTURES, run, temporaryFolder, until } from './program.ts'

const trace = (name: string) => `replay:${join(FIXTURES, 'traces', name)}`
const recorded: Record<string, string> = {}
beforeAll(async () => {
  for (const [scenario, seconds] of [
    ['leak', 280],
    ['oom', 88],
    ['healthy', 120],
  ] as const)
    recorded[scenario] = `replay:${await demoRecording(scenario, seconds)}`
})

describe('monitor --all', () => {
  it('prints findings as NDJSON with --json, and nothing else', async () => {
    const args = ['--source', trace('leak_graph'), '--speed', '50', '--duration', '5', '--port', '0', '--log-dir', temporaryFolder()]
    const { code, stdout } = await run(['monitor', '--all', '--json', ...args])
    expect(code).toBe(0)
    const found = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { detector: string; state: string; predicted_at: string | null })
    expect(new Set(found.map((one) => one.detector))).toEqual(new Set(['leak', 'oom', 'memory_pressure']))
    expect(found.some((one) => one.detector === 'oom' && one.state === 'active' && one.predicted_at !== null)).toBe(true)
  })
})

describe('profile', () => {
  it('says in its help how often it samples', async () => {
    expect((await run(['profile', '--help'])).stdout).toMatch(/--interval <seconds>[^-]*\(default:\s+0\.1\)/)
    expect((await run(['monitor', '--help'])).stdout).toMatch(/--interval <seconds>[^-]*\(default:\s+1\)/)
  })

  it('writes the report, a page and a picture', async () => {
    const folder = temporaryFolder()
    const [output, html, plot] = ['profile.json', 'profile.html', 'memory.svg'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    const { code, stdout } = await run([
      'profile',
      '--source',
      'demo',
      '--duration',
      '2',
      '--output',
      output,
      '--html',
      html,
      '--plot',
      plot,
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/SIMULATED/)
    const report = JSON.parse(readFileSync(output, 'utf8'))
    expect(Object.keys(report).slice(0, 3)).toEqual(['timestamp', 'devices', 'summary'])
    expect(Object.keys(report.devices)).toEqual(['0', '1'])
    const { current_usage, statistics, memory, process_peaks } = report.devices['1']
    expect(Object.keys(current_usage).slice(0, 4)).toEqual(['allocated', 'free', 'total', 'utilization_percent'])
    expect(Object.keys(statistics).slice(0, 3)).toEqual(['avg_utilization', 'max_utilization', 'samples_count'])
    expect(Object.keys(statistics.percentiles)).toEqual(['p5', 'p25', 'p50', 'p75', 'p95', 'p99'])
    // Ten a second by default; half of that leaves room for a slow machine.
    expect(statistics.samples_count).toBeGreaterThan(10)
    expect(typeof memory.growth_per_minute).toBe('number')
    expect(process_peaks[0].peak).toBeGreaterThan(1024 ** 3)
    expect(report.summary).toMatchObject({ total_devices: 2, simulated: true })
    const page = readFileSync(html, 'utf8')
    expect(page).toMatch(/prefers-color-scheme: ?dark/)
    expect(page).toMatch(/SIMULATED/)
    expect(page).not.toMatch(/<script[^>]+src|https?:\/\//)
    const { charts } = JSON.parse(/id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? '') as ReportPageData
    expect(charts.map(({ title, times }) => [title, (times?.length ?? 0) > 10])).toEqual([
      ['GPU 0: memory in use (SIMULATED)', true],
      ['GPU 0: utilization (SIMULATED)', true],
      ['GPU 1: memory in use (SIMULATED)', true],
      ['GPU 1: utilization (SIMULATED)', true],
    ])
    const names = [...page.matchAll(/ (?:id|data-chart)="([^"]+)"/g)].map((match) => match[1])
    expect(names).toContain('3')
    expect(new Set(names).size).toBe(names.length)
    expect(readFileSync(plot, 'utf8')).toMatch(/^<svg /)
  })

  it('draws a PNG, and shows only the GPUs that were asked for', async () => {
    const plot = join(temporaryFolder(), 'memory.png')
    const { code, stdout } = await run(['profile', '--source', 'demo', '--duration', '1', '--devices', '1', '--plot', plot, '--json'])
    expect([code, Object.keys(JSON.parse(stdout).devices)]).toEqual([0, ['1']])
    expect(readFileSync(plot).subarray(1, 4).toString()).toBe('PNG')
  })

  it('writes the report when it is interrupted', async () => {
    const output = join(temporaryFolder(), 'profile.json')
    const child = spawn(process.execPath, [BIN, 'profile', '--source', 'demo', '--duration', '0', '--output', output], { stdio: 'ignore' })
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    const sampler = await until('it samples', () => {
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
      return children === '' ? null : children
    })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    child.kill('SIGINT')
    expect(await ended).toBe(0)
    expect(JSON.parse(readFileSync(output, 'utf8')).summary.samples_count).toBeGreaterThan(0)
    expect(existsSync(`/proc/${sampler}`)).toBe(false)
  })

  it('has the findings of a recording, and of its beginning only with --duration', async () => {
    const all = JSON.parse((await run(['profile', '--source', trace('leak_graph'), '--json'])).stdout)
    expect(all.findings.map((one: { detector: string }) => one.detector)).toEqual(expect.arrayContaining(['leak', 'oom']))
    expect(all.devices['0'].statistics.samples_count).toBe(843)
    const some = JSON.parse((await run(['profile', '--source', trace('leak_graph'), '--json', '--duration', '20'])).stdout)
    expect(some.summary.duration_seconds).toBeGreaterThan(19)
    expect(some.summary.duration_seconds).toBeLessThanOrEqual(20)
  })

  it('says before it measures that a file cannot be written', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'a-folder'))
    const begun = Date.now()
    for (const [args, message] of [
      [
        ['--output', '/nonexistent/folder/profile.json'],
        /--output: cannot write \/nonexistent\/folder\/profile\.json: its folder does not exist/,
      ],
      [['--html', join(folder, 'a-folder')], /--html: cannot write .*it is a folder/],
      [['--plot', 'memory.gif'], /--plot: expected .*\.svg or \.png/],
    ] as [string[], RegExp][]) {
      const { code, stderr } = await run(['profile', '--source', 'demo', '--duration', '600', ...args])
      expect(stderr).toMatch(message)
      expect(code).toBe(2)
    }
    expect(Date.now() - begun).toBeLessThan(60_000)
  })
})

describe('oom', () => {
  it('says what is wrong with a threshold, by the name of its flag', async () => {
    const { code, stderr } = await run(['oom', '--threshold', '500', '--source', 'demo'])
    expect([code, stderr]).toEqual([2, 'gpuwarden: --threshold: expected percent of the memory, above 0 and up to 100; got 500\n'])
    const leak = await run(['leak', '--threshold', 'much', '--source', 'demo'])
    expect([leak.code, leak.stderr]).toEqual([2, 'gpuwarden: --threshold: expected MB of growth, 0 or more; got "much"\n'])
  })

  it('prints the warning as promised while it monitors a recording', async () => {
    const { code, stdout } = await run(['oom', '--threshold', '85', '--monitor', '--source', trace('leak_graph')])
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^\[WARNING\] OOM Warning: GPU 0\n {3}Risk Level: high\n {3}Current Usage: \d+\.\d%\n {3}Predicted OOM Time: \d+\.\dseconds later\n {3}Confidence: 0\.\d\d\n( {3}Recommendation: .+\n)+/,
    )
    expect(stdout).toMatch(/Risk Level: critical/)
  })

  it('ends with 1 when the risk is high, and with 0 when it is not', async () => {
    const bad = await run(['oom', '--source', recorded.oom ?? ''])
    expect([bad.code, bad.stdout.includes('Risk Level: critical')]).toEqual([1, true])
    const good = await run(['oom', '--json', '--source', recorded.healthy ?? ''])
    expect(good.code).toBe(0)
    expect(JSON.parse(good.stdout).devices.map((one: { risk_level: string }) => one.risk_level)).toEqual(['low', 'low'])
  })

  it('warns of a level on live GPUs', async () => {
    const { code, stdout } = await run(['oom', '--source', 'demo', '--devices', '1', '--threshold', '20', '--duration', '1.5'])
    expect(stdout).toMatch(/SIMULATED/)
    expect(stdout).toMatch(/OOM Warning: GPU 1\n {3}Risk Level: medium\n.*\n {3}Predicted OOM Time: none in sight/)
    expect(code).toBe(0)
  })

  it.each([
    [['--threshold', '0'], 2, /--threshold: .*above 0 and up to 100; got 0/],
    [['--threshold', 'most'], 2, /got "most"/],
    [['--duration', '-1'], 2, /--duration/],
    [['--devices', '7'], 3, /there is no GPU 7; there are: 0, 1/],
  ] as [string[], number, RegExp][])('%j ends with code %i', async (args, code, message) => {
    const result = await run(['oom', '--source', 'demo', ...args])
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toMatch(/\n\s+at /)
    expect(result.code).toBe(code)
  })
})

describe('leak', () => {
  interface Verdict {
    subject: string
    verdict: string
    device_id: number | null
    confidence: number | null
    bytes_per_minute: number
    since: string | null
  }
  const check = async (source: string, ...args: string[]) => {
    const { code, stdout } = await run(['leak', '--check', '--json', '--source', source, ...args])
    return { code, verdicts: JSON.parse(stdout).verdicts as Verdict[] }
  }

  it('finds the leak of a simulated GPU, how sure, how fast and since when; the other GPU is fine', async () => {
    const { code, verdicts } = await check(recorded.leak ?? '', '--threshold', '100')
    expect(code).toBe(1)
    const gpus = verdicts.filter((one) => one.subject === 'gpu')
    expect(gpus.map((one) => [one.device_id, one.verdict])).toEqual([
      [0, 'leak'],
      [1, 'no_leak'],
    ])
    expect(gpus[0]?.confidence).toBeGreaterThan(0.5)
    expect(gpus[0]?.bytes_per_minute).toBeGreaterThan(1024 ** 3)
    expect(Date.parse(gpus[0]?.since ?? '')).toBeGreaterThan(Date.UTC(2026, 10, 15))
    expect((await check(recorded.leak ?? '', '--devices', '1')).code).toBe(0)
  })

  it('finds none in healthy runs, simulated and recorded', async () => {
    for (const source of [recorded.healthy ?? '', trace('healthy'), trace('benign_sawtooth'), trace('warmup_plateau')]) {
      const { code, verdicts } = await check(source)
      expect([source, code]).toEqual([source, 0])
      expect(verdicts.some((one) => one.verdict === 'leak')).toBe(false)
    }
  })

  it('does not call growth below the threshold a leak', async () => {
    expect((await check(trace('leak_graph'), '--threshold', '1000000')).code).toBe(0)
    expect((await check(trace('leak_graph'), '--threshold', '100')).code).toBe(1)
  })

  it('admits that a moment is too short', async () => {
    const { code, stdout } = await run(['leak', '--check', '--source', 'demo', '--duration', '1'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/\[too short to tell\] GPU 0/)
  })
})

describe('frag', () => {
  it('gives a ledger that adds up, and the fragmentation of the run', async () => {
    const { code, stdout } = await run(['frag', '--json', '--source', trace('leak_graph')])
    const { runs, devices } = JSON.parse(stdout)
    expect(code).toBe(0)
    expect(runs).toHaveLength(1)
    expect(runs[0]).toMatchObject({ run: 'leak_graph', device_id: 0, fragmentation_level: 'low' })
    const { ledger, total_bytes } = devices['0']
    expect(ledger.reduce((sum: number, one: { bytes: number }) => sum + one.bytes, 0)).toBe(total_bytes)
    for (const one of ledger) expect(one.explanation).toMatch(/\.$/)
    expect(ledger.map((one: { name: string }) => one.name)).toContain('torch_inactive_split')
  })

  it('says plainly that no run reported', async () => {
    const source = `replay:${join(FIXTURES, 'traces/leak_graph/gpu_metrics.jsonl.gz')}`
    const { code, stdout } = await run(['frag', '--source', source])
    expect(code).toBe(0)
    expect(stdout).toMatch(/No training run reported its allocator/)
    expect(stdout).toMatch(/free +\d/)
  })

  it('names the runs there are when another was asked for', async () => {
    const { code, stderr } = await run(['frag', '--source', trace('leak_graph'), '--run', 'mine'])
    expect([code, stderr]).toEqual([3, expect.stringMatching(/run "mine".*\n.*leak_graph/)])
  })
})

describe('monitor --all', () => {
  it('is accepted, and is what monitor does', async () => {
    const args = ['monitor', '--all', '--source', 'demo', '--duration', '1', '--port', '0', '--quiet', '--log-dir', temporaryFolder()]
    expect((await run(args)).code).toBe(0)
  })
})

describe('bad recordings', () => {
  const line = (fields: object) =>
    `${JSON.stringify({ timestamp: '2026-11-15T06:00:00.000Z', gpu_index: 0, memory_used_mb: null, ...fields })}\n`
  it.each(['profile', 'oom', 'leak', 'frag'])(
    '%s copes with one sample without a reading, and names what is not there',
    async (command) => {
      const path = join(temporaryFolder(), 'gpu_metrics_a.jsonl')
      writeFileSync(path, line({}))
      const one = await run([command, '--source', `replay:${path}`])
      expect([one.code, one.stderr]).toEqual([0, ''])
      expect(one.stdout).not.toMatch(/NaN|undefined|Infinity/)
      const none = await run([command, '--source', 'replay:/nonexistent'])
      expect([none.code, none.stderr]).toEqual([3, expect.stringContaining('/nonexistent')])
    },
  )
})

describe('the library', () => {
  const example = (name: string, args: string[] = []) =>
    new Promise<{ code: number | null; stdout: string; stderr: string; folder: string }>((resolve) => {
      const folder = temporaryFolder()
      const path = fileURLToPath(new URL(`../examples/${name}`, import.meta.url))
      const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: '/nonexistent', GPUWARDEN_SOURCE: 'demo', GPUWARDEN_DEMO_SCENARIO: 'healthy' }
      const child = spawn(process.execPath, [path, ...args], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
      let [stdout, stderr] = ['', '']
      child.stdout.on('data', (data) => {
        stdout += data
      })
      child.stderr.on('data', (data) => {
        stderr += data
      })
      child.once('close', (code) => resolve({ code, stdout, stderr, folder }))
    })

  it('MemoryDebugger runs all tools at once', async () => {
    const { code, stdout, stderr } = await example('memory-debugger.js')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/GPU 1 Simulated .*% in use/)
    expect(stdout).toMatch(/GPU 0: OOM risk low/)
    expect(stdout).toMatch(/too short to tell: GPU 0/)
    expect(stdout).toMatch(/fragmentation \d/)
  })

  it('MemoryProfiler writes its report, as JSON and as a page', async () => {
    const { code, stdout, folder } = await example('memory-profiler.js')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/samples of 2 GPUs \(SIMULATED\)/)])
    expect(JSON.parse(readFileSync(join(folder, 'memory_report.json'), 'utf8')).devices['0'].statistics.samples_count).toBeGreaterThan(5)
    expect(readFileSync(join(folder, 'memory_report.html'), 'utf8')).toMatch(/^<!doctype html>/)
  })

  it('OOMDetector calls back before the end', async () => {
    const { code, stdout, stderr } = await example('memory-oom-callback.js', [join(FIXTURES, 'traces/leak_graph')])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/GPU 0: high, \d+\.\d% in use, in \d+\.\d s, confidence 0\.\d\d/)
    expect(stdout).toMatch(/taking action: Save a checkpoint now/)
  })

  it('LeakDetector and FragmentationAnalyzer judge a recording', async () => {
    const { code, stdout, stderr } = await example('memory-leak-and-fragmentation.js', [join(FIXTURES, 'traces/leak_graph')])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^found: .*Run leak_graph/m)
    expect(stdout).toMatch(/^\[leak\] \(0\.\d\d\) GPU 0/m)
    expect(stdout).toMatch(/run leak_graph: \d\.\d% fragmented \(low\)/)
  })
})
