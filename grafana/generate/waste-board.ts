/** What the GPUs cost and how much of that was wasted. Prices are typed in at the top. */
import { board, ON_GPU } from './board.ts'
import { figure, lines, table } from './panels.ts'

const JOULES_PER_KWH = 3.6e6
const idle = `gpuwarden:gpu_idle:bool{${ON_GPU}}`

/** Hours in which the expression was 1, summed over GPUs; it is looked at once a minute. */
const hours = (expr: string, by = '') => `sum${by} (sum_over_time(${expr}[$__range:1m])) / 60`
const energy = (by = '') => `sum${by} (increase(gpu_energy_joules_total{${ON_GPU}}[$__range])) / ${JOULES_PER_KWH}`

export const wasteBoard = board({
  uid: 'gpuwarden-waste',
  title: 'GPU waste and cost',
  description: 'GPU hours, how many of them were idle, energy and money. Needs the recording rules of gpuwarden.',
  range: '24h',
  figures: [
    { name: 'gpu_hour_price', label: 'Price of a GPU hour', value: '2.50', description: 'In your currency.' },
    { name: 'kwh_price', label: 'Price of a kWh', value: '0.30', description: 'In your currency.' },
  ],
  rows: [
    {
      title: 'In the selected time range',
      panels: [
        figure({
          title: 'GPU hours',
          description: 'Hours in which GPUs were present and working.',
          queries: [{ expr: hours(`(${idle} >= bool 0)`) }],
          unit: 'none',
          decimals: 1,
          width: 4,
        }),
        figure({
          title: 'Idle GPU hours',
          description: 'Hours without any kernel for five minutes or more.',
          queries: [{ expr: hours(idle) }],
          unit: 'none',
          decimals: 1,
          width: 4,
          steps: [{ from: null, color: 'orange' }],
        }),
        figure({
          title: 'Cost of idle hours',
          description: 'Idle GPU hours times the price of an hour.',
          queries: [{ expr: `${hours(idle)} * $gpu_hour_price` }],
          unit: 'none',
          decimals: 2,
          width: 4,
          steps: [{ from: null, color: 'orange' }],
        }),
        figure({
          title: 'Energy',
          description: 'From the energy counters of the GPUs.',
          queries: [{ expr: energy() }],
          unit: 'kwatth',
          decimals: 2,
          width: 4,
        }),
        figure({
          title: 'Cost of energy',
          description: 'Energy of the GPUs only, without host and cooling.',
          queries: [{ expr: `${energy()} * $kwh_price` }],
          unit: 'none',
          decimals: 2,
          width: 4,
        }),
        figure({
          title: 'Mean utilization',
          description: 'Over all GPUs and the selected time range.',
          queries: [{ expr: `avg(avg_over_time(gpu_utilization_percent{${ON_GPU}}[$__range]))` }],
          unit: 'percent',
          decimals: 0,
          width: 4,
        }),
      ],
    },
    {
      title: 'Where it goes',
      panels: [
        table(
          {
            title: 'By host',
            description: 'Hours, idle hours and their cost.',
            queries: [
              { expr: hours(`(${idle} >= bool 0)`, ' by (instance)'), legend: 'GPU hours' },
              { expr: hours(idle, ' by (instance)'), legend: 'idle hours' },
              { expr: `${hours(idle, ' by (instance)')} * $gpu_hour_price`, legend: 'cost of idle hours' },
              { expr: energy(' by (instance)'), legend: 'kWh' },
            ],
            unit: 'none',
            decimals: 2,
            width: 12,
          },
          [],
        ),
        table(
          {
            title: 'By user: memory held',
            description: 'Mean memory held by the processes of each user in the selected time range, in GiB.',
            queries: [
              {
                expr: `sum by (user) (avg_over_time(gpu_process_memory_bytes{${ON_GPU}}[$__range])) / ${1024 ** 3}`,
                legend: 'GiB',
              },
            ],
            unit: 'none',
            decimals: 1,
            width: 12,
          },
          [],
        ),
        lines({
          title: 'Busy, idle, and idle with memory held',
          description: 'GPUs by what they did.',
          queries: [
            { expr: `sum(1 - ${idle})`, legend: 'busy' },
            { expr: `sum(${idle})`, legend: 'idle' },
            { expr: `sum(gpuwarden:gpu_idle_holding:bool{${ON_GPU}})`, legend: 'idle for half an hour with memory held' },
          ],
          unit: 'none',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Power',
          description: 'Mean of five minutes, by host.',
          queries: [{ expr: `sum by (instance) (gpuwarden:gpu_power:avg5m_watts{${ON_GPU}})`, legend: '{{instance}}' }],
          unit: 'watt',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Time lost to heat and power limits',
          description: 'Share of time in which a GPU was throttled.',
          queries: [
            { expr: `rate(gpu_thermal_violation_seconds_total{${ON_GPU}}[$__rate_interval])`, legend: '{{instance}} GPU {{gpu}} heat' },
            { expr: `rate(gpu_power_violation_seconds_total{${ON_GPU}}[$__rate_interval])`, legend: '{{instance}} GPU {{gpu}} power' },
          ],
          unit: 'percentunit',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Tensor cores',
          description: 'Share of time in which the tensor cores were active: a GPU can be "100% busy" without them.',
          queries: [{ expr: `gpu_tensor_active_ratio{${ON_GPU}}`, legend: '{{instance}} GPU {{gpu}}' }],
          unit: 'percentunit',
          width: 12,
          min: 0,
          max: 1,
        }),
      ],
    },
  ],
})
