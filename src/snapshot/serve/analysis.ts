/** The part that runs in a process of its own: holds one snapshot in memory and answers questions about it. */
import { lstat } from 'node:fs/promises'
import { EXIT, Failure } from '../../core/failure.ts'
import { DevicePictures } from '../picture/device-pictures.ts'
import { diffPictures, snapshotPicture } from '../picture/snapshot-pictures.ts'
import { readSnapshot, type Snapshot } from '../read/read-snapshot.ts'
import { devicesOf } from '../verdict/device.ts'
import { DeviceAnalysis } from '../verdict/device-analysis.ts'
import type { FromAnalysis, Question, SnapshotFile, ToAnalysis } from './messages.ts'

interface Opened {
  readonly name: string
  readonly snapshot: Snapshot
  readonly analyses: readonly DeviceAnalysis[]
  readonly devices: readonly DevicePictures[]
}

const PROGRESS_MS = 200

export class Analysis {
  readonly #send: (message: FromAnalysis) => void
  #opened: Promise<Opened> | null = null
  /** As it was answered. */
  #picture: string | null = null

  constructor(send: (message: FromAnalysis) => void) {
    this.#send = send
  }

  async take(message: ToAnalysis): Promise<void> {
    if (message.type === 'open') {
      let saidAt = 0
      this.#opened = open(message.file, (share) => {
        if (Date.now() - saidAt < PROGRESS_MS) return
        saidAt = Date.now()
        this.#send({ type: 'progress', share })
      })
      await this.#opened.then(
        () => this.#send({ type: 'opened' }),
        (error: Error) => this.#send({ type: 'unreadable', reason: reasonOf(error, message.file) }),
      )
      return
    }
    const { id, question } = message
    try {
      if (this.#opened === null) throw new Error('a question came before the file')
      const body = (question.ask === 'picture' ? this.#picture : null) ?? JSON.stringify(await answer(await this.#opened, question))
      if (question.ask === 'picture') this.#picture = body
      this.#send({ type: 'answer', id, body })
    } catch (error) {
      const file = question.ask === 'diff' ? question.before : null
      this.#send({ type: 'refusal', id, reason: file ? reasonOf(error as Error, file) : (error as Error).message })
    }
  }
}

async function open({ path, name }: SnapshotFile, onProgress: (share: number) => void): Promise<Opened> {
  // A run says where its file lies: only a file itself is opened, no link, pipe or device.
  const stat = await lstat(path)
  if (!stat.isFile()) throw new Failure(`${path} is no plain file`, { exitCode: EXIT.noSource })
  const snapshot = await readSnapshot(path, onProgress)
  const analyses = devicesOf(snapshot).map((device) => new DeviceAnalysis(snapshot, device))
  if (analyses.length === 0) throw new Failure(`${path} holds no segments and no events`, { exitCode: EXIT.noSource })
  return { name, snapshot, analyses, devices: analyses.map((analysis) => new DevicePictures(analysis, analysis.limitBytes)) }
}

async function answer({ name, snapshot, analyses, devices }: Opened, question: Question): Promise<unknown> {
  switch (question.ask) {
    case 'picture':
      return snapshotPicture(name, snapshot, devices)
    case 'diff': {
      const before = await open(question.before, () => undefined)
      return { before: before.name, after: name, diffs: diffPictures(before.analyses, analyses, { kind: question.at }) }
    }
    case 'columns': {
      const device = deviceOf(devices, question.device)
      const from = Math.min(question.from, device.events)
      return device.columns(question.kind, from, Math.min(device.events, Math.max(from, question.to)), question.count)
    }
    case 'moment': {
      const device = deviceOf(devices, question.device)
      return device.moment(Math.min(question.index, device.events - 1))
    }
  }
}

function deviceOf(devices: readonly DevicePictures[], wanted: number): DevicePictures {
  const found = devices.find(({ device }) => device === wanted)
  if (found) return found
  throw new Failure(`there is no GPU ${wanted} in this file; there are: ${devices.map(({ device }) => device).join(', ')}`)
}

/** People know the file by its name; where it lies for the time being says nothing to them. */
function reasonOf(error: Error, { path, name }: SnapshotFile): string {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return `${name} is not there anymore`
  return error.message.replaceAll(path, name)
}
