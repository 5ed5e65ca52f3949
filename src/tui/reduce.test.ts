import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { identify, signal } from '../core/process-control.ts'
import type { Key } from './keys.ts'
import type { Outcome } from './outcome.ts'
import { parsePreferences, preferencesOf, readPreferences, viewWith, writePreferences } from './preferences.ts'
import { reduce } from './reduce.ts'
import { render } from './render.ts'
import { saveMetrics } from './save-metrics.ts'
import { finding, gpuInfo, gpuSample, processView, trainingStep, worldState } from './screen-data.fixture.ts'
import { FIRST_VIEW, type View } from './screen-data.ts'
import { createTheme } from './theme.ts'

const state = worldState({
  infos: [gpuInfo(0), gpuInfo(1)],
  samples: [gpuSample('GPU-0'), gpuSample('GPU-1')],
  processes: [
    processView(10, 'GPU-0', { user: 'zoe', cpuRatio: 0.1 }),
    processView(11, 'GPU-0', { user: 'ada' }, { memoryUsedBytes: 1 }),
    processView(12, 'GPU-1', { user: 'bob' }),
  ],
  findings: [finding('thermal', { gpu: 'GPU-0' })],
  steps: [trainingStep(1)],
})
const data = state.data({ columns: 100, gpu: null })
const theme = createTheme('dark', 'many', false)
const char = (text: string): Key => ({ type: 'char', char: text })
const key = (name: string): Key => ({ type: 'key', name })

function press(view: View, ...keys: Key[]): Outcome {
  let outcome: Outcome = { view, effect: null }
  for (const one of keys) {
    const frame = render(data, outcome.view, { columns: 80, rows: 30 }, theme)
    outcome = reduce({ ...outcome.view, scroll: frame.scroll }, one, { data, frame })
  }
  return outcome
}

const order = (view: View) => render(data, view, { columns: 80, rows: 30 }, theme).processes.map((row) => row.process.pid)

describe('keys on the screen', () => {
  it('sorts by column, and the other way round', () => {
    expect(order(FIRST_VIEW)).toEqual([10, 11, 12])
    expect(order({ ...FIRST_VIEW, sort: 'user' })).toEqual([11, 12, 10])
    expect(order({ ...FIRST_VIEW, sort: 'user', descending: true })).toEqual([10, 12, 11])
    expect(order({ ...FIRST_VIEW, sort: 'memory' })[2]).toBe(11)
    expect(order(press(FIRST_VIEW, char('o'), key('down'), key('down'), key('enter')).view)).toEqual([11, 12, 10])
  })

  it('filters while it is typed', () => {
    const typing = press(FIRST_VIEW, char('/'), char('b'), char('o'), char('b'))
    expect(order(typing.view)).toEqual([12])
    expect(order(press(typing.view, key('backspace'), key('escape')).view)).toEqual([10, 11, 12])
  })

  it('keeps the chosen process when the order changes', () => {
    const chosen = press(FIRST_VIEW, key('down')).view
    expect(chosen.process).toBe('11@GPU-0')
    const { effect } = press(chosen, char('.'), char('.'), char('k'))
    expect(effect).toMatchObject({ kind: 'ask-kill', row: { key: '11@GPU-0' } })
  })

  it('asks before it sends a signal, and sends to whom it asked about', () => {
    const question = { pid: 10, user: 'zoe', command: 'x', gpuLabel: '0', memoryUsedBytes: 1, startTicks: 5 }
    const asking: View = { ...FIRST_VIEW, overlay: { kind: 'kill', question, selected: 1 } }
    expect(press(asking, key('escape'))).toMatchObject({ view: { overlay: null }, effect: null })
    expect(press(asking, char('y')).effect).toBe(null)
    expect(press(asking, key('down'), key('enter')).effect).toEqual({ kind: 'signal', question, signal: 'SIGKILL' })
  })

  it('asks nothing when it may only look', () => {
    const frame = render(data, FIRST_VIEW, { columns: 80, rows: 30 }, theme)
    const { view, effect } = reduce(FIRST_VIEW, char('k'), { data: { ...data, isReadonly: true }, frame })
    expect(effect).toBe(null)
    expect(view.message?.isTrouble).toBe(true)
  })

  it('survives any keys in any order at any size', () => {
    const anyKey = fc.oneof(
      fc.constantFrom(...'q?/oti,.cTsr akp0123456789[]+-ehx').map(char),
      fc
        .constantFrom(
          'up',
          'down',
          'left',
          'right',
          'pageup',
          'pagedown',
          'home',
          'end',
          'enter',
          'escape',
          'tab',
          'backtab',
          'backspace',
          'f5',
          'f10',
        )
        .map(key),
      fc.record({ type: fc.constant('click' as const), x: fc.nat(90), y: fc.nat(40) }),
      fc.record({ type: fc.constant('wheel' as const), x: fc.nat(90), y: fc.nat(40), up: fc.boolean() }),
    )
    fc.assert(
      fc.property(
        fc.array(anyKey, { maxLength: 25 }),
        fc.integer({ min: 1, max: 90 }),
        fc.integer({ min: 1, max: 40 }),
        (keys, columns, rows) => {
          let view = FIRST_VIEW
          for (const one of keys) {
            const frame = render(data, view, { columns, rows }, theme)
            view = reduce({ ...view, scroll: frame.scroll }, one, { data, frame }).view
          }
          expect(render(data, view, { columns, rows }, theme).grid.height).toBe(rows)
        },
      ),
      { numRuns: 100, endOnFailure: true },
    )
  })
})

describe('what is remembered', () => {
  it('comes back', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'top-')), 'deep/top.json')
    const view: View = { ...FIRST_VIEW, hidden: new Set(['host']), sort: 'sm', descending: true, tree: true, layout: 'rows' }
    expect(writePreferences(path, preferencesOf(view, 'light'))).toBe(null)
    const read = readPreferences(path)
    expect(read.theme).toBe('light')
    expect(viewWith(FIRST_VIEW, read)).toEqual(view)
  })

  it('is as on the first day when the file is missing or broken', () => {
    const first = parsePreferences('{}')
    expect(readPreferences('/nonexistent/top.json')).toEqual(first)
    for (const text of ['', 'null', '[1]', '{"hidden":7,"sort":"x","theme":"pink"}', '{']) expect(parsePreferences(text)).toEqual(first)
  })

  it('says why it cannot be written', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'top-')), 'file')
    writeFileSync(file, '')
    expect(writePreferences(join(file, 'top.json'), parsePreferences('{}'))).toMatch(/EEXIST|ENOTDIR/)
  })
})

describe('processes of this machine', () => {
  const uptime = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])
  const own = Date.now() - uptime * 1000 + (Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[19]) * 1000) / 100

  it('are recognized by their start', () => {
    expect(identify(processView(process.pid, 'GPU-0', { startedAt: own }))).toMatchObject({ ok: true })
    expect(identify(processView(process.pid, 'GPU-0', { startedAt: own - 60_000 }))).toMatchObject({ ok: false })
    expect(identify(processView(process.pid, 'GPU-0', null))).toMatchObject({ ok: false })
    expect(identify(processView(2 ** 22 + 1, 'GPU-0', {}))).toMatchObject({ ok: false })
  })

  it('get no signal when the number means another one now', () => {
    expect(signal(process.pid, -1, 'SIGTERM')).toEqual({ ok: false, text: `nothing sent: process ${process.pid} is another one now` })
    expect(signal(2 ** 22 + 1, 1, 'SIGTERM').ok).toBe(false)
  })
})

it('saves the metrics under a name that was not there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'top-'))
  const [first, second] = [saveMetrics(data, folder), saveMetrics(data, folder)]
  expect(second).not.toBe(first)
  const saved = JSON.parse(readFileSync(first, 'utf8'))
  expect(saved.gpus[0]).toMatchObject({ gpu_uuid: 'GPU-0', utilization_percent: 93 })
  expect(saved.gpus[0].processes).toHaveLength(2)
  expect(saved.training[0].step).toBe(1)
})
