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
  description: 'Who uses the GPU memory, and when it will be full.',
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
          title: 'Out of memory in',
          description: 'The earliest forecast of an agent, which uses every sample, not only the scraped ones.',
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
          description: 'Times an allocator had to flush its cache and retry, in the selected time range.',
          queries: [{ expr: `sum(increase(training_alloc_retries_total{${OF_RUN}}[$__range]))` }],
          unit: 'none',
          decimals: 0,
          width: 6,
          nothing: 'not reported',
        }),
        figure({
          title: 'Out-of-memory errors',
          description: 'Times an allocator gave up, in the selected time range.',
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
          description: 'The lines are the alert thresholds.',
          queries: [{ expr: `gpu_memory_used_mb{${ON_GPU}} / gpu_memory_total_mb{${ON_GPU}}`, legend: GPU }],
          unit: 'percentunit',
          width: 12,
          min: 0,
          max: 1,
          steps: FULL,
        }),
        lines({
          title: 'Free memory and its forecast',
          description:
            'The forecast is the free memory in an hour at the current rate; below 0 the GPU runs out of memory. Needs the recording rules.',
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
          description: 'Memory of the processes of each user. Processes with an unknown owner have no name.',
          queries: [{ expr: `sum by (instance, user) (gpu_process_memory_bytes{${ON_GPU}})`, legend: '{{instance}} {{user}}' }],
          unit: 'bytes',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Largest processes',
          description: 'The ten that hold the most memory.',
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
            description: 'GPUs that were idle for half an hour while their memory was held. Needs the recording rules.',
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
          description: 'What tensors use, what the allocator reserves, and the peak in use.',
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
            'Reserved memory that is not in use, and the fragmented part of it (unusable pieces of segments that are partly in use), as shares of reserved memory.',
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
          description: 'Bytes per hour, over the last 15 minutes. A line that stays above zero is a leak.',
          queries: [{ expr: `deriv(${allocator('allocated')}[15m]) * 3600`, legend: '{{run}} rank {{rank}}' }],
          unit: 'mbytes',
          width: 12,
        }),
        lines({
          title: 'Allocator retries',
          description: 'Each retry flushes the cache and takes time: memory is nearly full.',
          queries: [{ expr: `increase(training_alloc_retries_total{${OF_RUN}}[$__rate_interval])`, legend: '{{run}} rank {{rank}}' }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
      ],
    },
  ],
})
