/** `gpuwarden detect`, the real program: recordings, CSV logs of nvidia-smi, scores, and everything that can be wrong with them. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { demoRecording } from './demo-recording.ts'
import { BIN, FIXTURES, run, temporaryFolder } from './program.ts'

const KEYS = ['at', 'detector', 'severity', 'state', 'gpu', 'pid', 'run', 'message', 'evidence', 'confidence', 'predicted_at']
  .concat(['predicted_earliest_at', 'predicted_latest_at', 'risk_level', 'since', 'advice'])
  .concat(['gpu_id', 'rank', 'user', 'host', 'fingerprint'])
const START = Date.UTC(2026, 10, 15, 6)

interface Line {
  at: string
  detector: string
  severity: string
  state: string
  gpu: number | null
  pid: number | null
  run: string | null
  predicted_at: string | null
}

async function detect(...args: string[]) {
  const result = await run(['detect', ...args])
  const lines = result.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
  return { ...result, lines, loud: lines.filter((line) => line.state === 'active' && line.severity !== 'info') }
}

const trace = (name: string) => join(FIXTURES, 'traces', name)

function file(name: string, content: string | Buffer): string {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, content)
  return path
}

const line = (seconds: number, fields: object = {}) =>
  `${JSON.stringify({ timestamp: new Date(START + seconds * 1000).toISOString(), gpu_index: 0, utilization_percent: 50, memory_used_mb: 1000, memory_total_mb: 80_000, processes: [], ...fields })}\n`
const series = (count: number, fields: (i: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) => line(i, fields(i))).join('')

describe('detect on a recording', () => {
  it('finds the leak and the coming OOM of a recorded run, and says it in the promised shape', async () => {
    const { code, lines, loud, stderr } = await detect(trace('leak_graph'), '--json')
    expect(code).toBe(0)
    for (const one of lines) expect(Object.keys(one)).toEqual(KEYS)
    expect(new Set(loud.map((one) => one.detector))).toEqual(new Set(['leak', 'oom', 'memory_pressure']))
    const oom = loud.find((one) => one.detector === 'oom')
    expect([oom?.gpu, oom?.run]).toEqual([0, 'leak_graph'])
    expect(Date.parse(oom?.predicted_at ?? '')).toBeGreaterThan(Date.parse(oom?.at ?? ''))
    expect(lines.map((one) => one.at)).toEqual(lines.map((one) => one.at).toSorted())
    expect(stderr).toMatch(/843 GPU samples and 482 training steps.*0 of 1325 lines skipped/)
  })

  it('says of a recording of simulated GPUs that they are, about the GPU and about the run', async () => {
    const { lines, stderr } = await detect(await demoRecording('leak', 240), '--json')
    expect(lines.some((one) => one.run !== null)).toBe(true)
    for (const one of lines) expect(one).toMatchObject({ provenance: 'simulated' })
    expect(stderr).toMatch(/the recording is of SIMULATED GPUs/)
    expect((await detect(trace('leak_graph'))).stderr).not.toMatch(/SIMULATED/)
  })

  it('says nothing loud of a healthy run, and reads one compressed file as well as a folder', async () => {
    expect((await detect(trace('healthy'))).loud).toEqual([])
    const { loud, stderr } = await detect(join(trace('leak_graph'), 'gpu_metrics.jsonl.gz'))
    expect(loud.map((one) => one.detector)).toContain('leak')
    expect(stderr).toMatch(/and 0 training steps/)
  })

  it('reads only --duration of it', async () => {
    const { lines, stderr } = await detect(trace('leak_graph'), '--duration', '55')
    expect(new Set(lines.map((one) => one.detector))).toEqual(new Set(['leak', 'oom']))
    expect(lines.every((one) => one.state === 'active')).toBe(true)
    expect(stderr).toMatch(/5\d\d GPU samples/)
    const wrong = await run(['detect', trace('leak_graph'), '--duration', 'x'])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/--duration: expected seconds, 0 or more; got "x"/)])
  })

  it('stops at --until', async () => {
    const all = await detect(trace('leak_graph'))
    const until = '2026-11-15T06:34:10Z'
    const some = await detect(trace('leak_graph'), '--until', until)
    expect(some.lines).toEqual(all.lines.filter((one) => Date.parse(one.at) <= Date.parse(until)))
    expect(some.lines.length).toBeGreaterThan(0)
    expect(some.lines.length).toBeLessThan(all.lines.length)
  })

  it('ends quietly when nobody reads on', () => {
    const command = `"${process.execPath}" "${BIN}" detect "${trace('leak_graph')}" 2>&1 >/dev/full | cat; "${process.execPath}" "${BIN}" detect "${trace('leak_graph')}" 2>/dev/null | head -1`
    expect(execFileSync('bash', ['-c', command]).toString()).toMatch(/"detector":"/)
  })
})

describe('detect on a CSV log of nvidia-smi', () => {
  const smi = gunzipSync(readFileSync(join(trace('leak_graph'), 'gpu_metrics.jsonl.gz')))
    .toString()
    .trim()
    .split('\n')
    .map((text) => {
      const { timestamp, memory_used_mb, memory_total_mb, utilization_percent } = JSON.parse(text)
      return `${timestamp.replaceAll('-', '/').replace('T', ' ').replace('Z', '')}, 0, NVIDIA H200, ${memory_used_mb} MiB, ${memory_total_mb} MiB, ${utilization_percent} %, [N/A]`
    })
  const header = 'timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], fan.speed [%]'

  it('finds what the same recording as JSONL has', async () => {
    const half = smi.length >> 1
    const text = [header, ...smi.slice(0, half), header, ...smi.slice(half), ''].join('\r\n')
    const plain = await detect(file('smi.csv', text))
    const utf16 = await detect(file('smi.csv', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])))
    expect(plain.code).toBe(0)
    expect(plain.loud.map((one) => one.detector)).toContain('leak')
    expect(plain.loud.map((one) => one.detector)).toContain('oom')
    expect(utf16.lines).toEqual(plain.lines)
    expect(plain.stderr).toMatch(/0 of 843 lines skipped/)
  })

  it('is understood by a replay, too', async () => {
    const path = file('smi.csv', `${[header, ...smi].join('\n')}\n`)
    const { code, stdout } = await run(['leak', '--check', '--json', '--source', `replay:${path}`])
    expect([code, JSON.parse(stdout).leak]).toEqual([1, true])
  })
})

describe('detect --scores', () => {
  const rows = Array.from(
    { length: 1000 },
    (_, i) =>
      `2026-11-15 ${String(6 + Math.floor(i / 600)).padStart(2, '0')}:${String(Math.floor(i / 10) % 60).padStart(2, '0')}:${String((i % 10) * 6).padStart(2, '0')},${(i % 7) + (i === 800 ? 500 : 0)}`,
  )

  it('gives one score per row, in [0,1], highest where the change is', async () => {
    const path = file('data.csv', `timestamp,value\n${rows.join('\n')}\n`)
    const { code, stdout, stderr } = await run(['detect', '--csv', path, '--time', 'timestamp', '--value', 'value', '--scores'])
    expect([code, stderr]).toEqual([0, ''])
    const [head, ...lines] = stdout.trim().split('\n')
    expect(head).toBe('timestamp,score')
    expect(lines.length).toBe(rows.length)
    expect(lines.map((one) => one.split(',')[0])).toEqual(rows.map((one) => one.split(',')[0]))
    const scores = lines.map((one) => Number(one.split(',')[1]))
    for (const score of scores) expect(score >= 0 && score <= 1).toBe(true)
    expect(scores.indexOf(Math.max(...scores))).toBe(800)
    expect(scores[800]).toBeGreaterThan(0.5)
  })

  it('takes units, other separators and gaps', async () => {
    const path = file('data.csv', '\ufefftime;memory.used [MiB]\r\n1;10 MiB\r\n2;[N/A]\r\nx;30 MiB\r\n')
    const { code, stdout, stderr } = await run(['detect', '--csv', path, '--time', 'time', '--value', 'memory.used', '--scores'])
    expect([code, stdout]).toEqual([0, 'time,score\n1,0\n2,0\nx,0\n'])
    expect(stderr).toMatch(/1 of 3 rows have no number in "memory.used"/)
    expect(stderr).toMatch(/1 of 3 rows have no time in "time"/)
  })

  it.each([
    [['--csv', '/nonexistent.csv', '--time', 't', '--value', 'v', '--scores'], 3, /\/nonexistent\.csv/],
    [
      ['--csv', file('a.csv', 't,v\n1,2\n'), '--time', 't', '--value', 'loss', '--scores'],
      2,
      /no column "loss" \(--value\); it has "t", "v"/,
    ],
    [['--csv', file('a.csv', 't,v\n1,2\n'), '--time', 'when', '--value', 'v', '--scores'], 2, /no column "when" \(--time\)/],
    [['--csv', file('a.csv', ''), '--time', 't', '--value', 'v', '--scores'], 3, /is empty/],
    [['--csv', file('a.csv', 't,v\n'), '--time', 't', '--value', 'v', '--scores'], 0, /no rows/],
    [['--csv', file('a.csv', 't,v\n1,2\n'), '--scores'], 2, /--time COLUMN and --value COLUMN/],
    [['--scores'], 2, /--scores needs --csv/],
  ] as [string[], number, RegExp][])('%j ends with code %i', async (args, code, message) => {
    const result = await run(['detect', ...args])
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toMatch(/\n\s+at /)
    expect(result.code).toBe(code)
  })
})

describe('detect on what is no good recording', () => {
  it.each([
    ['nothing at all', [], 2, /which recording\?/],
    ['a file that is not there', ['/nonexistent.jsonl'], 3, /\/nonexistent\.jsonl \(ENOENT\)/],
    ['an empty file', [file('gpu_metrics_a.jsonl', '')], 3, /is empty/],
    ['lines that are none', [file('gpu_metrics_a.jsonl', 'hello\n{"a":1}\n')], 3, /no usable line/],
    ['a CSV of something else', [file('other.csv', 'a,b\n1,2\n')], 3, /other\.csv is not a CSV log of nvidia-smi/],
    ['a time that is none', [file('gpu_metrics_a.jsonl', line(0)), '--until', 'noon'], 2, /--until: .*"noon"/],
  ] as [string, string[], number, RegExp][])('%s', async (_what, args, code, message) => {
    const result = await run(['detect', ...args])
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toMatch(/\n\s+at /)
    expect(result.code).toBe(code)
  })

  const shuffled = Array.from({ length: 300 }, (_, i) => line(i ^ 5))
  it.each([
    ['one sample', line(0)],
    ['only nulls', series(300, () => ({ memory_used_mb: null, memory_total_mb: null, utilization_percent: null, processes: null }))],
    ['a constant series', series(600)],
    ['a gap of a day', series(300) + Array.from({ length: 300 }, (_, i) => line(86_400 + i)).join('')],
    ['samples out of order', shuffled.join('')],
    ['a total that changes', series(600, (i) => ({ memory_total_mb: i < 300 ? 80_000 : 40_000 }))],
    [
      'counters that reset',
      series(600, (i) => ({ energy_joules: (i * 100) % 20_000, ecc_corrected_volatile_count: Math.floor((i % 200) / 50) })),
    ],
    ['a torn end', `${series(50)}{"timestamp":"2026-11-`],
  ])('%s: no crash, no alarm', async (_what, content) => {
    const { code, loud, stderr } = await detect(file('gpu_metrics_a.jsonl', content))
    expect([code, loud]).toEqual([0, []])
    expect(stderr).not.toMatch(/failed|\n\s+at /)
  })

  it('says when memory is not reported, how many lines were out of order, and which were skipped', async () => {
    const nulls = await detect(
      file(
        'gpu_metrics_a.jsonl',
        series(10, () => ({ memory_used_mb: null })),
      ),
    )
    expect(nulls.stderr).toMatch(/memory detectors had nothing to work with/)
    const torn = await detect(file('gpu_metrics_a.jsonl', `${series(5)}not json\n{"timestamp":"2026-11-`))
    expect(torn.stderr).toMatch(/2 of 7 lines skipped/)
    expect(torn.stderr).toMatch(/1 not_json, 1 torn/)
  })

  it('a run without an end raises nothing about memory', async () => {
    const folder = join(temporaryFolder(), 'run')
    mkdirSync(folder)
    const step = (i: number) =>
      `${JSON.stringify({ timestamp: new Date(START + i * 500).toISOString(), step: i, loss: 2, memory_allocated_mb: 500, memory_reserved_mb: 800, run: 'r' })}\n`
    writeFileSync(
      join(folder, 'gpu_metrics_a.jsonl'),
      series(60, () => ({ processes: [{ pid: 7, memory_used_mb: 900, type: 'compute' }] })),
    )
    writeFileSync(join(folder, 'training_metrics_a.jsonl'), Array.from({ length: 120 }, (_, i) => step(i)).join(''))
    const { code, loud } = await detect(folder)
    expect(code).toBe(0)
    expect(loud.filter((one) => ['leak', 'oom', 'memory_pressure'].includes(one.detector))).toEqual([])
  })
})

describe('detect on a column of memory', () => {
  const column = (rows: number, used: (i: number) => number | string) =>
    file(
      'memory.csv',
      `time,used\n${Array.from({ length: rows }, (_, i) => `${new Date(START + i * 10_000).toISOString()},${used(i)}\n`).join('')}`,
    )
  const asMemory = (path: string, ...more: string[]) =>
    detect('--csv', path, '--time', 'time', '--value', 'used', '--as', 'memory', '--json', ...more)

  it('finds the leak and the coming end, as the agent would', async () => {
    const { code, loud } = await asMemory(
      column(2000, (i) => (20 + (i > 400 ? (i - 400) * 0.036 : 0)) * 1024 ** 3),
      '--capacity',
      '80GiB',
    )
    expect(code).toBe(0)
    expect(new Set(loud.map((one) => one.detector))).toEqual(new Set(['leak', 'oom']))
  })

  it('reads units of the cells, leaves out rows without a number, and is silent on flat memory', async () => {
    const { code, lines, stderr } = await asMemory(
      column(500, (i) => (i % 50 === 0 ? '[N/A]' : '20480 MiB')),
      '--capacity',
      String(80 * 1024 ** 3),
    )
    expect([code, lines]).toEqual([0, []])
    expect(stderr).toContain('500 rows; 10 without a number')
  })

  it('says what is missing or wrong', async () => {
    const path = column(3, () => 1)
    expect((await asMemory(path)).stderr).toContain('--as memory needs --capacity BYTES')
    expect((await asMemory(path, '--capacity', 'much')).stderr).toContain('expected bytes, or a size such as 80GiB; got "much"')
    expect((await detect('--csv', path, '--time', 'time', '--value', 'used', '--as', 'loss')).stderr).toContain('expected "memory"')
    expect(
      (
        await asMemory(
          column(3, () => '7 %'),
          '--capacity',
          '1GiB',
        )
      ).stderr,
    ).toContain('the column is in "%"')
  })
})
