/** What was in use at the peak, as a flame graph from the outermost call down. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { FlameNode } from '../../../src/core/memory/snapshot-picture.ts'
import { formatBytes, formatShare } from '../words.ts'
import { type FlameBox, flameBoxes, neighbor } from './flame-rows.ts'

const ROW_PX = 22
const LIBRARY = /site-packages|dist-packages|[\\/]torch[\\/]|\(<|lib[\\/]python/
const KEYS = 'Arrow keys move, Enter shows one call in full width, Escape shows all.'

export function Flame({ root }: { readonly root: FlameNode }) {
  const focus = useSignal<readonly number[]>([])
  const pointed = useSignal<FlameBox | null>(null)
  const place = useRef<HTMLDivElement>(null)
  const boxes = flameBoxes(root, focus.value)
  const rows = boxes.reduce((most, { depth }) => Math.max(most, depth + 1), 0)
  const goTo = (path: readonly number[]) => {
    focus.value = path
    pointed.value = null
  }
  const key = (event: KeyboardEvent, box: FlameBox) => {
    if (event.key === 'Escape') goTo([])
    else if (/^Arrow(?:Up|Down|Left|Right)$/.test(event.key))
      place.current?.querySelector<HTMLElement>(`[data-box="${boxes.indexOf(neighbor(boxes, box, event.key))}"]`)?.focus()
    else return
    event.preventDefault()
  }
  const told = pointed.value
  return (
    <div class="flame">
      <div class="toolbar">
        <span class="small faint">{KEYS}</span>
        {focus.value.length > 0 && (
          <button type="button" onClick={() => goTo([])}>
            Show all
          </button>
        )}
      </div>
      <div class="flame-scroll">
        <div ref={place} class="flame-box" style={{ height: `${rows * ROW_PX}px` }}>
          {boxes.map((box, position) => (
            <button
              key={box.path.join('.')}
              type="button"
              data-box={position}
              tabIndex={position === 0 ? 0 : -1}
              class={`flame-call ${isOwn(box) ? 'own' : ''}`}
              style={{ left: `${box.left * 100}%`, width: `${box.width * 100}%`, top: `${box.depth * ROW_PX}px` }}
              aria-label={`${boxText(box)}, ${formatBytes(box.bytes)}, ${formatShare(box.bytes, root.bytes)}`}
              onClick={() => goTo(box.path)}
              onKeyDown={(event) => key(event, box)}
              onFocus={() => {
                pointed.value = box
              }}
              onPointerEnter={() => {
                pointed.value = box
              }}
            >
              {boxText(box)}
            </button>
          ))}
        </div>
      </div>
      <div class="small breakable flame-words">
        {told === null ? (
          <span class="faint">Point at a call to see all of its name.</span>
        ) : (
          <>
            <b>
              {formatBytes(told.bytes)}, {formatShare(told.bytes, root.bytes)}
            </b>
            {told.names.map((name, position) => (
              <div key={position}>{name}</div>
            ))}
          </>
        )}
      </div>
    </div>
  )
}

/** The innermost call of a chain tells most. */
function boxText({ names }: FlameBox): string {
  const last = names.at(-1) ?? ''
  return names.length === 1 ? last : `${short(names[0] ?? '')} › ${names.length > 2 ? '… › ' : ''}${last}`
}

function short(name: string): string {
  return name.replace(/ \(.*[\\/]([^\\/]+)\)$/, ' ($1)')
}

/** The person's own code stands out. */
function isOwn({ names }: FlameBox): boolean {
  return names.some((name) => /\.py:\d+\)$/.test(name) && !LIBRARY.test(name))
}
