import type { UsageAnswer, UsageFigures } from '../../answers.ts'
import { place } from '../../location.ts'
import { ScrollBox } from '../../parts/parts.tsx'
import { placeHash } from '../../place.ts'
import { formatPercent } from '../../words.ts'
import { amount, money } from './figures.ts'

interface Column {
  readonly title: string
  readonly about?: string
  readonly text: (figures: UsageFigures & { readonly freeHours?: number | null }) => string
}

const FREE: Column = { title: 'Free h', about: 'Nobody held them', text: ({ freeHours }) => amount(freeHours ?? null) }
const COLUMNS: readonly Column[] = [
  { title: 'Held h', about: 'GPU-hours', text: ({ gpuHours }) => amount(gpuHours) },
  { title: 'Busy', about: 'Utilization of the held time', text: ({ busyRatio }) => formatPercent(busyRatio) },
  { title: 'SM', about: 'SM activity of the held time, where the card tells it', text: ({ smRatio }) => formatPercent(smRatio) },
  { title: 'Idle h', about: 'Memory was held and nothing computed', text: ({ idleHours }) => amount(idleHours) },
  { title: 'GiB·h', about: 'GPU memory held × hours', text: ({ memoryGibHours }) => amount(memoryGibHours) },
  { title: 'kWh', text: ({ energyKwh }) => amount(energyKwh) },
  { title: 'Cost', text: ({ cost }) => money(cost) },
  { title: 'Throttled h', about: 'Work with clocks held down by heat or power', text: ({ throttledHours }) => amount(throttledHours) },
  {
    title: 'OOM h',
    about: 'Lost by runs that ran out of memory, since their last checkpoint',
    text: ({ lostOomHours }) => amount(lostOomHours),
  },
  {
    title: 'Died h',
    about: 'Lost by runs that died in another way, since their last checkpoint',
    text: ({ lostDeadHours }) => amount(lostDeadHours),
  },
]
const TITLES = { user: 'User', job: 'Job', run: 'Run', gpu: 'GPU', day: 'Day' } as const

export function UsageTable({ answer }: { readonly answer: UsageAnswer }) {
  const { by, groups, total, free } = answer
  const isOfUser = by === 'job' || by === 'run'
  const columns = by === 'gpu' || by === 'day' ? [...COLUMNS.slice(0, 1), FREE, ...COLUMNS.slice(1)] : COLUMNS
  return (
    <ScrollBox label="Usage">
      <table class="usage-table">
        <thead>
          <tr>
            <th>{TITLES[by]}</th>
            {isOfUser && <th>User</th>}
            {columns.map(({ title, about }) => (
              <th key={title} class="number" title={about}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(by === 'day' ? groups.toReversed() : groups).map((group) => (
            <tr key={group.key}>
              <td class="usage-name" title={group.label}>
                {by === 'user' ? (
                  <a href={placeHash(['usage'], { ...place.value.query, user: group.key, by: 'day' })}>{group.label}</a>
                ) : (
                  group.label
                )}
              </td>
              {isOfUser && <td>{group.users.join(', ')}</td>}
              {columns.map(({ title, text }) => (
                <td key={title} class="number">
                  {text(group)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th>Total</th>
            {isOfUser && <td />}
            {columns.map(({ title, text }) => (
              <td key={title} class="number">
                {text({ ...total, freeHours: free.gpuHours })}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </ScrollBox>
  )
}
