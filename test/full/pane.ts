/** A real terminal for the terminal UI: tmux types and looks. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { buildFakeNvml, type FakeNvmlScript, type FakeNvmlValues, fakeNvmlScript } from '../fake-nvml/index.ts'
import { BIN, temporaryFolder, until } from '../program.ts'

export const hasTmux = spawnSync('tmux', ['-V']).status === 0
const SOCKET = `gpuwarden-test-${process.pid}`
export const DEMO = '--source demo --demo-scenario healthy'
/** Behind what is selected, in the dark theme. */
const SELECTED = '48;5;237'

export function tmux(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync('tmux', ['-L', SOCKET, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tmux ${args.join(' ')}: ${stderr}`)
  return stdout
}

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A shell in a terminal of its own, in which the program is started as a person would. */
export class Pane {
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

  colored(): string {
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

  /** The line that is marked as selected, without its colors; '' when none is. */
  selected(): string {
    const line = this.colored()
      .split('\n')
      .find((one) => one.includes(SELECTED))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is taken out
    return (line ?? '').replace(/\u001b\[[0-9;]*m/g, '').trim()
  }

  async selects(what: RegExp): Promise<string> {
    let last = ''
    return until(
      `${what} is selected`,
      () => {
        last = this.selected()
        return what.test(last) && last
      },
      20_000,
    ).catch(() => {
      throw new Error(`${what} was never selected, but: ${last}; the screen:\n${this.screen()}`)
    })
  }

  /** A mouse event as terminals send it; rows and columns from 0. */
  mouse(button: number, column: number, row: number): void {
    this.type(`\u001b[<${button};${column + 1};${row + 1}M`)
  }

  click(text: string): void {
    const lines = this.screen().split('\n')
    const row = lines.findIndex((line) => line.includes(text))
    if (row < 0) throw new Error(`nothing to click: ${text} is not on the screen`)
    this.mouse(0, lines[row]?.indexOf(text) ?? 0, row)
  }

  async quit(): Promise<void> {
    this.keys('q')
    await this.shows('ended 0')
  }

  info(format: string): string {
    return tmux('display-message', '-p', '-t', this.name, format).trim()
  }

  resize(columns: number, rows: number): void {
    tmux('resize-window', '-t', this.name, '-x', String(columns), '-y', String(rows))
  }
}

const scripts: FakeNvmlScript[] = []
const children: ChildProcess[] = []

export function nvml(values: FakeNvmlValues): { script: FakeNvmlScript; env: Record<string, string> } {
  const script = fakeNvmlScript(values)
  scripts.push(script)
  return { script, env: { GPUWARDEN_NVML: buildFakeNvml(), ...script.env } }
}

/** In a container the driver's process numbers mean nothing; a root without namespaces lets a test go on there too. */
export function plainRoot(): string {
  const root = temporaryFolder()
  mkdirSync(join(root, 'proc'))
  for (const name of ['stat', 'meminfo', 'loadavg']) symlinkSync(`/proc/${name}`, join(root, 'proc', name))
  for (const name of ['sys', 'dev', 'etc']) symlinkSync(`/${name}`, join(root, name))
  return root
}

export function victim(root: string, name = 'sleep'): ChildProcess {
  const child = spawn('/bin/sleep', ['1000'], { argv0: name, stdio: 'ignore' })
  children.push(child)
  symlinkSync(`/proc/${child.pid}`, join(root, 'proc', String(child.pid)))
  return child
}

/** After each test. */
export function endTest(): void {
  for (const script of scripts.splice(0)) script.remove()
  for (const child of children.splice(0)) child.kill('SIGKILL')
}

/** After the last one. */
export function endTmux(): void {
  if (hasTmux) spawnSync('tmux', ['-L', SOCKET, 'kill-server'])
}

/** The terminal's own settings, as stty tells them. */
export async function settings(pane: Pane): Promise<string> {
  const file = join(pane.folder, `stty-${Math.random()}`)
  pane.shell(`stty -g > ${file}.part; mv ${file}.part ${file}`)
  await until('stty has answered', () => existsSync(file))
  return readFileSync(file, 'utf8')
}

export function topPid(pane: Pane): number {
  return childrenOf(Number(pane.info('#{pane_pid}')))[0] ?? Number.NaN
}

export function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

/** The program and its sampler, or whatever else it has started. */
export function family(pane: Pane): number[] {
  const pid = topPid(pane)
  return [pid, ...childrenOf(pid)]
}

export async function areGone(pids: readonly number[]): Promise<void> {
  await until(`none of ${pids.join(', ')} is left`, () => pids.every((pid) => !isRunning(pid)))
}

/** A zombie is over: only its parent has not looked. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`
  return existsSync(path) && !/\) Z /.test(readFileSync(path, 'utf8'))
}
