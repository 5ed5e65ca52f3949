import type { LedgerName } from '../../../../src/core/memory/ledger.ts'
import {
  type CodePlace,
  causeWords,
  growthText,
  type OomHolder,
  type OomReport,
  ownPlace,
  placeText,
  wayOutText,
} from '../../../../src/core/memory/oom-report.ts'
import { present } from '../../live/present.ts'
import { LedgerTable } from '../../parts/ledger-table.tsx'
import { CopyButton, Fact, Panel, ScrollBox } from '../../parts/parts.tsx'
import { clockTime, formatBytes } from '../../words.ts'
import { FILLS } from '../memory/ledger-now.tsx'
import { oomParts } from './oom-parts.ts'

type Raw = Readonly<Record<string, unknown>>

export function OutOfMemory({ report, raw }: { readonly report: OomReport; readonly raw: Raw }) {
  const { cause, at, holders, stack, message } = report
  return (
    <Panel title="Why memory ran out" aside={at !== null && <span class="small faint">{clockTime(at, present())}</span>}>
      {cause && (
        <p class="oom-cause breakable">
          <strong class="tone-critical">{capital(causeWords(cause.kind))}</strong>
          {cause.message !== null && <span>{capital(cause.message)}</span>}
        </p>
      )}
      <Circumstances report={report} />
      <Ledger report={report} />
      {holders.length > 0 && <Holders list={holders} />}
      {stack.length > 0 && <Folded title="Calls, innermost first" text={stack.toReversed().map(placeText).join('\n')} />}
      {message !== null && <Folded title="PyTorch's own message" text={message} />}
      <Folded title="Full report of the SDK" text={JSON.stringify(raw, null, 2)} />
    </Panel>
  )
}

/** Something that is no report of memory: as it came. */
export function LastWords({ raw }: { readonly raw: Raw }) {
  return (
    <Panel title="Last report of the SDK">
      <Folded title="Full report" text={JSON.stringify(raw, null, 2)} />
    </Panel>
  )
}

function Circumstances({ report }: { readonly report: OomReport }) {
  const { requestedBytes, growth, allocatorSettings, allocatorRetries, snapshot, rank } = report
  const place = ownPlace(report)
  return (
    <>
      {place && (
        <p class="small">
          <span class="faint">Where</span> <Place place={place} />
        </p>
      )}
      <div class="facts">
        {requestedBytes !== null && <Fact label="Requested">{formatBytes(requestedBytes)}</Fact>}
        {growth && <Fact label="Tensors grew">{growthText(growth)}</Fact>}
        <Fact label="Allocator settings" title="PYTORCH_ALLOC_CONF">
          {allocatorSettings === null ? 'none' : <code class="breakable">{allocatorSettings}</code>}
        </Fact>
        {allocatorRetries !== null && (
          <Fact label="Allocation retries" title="The allocator released its cache and tried again">
            {allocatorRetries} ×
          </Fact>
        )}
        {rank !== null && <Fact label="Rank">{rank}</Fact>}
      </div>
      {snapshot !== null && snapshot.waysOut.length > 0 && (
        <div class="small breakable">
          <span class="faint">Ways out</span>
          <ol>
            {snapshot.waysOut.map((way) => (
              <li key={`${way.what} ${way.line}`}>
                {wayOutText(way)} {way.line !== null && <code>{way.line}</code>}
              </li>
            ))}
          </ol>
        </div>
      )}
      {snapshot?.path != null ? (
        <p class="small breakable">
          <span class="faint">Snapshot</span> <code>{snapshot.path}</code> <CopyButton text={snapshot.path} />{' '}
          <a href="#/snapshots">show it</a>
        </p>
      ) : (
        snapshot?.reason != null && <p class="small faint breakable">Snapshot: {snapshot.reason}</p>
      )}
    </>
  )
}

function Ledger({ report }: { readonly report: OomReport }) {
  const ledger = oomParts(report)
  if (ledger === null) return null
  return (
    <div class="ledger">
      <h3>Where it was</h3>
      <LedgerTable
        label="Memory of the GPU when it ran out"
        words={ledger.words}
        lines={ledger.parts.map((part) => ({ ...part, fill: Object.hasOwn(FILLS, part.name) ? FILLS[part.name as LedgerName] : 'fill-7' }))}
        total={ledger.total}
      />
    </div>
  )
}

function Holders({ list }: { readonly list: readonly OomHolder[] }) {
  return (
    <div class="ledger">
      <h3>Who held it</h3>
      <ScrollBox label="Who held it">
        <table>
          <thead>
            <tr>
              <th class="number">Bytes</th>
              <th class="number">Blocks</th>
              <th>Allocated at</th>
            </tr>
          </thead>
          <tbody>
            {list.map((holder) => (
              <tr key={placeText(holder)}>
                <td class="number">{formatBytes(holder.bytes)}</td>
                <td class="number faint">{holder.blocks ?? ''}</td>
                <td class="small">
                  <Place place={holder} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </div>
  )
}

function Place({ place: { file, line, function: name } }: { readonly place: CodePlace }) {
  return (
    <span class="breakable">
      <code>
        {file}
        {line !== null && `:${line}`}
      </code>
      {name !== null && (
        <>
          {' in '}
          <code>{name}</code>
        </>
      )}
    </span>
  )
}

function Folded({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <details class="small folded">
      <summary>{title}</summary>
      <CopyButton text={text} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre class="last-words" tabIndex={0}>
        {text}
      </pre>
    </details>
  )
}

function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
