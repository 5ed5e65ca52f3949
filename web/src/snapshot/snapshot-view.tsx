/** All pictures of one snapshot; the same in the page of the agent and in the HTML file. */
import '../style/snapshot.css'
import { useSignal } from '@preact/signals'
import type { DevicePicture, SnapshotPicture } from '../../../src/core/memory/snapshot-picture.ts'
import { Choices, Fact, Panel } from '../parts/parts.tsx'
import { formatBytes } from '../words.ts'
import type { CloserLook } from './closer-look.ts'
import { Flame } from './flame.tsx'
import { SegmentMap } from './segment-map.tsx'
import { Timeline } from './timeline.tsx'

export function SnapshotView({
  picture,
  closerOf,
}: {
  readonly picture: SnapshotPicture
  /** Of a device; null: what is there is all there is. */
  readonly closerOf: (device: number) => CloserLook | null
}) {
  const chosen = useSignal(picture.devices[0]?.device ?? 0)
  const shown = picture.devices.find(({ device }) => device === chosen.value)
  return (
    <div class="snapshot-view">
      {picture.notes.map((note) => (
        <p key={note} class="note small">
          {note}
        </p>
      ))}
      {picture.devices.length > 1 && (
        <Choices
          label="GPU"
          options={picture.devices.map(({ device }) => ({ value: String(device), label: `GPU ${device}` }))}
          value={String(chosen.value)}
          onChoose={(value) => {
            chosen.value = Number(value)
          }}
        />
      )}
      {shown && <DeviceView key={shown.device} picture={shown} closer={closerOf(shown.device)} />}
    </div>
  )
}

function DeviceView({ picture, closer }: { readonly picture: DevicePicture; readonly closer: CloserLook | null }) {
  const { device, events, peak, end, verdicts, flame } = picture
  const moment = useSignal(peak.index)
  return (
    <>
      <Panel title={`GPU ${device}`}>
        <div class="facts">
          <Fact label="Peak">
            {formatBytes(peak.allocatedBytes)} <small class="faint">of {formatBytes(peak.reservedBytes)} reserved</small>
          </Fact>
          <Fact label="At the end">
            {formatBytes(end.allocatedBytes)} <small class="faint">of {formatBytes(end.reservedBytes)} reserved</small>
          </Fact>
          <Fact label="Recorded">{events === 0 ? 'no events' : `${events.toLocaleString('en-US')} events`}</Fact>
        </div>
        <dl class="verdicts">
          {verdicts.map(({ label, lines, isBad }) => (
            <div key={label}>
              <dt class={isBad ? 'tone-critical' : ''}>{label}</dt>
              <dd>
                {lines.map((line, position) => (
                  <div key={position} class={line.startsWith('  ') ? 'faint' : ''}>
                    {line.trim()}
                  </div>
                ))}
              </dd>
            </div>
          ))}
        </dl>
      </Panel>
      {events > 0 && (
        <Panel title="Memory in use over time">
          <Timeline picture={picture} closer={closer} moment={moment} />
        </Panel>
      )}
      <Panel title="Segments">
        <SegmentMap picture={picture} closer={closer} moment={moment} />
      </Panel>
      <Panel title={events === 0 ? 'In use, by call' : 'In use at the peak, by call'}>
        <Flame root={flame} />
      </Panel>
    </>
  )
}
