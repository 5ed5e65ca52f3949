/** The hyperparameters in which compared runs differ. */
import { ScrollBox } from '../../parts/parts.tsx'
import { NOT_AVAILABLE } from '../../words.ts'
import { type Compared, nameOf } from './compared-run.ts'
import { differingSettings } from './differing-settings.ts'

export function ComparedSettings({ list }: { readonly list: readonly Compared[] }) {
  const rows = differingSettings(list.map(({ run }) => run?.hyperparameters ?? {}))
  if (rows.length === 0) return null
  return (
    <div class="panel flush">
      <ScrollBox label="Hyperparameters that differ">
        <table>
          <thead>
            <tr>
              <th>Hyperparameter</th>
              {list.map((one) => (
                <th key={one.id}>{nameOf(one)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, values }) => (
              <tr key={name}>
                <td>{name}</td>
                {values.map((value, index) => (
                  <td key={list[index]?.id}>{value === undefined ? NOT_AVAILABLE : String(value)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </div>
  )
}
