import type { ConfigAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { place, setQuery } from '../../location.ts'
import { Badge, Choices, Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { type ConfigRow, isDefault, searchConfig, valueText } from './config-rows.ts'

export function ConfigPanel() {
  const { answer, fault } = usePolled('config', (signal) => ask<ConfigAnswer>('/api/v1/config', {}, { signal }), null).value
  const { q = '', only = '' } = place.value.query
  const all = answer?.settings ?? []
  const rows = searchConfig(all, q, only === 'changed')
  const changed = all.filter((row) => !isDefault(row)).length
  return (
    <Panel title="Configuration" id="configuration" aside={<span class="small faint">{answer && `${rows.length} of ${all.length}`}</span>}>
      <Fault text={fault} />
      {answer && (
        <p class="small">
          {answer.file === null ? (
            'No configuration file is read.'
          ) : (
            <>
              File: <code class="anywhere">{answer.file}</code>
            </>
          )}{' '}
          Flags override environment variables, variables override the file, and the file overrides the defaults.
        </p>
      )}
      {answer?.warnings.map((warning) => (
        <p key={warning} class="note">
          {warning}
        </p>
      ))}
      <search class="toolbar">
        <input
          type="search"
          class="setting-search"
          aria-label="Search in the configuration"
          placeholder="Search: key, value, variable, meaning…"
          value={q}
          onInput={(event) => setQuery({ q: event.currentTarget.value || null })}
        />
        <Choices<'' | 'changed'>
          label="Which settings are shown"
          options={[
            { value: '', label: 'All' },
            { value: 'changed', label: `Changed (${changed})` },
          ]}
          value={only === 'changed' ? 'changed' : ''}
          onChoose={(value) => setQuery({ only: value || null })}
        />
      </search>
      {answer === null ? (
        fault === null && <Empty title="Asking the agent…" />
      ) : rows.length === 0 ? (
        <Empty title={all.length > 0 && changed === 0 && q === '' ? 'All settings have their defaults' : 'No setting matches'}>
          <button type="button" onClick={() => setQuery({ q: null, only: null })}>
            Show all
          </button>
        </Empty>
      ) : (
        <ConfigTable rows={rows} />
      )}
    </Panel>
  )
}

function ConfigTable({ rows }: { readonly rows: readonly ConfigRow[] }) {
  return (
    <ScrollBox label="Settings">
      <table class="config-table">
        <thead>
          <tr>
            <th>Setting</th>
            <th>Value</th>
            <th>From</th>
            <th>Variable</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} class={isDefault(row) ? '' : 'changed'}>
              <th scope="row">
                <code>{row.key}</code>
                <span class="tiny faint setting-help">{row.help}</span>
              </th>
              <td class="mono setting-value">{valueText(row.value)}</td>
              <td>{isDefault(row) ? <span class="faint">default</span> : <Badge title={row.from}>{row.from}</Badge>}</td>
              <td class="mono faint">{row.variable}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  )
}
