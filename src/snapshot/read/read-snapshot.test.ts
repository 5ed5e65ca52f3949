/** Both writers, every protocol, any cut of the bytes, files of any version. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PickleWriter, Shared, Tuple } from '../../../bench/snapshot/pickle-writer.mjs'
import { Failure } from '../../core/failure.ts'
import { ACTION, FIRST_TEXTS } from './keys.ts'
import { readSnapshot } from './read-snapshot.ts'
import { contents, frame, RECORDED, readBytes, readValue, recordedBytes, smallSnapshot } from './snapshot.fixture.ts'
import { EMPTY_STACK, NO_STACK } from './stack-table.ts'

const folder = mkdtempSync(join(tmpdir(), 'gpuwarden-test-'))

describe('recorded snapshots', () => {
  it.each([
    ['healthy', 4000, 46, 257, 1248],
    ['leak', 8000, 195, 551, 700],
    ['fragment_oom', 5582, 239, 480, 16],
    ['expandable', 256_429, 2, 525, 240],
    ['graphs', 19_536, 139, 585, 100],
    ['leak_hf', 60_000, 186, 749, 320],
  ])('%s has the records that it should', async (name, events, segments, blocks, annotations) => {
    const { tables, layout, cut } = await readSnapshot(`${RECORDED}/${name}.pickle.gz`)
    expect(cut).toBe(null)
    expect(layout.traces).toEqual([{ first: 0, count: events }])
    expect([tables.events.count, layout.segments.count, tables.blocks.sizes.length]).toEqual([events, segments, blocks])
    expect(layout.annotations.count).toBe(annotations)
    expect(layout.settings.get('expandable_segments')).toBe(name === 'expandable')
  })

  it.each([2, 3, 4, 5])('mean the same when Python writes them anew in protocol %i', (protocol) => {
    const bytes = recordedBytes('healthy')
    const program = `import pickle, sys; sys.stdout.buffer.write(pickle.dumps(pickle.load(sys.stdin.buffer), ${protocol}))`
    const { stdout, status } = spawnSync('python3', ['-c', program], { input: bytes, maxBuffer: 1 << 28 })
    expect(status).toBe(0)
    expect(stdout.equals(bytes)).toBe(protocol === 4)
    expect(contents(readBytes(stdout))).toEqual(contents(readBytes(bytes)))
  })

  it('agrees with Python on every event', () => {
    const bytes = recordedBytes('fragment_oom')
    const program = `
import json, pickle, sys
d = pickle.load(sys.stdin.buffer)
stack = lambda x: ["%s:%d %s" % (f["filename"], f["line"], f["name"]) for f in x["frames"]]
print(json.dumps([[[e["action"], e.get("addr"), e["size"], e["time_us"], e["stream"], "", "", e.get("device_free"), stack(e)] for e in t] for t in d["device_traces"]]))`
    const { stdout } = spawnSync('python3', ['-c', program], { input: bytes, maxBuffer: 1 << 28 })
    expect((contents(readBytes(bytes)) as { traces: unknown }).traces).toEqual(JSON.parse(stdout.toString()))
  })
})

describe('both writers', () => {
  const expected = contents(readValue(smallSnapshot()))

  it('give the fixed ids to the texts that mean something', () => {
    const { tables } = readValue(smallSnapshot())
    expect(FIRST_TEXTS.map((text) => tables.texts.add(text))).toEqual(FIRST_TEXTS.map((_, id) => id))
    expect(ACTION).toMatchObject({ other: 0, alloc: 1, snapshot: 9 })
  })

  it('are read field by field', () => {
    const stack = ['/app/model.py:12 forward', '/app/train.py:3 main']
    expect(expected).toMatchObject({
      segments: [{ address: 0x7f0000000000, isSmall: true, pool: '0.0', blocks: [[0x7f0000000000, 1024, 1000, 1, stack], {}] }],
      traces: [
        {
          1: ['alloc', 0x7f0000000000, 1000, 1_790_000_000_000_002, 0, '', '', null, stack],
          5: ['oom', null, 2 ** 32, {}, 0, '', '', 4096, []],
        },
        [],
      ],
      annotations: [
        [true, 'Optimizer.step#AdamW.step', 0, 1_790_000_000_000_003],
        [false, 'Optimizer.step#AdamW.step', 0, 1_790_000_000_000_004],
      ],
      settings: [
        ['PYTORCH_CUDA_ALLOC_CONF', 'a:b'],
        ['expandable_segments', false],
        ['max_split_size', -1],
        ['roundup_power2_divisions', null],
      ],
    })
  })

  it.each([
    { writer: 'python', protocol: 2 },
    { writer: 'python', protocol: 3 },
    { writer: 'python', protocol: 5 },
    { writer: 'cpp' },
  ] as const)('say the same: %o', (options) => {
    expect(contents(readValue(smallSnapshot(), options))).toEqual(expected)
  })

  it('do so however the bytes come', () => {
    const files = [PickleWriter.bytes(smallSnapshot()), PickleWriter.bytes(smallSnapshot(), { writer: 'cpp' })]
    for (const bytes of files) {
      expect(contents(readBytes(bytes, Array.from(bytes.keys())))).toEqual(expected)
      fc.assert(
        fc.property(fc.array(fc.nat(bytes.length), { maxLength: 40 }), (pieces) => {
          expect(contents(readBytes(bytes, pieces))).toEqual(expected)
        }),
      )
    }
  })

  it('keep thousands of events in one list, in batches or not', () => {
    const frames = [frame('a', '/a.py', 1)]
    const events = Array.from({ length: 2501 }, (_, i) => ({ action: 'alloc', addr: i * 512, size: i, stream: 0, time_us: i, frames }))
    for (const options of [{ writer: 'python' }, { writer: 'cpp' }] as const) {
      const { layout, tables } = readValue({ segments: [], device_traces: [[], events, [], events.slice(0, 1)] }, options)
      expect(layout.traces.map(({ count }) => count)).toEqual([0, 2501, 0, 1])
      expect(tables.events.size(2500)).toBe(2500)
      expect(tables.stacks.count).toBe(3)
    }
  })
})

describe('other versions', () => {
  const event = { action: 'alloc', addr: 512, size: 3, stream: 0 }

  it('distinguishes a missing stack from an empty one', () => {
    const { tables } = readValue({ segments: [], device_traces: [[event, { ...event, frames: [] }]] })
    expect([tables.events.stack(0), tables.events.stack(1)]).toEqual([NO_STACK, EMPTY_STACK])
    expect(tables.events.time(0)).toBeNaN()
  })

  it('takes a bare list of segments', () => {
    const { segments } = smallSnapshot()
    const { layout } = readValue(segments)
    expect(layout).toMatchObject({ segments: { first: 0, count: 1 }, traces: [] })
  })

  it('takes blocks with a history, as torch 2.0 wrote them', () => {
    const frames = [frame('old', '/old.py', 2)]
    const history = [
      { addr: 512, real_size: 100, frames },
      { addr: 512, real_size: 50, frames: [] },
    ]
    const { tables } = readValue({
      segments: [
        { address: 512, total_size: 1024, stream: 0, segment_type: 'small', blocks: [{ size: 512, state: 'active_allocated', history }] },
      ],
      device_traces: [],
    })
    expect(tables.blocks).toMatchObject({ sizes: [512], requested: [100], states: [1] })
    expect(tables.stacks.frames(tables.blocks.stacks[0] as number)).toHaveLength(1)
  })

  it('leaves out keys and actions that it does not know, whatever they hold', () => {
    const odd = { a: [1, { b: new Tuple(1, 'x', null, 4, 5) }], __proto__: null, constructor: [[[]]] }
    const later = [
      { ...event, future: odd, internal_metadata: 'm' },
      { action: 'annotate', size: 0 },
      { ...event, addr: 1024, pool_id: new Tuple(0, 3) },
    ]
    const { tables, layout } = readValue({
      segments: [],
      device_traces: [later],
      something: odd,
      host_traces: [later.slice(1)],
      host_segments: [],
    })
    expect(layout.traces).toEqual([{ first: 0, count: 3 }])
    expect([...tables.unknownActions].map(([id, count]) => [tables.texts.text(id), count])).toEqual([['annotate', 2]])
    expect(tables.pools[tables.events.pool(2)]).toBe('0.3')
    expect(tables.events.pool(0)).toBe(0)
  })

  it('keeps integers of more than 32 bits, also as 9 bytes', () => {
    const wide = [
      { ...event, addr: 2n ** 63n, size: 2 ** 40 },
      { ...event, addr: 512, stream: 0x7f00deadbe00 },
      { ...event, size: -5 },
    ]
    const { tables } = readValue({ segments: [], device_traces: [wide] })
    expect(tables.addresses.value(tables.events.address(0))).toBe(2 ** 63)
    expect(tables.events.size(0)).toBe(2 ** 40)
    expect(tables.streams.value(tables.events.stream(1))).toBe(0x7f00deadbe00)
    expect(tables.events.size(2)).toBe(-5)
  })

  it('keeps metadata, and texts of some kilobytes', () => {
    const long = 'ü'.repeat(5000)
    const { tables } = readValue({
      segments: [],
      device_traces: [[{ ...event, user_metadata: long, frames: [new Shared({ name: long, filename: '??', line: 0 })] }]],
    })
    expect(tables.texts.text(tables.events.metadata(0))).toBe(long)
    expect(tables.texts.text(tables.frames.names[0] as number)).toBe(long)
  })
})

describe('files that were cut', () => {
  const whole = contents(readValue(smallSnapshot())) as { traces: unknown[][]; segments: unknown[] }

  it.each(['python', 'cpp'] as const)('are read to the last whole event (%s)', (writer) => {
    const bytes = PickleWriter.bytes(smallSnapshot(), { writer })
    let most = 0
    for (let length = 0; length < bytes.length; length++) {
      let seen: { traces: unknown[][]; segments: unknown[] }
      try {
        const snapshot = readBytes(bytes.subarray(0, length))
        expect(snapshot.cut).toMatch(/before the end of the pickle/)
        seen = contents(snapshot) as typeof seen
      } catch (error) {
        expect((error as Error).message).toMatch(/before the first whole record/)
        expect(most).toBe(0)
        continue
      }
      const trace = seen.traces[0] ?? []
      expect(trace).toEqual(whole.traces[0]?.slice(0, trace.length))
      expect(trace.length).toBeGreaterThanOrEqual(most)
      most = trace.length
      if (trace.length > 0) expect(seen.segments).toEqual(whole.segments)
    }
    expect(most).toBe(6)
  })

  it('keep the order of devices', () => {
    const event = { action: 'alloc', addr: 512, size: 3, stream: 0 }
    const bytes = PickleWriter.bytes({ segments: [], device_traces: [[], [event, event, event], []] })
    const { layout } = readBytes(bytes.subarray(0, bytes.length - 6))
    expect(layout.traces.map(({ count }) => count).slice(0, 2)).toEqual([0, 3])
    const single = PickleWriter.bytes({ segments: [], device_traces: [[event]] })
    for (let left = 1; left < 5; left++)
      expect(readBytes(single.subarray(0, single.length - left)).layout.traces).toEqual([{ first: 0, count: 1 }])
  })

  it('may be cut in their gzip data', async () => {
    const path = join(folder, 'cut.pickle.gz')
    const bytes = gzipSync(recordedBytes('healthy'))
    writeFileSync(path, bytes.subarray(0, bytes.length >> 1))
    const { cut, tables } = await readSnapshot(path)
    expect(cut).toMatch(/gzip/)
    expect(tables.events.count).toBeGreaterThan(100)
    expect(tables.events.count).toBeLessThan(4000)
  })

  it('are an error where nothing can be had of them, or they are something else', async () => {
    const answer = async (bytes: Uint8Array) => {
      const path = join(folder, 'other')
      writeFileSync(path, bytes)
      const error = await readSnapshot(path).then(
        () => null,
        (one: Failure) => one,
      )
      expect(error).toBeInstanceOf(Failure)
      return [error?.exitCode, error?.message]
    }
    expect(await answer(Buffer.alloc(0))).toEqual([3, expect.stringMatching(/ends at byte 0/)])
    expect(await answer(Buffer.from('PK\u0003\u0004 a zip file of somebody'))).toEqual([
      3,
      expect.stringMatching(/opcode PERSID at byte 0 /),
    ])
    expect(await answer(PickleWriter.bytes({ model: [1, 2, 3] }))).toEqual([3, expect.stringMatching(/no memory snapshot/)])
    const missing = await readSnapshot(join(folder, 'nothing')).catch((error: Failure) => error)
    expect((missing as Failure).message).toMatch(/no such file/)
    expect(((await readSnapshot(folder).catch((error: Failure) => error)) as Failure).message).toMatch(/is a folder/)
  })
})
