/** What a card is, how it is set up, and its NVLinks. */
import type { GpuInfo } from '../../../../src/core/model.ts'
import { Badge, Panel, ScrollBox } from '../../parts/parts.tsx'
import { NOT_AVAILABLE } from '../../words.ts'

function known(label: string, value: string | null): readonly (readonly [string, string])[] {
  return value === null ? [] : [[label, value]]
}

function eccWords({ eccMode, eccModePending }: GpuInfo): string {
  if (eccMode === null) return NOT_AVAILABLE
  return eccModePending === null || eccModePending === eccMode ? eccMode : `${eccMode}, ${eccModePending} after a reset`
}

function placeInRack({ platform }: GpuInfo): string | null {
  if (platform === null) return null
  return `chassis ${platform.chassisSerial ?? NOT_AVAILABLE}, slot ${platform.slot ?? NOT_AVAILABLE}, tray ${platform.tray ?? NOT_AVAILABLE}`
}

/** Each NVLink with what went wrong on it; nothing where the card has none. */
export function Links({ info }: { readonly info: GpuInfo }) {
  if (info.nvlinks.length === 0) return null
  return (
    <Panel title="NVLinks">
      <ScrollBox label="NVLinks of this GPU">
        <table>
          <thead>
            <tr>
              <th class="number">Link</th>
              <th>State</th>
              <th class="number">Replays</th>
              <th class="number">Recoveries</th>
              <th class="number">CRC errors</th>
              <th class="number">Symbol errors</th>
            </tr>
          </thead>
          <tbody>
            {info.nvlinks.map(({ link: number, state, replayCount, recoveryCount, crcErrorCount, symbolErrorCount }) => (
              <tr key={number}>
                <td class="number">{number}</td>
                <td>{state === null ? NOT_AVAILABLE : <Badge tone={state === 'inactive' ? 'warning' : 'plain'}>{state}</Badge>}</td>
                <td class="number">{replayCount ?? NOT_AVAILABLE}</td>
                <td class="number">{recoveryCount ?? NOT_AVAILABLE}</td>
                <td class="number">{crcErrorCount ?? NOT_AVAILABLE}</td>
                <td class="number">{symbolErrorCount ?? NOT_AVAILABLE}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </Panel>
  )
}

export function About({ info }: { readonly info: GpuInfo }) {
  const rows: readonly (readonly [string, string])[] = [
    ['Name', info.name ?? NOT_AVAILABLE],
    ['Serial', info.serial ?? NOT_AVAILABLE],
    ['Driver', info.driverVersion ?? NOT_AVAILABLE],
    ...known('CUDA', info.cudaVersion),
    ['Architecture', info.architecture ?? NOT_AVAILABLE],
    ...known('MIG', info.migMode),
    ...known('Partitions', info.partitioning),
    ...known('Part number', info.partNumber),
    ...known('GSP firmware', info.gspFirmwareVersion),
    ['ECC', eccWords(info)],
    ...known('Persistence mode', info.persistenceMode),
    ...known('Confidential computing', info.confidentialComputing),
    ...known('Power smoothing', info.powerSmoothing),
    ...known('NVLink clique', info.fabricCliqueId === null ? null : `${info.fabricCliqueId} of ${info.fabricClusterId ?? NOT_AVAILABLE}`),
    ...known(
      'Links to the CPU',
      info.c2cLinks.length === 0 ? null : String(info.c2cLinks.filter(({ state }) => state !== 'inactive').length),
    ),
    ...known('Place', placeInRack(info)),
    [
      'Power limits',
      info.powerLimitMinWatts === null
        ? NOT_AVAILABLE
        : `${Math.round(info.powerLimitMinWatts)}–${Math.round(info.powerLimitMaxWatts ?? 0)} W`,
    ],
  ]
  const silent = Object.entries(info.unavailable)
  return (
    <Panel title="This card">
      <dl class="about">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {silent.length > 0 && (
        <details class="small">
          <summary>Not available ({silent.length})</summary>
          <ul>
            {silent.map(([field, reason]) => (
              <li key={field}>
                <code>{field}</code>: {reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Panel>
  )
}
