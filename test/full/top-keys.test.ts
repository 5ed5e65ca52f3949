/** Every key and the mouse: what they change on a real screen. */
import { spawn } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { until } from '../program.ts'
import { childrenOf, DEMO, endTest, endTmux, hasTmux, nvml, Pane, plainRoot, victim } from './pane.ts'

afterEach(endTest)
afterAll(endTmux)

async function opened(args: string, columns = 120, rows = 36, ready: string | RegExp = 'python train.py'): Promise<Pane> {
  const pane = new Pane(columns, rows)
  pane.top(`${DEMO} ${args}`)
  await pane.shows(ready)
  return pane
}

/** Eight cards with six processes each, which stay as they are. */
async function many(columns: number, rows: number): Promise<Pane> {
  const cards = Array.from({ length: 8 }, (_, gpu) => [
    [`gpu${gpu}.processes`, 6],
    [`gpu${gpu}.pids`, Array.from({ length: 6 }, (_, index) => 4_000_000 + gpu * 100 + index)],
  ])
  const pane = new Pane(columns, rows)
  pane.top('--source nvidia', nvml({ gpus: 8, ...Object.fromEntries(cards.flat()) }).env)
  await pane.shows(/Processes 1–\d+ of 48/)
  return pane
}

/** PIDs of the table, from the top. */
function listed(pane: Pane): number[] {
  const lines = pane.screen().split('\n')
  const header = lines.findIndex((line) => /PID.*COMMAND/.test(line))
  const rows = lines.slice(header + 1).flatMap((line) => /^[ !zx] *(\d+) /.exec(line)?.[1] ?? [])
  if (rows.length === 0) throw new Error(`no process is listed on\n${lines.join('\n')}`)
  return rows.map(Number)
}

const BRAILLE = /[\u2801-\u28ff]/g

describe.skipIf(!hasTmux)('keys (needs tmux)', () => {
  it('? h F1: help, over the screen until it is closed', async () => {
    const pane = await opened('')
    for (const [key, close] of [
      ['?', 'Escape'],
      ['h', 'h'],
      ['F1', 'q'],
    ] as const) {
      pane.keys(key)
      await pane.shows('this help')
      await pane.shows('end the selected process')
      pane.keys(close)
      await pane.shows('this help', false)
    }
    await pane.quit()
  })

  it('arrows, PgUp, PgDn, Home, End: move what is selected, and the list with it', async () => {
    const pane = await many(100, 30)
    const all = (await pane.shows(/Processes 1–(\d+) of 48/)).match(/Processes 1–(\d+) of 48/)
    const page = Number(all?.[1])
    const pids = listed(pane)
    expect(pids).toHaveLength(page)
    const at = (index: number) => new RegExp(`^[!zx ]*${pids[index]} `)
    await pane.selects(at(0))
    pane.keys('Down')
    await pane.selects(at(1))
    pane.keys('Down', 'Up', 'Right', 'Left')
    await pane.selects(at(1))
    pane.keys('Home')
    await pane.selects(at(0))
    pane.keys('PageDown')
    await pane.shows(/Processes 2–\d+ of 48/)
    const next = pane.selected()
    expect(next).not.toMatch(at(0))
    pane.keys('PageUp')
    await pane.selects(at(0))
    pane.keys('End')
    await pane.shows(/Processes \d+–48 of 48/)
    await pane.selects(new RegExp(`^[!zx ]*${listed(pane).at(-1)} `))
    pane.keys('Up')
    await pane.selects(new RegExp(`^[!zx ]*${listed(pane).at(-2)} `))
    pane.keys('Home')
    await pane.shows(/Processes 1–\d+ of 48/)
    await pane.quit()
  })

  it('Tab, Shift-Tab: the keyboard goes from panel to panel', async () => {
    const pane = await opened('--demo-gpus 8', 120, 40, /GPUs 8/)
    await pane.shows('Training')
    await pane.selects(/python/)
    pane.keys('Tab')
    await pane.selects(/step [\d,]+ /)
    pane.keys('BTab')
    await pane.selects(/python/)
    pane.keys('BTab')
    await pane.selects(/^0 Simulated/)
    pane.keys('Down')
    await pane.selects(/^1 Simulated/)
    pane.keys('Enter')
    await pane.shows('on GPU 1')
    pane.keys('Escape')
    await pane.shows('on GPU 1', false)
    await pane.quit()
  })

  it('o F6, commas and dots, i: sort by another column, and the other way round', async () => {
    const pane = await opened('--demo-gpus 3')
    pane.keys('o')
    await pane.shows('Sort by')
    pane.keys('Down', 'Enter')
    await pane.shows(/PID▼/)
    await pane.shows('Sort by', false)
    const up = listed(pane)
    expect(up).toEqual(up.toSorted((a, b) => a - b))
    pane.keys('i')
    await pane.shows(/PID▲/)
    expect(listed(pane)).toEqual(up.toReversed())
    pane.keys('.')
    await pane.shows(/USER▼/)
    const users = () => [...pane.screen().matchAll(/^[ !zx] *\d+ (\w+)/gm)].map((match) => match[1])
    expect(users()).toHaveLength(3)
    expect(users()).toEqual(users().toSorted())
    pane.keys(',', ',')
    await pane.shows(/GPU▼/)
    pane.keys('F6')
    await pane.shows('Sort by')
    pane.keys('Escape')
    await pane.shows('Sort by', false)
    await pane.quit()
  })

  it('/: filters while it is typed; Enter keeps, Esc clears', async () => {
    const pane = await opened('--demo-gpus 3')
    const before = listed(pane)
    pane.keys('/')
    await pane.shows('Enter keeps, Esc clears')
    pane.type('caro')
    await pane.shows(/\/caro/)
    await pane.shows('bob', false)
    await until('carol is all', () => listed(pane).length === 1)
    pane.keys('BSpace', 'BSpace', 'BSpace', 'BSpace')
    await pane.shows('bob')
    pane.type('gpu1')
    await pane.shows('bob')
    await pane.shows('alice', false)
    // The window changes while somebody types.
    pane.resize(90, 30)
    await pane.shows(/\/gpu1/)
    pane.keys('Enter')
    await pane.shows('filter "gpu1"')
    pane.keys('Escape')
    await pane.shows('filter', false)
    await until('all are listed again', () => listed(pane).length === before.length)
    await pane.quit()
  })

  it('1–9, 0: one GPU alone, and all again', async () => {
    const pane = await opened('--demo-gpus 9', 120, 40, 'GPUs 9')
    for (let number = 1; number <= 9; number++) {
      pane.keys(String(number))
      await pane.shows(`on GPU ${number - 1} (0 shows all)`)
      const screen = await pane.shows(new RegExp(`─ ${number - 1} Simulated`))
      expect(screen).not.toMatch(new RegExp(`─ ${number} Simulated`))
      await pane.shows('Driver reserve')
    }
    pane.keys('9')
    await pane.shows('GPUs 9')
    pane.keys('3')
    await pane.shows('on GPU 2')
    pane.keys('0')
    await pane.shows('on GPU 2', false)
    await pane.quit()
    pane.top(`${DEMO} --demo-gpus 1`)
    await pane.shows('python train.py')
    pane.keys('9')
    await pane.shows('there are fewer than 9 GPUs')
    await pane.quit()
  })

  it('t: children stand below their parent', async () => {
    const root = plainRoot()
    const parent = spawn('/bin/sh', ['-c', 'sleep 1000; true'], { stdio: 'ignore' })
    try {
      const [child = 0] = await until('the shell has a child', () => {
        const found = childrenOf(parent.pid ?? 0)
        return found.length > 0 && found
      })
      for (const pid of [parent.pid, child]) symlinkSync(`/proc/${pid}`, join(root, 'proc', String(pid)))
      const { env } = nvml({ gpus: 1, processes: 2, pids: [child, parent.pid ?? 0] })
      const pane = new Pane(100, 24)
      pane.top('--source nvidia', { ...env, GPUWARDEN_ROOT: root })
      await pane.shows('sleep 1000')
      expect(pane.screen()).not.toContain('└─')
      pane.keys('t')
      await pane.shows(/└─ sleep 1000/)
      await pane.shows(/Processes 2 {2}tree/)
      pane.keys('t')
      await pane.shows('└─', false)
      await pane.quit()
      process.kill(child)
    } finally {
      parent.kill()
    }
  })

  it('Enter, e, Esc: details of a process, its environment only when asked for', async () => {
    const root = plainRoot()
    const child = victim(root)
    const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
    const pane = new Pane(120, 36)
    pane.top('--source nvidia', { ...env, GPUWARDEN_ROOT: root })
    await pane.shows('sleep')
    pane.keys('Enter')
    await pane.shows(`─ Process ${child.pid} ─`)
    await pane.shows('GPU memory')
    await pane.shows('open files')
    await pane.shows(/\d+ variables, hidden/)
    expect(pane.screen()).not.toContain('PATH=')
    pane.keys('e')
    await pane.shows('PATH=')
    pane.keys('e')
    await pane.shows('PATH=', false)
    pane.resize(60, 20)
    await pane.shows(`─ Process ${child.pid} ─`)
    pane.keys('Escape')
    await pane.shows('GPU memory', false)
    await pane.quit()
  })

  it('k F9: ends a process by the signal that was chosen, and no other', async () => {
    for (const [keys, key, expected] of [
      [['Up'], 'k', 'SIGINT'],
      [[], 'F9', 'SIGTERM'],
      [['Down'], 'k', 'SIGKILL'],
    ] as const) {
      const root = plainRoot()
      const child = victim(root)
      const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
      const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
      const pane = new Pane(100, 24)
      pane.top('--source nvidia', { ...env, GPUWARDEN_ROOT: root })
      await pane.shows('sleep')
      pane.keys(key)
      await pane.shows(`End process ${child.pid}?`)
      if (keys.length > 0) pane.keys(...keys)
      await pane.selects(new RegExp(expected))
      pane.keys('Enter')
      await pane.shows(`${expected} sent to process ${child.pid}`)
      expect(await gone).toBe(expected)
      await pane.quit()
    }
  })

  it('k: never a process that is not real', async () => {
    const pane = await opened('')
    pane.keys('k')
    await pane.shows('these processes are not real')
    await pane.quit()
  })

  it('a: findings, also those that are over, with their details', async () => {
    const { script, env } = nvml({ gpus: 2 })
    const pane = new Pane(120, 36)
    pane.top('--source nvidia', env)
    await pane.shows('age <1 s')
    script.update({ lost: [1] })
    await pane.shows(/─ Findings [1-9]/)
    pane.keys('a')
    await pane.shows(/┌─ [1-9]\d* findings?/)
    pane.keys('A')
    await pane.shows('alerts need a running agent')
    pane.keys('Enter')
    await pane.shows(/─ Finding ─.*confidence \d+%/s)
    pane.keys('Escape')
    await pane.shows('confidence', false)
    pane.keys('a', 'a')
    await pane.shows('Esc closes', false)
    await pane.quit()
  })

  it('s: saves what is known, and says where', async () => {
    const pane = await opened('--demo-gpus 3')
    pane.keys('s')
    const saved = /saved to (\S+json)/.exec(await pane.shows(/saved to \S+json/))?.[1] ?? ''
    expect(JSON.parse(readFileSync(saved, 'utf8'))).toMatchObject({ provenance: 'simulated', gpus: [{}, {}, {}] })
    pane.keys('s')
    await until('it is not written over', async () => (pane.screen().match(/saved to (\S+json)/)?.[1] ?? saved) !== saved)
    await pane.quit()
  })

  it('r: history reset', async () => {
    const pane = await opened('')
    const graph = () => pane.screen().split('\n').slice(1, 8).join('').match(BRAILLE)?.length ?? 0
    await until('there is a past to see', () => graph() >= 8)
    pane.keys('r')
    await pane.shows('history reset')
    expect(graph()).toBeLessThan(8)
    await pane.quit()
  })

  it('Space: stands still, and goes on', async () => {
    const pane = await opened('')
    pane.keys('Space')
    const frozen = await pane.shows('PAUSED')
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(pane.screen()).toBe(frozen)
    pane.keys('Space')
    await pane.shows('PAUSED', false)
    await until('the clock goes on', () => pane.screen().split('\n')[0] !== frozen.split('\n')[0])
    await pane.quit()
  })

  it('F5 Ctrl-L: draws over what others have written on the screen', async () => {
    const pane = await opened('')
    pane.keys('Space')
    const before = await pane.shows('PAUSED')
    for (const key of ['F5', 'C-l']) {
      writeFileSync(pane.info('#{pane_tty}'), '\u001b[10;10HGARBAGE FROM ELSEWHERE')
      await pane.shows('GARBAGE')
      pane.keys(key)
      await pane.shows('GARBAGE', false)
      expect(pane.screen()).toBe(before)
    }
    pane.keys('Space')
    await pane.quit()
  })

  it('p F2, c, T: panels, cards or rows, theme', async () => {
    const pane = await opened('--demo-gpus 2')
    pane.keys('p')
    await pane.shows('[x] gpus')
    pane.keys('Enter')
    await pane.shows('[ ] gpus')
    pane.keys('p')
    await pane.shows('util', false)
    pane.keys('F2')
    await pane.shows('[ ] gpus')
    pane.keys('Space', 'Escape')
    await pane.shows('util')
    pane.keys('c', 'c')
    await pane.shows('─ GPUs 2')
    pane.keys('c')
    await pane.shows('─ GPUs 2', false)
    pane.keys('T')
    await pane.shows('theme light')
    pane.keys('T')
    await pane.shows('theme mono')
    pane.keys('T')
    await pane.shows('theme dark')
    await pane.quit()
  })

  it('the wheel scrolls what it is over; a click selects, a second one opens', async () => {
    const pane = await many(100, 36)
    // What moves while it is pointed at cannot be hit.
    pane.keys('Space')
    await pane.shows('PAUSED')
    const pids = listed(pane)
    const row = pane
      .screen()
      .split('\n')
      .findIndex((line) => line.includes('COMMAND'))
    for (let turn = 0; turn < 3; turn++) pane.mouse(65, 20, row + 2)
    await pane.selects(new RegExp(`^[!zx ]*${pids[3]} `))
    pane.mouse(64, 20, row + 2)
    await pane.selects(new RegExp(`^[!zx ]*${pids[2]} `))
    pane.mouse(65, 20, 3)
    await pane.selects(/^1 \S+.*°/)
    pane.mouse(0, 20, row + 2)
    await pane.selects(new RegExp(`^[!zx ]*${pids[1]} `))
    expect(pane.screen()).not.toContain('─ Process ')
    pane.mouse(0, 20, row + 2)
    await pane.shows(`─ Process ${pids[1]} ─`)
    // Beside the box.
    pane.mouse(0, 0, 0)
    await pane.shows('─ Process ', false)
    pane.click('USER')
    await pane.shows(/USER▼/)
    pane.click('USER')
    await pane.shows(/USER▲/)
    pane.click('? Help')
    await pane.shows('this help')
    pane.mouse(65, 50, 10)
    pane.keys('Escape')
    await pane.shows('this help', false)
    pane.click('q Quit')
    await pane.shows('ended 0')
  })
})
