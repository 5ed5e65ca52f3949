/** `gpuwarden snapshot --run NAME`: asks a run that goes on which of its lines keep memory, and waits for the answer. */
import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../agent/config.ts'
import type { AgentClient } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatDuration, printable } from '../core/format.ts'
import { type LineRecording, recordingText } from '../core/memory/line-recording.ts'
import type { RecordingRequest } from '../training/recording-requests.ts'
import { agentOf } from './agent-address.ts'
import { findRun, type RunToAsk, wholeNumber } from './find-run.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { ProgressLine } from './progress-line.ts'

interface RecordingsAnswer {
  readonly at: number
  readonly waiting: readonly RecordingRequest[]
  readonly recordings: readonly LineRecording[]
}

const LOOK_MS = 500
/** For a run to report a step, and then to come to the end of the recording. */
const LEAST_WAIT_MS = 30_000
const STEPS_WAITED = 10
const SLOWER = 3

export async function recordRun(config: Config, options: Readonly<Record<string, unknown>>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  if (args.length > 0) throw new Failure('--run asks a run that goes on; it takes no file', { exitCode: EXIT.usage })
  const steps = options.steps === undefined ? undefined : wholeNumber('--steps', options.steps, 6, 1000)
  const rank = options.rank === undefined ? undefined : wholeNumber('--rank', options.rank, 0, 1_000_000)
  const agent = agentOf(config)
  const run = await findRun(agent, String(options.run))
  const path = `/api/v1/runs/${encodeURIComponent(run.id)}/recordings`
  const asked = await agent.post<RecordingRequest>(path, { kind: options.host === true ? 'host' : 'gpu', steps, rank })
  const recording = await waitFor(agent, path, asked, run)
  writeOut(options.json === true ? `${JSON.stringify(recording, null, 2)}\n` : `${recordingText(recording).map(printable).join('\n')}\n`)
  if (recording.reason !== null) return EXIT.noSource
  if (options.json !== true) adviseFile(recording, run)
  return recording.lines.length > 0 ? EXIT.checkFailed : EXIT.ok
}

async function waitFor(agent: AgentClient, path: string, asked: RecordingRequest, run: RunToAsk): Promise<LineRecording> {
  const stepMs = (Number(run.training?.meanStepSeconds) || 0) * 1000
  let request: RecordingRequest | undefined = asked
  const progress = new ProgressLine(() =>
    request?.sentAt == null
      ? `waiting for run ${printable(run.name)} to report a step  (Ctrl-C ends)`
      : `run ${printable(run.name)} records${asked.steps === null ? '' : ` ${asked.steps} steps`}, for ${formatDuration(Date.now() - request.sentAt)}  (Ctrl-C ends)`,
  )
  progress.draw()
  try {
    const begin = Date.now()
    const untilStep = Math.max(LEAST_WAIT_MS, STEPS_WAITED * stepMs)
    // The SDK itself ends a recording after a minute.
    const untilEnd = untilStep + LEAST_WAIT_MS + Math.max(60_000, SLOWER * stepMs * 40)
    for (;;) {
      await sleep(LOOK_MS)
      const { waiting, recordings } = await agent.get<RecordingsAnswer>(path)
      const done = recordings.find(({ id }) => id === asked.id)
      if (done) return done
      request = waiting.find(({ id }) => id === asked.id)
      if (!request) throw new Failure(`run "${run.name}" ended before it could record`, { exitCode: EXIT.noSource })
      const passed = Date.now() - begin
      if (request.sentAt === null && passed > untilStep)
        throw new Failure(`run "${run.name}" has reported no step for ${formatDuration(passed)}`, {
          exitCode: EXIT.noSource,
          hint: 'It may hang, evaluate, or its process may be gone. The request stays for ten minutes.',
        })
      if (passed > untilEnd)
        throw new Failure(`run "${run.name}" was asked and has not answered for ${formatDuration(passed)}`, { exitCode: EXIT.noSource })
    }
  } finally {
    progress.stop()
  }
}

/** The file is named, not opened: it is a run that says where it lies. */
function adviseFile({ snapshotPath }: LineRecording, { host }: RunToAsk): void {
  if (snapshotPath === null) return
  const isHere = host === hostname() && statSync(snapshotPath, { throwIfNoEntry: false })?.isFile() === true
  process.stderr.write(
    `gpuwarden snapshot ${printable(snapshotPath)} shows it in full${isHere ? '' : `, on ${printable(host ?? 'its host')}`}.\n`,
  )
}
