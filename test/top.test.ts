/** The dashboard in a real terminal: tmux types and looks. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { buildFakeNvml, type FakeNvmlScript, type FakeNvmlValues, fakeNvmlScript } from './fake-nvml/index.ts'
import { BIN, FIXTURES, RunningAgent, run, temporaryFolder, until } from './program.ts'

const hasTmux = spawnSync('tmux', ['-V']).status === 0
const SOCKET = `gpuwarden-test-${process.pid}`
const DIST = fileURLToPath(new URL('../dist', import.meta.url))

function tmux(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync('tmux', ['-L', SOCKET, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tmux ${args.join(' ')}: ${stderr}`)
  return stdout
}

const ESCAPE = '\u001b'
/** In the colour of what has the focus. */
const FOCUSED_CARD = new RegExp(`38;5;117m${ESCAPE}?[^${ESCAPE}]*0 Simulated`)

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A shell in a terminal of its own, in which the program is started as a person would. */
class Pane {
  readonly name: string
  readonly folder = temporaryFolder()
  static #count = 0

  constructor(columns = 80, rows = 24) {
    this.name = `p${Pane.#count++}`
    const env = ['TERM', 'LANG', 'LC_ALL', 'NO_COLOR', 'COLUMNS', 'LINES'].flatMap((name) => ['-u', name])
    const shell = ['env', ...env, `PS1=READY> `, 'LANG=C.UTF-8', `XDG_CONFIG_HOME=${this.folder}/config`, 'TERM=tmux-256color', 'sh']
    tmux('-f', '/dev/null', 'new-session', '-d', '-s', this.name, '-x', String(columns), '-y', String(rows), '-c', this.folder, ...shell)
  }

  /** `port 1` cannot be an agent's: the test must not find one that happens to run here. */
  top(args: string, env: Record<string, string> = {}): void {
    const variables = Object.entries({ GPUWARDEN_SERVER_PORT: '1', ...env }).map(([name, value]) => `${name}=${quote(value)}`)
    this.shell(`env ${variables.join(' ')} ${quote(process.execPath)} ${quote(BIN)} top ${args}; echo ended $?`)
  }

  shell(command: string): void {
    tmux('send-keys', '-t', this.name, '-l', `clear; ${command}`)
    tmux('send-keys', '-t', this.name, 'Enter')
  }

  keys(...names: string[]): void {
    tmux('send-keys', '-t', this.name, ...names)
  }

  type(text: string): void {
    tmux('send-keys', '-t', this.name, '-l', text)
  }

  screen(): string {
    return tmux('capture-pane', '-p', '-t', this.name)
  }

  coloured(): string {
    return tmux('capture-pane', '-e', '-p', '-t', this.name)
  }

  async shows(what: string | RegExp, isThere = true): Promise<string> {
    const matches = (text: string) => (typeof what === 'string' ? text.includes(what) : what.test(text))
    let last = ''
    return until(
      `the screen ${isThere ? 'shows' : 'no longer shows'} ${what}`,
      () => {
        last = this.screen()
        return matches(last) === isThere ? last || ' ' : null
      },
      20_000,
    ).catch(() => {
      throw new Error(`the screen never ${isThere ? 'showed' : 'lost'} ${what}; it shows:\n${last}`)
    })
  }

  info(format: string): string {
    return tmux('display-message', '-p', '-t', this.name, format).trim()
  }

  resize(columns: number, rows: number): void {
    tmux('resize-window', '-t', this.name, '-x', String(columns), '-y', String(rows))
  }
}

const DEMO = '--source demo'
const scripts: FakeNvmlScript[] = []
const children: ChildProcess[] = []

function nvml(values: FakeNvmlValues): { script: FakeNvmlScript; env: Record<string, string> } {
  const script = fakeNvmlScript(values)
  scripts.push(script)
  return { script, env: { GPUWARDEN_NVML: buildFakeNvml(), ...script.env } }
}

/** In a container the driver's process numbers mean nothing; a root without namespaces lets a test go on there too. */
function plainRoot(): string {
  const root = temporaryFolder()
  mkdirSync(join(root, 'proc'))
  for (const name of ['stat', 'meminfo', 'loadavg']) symlinkSync(`/proc/${name}`, join(root, 'proc', name))
  for (const name of ['sys', 'dev', 'etc']) symlinkSync(`/${name}`, join(root, name))
  return root
}

function victim(root: string, name = 'sleep'): ChildProcess {
  const child = spawn('/bin/sleep', ['1000'], { argv0: name, stdio: 'ignore' })
  children.push(child)
  symlinkSync(`/proc/${child.pid}`, join(root, 'proc', String(child.pid)))
  return child
}

afterEach(() => {
  for (const script of scripts.splice(0)) script.remove()
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

afterAll(() => {
  if (hasTmux) spawnSync('tmux', ['-L', SOCKET, 'kill-server'])
})

it('says that it needs a terminal, and what to use instead', async () => {
  for (const args of [[], ['top']]) {
    const { code, stderr } = await run(args)
    expect(code).toBe(2)
    expect(stderr).toMatch(/needs a terminal.*\n.*gpuwarden status.*gpuwarden monitor/)
  }
})

it('prints one frame as text', async () => {
  const { code, stdout } = await run(['top', '--once', '--source', 'demo'], { COLUMNS: '100', LINES: '30', GPUWARDEN_SERVER_PORT: '1' })
  expect(code).toBe(0)
  expect(stdout).toContain('SIMULATED')
  expect(stdout).toContain('COMMAND')
  expect(stdout).not.toContain('\u001b')
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
})

it('refuses what makes no sense', async () => {
  for (const args of [
    ['--theme', 'pink'],
    ['--connect', 'http://['],
  ])
    expect((await run(['top', ...args])).code).toBe(2)
})

describe.skipIf(!hasTmux)('in a terminal (needs tmux)', () => {
  it('leaves the terminal as it found it on q, F10, Ctrl-C and signals', async () => {
    const pane = new Pane()
    const before = await settings(pane)
    const ends: [string, () => void][] = [
      ['q', () => pane.keys('q')],
      ['F10', () => pane.keys('F10')],
      ['Ctrl-C', () => pane.keys('C-c')],
      ['SIGTERM', () => process.kill(topPid(pane), 'SIGTERM')],
      ['SIGHUP', () => process.kill(topPid(pane), 'SIGHUP')],
    ]
    for (const [name, end] of ends) {
      pane.top(DEMO)
      await pane.shows('SIMULATED')
      expect(pane.info('#{alternate_on}'), name).toBe('1')
      end()
      await pane.shows('ended 0')
      expect(pane.info('#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{wrap_flag}'), name).toBe('0 1 0 1')
      expect(await settings(pane), name).toBe(before)
    }
  })

  it('leaves the terminal as it found it when it crashes', async () => {
    const pane = new Pane()
    const before = await settings(pane)
    const crash = join(pane.folder, 'crash.mjs')
    writeFileSync(
      crash,
      `import { Terminal } from ${JSON.stringify(`${DIST}/tui/terminal.js`)}
const terminal = new Terminal(process.stdin, process.stdout, { onKey() {}, onResize() {} })
terminal.open()
setTimeout(() => { throw new Error('a fault of ours') }, 300)`,
    )
    pane.shell(`${quote(process.execPath)} ${quote(crash)}; echo ended $?`)
    await pane.shows('ended 1')
    expect(pane.screen()).toContain('a fault of ours')
    expect(pane.info('#{alternate_on} #{cursor_flag} #{mouse_any_flag}')).toBe('0 1 0')
    expect(await settings(pane)).toBe(before)
  })

  it('stops for Ctrl-Z and comes back', async () => {
    const pane = new Pane()
    pane.top(DEMO)
    await pane.shows('SIMULATED')
    const pid = topPid(pane)
    pane.keys('C-z')
    await until('it is stopped', () => /\) T/.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) && pane.info('#{alternate_on}') === '0')
    pane.type('fg')
    pane.keys('Enter')
    await until('it has the terminal again', () => pane.info('#{alternate_on}') === '1')
    await pane.shows('SIMULATED')
    pane.keys('q')
    await until('it gave the terminal back', () => pane.info('#{alternate_on}') === '0')
  })

  it('answers every key', async () => {
    const pane = new Pane(120, 36)
    pane.top(`${DEMO} --demo-gpus 3`)
    await pane.shows('python train.py')
    for (const key of ['?', 'h']) {
      pane.keys(key)
      await pane.shows('this help')
      pane.keys('Escape')
      await pane.shows('this help', false)
    }
    pane.keys('o')
    await pane.shows('Sort by')
    pane.keys('Down', 'Enter')
    await pane.shows(/PID▼/)
    pane.keys('.')
    await pane.shows(/USER▼/)
    pane.keys(',', ',')
    await pane.shows(/GPU▼/)
    pane.keys('i')
    await pane.shows(/GPU▲/)
    pane.keys('t')
    await pane.shows(/Processes 3 {2}tree/)
    pane.keys('t')
    pane.keys('/')
    pane.type('caro')
    await pane.shows(/\/caro/)
    await pane.shows('bob', false)
    pane.keys('Enter')
    await pane.shows('filter "caro"')
    pane.keys('Escape')
    await pane.shows('bob')
    pane.keys('2')
    await pane.shows('on GPU 1')
    await pane.shows('driver reserve')
    pane.keys('0')
    await pane.shows('on GPU 1', false)
    pane.keys('Home', 'Down', 'End', 'Up', 'PageUp', 'PageDown', 'Home', 'Enter')
    await pane.shows(/Process 419\d+/)
    await pane.shows('GPU memory')
    pane.keys('Escape')
    await pane.shows('GPU memory', false)
    pane.keys('k')
    await pane.shows('these processes are not real')
    pane.keys('a')
    await pane.shows(/Alerts: \d+ active/)
    pane.keys('a')
    pane.keys('c')
    pane.keys('c')
    await pane.shows('─ GPUs 3')
    pane.keys('c')
    await pane.shows('─ GPUs 3', false)
    pane.keys('Tab', 'Tab')
    await until('the GPUs have the focus', () => FOCUSED_CARD.test(pane.coloured()))
    pane.keys('s')
    const saved = /saved to (\S+json)/.exec(await pane.shows(/saved to \S+json/))?.[1] ?? ''
    expect(JSON.parse(readFileSync(saved, 'utf8')).gpus).toHaveLength(3)
    pane.keys('r')
    await pane.shows('the history begins anew')
    pane.keys('F5')
    pane.keys('T')
    await pane.shows('theme light')
    pane.keys('Space')
    const frozen = await pane.shows('PAUSED')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(pane.screen()).toBe(frozen)
    pane.keys('Space')
    await pane.shows('PAUSED', false)
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('remembers hidden panels', async () => {
    const pane = new Pane(100, 30)
    pane.top(DEMO)
    await pane.shows('Training')
    pane.keys('p')
    await pane.shows('[x] training')
    pane.keys('Down', 'Down', 'Space')
    await pane.shows('[ ] training')
    pane.keys('Escape')
    await pane.shows('Training', false)
    pane.keys('q')
    await pane.shows('ended 0')
    expect(JSON.parse(readFileSync(join(pane.folder, 'config/gpuwarden/top.json'), 'utf8'))).toMatchObject({ hidden: ['training'] })
    pane.top(DEMO)
    await pane.shows('python train.py')
    expect(pane.screen()).not.toContain('Training')
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('takes the wheel and clicks', async () => {
    const pane = new Pane(100, 30)
    pane.top(`${DEMO} --demo-gpus 2`)
    await pane.shows('alice')
    // What moves while it is pointed at cannot be hit.
    pane.keys('Space')
    const screen = await pane.shows('PAUSED')
    const row = screen.split('\n').findIndex((line) => line.includes('COMMAND'))
    pane.type(`\u001b[<0;${(screen.split('\n')[row]?.indexOf('USER') ?? 0) + 1};${row + 1}M`)
    await pane.shows(/USER▼/)
    pane.type(`\u001b[<65;10;${row + 2}M`)
    pane.type(`\u001b[<0;10;${row + 3}M`)
    await pane.shows(/Process 4195305/)
    pane.keys('Escape')
    const bar = pane.screen().trimEnd().split('\n').at(-1) ?? ''
    pane.type(`\u001b[<0;${bar.indexOf('? Help') + 1};30M`)
    await pane.shows('this help')
    pane.keys('q', 'q')
    await pane.shows('ended 0')
  })

  it('is drawn anew at every size, without anything left behind', async () => {
    const pane = new Pane(160, 50)
    pane.top(`${DEMO} --demo-gpus 2`)
    await pane.shows('python train.py')
    pane.keys('Space')
    for (const [columns, rows] of [
      [80, 24],
      [40, 12],
      [200, 60],
      [41, 13],
      [120, 40],
      [20, 6],
      [80, 24],
    ] as const) {
      pane.resize(columns, rows)
      const bar = new RegExp(`^[^\\n]*SIMULATED(?:.*\\n){${rows - 1}} q Quit`)
      await pane.shows(bar)
      const first = pane.screen()
      pane.keys('F5')
      await new Promise((resolve) => setTimeout(resolve, 400))
      expect(pane.screen(), `${columns}×${rows}`).toBe(first)
    }
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('takes COLUMNS and LINES where the terminal says 0×0', async () => {
    const pane = new Pane(80, 24)
    pane.shell('stty cols 0 rows 0; stty size')
    await pane.shows('0 0')
    pane.top(DEMO, { COLUMNS: '60', LINES: '14' })
    await pane.shows('SIMULATED')
    await until('the key bar is in row 14', () => pane.screen().split('\n')[13]?.startsWith(' q Quit'))
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('shows 64 GPUs and scrolls', async () => {
    const pane = new Pane(120, 40)
    pane.top(`${DEMO} --demo-gpus 64`)
    await pane.shows(/GPUs 1–\d+ of 64/)
    pane.keys('BTab')
    pane.keys('End')
    await pane.shows(/GPUs \d+–64 of 64/)
    pane.keys('Home')
    await pane.shows(/GPUs 1–\d+ of 64/)
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('uses no colour with NO_COLOR and nothing but ASCII with --ascii', async () => {
    const pane = new Pane()
    pane.top(`${DEMO} --ascii`, { NO_COLOR: '1' })
    await pane.shows('python train.py')
    expect(pane.coloured()).not.toMatch(new RegExp(`${ESCAPE}\\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]`))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: whatever is not ASCII is what is looked for
    expect(pane.screen()).not.toMatch(/[^\u0000-\u007f]/)
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('ends a real process after asking, and shows names with escape codes as what they are', async () => {
    const root = plainRoot()
    const child = victim(root, '\u001b[2J\u001b[31mevil 日本語 👩‍👧')
    const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
    const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    const pane = new Pane(100, 24)
    pane.top('--source nvidia', { ...env, GPUWARDEN_ROOT: root })
    const screen = await pane.shows('evil')
    expect(screen).toContain('·[2J·[31mevil 日本語')
    expect(screen.split('\n')[0]).toMatch(/driver/)
    pane.keys('Enter')
    await pane.shows('variables, hidden')
    await pane.shows('open files')
    pane.keys('e')
    await pane.shows('PATH=')
    pane.keys('Escape', 'k')
    await pane.shows(`End process ${child.pid}?`)
    pane.keys('Escape')
    await pane.shows('End process', false)
    expect(child.exitCode).toBe(null)
    pane.keys('k')
    await pane.shows('SIGTERM')
    pane.keys('Enter')
    await pane.shows(`SIGTERM sent to process ${child.pid}`)
    expect(await gone).toBe('SIGTERM')
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('ends nothing with --readonly', async () => {
    const root = plainRoot()
    const child = victim(root)
    const { env } = nvml({ gpus: 1, processes: 1, pids: [child.pid ?? 0] })
    const pane = new Pane()
    pane.top('--source nvidia --readonly', { ...env, GPUWARDEN_ROOT: root })
    await pane.shows('sleep')
    pane.keys('k')
    await pane.shows('only looks')
    pane.keys('Enter')
    expect(child.exitCode).toBe(null)
    pane.keys('Escape', 'q')
    await pane.shows('ended 0')
  })

  it('says that a GPU is lost, and that the driver does not respond', async () => {
    const { script, env } = nvml({ gpus: 2 })
    const pane = new Pane(100, 30)
    pane.top('--source nvidia --deadline 1', env)
    await pane.shows('age <1s')
    script.update({ lost: [1] })
    await pane.shows('LOST')
    script.update({ hang: ['nvmlDeviceGetUtilizationRates'] })
    await pane.shows(/nvidia driver not responding since \d\d:\d\d:\d\d/)
    await pane.shows(/last sample \d+s ago/)
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('plays a recording: pause, seek, speed', async () => {
    const pane = new Pane(120, 30)
    pane.top(`--source replay:${quote(join(FIXTURES, 'traces/divergence'))}`)
    await pane.shows('REPLAY')
    pane.keys(']', ']', ']')
    await pane.shows(/3\ds x1/)
    pane.keys('Space')
    await pane.shows(/3\ds PAUSED/)
    pane.keys('[')
    await pane.shows(/2\ds PAUSED/)
    pane.keys('+')
    pane.keys('Space')
    await pane.shows(/ x2 /)
    pane.keys('-', '-')
    await pane.shows(/ x0.5 /)
    for (let press = 0; press < 12; press++) pane.keys(']')
    await pane.shows('ENDED')
    await pane.shows(/loss NaN/)
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('attaches to the agent of this machine, and says when it is gone', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '2'])
    const pane = new Pane(100, 30)
    pane.top('', { GPUWARDEN_SERVER_PORT: new URL(agent.url).port })
    await pane.shows(`agent ${new URL(agent.url).host}`)
    await pane.shows('python train.py')
    await pane.shows('Training')
    await agent.stop()
    await pane.shows('no answer from the agent since')
    pane.keys('q')
    await pane.shows('ended 0')
  })

  it('brings the token to an agent that wants one, and says so when it has none', async () => {
    const token = join(temporaryFolder(), 'token')
    const agent = await RunningAgent.start(['--source', 'demo', '--token-file', token])
    const pane = new Pane(100, 30)
    pane.top(`--connect ${agent.url} --token-file ${token}`)
    await pane.shows('python train.py')
    pane.keys('q')
    await pane.shows('ended 0')
    pane.top(`--connect ${agent.url}`)
    await pane.shows('it asks for a token')
    await pane.shows('ended 2')
    await agent.stop()
    pane.top('--connect http://127.0.0.1:1')
    await pane.shows('no agent can be reached')
    await pane.shows('ended 3')
    expect(existsSync(token)).toBe(true)
  })
})

/** The terminal's own settings, as stty tells them. */
async function settings(pane: Pane): Promise<string> {
  const file = join(pane.folder, `stty-${Math.random()}`)
  pane.shell(`stty -g > ${file}.part; mv ${file}.part ${file}`)
  await until('stty has answered', () => existsSync(file))
  return readFileSync(file, 'utf8')
}

function topPid(pane: Pane): number {
  const shell = pane.info('#{pane_pid}')
  const child = readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').trim().split(' ')[0] ?? ''
  return Number(child)
}
