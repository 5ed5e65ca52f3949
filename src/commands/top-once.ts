/** `gpuwarden top --once` and `--svg`: one frame as text or as a picture, for scripts and documentation. */
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { HubEvent } from '../core/kinds.ts'
import { vendorOfModel } from '../sources/vendors.ts'
import { frameSvg } from '../tui/frame-svg.ts'
import type { LiveState } from '../tui/live-state.ts'
import { render } from '../tui/render.ts'
import { FIRST_VIEW } from '../tui/screen-data.ts'
import { terminalSize } from '../tui/terminal.ts'
import { createTheme } from '../tui/theme.ts'
import { readToken } from './agent-address.ts'
import { findLocalAgent } from './top-agent.ts'
import { attach, createJudge, recordingIntake } from './top-feeds.ts'
import type { TopOptions } from './top-options.ts'

const LISTEN_MS = 1500

export async function printOnce(config: Config, state: LiveState, given: TopOptions, asSvg: boolean): Promise<number> {
  await gather(config, state, given)
  const size = terminalSize(process.stdout, process.env)
  const theme = createTheme(given.theme ?? 'dark', 'many', given.ascii)
  const { grid } = render(state.data({ columns: size.columns * 2, gpu: null }), { ...FIRST_VIEW, hidden: new Set() }, size, theme)
  process.stdout.write(asSvg ? frameSvg(grid, theme) : `${grid.text().trimEnd()}\n`)
  return EXIT.ok
}

async function gather(config: Config, state: LiveState, given: TopOptions): Promise<void> {
  if (given.connect !== null) return listenTo({ url: given.connect, token: readToken(config.values) }, state)
  if (config.values.source.startsWith('replay:')) return readRecording(config, state)
  if (config.origins.source.from === 'default') {
    const { address, reason } = await findLocalAgent(config)
    if (address) return listenTo(address, state)
    if (reason !== null) process.stderr.write(`gpuwarden: ${reason}; sampling in this process instead\n`)
  }
  await lookHere(config, state)
}

/** Training steps come with the stream alone. */
async function listenTo(address: Parameters<typeof attach>[0], state: LiveState): Promise<void> {
  const feed = await attach(address, state, () => undefined)
  await new Promise((resolve) => setTimeout(resolve, LISTEN_MS))
  await feed.stop()
}

async function readRecording(config: Config, state: LiveState): Promise<void> {
  const { openRecording } = await import('../core/recording/recording.ts')
  const intake = await recordingIntake(config, state)
  const path = config.values.source.slice('replay:'.length)
  const recording = await openRecording(path, vendorOfModel).catch((error: Error) => {
    throw new Failure(error.message, { exitCode: EXIT.noSource, cause: error })
  })
  for await (const item of recording) intake.deliver(item)
  intake.finish()
  const { firstAt, lastAt } = recording.stats()
  state.origin = path
  state.replay = { at: lastAt ?? 0, firstAt: firstAt ?? 0, lastAt, speed: 1, state: 'ended' }
}

async function lookHere(config: Config, state: LiveState): Promise<void> {
  const { oneLook } = await import('../agent/one-look.ts')
  const judge = await createJudge(config, (event) => state.accept(event))
  const onEvent = (event: HubEvent) => {
    state.accept(event)
    judge(event)
  }
  state.origin = 'sampling here'
  await oneLook(config, (sampling) => state.setHealth(sampling.state.health()), { onEvent, mayStandIn: true })
}
