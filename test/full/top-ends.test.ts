/** However the terminal UI ends, the terminal is as it was, and nothing stays behind. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { BIN, until } from '../program.ts'
import { areGone, childrenOf, DEMO, endTest, endTmux, family, hasTmux, nvml, Pane, quote, settings, tmux, topPid } from './pane.ts'

afterEach(endTest)
afterAll(endTmux)

/** Screen, cursor, mouse, wrapping, as tmux knows them. */
const modes = (pane: Pane) => pane.info('#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{mouse_sgr_flag} #{wrap_flag}')
const UNTOUCHED = '0 1 0 0 1'

describe.skipIf(!hasTmux)('the end of the terminal UI (needs tmux)', () => {
  it('by q, F10, Ctrl-C or a signal leaves the terminal as it was', async () => {
    const pane = new Pane()
    const before = await settings(pane)
    const ends: [string, () => void][] = [
      ['q', () => pane.keys('q')],
      ['F10', () => pane.keys('F10')],
      ['Ctrl-C', () => pane.keys('C-c')],
      ['SIGTERM', () => process.kill(topPid(pane), 'SIGTERM')],
      ['SIGHUP', () => process.kill(topPid(pane), 'SIGHUP')],
      ['SIGINT', () => process.kill(topPid(pane), 'SIGINT')],
    ]
    for (const [name, end] of ends) {
      pane.top(DEMO)
      await pane.shows('SIMULATED')
      expect(pane.info('#{alternate_on}'), name).toBe('1')
      const pids = family(pane)
      expect(pids.length, name).toBe(2)
      end()
      await pane.shows('ended 0')
      expect(modes(pane), name).toBe(UNTOUCHED)
      expect(await settings(pane), name).toBe(before)
      await areGone(pids)
    }
  })

  it.each([
    ['an uncaught error', "throw new Error('a fault of ours')"],
    ['an unhandled rejection', "void Promise.reject(new Error('a fault of ours'))"],
  ])('by %s leaves the terminal as it was, and says what happened', async (_, fault) => {
    const pane = new Pane(120, 40)
    const before = await settings(pane)
    // Node itself brings the fault into the real program; the sampler is left alone.
    const file = join(pane.folder, 'fault.mjs')
    const when = `process.argv[1] === ${JSON.stringify(BIN)} && existsSync(${JSON.stringify(`${file}.now`)})`
    writeFileSync(file, `import { existsSync } from 'node:fs'\nsetInterval(() => { if (${when}) ${fault} }, 100).unref()\n`)
    pane.top(DEMO, { NODE_OPTIONS: `--import=${file}` })
    await pane.shows('SIMULATED')
    const pids = family(pane)
    writeFileSync(`${file}.now`, '')
    await pane.shows('ended 70')
    await pane.shows('internal error: Error: a fault of ours')
    expect(modes(pane)).toBe(UNTOUCHED)
    expect(await settings(pane)).toBe(before)
    await areGone(pids)
  })

  it('comes at once, also while the driver is still being opened', async () => {
    const pane = new Pane()
    pane.top('--source nvidia', nvml({ gpus: 1, hang: ['nvmlInit_v2'] }).env)
    await pane.shows('waiting for the first sample')
    const pids = family(pane)
    await pane.quit()
    await areGone(pids)
  })

  it('does not come when the sampler is killed: it says so and gets another', async () => {
    const pane = new Pane(120, 30)
    const before = await settings(pane)
    const { env } = nvml({ gpus: 1 })
    // What else is watched may be in another process by then.
    const samplers = () =>
      childrenOf(topPid(pane)).filter((pid) => readFileSync(`/proc/${pid}/maps`, 'utf8').includes(env.GPUWARDEN_NVML ?? ''))
    pane.top('--source nvidia', { ...env, GPUWARDEN_RESTART_FIRST: '0.5' })
    for (const signal of ['SIGSEGV', 'SIGABRT'] as const) {
      await pane.shows('age <1 s')
      const [sampler = Number.NaN] = await until('there is a sampler', () => samplers().length === 1 && samplers())
      process.kill(sampler, signal)
      await pane.shows(new RegExp(`nvidia crashed since .*${signal}`))
      await until('there is another sampler', () => {
        const [next] = samplers()
        return next !== undefined && next !== sampler
      })
      await pane.shows('nvidia crashed', false)
    }
    await pane.quit()
    expect(modes(pane)).toBe(UNTOUCHED)
    expect(await settings(pane)).toBe(before)
  })

  it('comes when the terminal is closed, with or without a signal', async () => {
    // In a session of its own nobody sends SIGHUP, as when a connection is cut.
    for (const prefix of ['', 'setsid --wait ']) {
      const pane = new Pane()
      const command = `env GPUWARDEN_SERVER_PORT=1 ${prefix}${quote(process.execPath)} ${quote(BIN)} top ${DEMO}`
      pane.shell(command)
      await pane.shows('SIMULATED')
      const first = topPid(pane)
      const pids = prefix === '' ? family(pane) : childrenOf(first).flatMap((pid) => [pid, ...childrenOf(pid)])
      expect(pids).toHaveLength(2)
      tmux('kill-session', '-t', pane.name)
      await areGone(pids)
    }
  })

  it('is put off by Ctrl-Z, and the terminal is the shell’s meanwhile', async () => {
    const pane = new Pane()
    const before = await settings(pane)
    pane.top(DEMO)
    await pane.shows('SIMULATED')
    const pids = family(pane)
    pane.keys('C-z')
    await until('it gave the terminal back', () => pane.info('#{alternate_on}') === '0')
    expect(await settings(pane)).toBe(before)
    pane.type('fg')
    pane.keys('Enter')
    await until('it has the terminal again', () => pane.info('#{alternate_on}') === '1')
    await pane.shows('SIMULATED')
    pane.keys('q')
    await until('it gave the terminal back', () => pane.info('#{alternate_on}') === '0')
    await areGone(pids)
  })
})
