/** Snapshots for tests: small ones made by hand, the recorded ones, and what a reader made of them as plain data. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { PickleWriter, Shared, Tuple, type WriterOptions } from '../../../bench/snapshot/pickle-writer.mjs'
import { ACTIONS } from './keys.ts'
import { type Snapshot, SnapshotReader } from './read-snapshot.ts'
import { NO_STACK } from './stack-table.ts'

export const RECORDED = fileURLToPath(new URL('../../../fixtures/snapshots', import.meta.url))

export function recordedBytes(name: string): Buffer {
  return gunzipSync(readFileSync(`${RECORDED}/${name}.pickle.gz`))
}

/** `pieces`: where to cut the bytes. */
export function readBytes(bytes: Uint8Array, pieces: readonly number[] = []): Snapshot {
  const reader = new SnapshotReader()
  let from = 0
  for (const to of [...pieces].sort((a, b) => a - b).filter((at) => at < bytes.length)) {
    reader.write(bytes.subarray(from, to))
    from = to
  }
  reader.write(bytes.subarray(from))
  return reader.end()
}

export function readValue(value: unknown, options?: WriterOptions): Snapshot {
  return readBytes(PickleWriter.bytes(value, options))
}

export const frame = (name: string, filename: string, line: number): Shared => new Shared({ name, filename, line })

/** A small snapshot with all kinds of records: two devices of which one is unused, shared and repeated stacks. */
export function smallSnapshot(): Record<string, unknown> {
  const [inner, outer, other] = [frame('forward', '/app/model.py', 12), frame('main', '/app/train.py', 3), frame('step', '/app/опт.py', 9)]
  const kept = new Shared([inner, outer])
  const empty = new Shared([])
  const event = (action: string, where: Record<string, unknown>, size: number, time: number, frames: unknown) => ({
    action,
    ...where,
    size,
    stream: 0,
    time_us: 1_790_000_000_000_000 + time,
    compile_context: 'N/A',
    user_metadata: '',
    frames,
  })
  return {
    segments: [
      {
        device: 0,
        address: 0x7f0000000000,
        total_size: 2 ** 21,
        allocated_size: 1024,
        active_size: 1024,
        requested_size: 1000,
        stream: 0,
        segment_type: 'small',
        segment_pool_id: new Tuple(0, 0),
        is_expandable: false,
        frames: empty,
        blocks: [
          { address: 0x7f0000000000, size: 1024, requested_size: 1000, state: 'active_allocated', frames: kept },
          { address: 0x7f0000000400, size: 2 ** 21 - 1024, requested_size: 7, state: 'inactive', frames: empty },
        ],
      },
    ],
    device_traces: [
      [
        event('segment_alloc', { addr: 0x7f0000000000 }, 2 ** 21, 1, [inner, outer]),
        event('alloc', { addr: 0x7f0000000000 }, 1000, 2, kept),
        event('alloc', { addr: 0x7f0000000400 }, 2000, 3, [inner, outer]),
        event('free_requested', { addr: 0x7f0000000400 }, 2000, 4, [other, outer]),
        event('free_completed', { addr: 0x7f0000000400 }, 2000, 5, [other, outer]),
        event('oom', { device_free: 4096 }, 2 ** 32, 6, []),
      ],
      [],
    ],
    allocator_settings: {
      PYTORCH_CUDA_ALLOC_CONF: 'a:b',
      expandable_segments: false,
      max_split_size: -1,
      roundup_power2_divisions: { 1: 0 },
    },
    external_annotations: [
      { stage: 'START', name: 'Optimizer.step#AdamW.step', device: 0, time_us: 1_790_000_000_000_003 },
      { stage: 'END', name: 'Optimizer.step#AdamW.step', device: 0, time_us: 1_790_000_000_000_004 },
    ],
  }
}

/** Everything that was read, as plain data: what two readings of the same snapshot must have in common. */
export function contents({ tables, layout }: Snapshot): unknown {
  const text = (id: number) => tables.texts.text(id)
  const stack = (id: number) =>
    id === NO_STACK
      ? null
      : [...tables.stacks.frames(id)].map((one) => {
          const [name, file] = [tables.frames.names[one] as number, tables.frames.files[one] as number]
          return `${text(file)}:${tables.frames.lines[one]} ${text(name)}`
        })
  const { events, blocks } = tables
  const indexes = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i)
  return {
    segments: indexes(layout.segments.first, layout.segments.count).map((i) => {
      const segment = tables.segments[i]
      if (segment === undefined) return null
      return {
        ...segment,
        stream: tables.streams.value(segment.stream),
        pool: tables.pools[segment.pool],
        stack: stack(segment.stack),
        blocks: indexes(segment.blocks.first, segment.blocks.count).map((j) => [
          blocks.addresses[j],
          blocks.sizes[j],
          blocks.requested[j],
          blocks.states[j],
          stack(blocks.stacks[j] as number),
        ]),
      }
    }),
    traces: layout.traces.map(({ first, count }) =>
      indexes(first, count).map((i) => [
        ACTIONS[events.action(i)],
        events.address(i) < 0 ? null : tables.addresses.value(events.address(i)),
        events.size(i),
        events.time(i),
        tables.streams.value(events.stream(i)),
        tables.pools[events.pool(i)],
        events.metadata(i) === 0 ? '' : text(events.metadata(i)),
        tables.deviceFree.get(i) ?? null,
        stack(events.stack(i)),
      ]),
    ),
    annotations: indexes(layout.annotations.first, layout.annotations.count).map((i) => {
      const one = tables.annotations[i]
      return one && [one.isStart, text(one.name), one.device, one.time]
    }),
    settings: [...layout.settings],
  }
}
