/** Starts the programs that play trainings, and writes down what they say. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Played, PlayedRank } from './ledger.ts'
import type { Play } from './schedule.ts'

const SCRIPT = fileURLToPath(new URL('./players.py', import.meta.url))
const SDK = fileURLToPath(new URL('../../python', import.meta.url))

interface Said {
  readonly event: 'begin' | 'nan' | 'finite' | 'logged' | 'end'
  readonly at: number
  readonly run: string
  readonly count: number
  readonly dropped: number
  readonly rejected: number
}

export class Players {
  readonly played: Played[]
  readonly #env: NodeJS.ProcessEnv
  readonly #running = new Map<ChildProcess, Promise<void>>()

  constructor(played: Played[], url: string, spool: string) {
    this.played = played
    const { PATH, HOME } = process.env
    this.#env = {
      PATH,
      HOME,
      PYTHONPATH: SDK,
      PYTHONDONTWRITEBYTECODE: '1',
      GPUWARDEN_URL: url,
      GPUWARDEN_SPOOL: spool,
      GPUWARDEN_NO_START: '1',
    }
  }

  play(play: Play): void {
    const { name, steps, perSecond, nan, ending, id } = play
    const ranks = Array.from({ length: play.ranks }, (_, rank): PlayedRank => {
      const said: PlayedRank = { rank, run: null, logged: 0, nanAt: null, finiteAt: null, endedAt: null, dropped: 0, rejected: 0 }
      const env = {
        ...(id === null ? {} : { GPUWARDEN_RUN_ID: id }),
        ...(play.ranks > 1 ? { RANK: String(rank), WORLD_SIZE: String(play.ranks) } : {}),
      }
      this.#start({ name, steps, per_second: perSecond, nan, ending }, env, (line) => note(said, line))
      return said
    })
    this.played.push({ play, ranks })
  }

  /** Gives the SDK the time to deliver what earlier processes left. */
  async collect(seconds: number): Promise<void> {
    this.#start({ name: 'collector', collect: seconds }, {}, () => undefined)
    await this.allEnded()
  }

  async allEnded(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  kill(): void {
    for (const child of this.#running.keys()) child.kill('SIGKILL')
  }

  #start(script: object, env: NodeJS.ProcessEnv, onLine: (said: Said) => void): void {
    const child = spawn('python3', [SCRIPT, JSON.stringify(script)], { env: { ...this.#env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
    createInterface({ input: child.stdout }).on('line', (line) => onLine(JSON.parse(line) as Said))
    const ended = new Promise<void>((resolve) => {
      child.on('error', () => resolve())
      child.on('close', () => resolve())
    }).finally(() => this.#running.delete(child))
    this.#running.set(child, ended)
  }
}

function note(rank: PlayedRank, { event, at, run, count, dropped, rejected }: Said): void {
  if (event === 'begin') rank.run = run
  else if (event === 'logged') rank.logged = count
  else if (event === 'nan') rank.nanAt = at
  else if (event === 'finite') rank.finiteAt = at
  else Object.assign(rank, { endedAt: at, dropped, rejected })
}
