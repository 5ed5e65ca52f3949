/** All machines at a glance. */
import { board, ON_CARD, ON_GPU, ON_HOST } from './board.ts'
import { figure, lines, table } from './panels.ts'

const GPU_LABELS = 'instance, gpu, name'
const per = (expr: string) => `max by (${GPU_LABELS}) (${expr})`

export const fleetBoard = board({
  uid: 'gpuwarden-fleet',
  title: 'GPU fleet',
  description: 'All machines with gpuwarden: what works, what is in use, what is wrong.',
  range: '6h',
  rows: [
    {
      title: 'Now',
      panels: [
        figure({
          title: 'Hosts',
          description: 'Machines whose agent answers.',
          queries: [{ expr: `count(gpuwarden_build_info{${ON_HOST}})` }],
          unit: 'none',
          width: 3,
        }),
        figure({
          title: 'GPUs',
          description: 'All known GPUs.',
          queries: [{ expr: `count(gpuwarden_gpu_up{${ON_CARD}})` }],
          unit: 'none',
          width: 3,
        }),
        figure({
          title: 'GPUs not working',
          description: 'Lost, in need of a reset, unreadable, or without a recent sample.',
          queries: [{ expr: `count(gpuwarden_gpu_up{${ON_CARD}} == 0) or vector(0)` }],
          unit: 'none',
          width: 3,
          steps: [
            { from: null, color: 'green' },
            { from: 1, color: 'red' },
          ],
        }),
        figure({
          title: 'Busy GPUs',
          description: 'GPUs with a kernel running in the latest sample.',
          queries: [{ expr: `count(gpu_utilization_percent{${ON_GPU}} > 0) or vector(0)` }],
          unit: 'none',
          width: 3,
        }),
        figure({
          title: 'Mean utilization',
          description: 'Over all selected GPUs.',
          queries: [{ expr: `avg(gpu_utilization_percent{${ON_GPU}})` }],
          unit: 'percent',
          decimals: 0,
          width: 3,
        }),
        figure({
          title: 'Memory in use',
          description: 'Share of the memory of all selected GPUs.',
          queries: [{ expr: `sum(gpu_memory_used_mb{${ON_CARD}}) / sum(gpu_memory_total_mb{${ON_CARD}})` }],
          unit: 'percentunit',
          decimals: 0,
          width: 3,
        }),
        figure({
          title: 'Power',
          description: 'Sum over all selected GPUs.',
          queries: [{ expr: `sum(gpu_power_draw_watts{${ON_CARD}})` }],
          unit: 'watt',
          width: 3,
        }),
        figure({
          title: 'Firing alerts',
          description: 'From the rules that come with gpuwarden.',
          queries: [{ expr: `count(ALERTS{alertstate="firing",alertname=~"Gpu.*|Training.*",${ON_HOST}}) or vector(0)` }],
          unit: 'none',
          width: 3,
          steps: [
            { from: null, color: 'green' },
            { from: 1, color: 'red' },
          ],
        }),
      ],
    },
    {
      title: 'GPUs',
      panels: [
        table(
          {
            title: 'GPUs',
            description: 'The latest values of each GPU. Values the device does not report are empty.',
            queries: [
              { expr: per(`gpuwarden_gpu_up{${ON_GPU}}`), legend: 'up' },
              { expr: per(`gpu_utilization_percent{${ON_GPU}}`), legend: 'utilization %' },
              { expr: per(`gpu_memory_used_mb{${ON_GPU}}`), legend: 'memory used MiB' },
              { expr: per(`gpu_memory_total_mb{${ON_GPU}}`), legend: 'memory MiB' },
              { expr: per(`gpu_temperature_celsius{${ON_GPU}}`), legend: 'temperature °C' },
              { expr: per(`gpu_power_draw_watts{${ON_GPU}}`), legend: 'power W' },
              { expr: per(`gpu_processes{${ON_GPU}}`), legend: 'processes' },
            ],
            unit: 'none',
            decimals: 0,
            width: 24,
            height: 10,
          },
          [],
        ),
        lines({
          title: 'Utilization by host',
          description: 'Mean over the GPUs of a host.',
          queries: [{ expr: `avg by (instance) (gpu_utilization_percent{${ON_GPU}})`, legend: '{{instance}}' }],
          unit: 'percent',
          width: 12,
          min: 0,
          max: 100,
        }),
        lines({
          title: 'Power by host',
          description: 'Sum over the GPUs of a host.',
          queries: [{ expr: `sum by (instance) (gpu_power_draw_watts{${ON_GPU}})`, legend: '{{instance}}' }],
          unit: 'watt',
          width: 12,
          min: 0,
        }),
        lines({
          title: 'Hottest GPU by host',
          description: 'The highest temperature among the GPUs of a host.',
          queries: [{ expr: `max by (instance) (gpu_temperature_celsius{${ON_GPU}})`, legend: '{{instance}}' }],
          unit: 'celsius',
          width: 12,
        }),
        lines({
          title: 'State',
          description: 'GPUs in a state other than ok.',
          queries: [{ expr: `sum by (instance, state) (gpuwarden_gpu_state{${ON_GPU},state!="ok"})`, legend: '{{instance}} {{state}}' }],
          unit: 'none',
          width: 12,
          min: 0,
        }),
      ],
    },
    {
      title: 'Hosts and agents',
      panels: [
        lines({
          title: 'Findings',
          description: 'What the detectors of the agents report now.',
          queries: [
            {
              expr: `sum by (instance, detector, severity) (gpuwarden_findings_active{${ON_HOST}})`,
              legend: '{{instance}} {{detector}} ({{severity}})',
            },
          ],
          unit: 'none',
          width: 12,
          min: 0,
          nothing: 'none',
        }),
        table(
          {
            title: 'Sources',
            description: 'Whether each source delivers, and how old its last sample is.',
            queries: [
              { expr: `max by (instance, source) (gpuwarden_up{${ON_HOST}})`, legend: 'delivers' },
              { expr: `max by (instance, source) (gpuwarden_sample_age_seconds{${ON_HOST}})`, legend: 'age s' },
              { expr: `max by (instance, source) (gpuwarden_source_restarts_total{${ON_HOST}})`, legend: 'restarts' },
            ],
            unit: 'none',
            width: 12,
          },
          [],
        ),
        lines({
          title: 'Host memory and CPU',
          description: 'A data loader that uses up host memory ends a training as surely as a full GPU does.',
          queries: [
            { expr: `host_memory_used_bytes{${ON_HOST}} / host_memory_total_bytes{${ON_HOST}}`, legend: '{{instance}} memory' },
            { expr: `host_cpu_ratio{${ON_HOST}}`, legend: '{{instance}} CPU' },
          ],
          unit: 'percentunit',
          width: 12,
          min: 0,
          max: 1,
        }),
        lines({
          title: 'Cost of gpuwarden',
          description: 'CPU time of the agent and its sampler, in cores.',
          queries: [
            {
              expr: `sum by (instance, process) (rate(gpuwarden_process_cpu_seconds_total{${ON_HOST}}[$__rate_interval]))`,
              legend: '{{instance}} {{process}}',
            },
          ],
          unit: 'percentunit',
          width: 12,
          min: 0,
        }),
      ],
    },
  ],
})
