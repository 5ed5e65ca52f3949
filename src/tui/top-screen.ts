import type { Finding } from '../core/model.ts'
import { identify, localFacts, mayInterfere, signal } from '../core/process-control.ts'
import type { AlertDesk, Feed } from './feed.ts'
import type { Key } from './keys.ts'
import type { LiveState } from './live-state.ts'
import type { Effect } from './outcome.ts'
import { type Preferences, preferencesOf, viewWith, writePreferences } from './preferences.ts'
import type { ProcessRow } from './process-rows.ts'
import { reduce } from './reduce.ts'
import { type Frame, render } from './render.ts'
import { FIRST_VIEW, type ScreenData, type View } from './screen-data.ts'
import { Terminal } from './terminal.ts'
import { type ColorDepth, createTheme, THEME_NAMES, type Theme, type ThemeName } from './theme.ts'

export interface TopScreenOptions {
  readonly state: LiveState
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly preferences: Preferences
  readonly preferencesPath: string
  readonly theme: ThemeName
  readonly depth: ColorDepth
  readonly ascii: boolean
  readonly folder: string
}

/** Ticks of several sources come within a moment of each other: they are one frame. */
const GATHER_MS = 30
/** Data faster than this is drawn as it is at the moment of drawing. */
const SHORTEST_REDRAW_MS = 250
const CLOCK_MS = 1000
const OVERHEAD_MS = 5000
const START_MS = 2000

export class TopScreen {
  readonly #options: TopScreenOptions
  readonly #terminal: Terminal
  #view: View
  #themeName: ThemeName
  #theme: Theme
  #feed: Feed | null = null
  #frame: Frame | null = null
  #data: ScreenData | null = null
  #drawTimer: NodeJS.Timeout | null = null
  #clock: NodeJS.Timeout | null = null
  #drawnAt = 0
  #hasFigures = false
  /** Null until the start is over: it costs more than everything after it and says nothing about that. */
  #cost: { readonly at: number; readonly cpuSeconds: number } | null = null
  readonly #openedAt = performance.now()
  #isDone = false
  #finish: (reason: string) => void = () => undefined
  readonly done: Promise<string>

  constructor(options: TopScreenOptions) {
    this.#options = options
    this.#view = viewWith(FIRST_VIEW, options.preferences)
    this.#themeName = options.theme
    this.#theme = createTheme(options.theme, options.depth, options.ascii)
    this.#terminal = new Terminal(options.input, options.output, {
      onKey: (key) => this.#key(key),
      onResize: () => this.draw(),
      onGone: () => this.#finish('gone'),
    })
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  open(): void {
    this.#terminal.open()
    this.draw()
    this.#clock = setInterval(() => this.#second(), CLOCK_MS)
  }

  attach(feed: Feed): void {
    this.#feed = feed
  }

  /** Something new came: it will be drawn soon, together with what comes at the same time. */
  changed(): void {
    if (this.#isDone || (this.#view.paused && !this.#options.state.replay)) return
    // The first figures are waited for by a person.
    const isFirst = !this.#hasFigures && this.#options.state.hasSample
    if (this.#drawTimer && !isFirst) return
    if (this.#drawTimer) clearTimeout(this.#drawTimer)
    this.#hasFigures ||= isFirst
    const wait = isFirst ? GATHER_MS : Math.max(GATHER_MS, this.#drawnAt + SHORTEST_REDRAW_MS - performance.now())
    this.#drawTimer = setTimeout(() => this.draw(), wait)
  }

  say(text: string, isTrouble: boolean): void {
    this.#view = { ...this.#view, message: { text, isTrouble } }
    this.draw()
  }

  draw(): void {
    if (this.#drawTimer) clearTimeout(this.#drawTimer)
    this.#drawTimer = null
    if (this.#isDone || !this.#terminal.isReady) return
    this.#drawnAt = performance.now()
    const size = this.#terminal.size
    const { state } = this.#options
    const health = this.#feed?.health?.() ?? null
    if (health) state.setHealth(health)
    const isFrozen = this.#view.paused && !state.replay && this.#data !== null
    const data = isFrozen && this.#data ? this.#data : state.data({ columns: size.columns * 2, gpu: this.#view.gpu })
    this.#data = data
    this.#frame = render(data, this.#view, size, this.#theme)
    this.#view = { ...this.#view, scroll: this.#frame.scroll }
    this.#terminal.draw(this.#frame.grid, this.#theme)
  }

  close(): void {
    this.#isDone = true
    if (this.#drawTimer) clearTimeout(this.#drawTimer)
    if (this.#clock) clearInterval(this.#clock)
    this.#terminal.close()
  }

  /** Ages grow without any news. */
  #second(): void {
    this.#measure()
    if (performance.now() - this.#drawnAt >= CLOCK_MS * 0.9) this.draw()
  }

  #measure(): void {
    const now = performance.now()
    const { state } = this.#options
    const before = this.#cost
    if (before ? now - before.at < OVERHEAD_MS : now - this.#openedAt < START_MS) return
    const others = this.#feed?.usage?.() ?? null
    const cpuSeconds = ownCpuSeconds() + (others?.cpuSeconds ?? 0)
    this.#cost = { at: now, cpuSeconds }
    if (!before) return
    const cpuRatio = Math.max(0, (cpuSeconds - before.cpuSeconds) / ((now - before.at) / 1000))
    state.overhead = { cpuRatio, residentBytes: process.memoryUsage.rss() + (others?.residentBytes ?? 0) }
  }

  #key(key: Key): void {
    if (!this.#frame || !this.#data || this.#isDone) return
    const { view, effect } = reduce(this.#view, key, { data: this.#data, frame: this.#frame })
    this.#view = view
    if (effect) this.#do(effect)
    this.draw()
  }

  #do(effect: Effect): void {
    const { state } = this.#options
    const replay = this.#feed?.replay ?? null
    switch (effect.kind) {
      case 'quit':
        this.#finish('q')
        break
      case 'suspend':
        this.#suspend()
        break
      case 'redraw':
        this.#terminal.forget()
        break
      case 'save':
        this.#save()
        break
      case 'reset':
        state.resetHistory()
        this.#view = { ...this.#view, message: { text: 'history reset', isTrouble: false } }
        break
      case 'pause':
        if (replay) replay.toggle()
        else this.#view = { ...this.#view, paused: !this.#view.paused }
        break
      case 'theme':
        this.#themeName = THEME_NAMES[(THEME_NAMES.indexOf(this.#themeName) + 1) % THEME_NAMES.length] ?? 'dark'
        this.#theme = createTheme(this.#themeName, this.#options.depth, this.#options.ascii)
        this.#terminal.forget()
        this.#remember(`theme ${this.#theme.name}`)
        break
      case 'remember':
        this.#remember(null)
        break
      case 'seek':
        replay?.seek(effect.deltaMs)
        break
      case 'faster':
        replay?.faster()
        break
      case 'slower':
        replay?.slower()
        break
      case 'ask-kill':
        this.#askKill(effect.row)
        break
      case 'signal': {
        const { ok, text } = signal(effect.question.pid, effect.question.startTicks, effect.signal)
        this.#view = { ...this.#view, message: { text, isTrouble: !ok } }
        break
      }
      case 'details':
        this.#details(effect.row)
        break
      case 'stacks':
        this.#stacks(effect.finding)
        break
      case 'acknowledge':
        this.#atDesk((desk) => desk.acknowledge(effect.finding.fingerprint))
        break
      case 'silence':
        this.#atDesk((desk) => desk.silence(effect.finding.fingerprint))
        break
    }
  }

  #remember(text: string | null): void {
    const failure = writePreferences(this.#options.preferencesPath, preferencesOf(this.#view, this.#themeName))
    if (failure !== null) this.#view = { ...this.#view, message: { text: `not remembered: ${failure}`, isTrouble: true } }
    else if (text !== null) this.#view = { ...this.#view, message: { text, isTrouble: false } }
  }

  readonly #sayError = (error: unknown) => this.say(error instanceof Error ? error.message : String(error), true)

  /** What is said about it comes when it comes; the screen goes on meanwhile. */
  #atDesk(work: (desk: AlertDesk) => Promise<string>): void {
    const desk = this.#feed?.alerts
    if (!desk) return
    work(desk).then((text) => this.say(text, false), this.#sayError)
  }

  /** Shown below the finding when they come, if it is still open then. */
  #stacks({ fingerprint, subject: { run } }: Finding): void {
    const asked = run === null ? undefined : this.#feed?.stacks?.(run)
    asked?.then((stacks) => {
      const { overlay } = this.#view
      if (overlay?.kind !== 'finding' || overlay.fingerprint !== fingerprint) return
      this.#view = { ...this.#view, overlay: { ...overlay, stacks } }
      this.draw()
    }, this.#sayError)
  }

  #save(): void {
    const { state, folder } = this.#options
    const data = state.data({ columns: 600, gpu: null })
    void import('./save-metrics.ts').then(({ saveMetrics }) => {
      try {
        this.say(`saved to ${saveMetrics(data, folder)}`, false)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error
        this.say(`not saved: ${error.message}`, true)
      }
    })
  }

  #askKill({ process, user, command, gpuLabel }: ProcessRow): void {
    const identity = identify(process)
    let refusal: string | null = null
    if (!this.#feed?.isLocal)
      refusal = this.#data?.provenance === 'live' ? 'only processes on this machine can be ended from here' : 'these processes are not real'
    else if (!identity.ok) refusal = identity.reason
    else if (!mayInterfere(process)) refusal = `process ${process.pid} belongs to ${user}; ask them, or an administrator`
    if (refusal !== null || !identity.ok) {
      this.#view = { ...this.#view, message: { text: refusal ?? '', isTrouble: true } }
      return
    }
    const { pid, memoryUsedBytes } = process
    const question = { pid, user, command, gpuLabel, memoryUsedBytes, startTicks: identity.startTicks }
    this.#view = { ...this.#view, overlay: { kind: 'kill', question, selected: 1 } }
  }

  #details({ key, process, gpuLabel }: ProcessRow): void {
    const isKnown = this.#feed?.isLocal === true && identify(process).ok
    const facts = isKnown ? localFacts(process.pid) : { folder: null, limits: null, environment: null }
    const note = !isKnown
      ? 'limits and environment: only for live processes on this machine'
      : facts.environment === null
        ? 'environment and folder: no permission to read'
        : null
    this.#view = {
      ...this.#view,
      overlay: { kind: 'process', details: { key, process, gpuLabel, ...facts, note }, showEnvironment: false, offset: 0 },
    }
  }

  /** Ctrl-Z: the shell gets its terminal as it was, and we take it again when we are continued. */
  #suspend(): void {
    this.#terminal.close()
    process.once('SIGCONT', () => {
      this.#terminal.forget()
      this.#terminal.open()
      this.draw()
    })
    process.kill(process.pid, 'SIGTSTP')
  }
}

function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
