/** `gpuwarden snapshot`, and `leak`, `frag` and `oom` with a snapshot file: the real program on recorded and on hostile files. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { FIXTURES, run, temporaryFolder } from './program.ts'

const file = (name: string) => join(FIXTURES, 'snapshots', `${name}.pickle.gz`)
const bytesOf = (name: string) => gunzipSync(readFileSync(file(name)))

/** Of a file with these bytes. */
function written(name: string, bytes: Uint8Array): string {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, bytes)
  return path
}

interface DeviceRecord {
  readonly peak: { readonly allocated_bytes: number; readonly index: number; readonly time_us: number }
  readonly at: {
    readonly allocated_bytes: number
    readonly by_line: { name: string; bytes: number }[]
    readonly by_category: { name: string; bytes: number }[]
  }
  readonly is_filtered: boolean
}

async function device(args: readonly string[]): Promise<DeviceRecord> {
  const { code, stdout, stderr } = await run(['snapshot', ...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout).devices[0]
}

describe('snapshot', () => {
  it.each(['healthy', 'leak', 'fragment_oom', 'expandable', 'graphs', 'leak_hf'])('sums up %s on one screen', async (name) => {
    const { code, stdout, stderr } = await run(['snapshot', file(name)])
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(40)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100)
    expect(stdout).toMatch(/^Check +events and blocks agree/m)
    for (const part of ['Peak', 'At the end', 'Retries', 'In use at the peak', 'Leak', 'Fragmentation']) expect(stdout).toContain(part)
    expect(stdout).toMatch(/unknown <?\d+%/)
  })

  it('reports the leak, and the out-of-memory error with three ways out', async () => {
    const leak = await run(['snapshot', file('leak'), '--memory', '80GiB'])
    expect(leak.stdout).toMatch(
      /^Leak +\/home\/ml\/project\/train\/finetune\.py:77 in <module>\n +keeps 24 MiB each step, .* 80\.0 GiB would be full in/m,
    )
    const { stdout } = await run(['snapshot', file('fragment_oom')])
    expect(stdout).toMatch(/^Out of memory +170 MiB asked for, 81 MiB free, at \/home\/ml\/project\/train\/finetune\.py:134 in <module>/m)
    expect(stdout).toMatch(/cause: the GPU is too small\n +1\. up to 271 MiB: .*\n +2\. .*\n +3\. /)
  })

  it('gives JSON with stable names', async () => {
    const { stdout } = await run(['snapshot', file('fragment_oom'), '--json', '--at', 'oom'])
    const record = JSON.parse(stdout)
    expect(Object.keys(record)).toEqual(['path', 'bytes', 'cut', 'settings', 'unknown_actions', 'texts_not_kept', 'devices'])
    const [one] = record.devices
    expect(Object.keys(one)).toEqual(
      'device events actions window is_filtered steps peak reserved_peak start end identity at retries leak fragmentation out_of_memory timeline'.split(
        ' ',
      ),
    )
    expect(one.peak).toEqual({
      index: 5580,
      allocated_bytes: 148_926_545_920,
      reserved_bytes: 149_220_753_408,
      pending_bytes: 0,
      time_us: 1_794_724_205_002_143,
    })
    expect(one.at).toMatchObject({ name: 'the out-of-memory', index: 5581, allocated_bytes: 148_926_545_920 })
    expect(one.out_of_memory[0]).toMatchObject({ request_bytes: 178_257_920, cause: 'capacity', missing_bytes: 93_192_192 })
    expect(one.fragmentation).toMatchObject({ unusable_ratio: 1, fits_if_compacted: true, is_exact: true })
    expect(one.timeline.length).toBeGreaterThan(400)
    expect(record.settings).toMatchObject({ expandable_segments: false })
  })

  it('looks at any moment', async () => {
    const { peak } = await device([file('healthy')])
    const at = async (moment: string) => (await device([file('healthy'), '--at', moment])).at.allocated_bytes
    expect(await at('peak')).toBe(peak.allocated_bytes)
    expect(await at('end')).toBe(590_790_660)
    expect(await at(`#${peak.index}`)).toBe(peak.allocated_bytes)
    expect(await at(new Date(peak.time_us / 1000 + 1).toISOString())).toBeGreaterThan(0)
    expect(await at('0')).toBe(await at('#0'))
    expect(await at('3600')).toBe(590_790_660)
    for (const [moment, message] of [
      ['oom', /no out-of-memory event/],
      ['#4000', /event #4000 of 4000/],
      ['yesterday', /--at: expected peak, end, oom/],
    ] as const) {
      const { code, stderr } = await run(['snapshot', file('healthy'), '--at', moment])
      expect(code).toBe(2)
      expect(stderr).toMatch(message)
    }
  })

  it('filters by stream, pool and stack, and leaves small rows out', async () => {
    const all = await device([file('graphs')])
    expect(all.is_filtered).toBe(false)
    const [graph, rest] = [
      await device([file('graphs'), '--pool', '0.1', '--at', '#5735']),
      await device([file('graphs'), '--pool', '0.0', '--at', '#5735']),
    ]
    expect(graph.is_filtered).toBe(true)
    expect(graph.at.allocated_bytes + rest.at.allocated_bytes).toBe(all.peak.allocated_bytes)
    const other = await device([file('graphs'), '--stream', '645740480', '--at', '#5735'])
    expect(other.at.allocated_bytes).toBeGreaterThan(0)
    expect(other.at.allocated_bytes).toBeLessThan(all.peak.allocated_bytes)
    const matched = await device([file('graphs'), '--match', 'adam\\.py:\\d+ _init_group'])
    expect(matched.at.by_category.filter(({ bytes }) => bytes > 0).map(({ name }) => name)).toEqual(['optimizer_state'])
    const large = await device([file('graphs'), '--min', '1GiB'])
    expect(large.at.by_line).toEqual([])
    const ruled = await device([file('graphs'), '--category', 'input=snap\\.py:21 '])
    expect(ruled.at.by_category.find(({ name }) => name === 'input')?.bytes).toBeGreaterThan(1_000_000_000)
    expect((await run(['snapshot', file('graphs'), '--gpu', '3'])).stderr).toMatch(/GPUs in it: 0/)
  })

  it('folds stacks for flame graphs: they add up to what is in use', async () => {
    const { stdout } = await run(['snapshot', file('healthy'), '--folded'])
    const lines = stdout.trimEnd().split('\n')
    const [, sum] = [lines[0], lines.reduce((total, line) => total + Number(/ (\d+)$/.exec(line)?.[1]), 0)]
    expect(sum).toBe(733_638_668)
    expect(stdout).toMatch(/^<module> \(\/home\/ml\/project\/train\/finetune\.py:74\);train_step \(.*;_init_group \(.*\);zeros_like \d+$/m)
  })

  it('compares two files', async () => {
    const { code, stdout } = await run(['snapshot', file('healthy'), file('leak'), '--at', 'end', '--min', '2MiB'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/Careful: the first file covers 4 steps, the second 7\./)
    expect(stdout.match(/^ +[+-].*(?:new|gone|grown|shrunk) /gm)).toHaveLength(1)
    expect(stdout).toMatch(/\+3\.5 GiB {2}new {5}\/home\/ml\/project\/train\/finetune\.py:77 in <module> {2}\(0 → 151 blocks\)/)
    const itself = await run(['snapshot', file('leak'), file('leak')])
    expect(itself.stdout).toMatch(/Nothing differs\./)
    const record = JSON.parse((await run(['snapshot', file('healthy'), file('leak'), '--json'])).stdout)
    expect(Object.keys(record.devices[0])).toEqual(
      'device_before device_after at warnings before_bytes after_bytes delta_bytes stacks categories'.split(' '),
    )
  })

  it('says of a file that was cut that it was, and what it still gives', async () => {
    const path = written('cut.pickle', bytesOf('leak').subarray(0, 900_000))
    const { code, stdout } = await run(['snapshot', path])
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^cut\.pickle is cut: the file ends at byte \d+, before the end of the pickle\. It was read up to the last whole event \(\d,\d{3} events\)/,
    )
    expect(stdout).toMatch(/^Check +events and blocks differ by/m)
  })

  it('refuses what would run something, in a sentence, with exit code 3', async () => {
    const attack = Buffer.concat([bytesOf('healthy').subarray(0, -1), Buffer.from('cos\nsystem\n\u008c\u0007touch x\u0085R.', 'latin1')])
    for (const path of [written('evil.pickle', attack), written('evil.pickle.gz', gzipSync(attack))]) {
      const { code, stdout, stderr } = await run(['snapshot', path])
      expect([code, stdout]).toEqual([3, ''])
      expect(stderr).toMatch(/cannot be read as a memory snapshot: opcode GLOBAL at byte 863097 imports something: it was not run/)
      expect(stderr).not.toMatch(/\n {4}at /)
    }
  })

  it('ends a small file that would fill the memory', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from([0x80, 4]), Buffer.alloc(256 * 1024 ** 2, ']\u0094', 'latin1')]))
    expect(bomb.length).toBeLessThan(1024 ** 2)
    const { code, stderr } = await run(['snapshot', written('bomb.pickle.gz', bomb)], { NODE_OPTIONS: '--max-old-space-size=128' })
    expect(code).toBe(3)
    expect(stderr).toMatch(/memo entries in \d+ bytes: more than a memory snapshot has/)
  })

  it('says what is wrong with arguments', async () => {
    const answers = await Promise.all(
      [
        [],
        ['a', 'b', 'c'],
        [join(FIXTURES, 'nothing.pickle')],
        [file('healthy'), '--min', 'much'],
        [file('healthy'), '--match', '('],
        [file('healthy'), '--pool', 'x'],
        [file('healthy'), '--category', 'nonsense=x'],
        [file('healthy'), '--json', '--folded'],
      ].map(async (args) => {
        const { code, stderr } = await run(['snapshot', ...args])
        return `${code} ${stderr.split('\n')[0]}`
      }),
    )
    expect(answers).toEqual([
      '2 gpuwarden: give one snapshot file, or two to compare, or --run; got 0',
      expect.stringMatching(/^2 (?:error: too many arguments|gpuwarden: give one snapshot file)/),
      expect.stringMatching(/^3 .*there is no such file$/),
      '2 gpuwarden: --min: expected a size such as 1MiB or 80GiB; got "much"',
      expect.stringMatching(/^2 gpuwarden: --match: Invalid regular expression/),
      '2 gpuwarden: --pool: expected the two numbers of a pool, as 0.1; got "x"',
      expect.stringMatching(/^2 gpuwarden: --category: expected NAME=PATTERN/),
      '2 gpuwarden: --json, --text and --folded exclude each other',
    ])
  })
})

describe('snapshot --html', () => {
  it('writes one page with the pictures, which refers to nothing outside', async () => {
    const path = join(temporaryFolder(), 'page.html')
    const { code, stdout, stderr } = await run(['snapshot', file('healthy'), '--html', path])
    expect([code, stdout, stderr]).toEqual([0, '', `gpuwarden: wrote ${path}\n`])
    const page = readFileSync(path, 'utf8')
    expect(page).toContain("default-src 'none'")
    expect(page).not.toMatch(/(?:src|href)="?https?:/)
    const { pictures, diffs } = dataOf(page)
    expect(pictures[0]).toMatchObject({
      name: 'healthy.pickle.gz',
      devices: [{ events: 4000, peak: { index: 213, allocatedBytes: 733_638_668 } }],
    })
    expect(diffs).toEqual([])
  })

  it('of two files has both and what changed, and prints text beside it where that is asked for', async () => {
    const path = join(temporaryFolder(), 'page.html')
    const { code, stdout } = await run(['snapshot', file('healthy'), file('leak'), '--at', 'end', '--html', path, '--text'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('+3.5 GiB  new')])
    const { pictures, diffs } = dataOf(readFileSync(path, 'utf8'))
    expect(pictures).toHaveLength(2)
    expect(diffs[0]).toMatchObject({ at: 'the end', beforeBytes: 590_790_660, rows: [{ change: 'new' }] })
  })

  it('keeps text of the file from becoming part of the page', async () => {
    const bytes = bytesOf('healthy')
    const evil = Buffer.from(bytes.toString('latin1').replaceAll('train_step', '</script>x'), 'latin1')
    const path = join(temporaryFolder(), 'page.html')
    expect((await run(['snapshot', written('<img src=x>.pickle', evil), '--html', path])).code).toBe(0)
    const page = readFileSync(path, 'utf8')
    expect(page.match(/<\/script>/g)).toHaveLength(2)
    expect(page).not.toContain('<img')
    expect(JSON.stringify(dataOf(page))).toContain('</script>x')
  })

  it('says where it cannot be written', async () => {
    const { code, stderr } = await run(['snapshot', file('healthy'), '--html', '/nonexistent/page.html'])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/cannot be written to \/nonexistent\/page\.html/)])
  })
})

function dataOf(page: string): { pictures: unknown[]; diffs: unknown[] } {
  return JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)?.[1] ?? '')
}

describe('leak, frag and oom with a snapshot file', () => {
  it('leak ends with 1 where something leaks', async () => {
    const { code, stdout } = await run(['leak', file('leak_hf')])
    expect(code).toBe(1)
    expect(stdout).toMatch(/Leak: leak\n {2}\/home\/user\/train\/snap\.py:21 in <module>\n {4}keeps [\d.]+ MiB each step/)
    expect(stdout).toMatch(/half of them are older than \d+ steps/)
    const fine = await run(['leak', file('expandable'), '--json'])
    expect(fine.code).toBe(0)
    expect(JSON.parse(fine.stdout).devices).toEqual([{ device: 0, leak: { answer: 'no leak', marks: 60, candidates: [] } }])
    expect((await run(['leak', file('healthy')])).stdout).toMatch(/window too short for a verdict: 4 steps, 6 are needed/)
  })

  it('oom ends with 1 where memory ran out', async () => {
    const { code, stdout } = await run(['oom', file('fragment_oom'), '--memory', '140GiB'])
    expect(code).toBe(1)
    for (const part of [
      'asked for   170 MiB',
      'cause       the GPU is too small',
      'Where the memory was',
      'Outside PyTorch',
      'Who held it',
      'Cheapest ways out',
    ])
      expect(stdout).toContain(part)
    expect(await run(['oom', file('healthy')])).toMatchObject({ code: 0, stdout: 'GPU 0\nNo out-of-memory in this file.\n' })
  })

  it('frag shows the curve, the parts and the bounds', async () => {
    const { code, stdout } = await run(['frag', file('graphs')])
    expect(code).toBe(0)
    expect(stdout).toMatch(/1\.3 GiB {2}in private pools/)
    expect(stdout).toMatch(/by size of the request\n {2}2\.0 MiB \d+% {3}4\.0 MiB \d+%/)
    expect(stdout).toMatch(/Expandable segments could make 400 MiB to 530 MiB of it usable \(bounds, not a promise\)/)
  })

  it('refuse what is for live GPUs', async () => {
    const { code, stderr } = await run(['leak', file('leak'), '--monitor'])
    expect([code, stderr]).toEqual([2, 'gpuwarden: --monitor is for live GPUs and recordings, not for a snapshot file\n'])
  })
})
