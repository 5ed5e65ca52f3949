import '../../style/snapshot.css'
import { useRef, useState } from 'preact/hooks'
import type { ListedSnapshot, SnapshotsAnswer } from '../../answers.ts'
import { ask, inWords } from '../../api.ts'
import { present } from '../../live/present.ts'
import { go } from '../../location.ts'
import { Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { useAnswer } from '../../poll.ts'
import { clockTime, formatBytes, formatPercent } from '../../words.ts'
import { uploadFile } from './upload.ts'

const REFRESH_MS = 10_000

export function SnapshotList() {
  const { answer, fault, again } = useAnswer<SnapshotsAnswer>('/api/v1/snapshots', {}, REFRESH_MS)
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Memory snapshots</h1>
        <a class="button" href="#/memory">
          Live memory
        </a>
      </div>
      <Fault text={fault} />
      {answer && answer.mostUploadBytes > 0 && <UploadPanel mostBytes={answer.mostUploadBytes} onDone={again} />}
      <Panel title="Files">
        {answer === null ? null : answer.snapshots.length === 0 ? (
          <Empty title="No snapshot yet">
            The SDK writes one when a run that records its memory history runs out of memory, or when you ask for one: gpuwarden snapshot
            --run NAME. Any other file of torch.cuda.memory._dump_snapshot() can be uploaded.
          </Empty>
        ) : (
          <ScrollBox label="Snapshots">
            <table>
              <thead>
                <tr>
                  <th>File</th>
                  <th>Origin</th>
                  <th>Written</th>
                  <th class="number">Size</th>
                  <th>
                    <span class="visually-hidden">Remove</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {answer.snapshots.map((one) => (
                  <Row key={one.id} one={one} onRemoved={again} />
                ))}
              </tbody>
            </table>
          </ScrollBox>
        )}
      </Panel>
    </>
  )
}

function Row({ one, onRemoved }: { readonly one: ListedSnapshot; readonly onRemoved: () => void }) {
  const [fault, setFault] = useState<string | null>(null)
  const isWhole = one.receivedBytes === null || one.receivedBytes === one.bytes
  const remove = () =>
    ask(`/api/v1/snapshots/${encodeURIComponent(one.id)}`, {}, { method: 'DELETE' }).then(onRemoved, (error) => setFault(inWords(error)))
  return (
    <tr>
      <td class="breakable">
        {isWhole && one.notOpened === null ? <a href={`#/snapshots/${one.id}`}>{one.name}</a> : one.name}
        {!isWhole && <span class="small faint"> uploading, {formatPercent((one.receivedBytes ?? 0) / (one.bytes ?? 1))}</span>}
        {one.notOpened !== null && <span class="small faint"> not opened here: {one.notOpened}</span>}
        <Fault text={fault} />
      </td>
      <td>
        {one.run === null ? (
          'uploaded'
        ) : (
          <>
            <a href={`#/training/${encodeURIComponent(one.run)}`}>{one.runName}</a>
            {one.rank !== null && one.rank > 0 ? `, rank ${one.rank}` : ''}, {one.kind}
          </>
        )}
      </td>
      <td class="nowrap">{clockTime(one.at, present())}</td>
      <td class="number">{one.bytes === null ? '' : formatBytes(one.bytes)}</td>
      <td class="number">
        {one.origin === 'upload' && (
          <button type="button" class="quiet" onClick={remove} aria-label={`Remove ${one.name}`}>
            Remove
          </button>
        )}
      </td>
    </tr>
  )
}

function UploadPanel({ mostBytes, onDone }: { readonly mostBytes: number; readonly onDone: () => void }) {
  const [sending, setSending] = useState<{ name: string; share: number; stop: AbortController } | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const input = useRef<HTMLInputElement>(null)
  const send = async (file: File | undefined) => {
    if (!file || sending) return
    const stop = new AbortController()
    setFault(null)
    if (file.size === 0 || file.size > mostBytes) {
      setFault(
        `${file.name} has ${formatBytes(file.size)}; files of up to ${formatBytes(mostBytes)} can be uploaded (server.max_upload_mb).`,
      )
      return
    }
    setSending({ name: file.name, share: 0, stop })
    try {
      const id = await uploadFile(file, stop.signal, (share) => setSending({ name: file.name, share, stop }))
      go(['snapshots', id])
    } catch (error) {
      setFault(stop.signal.aborted ? null : inWords(error))
      onDone()
    }
    setSending(null)
    if (input.current) input.current.value = ''
  }
  return (
    <Panel title="Look at a file">
      <label
        class="upload"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          void send(event.dataTransfer?.files[0])
        }}
      >
        <span>A memory snapshot of PyTorch, plain or gzip, up to {formatBytes(mostBytes)}. Drop it here, or choose it:</span>
        <input ref={input} type="file" disabled={sending !== null} onChange={({ currentTarget }) => void send(currentTarget.files?.[0])} />
      </label>
      {sending && (
        <div class="upload-progress">
          <progress value={sending.share} max={1} aria-label={`Uploading ${sending.name}`} />
          <span class="small">
            {sending.name}: {formatPercent(sending.share)}
          </span>
          <button type="button" onClick={() => sending.stop.abort()}>
            Cancel
          </button>
        </div>
      )}
      <Fault text={fault} />
      <p class="small faint">
        It stays on this machine, in a temporary folder, until you remove it or the agent ends. Nothing in the file is run.
      </p>
    </Panel>
  )
}
