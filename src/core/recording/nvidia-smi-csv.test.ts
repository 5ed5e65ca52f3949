import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GpuSample } from '../model.ts'
import { csvCell, delimiterOf, parseClock, RowSplitter, readCsvRows, splitRow } from './csv.ts'
import { headerFault, nvidiaSmiParser } from './nvidia-smi-csv.ts'
import { openRecording } from './recording.ts'

const MIB = 1024 ** 2
const HEADER = 'timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], power.draw [W], fan.speed [%], pstate'
const row = (second: string, index: number, used: string) =>
  `2026/11/15 06:25:${second}, ${index}, NVIDIA H200, ${used}, 143771 MiB, 98 %, 512.25 W, [N/A], P0`

async function read(content: string | Buffer, name = 'log.csv') {
  const path = join(await mkdtemp(join(tmpdir(), 'gpuwarden-csv-')), name)
  await writeFile(path, content)
  const recording = await openRecording(path)
  const samples: GpuSample[] = []
  let devices: readonly { index: number; name: string | null }[] = []
  for await (const item of recording) {
    for (const sample of item.samples) if (sample.kind === 'gpu') samples.push(sample)
    devices = item.devices
  }
  return { samples, devices, stats: recording.stats() }
}

describe('a CSV log of nvidia-smi as a recording', () => {
  const log = [HEADER, row('38.123', 0, '1234 MiB'), row('38.124', 1, '[Not Supported]'), HEADER, row('39.123', 0, '1300 MiB'), ''].join(
    '\r\n',
  )

  it('has units, several GPUs, headers in the middle, and values that the card does not report', async () => {
    const { samples, devices, stats } = await read(log)
    expect(samples.map(({ at, gpu, memoryUsedBytes }) => [new Date(at).toISOString(), gpu, memoryUsedBytes])).toEqual([
      ['2026-11-15T06:25:38.123Z', 'replay-gpu-0', 1234 * MIB],
      ['2026-11-15T06:25:38.124Z', 'replay-gpu-1', null],
      ['2026-11-15T06:25:39.123Z', 'replay-gpu-0', 1300 * MIB],
    ])
    expect(samples[0]).toMatchObject({ utilizationRatio: 0.98, powerWatts: 512.25, fanRatio: null, performanceState: 0, processes: null })
    expect(devices.map(({ index, name }) => [index, name])).toEqual([
      [0, 'NVIDIA H200'],
      [1, 'NVIDIA H200'],
    ])
    expect([stats.lines, stats.skipped]).toEqual([3, {}])
  })

  it.each([
    ['UTF-16 with a mark, as PowerShell writes it', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(log, 'utf16le')]), 'a.csv'],
    ['UTF-16, the other way round', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(log, 'utf16le')]).swap16(), 'a.csv'],
    ['UTF-16 without a mark', Buffer.from(log, 'utf16le'), 'a.csv'],
    ['UTF-8 with a mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(log)]), 'a.csv'],
    ['compressed', gzipSync(log), 'a.csv.gz'],
    ['another name', Buffer.from(log), 'gpu.log'],
  ])('is the same in another form: %s', async (_form, bytes, name) => {
    expect((await read(bytes, name)).samples).toEqual((await read(log)).samples)
  })

  it('reads numbers without units in the unit of the header', async () => {
    const { samples } = await read('index, timestamp, memory.used [GiB], memory.total [MiB]\n0, 2026/11/15 06:25:38.000, 2, 4096\n')
    expect(samples[0]).toMatchObject({ memoryUsedBytes: 2048 * MIB, memoryTotalBytes: 4096 * MIB })
  })

  it('knows GPUs by their UUID, and a lost one when it sees it', async () => {
    const { samples, devices } = await read(
      'timestamp, uuid, memory.used [MiB]\n2026/11/15 06:25:38.000, GPU-b, 7 MiB\n2026/11/15 06:25:38.001, GPU-a, [GPU is lost]\n',
    )
    expect(samples.map(({ gpu, state, stateReason }) => [gpu, state, stateReason])).toEqual([
      ['GPU-b', 'ok', null],
      ['GPU-a', 'lost', 'GPU is lost'],
    ])
    expect(devices.map((device) => device.index)).toEqual([0, 1])
  })

  it('takes the columns of a new header from there on', async () => {
    const { samples } = await read(
      `${HEADER}\n${row('38.123', 0, '1234 MiB')}\nmemory.used [MiB], timestamp\n99 MiB, 2026/11/15 06:25:40.000\n`,
    )
    expect(samples.map((sample) => sample.memoryUsedBytes)).toEqual([1234 * MIB, 99 * MIB])
  })

  it('skips and counts rows that are none', async () => {
    const { samples, stats } = await read(
      `${HEADER}\nFailed to initialize NVML\n${row('38.123', 0, 'abc')}\n${row('xx', 0, '1 MiB')}\n${row('40.1', 0, '1 MiB')}\n2026/11/1`,
    )
    expect(samples.length).toBe(1)
    expect(stats.skipped).toEqual({ wrong_type: 3, no_timestamp: 1 })
  })

  it('says what is missing', async () => {
    await expect(read('a,b\n1,2\n')).rejects.toThrow(/log\.csv is not a CSV log of nvidia-smi: .*timestamp, index, memory\.used/)
    await expect(read('index, memory.used [MiB]\n0, 1 MiB\n')).rejects.toThrow(/no timestamp column/)
    await expect(read('')).rejects.toThrow(/empty/)
    expect(headerFault(HEADER)).toBe(null)
  })

  it('never throws, whatever a line holds', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (lines) => {
        const parse = nvidiaSmiParser()
        for (const line of [HEADER, ...lines]) {
          const parsed = parse(line)
          if (parsed !== null && typeof parsed !== 'string') expect(Number.isFinite(parsed.at)).toBe(true)
        }
      }),
    )
  })
})

describe('CSV', () => {
  const cells = fc.array(
    fc.array(fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r\n', ' ', 'ü', '1') }), { minLength: 2, maxLength: 4 }),
    {
      minLength: 1,
    },
  )

  it('is read as it was written, in whatever pieces it comes', () => {
    fc.assert(
      fc.property(cells, fc.integer({ min: 1, max: 7 }), (rows, size) => {
        // A carriage return outside quotes is a line's end; csvCell quotes it, so it comes back.
        const text = rows.map((row) => `${row.map((cell) => (cell === '' ? '""' : csvCell(cell))).join(',')}\n`).join('')
        const splitter = new RowSplitter(',')
        const out: string[][] = []
        for (let from = 0; from < text.length; from += size) out.push(...splitter.push(text.slice(from, from + size)))
        out.push(...splitter.end())
        const plain = (all: string[][]) => all.map((row) => row.map((cell) => (/["\n\r,]/.test(cell) ? cell : cell.trim())))
        expect(plain(out)).toEqual(plain(rows))
      }),
    )
  })

  it('may be separated by semicolons or tabs', () => {
    expect(delimiterOf('a;b;c')).toBe(';')
    expect(splitRow('"x;y" ; 2', ';')).toEqual(['x;y', '2'])
    expect(delimiterOf('a\tb,c\td')).toBe('\t')
  })

  it('of a file comes row by row, without blank lines', async () => {
    const path = join(await mkdtemp(join(tmpdir(), 'gpuwarden-csv-')), 'a.csv')
    await writeFile(path, '\ufefft,v\r\n\r\n1,2\r\n3,"4\n5"')
    const rows: string[][] = []
    for await (const row of readCsvRows(path)) rows.push(row)
    expect(rows).toEqual([
      ['t', 'v'],
      ['1', '2'],
      ['3', '4\n5'],
    ])
  })

  it.each([
    ['2026/11/15 06:25:38.123', '2026-11-15T06:25:38.123Z'],
    ['2026-11-15 06:25:38', '2026-11-15T06:25:38.000Z'],
    ['2026-11-15T06:25', '2026-11-15T06:25:00.000Z'],
  ])('%s is a time', (text, iso) => {
    expect(new Date(parseClock(text) ?? 0).toISOString()).toBe(iso)
  })

  it.each(['', 'yesterday', '2026/13/01 00:00:00', '2026/11/15 25:00:00', '12'])('%j is none', (text) => {
    expect(parseClock(text)).toBe(null)
  })
})
