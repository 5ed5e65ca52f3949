/** The script inside the HTML file of a memory snapshot. */
import '../style/tokens.css'
import '../style/base.css'
import '../style/parts.css'
import '../style/chart.css'
import './report.css'
import { useSignal } from '@preact/signals'
import { render } from 'preact'
import type { SnapshotPageData } from '../../../src/core/memory/snapshot-picture.ts'
import { colors } from '../chart/colors.ts'
import { readColors } from '../chart/palette.ts'
import { Choices, Panel } from '../parts/parts.tsx'
import { DiffTable } from '../snapshot/diff-table.tsx'
import { SnapshotView } from '../snapshot/snapshot-view.tsx'
import { showLocalTimes } from './local-times.ts'
import { toggleTheme } from './theme.ts'

function Snapshots({ pictures, diffs }: SnapshotPageData) {
  const chosen = useSignal(pictures.length - 1)
  const picture = pictures[chosen.value]
  return (
    <div class="snapshot-view">
      {diffs.map((diff) => (
        <Panel key={diff.device} title={`What changed on GPU ${diff.device}`}>
          <DiffTable diff={diff} />
        </Panel>
      ))}
      {pictures.length > 1 && (
        <Choices
          label="File"
          options={pictures.map(({ name }, position) => ({
            value: String(position),
            label: `${position === 0 ? 'before' : 'after'}: ${name}`,
          }))}
          value={String(chosen.value)}
          onChoose={(value) => {
            chosen.value = Number(value)
          }}
        />
      )}
      {picture && <SnapshotView key={chosen.value} picture={picture} closerOf={() => null} />}
    </div>
  )
}

const data = JSON.parse(document.getElementById('data')?.textContent ?? '') as SnapshotPageData
const place = document.getElementById('snapshot')
if (place) render(<Snapshots {...data} />, place)
showLocalTimes(Date.now())
const theme = document.getElementById('theme')
if (theme) {
  theme.hidden = false
  theme.addEventListener('click', () => {
    toggleTheme()
    colors.value = readColors()
  })
}
