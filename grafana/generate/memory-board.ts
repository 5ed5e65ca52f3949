/** Who holds the memory, what the allocator does with it, and when it will be full. */
import { THRESHOLDS } from '../../src/detectors/thresholds.ts'
import { board, OF_RUN, ON_GPU } from './board.ts'
import { figure, lines, type Step, stacked, table } from './panels.ts'

const { memory } = THRESHOLDS
const GPU = '{{instance}} GPU {{gpu}}'

const FULL: readonly Step[] = [
  { from: null, color: 'green' },
  { from: memory.levelRatio, color: 'yellow' },
  { from: memory.fullRatio, color: 'red' },
]

const allocator = (kind: string) => `memory_allocation_mb{${OF_RUN},kind="${kind}"}`

export const memoryBoard = board({
  uid: 'gpuwarden-memory',
  title: 'GPU memory and OOM',
  description: 'Where the memory of the GPUs goes, and whether it will last.',
  range: '3h',
  rows: [
    {
      title: 'Will it last?',
      panels: [
        figure({
          title: 'Fullest GPU',
          description: 'The highest share of memory in use.',
          queries: [{ expr: `max(gpu_memory_used_mb{${ON_GPU}} / gpu_memory_total_mb{${ON_GPU}})` }],
          unit: 'percentunit',
          decimals: 0,
          width: 6,
          steps: FULL,
        }),
        figure({
          title: 'Out of memory expected in',
          description: 'The soonest that an agent predicts; it looks at every sample, not only at every scrape.',
          queries: [{ expr: `min(gpu_predicted_oom_seconds{${ON_GPU}})` }],
          unit: 's',
          width: 6,
          nothing: 'not expected',
          steps: [
            { from: null, color: 'red' },
            { from: 1800, color: 'orange' },
          ],
        }),
        figure({
          title: 'Allocator retries',
          description: 'Times an allocator had to free its cache and ask again, in the chosen time.',
          queries: [{ expr: `sum(increase(training_alloc_retries_total{${OF_RUN}}[$__range]))` }],
          unit: 'none',
          decimals: 0,
          width: 6,
          nothing: 'not reported',
        }),
        figure({
          title: 'Out-of-memory errors',
          description: 'Times an allocator gave up, in the chosen time.',
          queries: [{ expr: `sum(increase(training_ooms_total{${OF_RUN}}[$__range]))` }],
          unit: 'none',
          decimals: 0,
          width: 6,
          nothing: 'not reported',
          steps: [
            { from: null, color: 'green' },
            { from: 1, color: 'red' },
          ],
        }),
        lines({
          title: 'Share of memory in use',
          description: 'The lines are the levels of the alerts.',
          queries: [{ expr: `gpu_memory_used_mb{${ON_GPU}} / gpu_memory_total_mb{${ON_GPU}}`, legend: GPU }],
          unit: 'percentunit',
          width: 12,
          min: 0,
          max: 1,
          steps: FULL,
        }),
        lines({
          title: 'Free memory and where it is heading',
          description:
            'Dashed in meaning: free memory in an hour if it goes on like this. Below 0 it will not last. Needs the recording rules.',
          queries: [
            { expr: `gpuwarden:gpu_memory_free:bytes{${ON_GPU}}`, legend: GPU },
            { expr: `gpuwarden:gpu_memory_free:predicted_bytes{${ON_GPU}}`, legend: `${GPU} in 1 h` },
          ],
          unit: 'bytes',
          width: 12,
        }),
      ],
    },
    {
      title: 'Who holds it',
      panels: [
        stacked({
          title: 'By user',
          description: 'Memory of the processes of each user; those whose owner is unknown have no name.',
          queries: [{ expr: `sum by (instance, user) (gpu_process_memory_bytes{${ON_GPU}})`, legend: '{{instance}} {{user}}' }],
          unit: 'bytes',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Largest processes',
          description: 'The ten that hold most.',
          queries: [
            { expr: `topk(10, gpu_process_memory_bytes{${ON_GPU}})`, legend: '{{instance}} GPU {{gpu}} {{process}} {{pid}} ({{user}})' },
          ],
          unit: 'bytes',
          width: 12,
          min: 0,
        }),
        table(
          {
            title: 'Idle but held',
            description: 'GPUs that did nothing for half an hour while memory was held. Needs the recording rules.',
            queries: [
              {
                expr: `max by (instance, gpu, name) (gpu_memory_used_mb{${ON_GPU}} and gpuwarden:gpu_idle_holding:bool{${ON_GPU}} == 1)`,
                legend: 'held MiB',
              },
            ],
            unit: 'none',
            decimals: 0,
            width: 12,
            nothing: 'none',
          },
          [],
        ),
        lines({
          title: 'Processes',
          description: 'Processes on each GPU.',
          queries: [{ expr: `gpu_processes{${ON_GPU}}`, legend: GPU }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
      ],
    },
    {
      title: 'The allocator of a run',
      panels: [
        lines({
          title: 'Allocated, reserved and peak',
          description: 'What tensors use, what the allocator keeps, and the highest that was used.',
          queries: [
            { expr: allocator('allocated'), legend: '{{run}} rank {{rank}} allocated' },
            { expr: allocator('reserved'), legend: '{{run}} rank {{rank}} reserved' },
            { expr: allocator('peak_allocated'), legend: '{{run}} rank {{rank}} peak' },
          ],
          unit: 'mbytes',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Fragmentation',
          description:
            'Kept by the allocator without being used, and the part of it that is split into pieces, as shares of what is reserved.',
          queries: [
            { expr: `1 - ${allocator('allocated')} / ignoring (kind) ${allocator('reserved')}`, legend: '{{run}} rank {{rank}} unused' },
            {
              expr: `${allocator('inactive_split')} / ignoring (kind) ${allocator('reserved')}`,
              legend: '{{run}} rank {{rank}} in pieces',
            },
          ],
          unit: 'percentunit',
          width: 12,
          min: 0,
          max: 1,
        }),
        lines({
          title: 'Growth of allocated memory',
          description: 'Bytes per hour over the last quarter of an hour. A leak is a line that stays above zero.',
          queries: [{ expr: `deriv(${allocator('allocated')}[15m]) * 3600`, legend: '{{run}} rank {{rank}}' }],
          unit: 'mbytes',
          width: 12,
        }),
        lines({
          title: 'Allocator retries',
          description: 'Each one flushes the cache and costs time: the memory is nearly full.',
          queries: [{ expr: `increase(training_alloc_retries_total{${OF_RUN}}[$__rate_interval])`, legend: '{{run}} rank {{rank}}' }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
      ],
    },
  ],
})
