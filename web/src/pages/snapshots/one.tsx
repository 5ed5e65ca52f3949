import { useMemo, useState } from 'preact/hooks'
import type { SnapshotAnswer, SnapshotDiffAnswer, SnapshotsAnswer } from '../../answers.ts'
import { ask, type Query, Refusal } from '../../api.ts'
import { place, setQuery } from '../../location.ts'
import { Empty, Fault, Panel } from '../../parts/parts.tsx'
import { useAnswer, usePolled } from '../../poll.ts'
import type { CloserLook } from '../../snapshot/closer-look.ts'
import { DiffTable } from '../../snapshot/diff-table.tsx'
import { SnapshotView } from '../../snapshot/snapshot-view.tsx'
import { formatPercent } from '../../words.ts'

const LOOK_MS = 400

export function OneSnapshot({ id }: { readonly id: string }) {
  const path = `/api/v1/snapshots/${encodeURIComponent(id)}`
  const [share, setShare] = useState(0)
  const { answer, fault } = usePolled<SnapshotAnswer>(path, (signal) => opened(path, signal, setShare), null).value
  const closerOf = useMemo(() => (device: number) => closerLook(path, device), [path])
  const picture = answer?.picture ?? null
  return (
    <>
      <div class="page-head">
        <h1 class="grow breakable">{picture?.name ?? 'Memory snapshot'}</h1>
        <a class="button" href="#/snapshots">
          All snapshots
        </a>
      </div>
      <Fault text={fault} />
      {answer?.state === 'failed' && (
        <Panel>
          <Empty title="This file cannot be shown">{answer.reason}</Empty>
        </Panel>
      )}
      {answer === null && fault === null && (
        <Panel>
          <div class="upload-progress">
            <progress value={share} max={1} aria-label="Reading the file" />
            <span class="small">{share < 1 ? `reading, ${formatPercent(share)}` : 'analyzing'}</span>
          </div>
        </Panel>
      )}
      {picture && (
        <>
          <Compare id={id} path={path} />
          <SnapshotView picture={picture} closerOf={closerOf} />
        </>
      )}
    </>
  )
}

/** Asks until the file is read. */
async function opened(path: string, signal: AbortSignal, onShare: (share: number) => void): Promise<SnapshotAnswer> {
  for (;;) {
    const answer = await ask<SnapshotAnswer>(path, {}, { signal })
    if (answer.state !== 'reading') return answer
    onShare(answer.share)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

function closerLook(path: string, device: number): CloserLook {
  return {
    columns: (kind, from, to, count, signal) => askAwake(path, 'columns', { device, kind, from, to, count }, signal),
    moment: (index, signal) => askAwake(path, 'moment', { device, index }, signal),
  }
}

/** After some minutes without a question the agent no longer has the file in memory: it reads it again. */
async function askAwake<Answer>(path: string, what: string, query: Query, signal: AbortSignal): Promise<Answer> {
  try {
    return await ask<Answer>(`${path}/${what}`, query, { signal })
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'conflict') throw error
    await opened(path, signal, () => undefined)
    return ask<Answer>(`${path}/${what}`, query, { signal })
  }
}

/** With another file, chosen in the address, so that a link shows the same. */
function Compare({ id, path }: { readonly id: string; readonly path: string }) {
  const { answer } = useAnswer<SnapshotsAnswer>('/api/v1/snapshots', {}, null)
  const { before = '', at = 'peak' } = place.value.query
  const others = (answer?.snapshots ?? []).filter(
    (one) => one.id !== id && one.notOpened === null && (one.receivedBytes === null || one.receivedBytes === one.bytes),
  )
  const polled = usePolled<SnapshotDiffAnswer>(
    before === '' ? null : `${path} ${before} ${at}`,
    (signal) => askAwake<SnapshotDiffAnswer>(path, 'diff', { before, at }, signal),
    null,
  ).value
  if (others.length === 0 && before === '') return null
  return (
    <Panel title="What changed">
      <div class="toolbar">
        <label>
          since{' '}
          <select value={before} onChange={({ currentTarget }) => setQuery({ before: currentTarget.value || null })}>
            <option value="">choose a snapshot</option>
            {others.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          at{' '}
          <select
            value={at}
            onChange={({ currentTarget }) => setQuery({ at: currentTarget.value === 'peak' ? null : currentTarget.value })}
          >
            <option value="peak">the peak</option>
            <option value="end">the end</option>
          </select>
        </label>
      </div>
      <Fault text={polled.fault} />
      {before !== '' && polled.answer === null && polled.fault === null && <p class="faint">Reading the other file…</p>}
      {polled.answer?.diffs.map((diff) => (
        <DiffTable key={diff.device} diff={diff} />
      ))}
    </Panel>
  )
}
