/** From filled dicts and lists of the pickle to the tables of a snapshot. Which kind of record a dict is, its keys say. */
import { DictFields } from './dict-fields.ts'
import type { EventRow } from './event-columns.ts'
import { ACTION, actionCode, KEY, stateCode, TEXT_EMPTY, TEXT_SMALL, TEXT_START } from './keys.ts'
import { KnownLists } from './known-lists.ts'
import type { Memo } from './memo.ts'
import { PickleFault } from './opcodes.ts'
import type { PickleBuilder } from './pickle-builder.ts'
import { MOST_POOLS, type Run, type SettingValue, type SnapshotLayout, SnapshotTables } from './snapshot-tables.ts'
import {
  ANNOTATIONS,
  BLOCKS,
  BOOL,
  DICT,
  EVENTS,
  FRAME,
  HISTORY,
  KIND_BITS,
  KIND_MASK,
  LIST,
  MOST_IDS,
  NUMBER,
  OTHER,
  PAIR,
  RECORD,
  SEGMENTS,
  STACK,
  TEXT,
  TOP,
  TRACE,
  TRACES,
  token,
} from './tokens.ts'
import type { ValueStack } from './value-stack.ts'

/** Of dicts of settings, lists of traces and what is in them, each. */
const MOST_RECORDS = 100_000
const MOST_OOMS = 100_000
/** Blocks with a history, as old files have them. */
const MOST_HISTORY = 1 << 22
const NONE: Run = { first: 0, count: 0 }

export class SnapshotBuilder implements PickleBuilder {
  readonly tables = new SnapshotTables()
  readonly texts = this.tables.texts
  /** The last top-level dict that was filled. */
  layout: SnapshotLayout | null = null
  readonly #stack: ValueStack
  readonly #fields = new DictFields()
  readonly #row: EventRow = { action: 0, address: 0, size: 0, time: 0, stack: 0, stream: 0, pool: 0, metadata: 0 }
  readonly #records: Map<string, SettingValue>[] = []
  #settings = 0
  readonly #traceLists: Run[][] = []
  #traceCount = 0
  readonly #history: { size: number; stack: number }[] = []

  constructor(stack: ValueStack) {
    this.#stack = stack
  }

  check(offset: number): void {
    this.tables.check(offset)
  }

  shortcut(memo: Memo): KnownLists {
    return new KnownLists(memo, this.tables.stacks)
  }

  /** What the dict at `at` becomes with the keys and values in [from, to); its place on the stack gets the token. */
  fillDict(at: number, from: number, to: number): void {
    const fields = this.#fields
    fields.take(this.#stack, from, to)
    if (fields.has(KEY.action)) this.#put(at, EVENTS, this.#event(), 1)
    else if (fields.has(KEY.filename)) this.#put(at, FRAME, this.#frame(), 0)
    else if (fields.has(KEY.state)) this.#put(at, BLOCKS, this.#block(), 1)
    else if (fields.has(KEY.total_size)) this.#put(at, SEGMENTS, this.#segment(), 1)
    else if (fields.has(KEY.stage)) this.#put(at, ANNOTATIONS, this.#annotation(), 1)
    else if (fields.has(KEY.segments) || fields.has(KEY.device_traces)) this.#top(at)
    else if (fields.has(KEY.real_size)) this.#put(at, HISTORY, this.#past(), 0)
    else this.#record(at, from, to)
  }

  /** A dict that the end of the file cut: only the top-level one is of use. */
  isTopLevel(from: number, to: number): boolean {
    this.#fields.take(this.#stack, from, to)
    return this.#fields.has(KEY.segments) || this.#fields.has(KEY.device_traces)
  }

  /** What the list at `at` becomes with the items in [from, to) added to it. */
  fillList(at: number, from: number, to: number): void {
    if (from === to) return
    const { tokens } = this.#stack
    const list = (tokens[at] as number) & KIND_MASK
    const item = (tokens[from] as number) & KIND_MASK
    if (item === FRAME && (list === LIST || list === STACK)) this.#frames(at, from, to)
    else if (item === EVENTS && (list === LIST || list === TRACE)) this.#extend(at, TRACE, from, to)
    else if ((item === BLOCKS || item === SEGMENTS || item === ANNOTATIONS) && (list === LIST || list === item))
      this.#extend(at, item, from, to)
    else if ((item === TRACE || item === LIST || item === TRACES) && (list === LIST || list === TRACES)) this.#traces(at, from, to)
    else if (item === HISTORY && list === LIST) tokens[at] = tokens[from] as number
    else if (list === LIST) tokens[at] = OTHER
  }

  /** Two numbers are the id of a pool; no other tuple means anything here. */
  tuple(at: number, from: number, to: number): void {
    const { tokens, numbers } = this.#stack
    const areNumbers =
      to - from === 2 && ((tokens[from] as number) & KIND_MASK) === NUMBER && ((tokens[from + 1] as number) & KIND_MASK) === NUMBER
    tokens[at] = areNumbers ? token(PAIR, this.tables.pool(numbers[from] as number, numbers[from + 1] as number)) : OTHER
  }

  #put(at: number, kind: number, id: number, count: number): void {
    if (id >= MOST_IDS) throw new PickleFault(`more than ${MOST_IDS} records of one kind`, 0)
    this.#stack.tokens[at] = token(kind, id)
    this.#stack.numbers[at] = count
  }

  #event(): number {
    const fields = this.#fields
    const { tables } = this
    const row = this.#row
    const text = fields.id(KEY.action, TEXT)
    row.action = actionCode(text)
    if (row.action === ACTION.other && text >= 0) tables.unknownActions.set(text, (tables.unknownActions.get(text) ?? 0) + 1)
    const address = fields.number(KEY.addr)
    row.address = Number.isNaN(address) ? -1 : tables.addresses.intern(address)
    row.size = orZero(fields.number(KEY.size))
    row.time = fields.number(KEY.time_us)
    row.stack = fields.stack()
    row.stream = this.#stream()
    row.pool = Math.max(0, fields.id(KEY.pool_id, PAIR))
    const metadata = fields.id(KEY.user_metadata, TEXT)
    row.metadata = metadata < 0 || metadata === TEXT_EMPTY ? 0 : metadata
    if (row.action === ACTION.oom && tables.deviceFree.size < MOST_OOMS)
      tables.deviceFree.set(tables.events.count, fields.number(KEY.device_free))
    tables.events.push(row)
    return tables.events.count - 1
  }

  #stream(): number {
    const stream = this.#fields.number(KEY.stream)
    return stream === 0 || Number.isNaN(stream) ? 0 : Math.min(this.tables.streams.intern(stream), MOST_POOLS)
  }

  #frame(): number {
    const fields = this.#fields
    const name = fields.id(KEY.name, TEXT)
    const file = fields.id(KEY.filename, TEXT)
    return this.tables.frames.intern(name < 0 ? TEXT_EMPTY : name, file < 0 ? TEXT_EMPTY : file, orZero(fields.number(KEY.line)))
  }

  #block(): number {
    const fields = this.#fields
    const { blocks } = this.tables
    const past = fields.id(KEY.history, HISTORY)
    const history = past < 0 ? null : (this.#history[past] ?? null)
    const size = orZero(fields.number(KEY.size))
    const requested = fields.number(KEY.requested_size)
    blocks.addresses.push(fields.number(KEY.address))
    blocks.sizes.push(size)
    blocks.requested.push(Number.isNaN(requested) ? (history?.size ?? size) : requested)
    blocks.states.push(stateCode(fields.id(KEY.state, TEXT)))
    blocks.stacks.push(history === null || fields.has(KEY.frames) ? fields.stack() : history.stack)
    return blocks.addresses.length - 1
  }

  #past(): number {
    if (this.#history.length >= MOST_HISTORY) throw new PickleFault(`more than ${MOST_HISTORY} blocks with a history`, 0)
    return this.#history.push({ size: orZero(this.#fields.number(KEY.real_size)), stack: this.#fields.stack() }) - 1
  }

  #segment(): number {
    const fields = this.#fields
    const { segments } = this.tables
    segments.push({
      device: orZero(fields.number(KEY.device)),
      address: orZero(fields.number(KEY.address)),
      totalBytes: orZero(fields.number(KEY.total_size)),
      stream: this.#stream(),
      isSmall: fields.id(KEY.segment_type, TEXT) === TEXT_SMALL,
      pool: Math.max(0, fields.id(KEY.segment_pool_id, PAIR)),
      isExpandable: fields.isTrue(KEY.is_expandable),
      stack: fields.stack(),
      blocks: fields.run(KEY.blocks, BLOCKS),
    })
    return segments.length - 1
  }

  #annotation(): number {
    const fields = this.#fields
    const { annotations } = this.tables
    annotations.push({
      isStart: fields.id(KEY.stage, TEXT) === TEXT_START,
      name: Math.max(0, fields.id(KEY.name, TEXT)),
      device: orZero(fields.number(KEY.device)),
      time: fields.number(KEY.time_us),
    })
    return annotations.length - 1
  }

  #top(at: number): void {
    const fields = this.#fields
    const traces = fields.id(KEY.device_traces, TRACES)
    const settings = fields.id(KEY.allocator_settings, RECORD)
    this.layout = {
      segments: fields.run(KEY.segments, SEGMENTS),
      traces: traces < 0 ? [] : (this.#traceLists[traces] ?? []),
      annotations: fields.run(KEY.external_annotations, ANNOTATIONS),
      hostSegments: fields.run(KEY.host_segments, SEGMENTS),
      settings: (settings < 0 ? undefined : this.#records[settings]) ?? new Map(),
    }
    this.#put(at, TOP, 0, 0)
  }

  /** A map, never an object: a key may be called `__proto__`. Filled again, it takes more. */
  #record(at: number, from: number, to: number): void {
    const { tokens, numbers } = this.#stack
    const target = tokens[at] as number
    const isOpen = (target & KIND_MASK) === DICT
    if (isOpen && (this.#records.length >= MOST_RECORDS || this.#settings >= MOST_RECORDS)) {
      tokens[at] = OTHER
      return
    }
    const record = isOpen ? new Map<string, SettingValue>() : this.#records[target >>> KIND_BITS]
    if (record === undefined) return
    for (let i = from; i + 1 < to; i += 2) {
      const key = tokens[i] as number
      if ((key & KIND_MASK) === TEXT && this.#settings++ < MOST_RECORDS)
        record.set(this.tables.texts.text(key >>> KIND_BITS), this.#plain(tokens[i + 1] as number, numbers[i + 1] as number))
    }
    if (isOpen) this.#put(at, RECORD, this.#records.push(record) - 1, 0)
  }

  #plain(value: number, number: number): SettingValue {
    switch (value & KIND_MASK) {
      case TEXT:
        return this.tables.texts.text(value >>> KIND_BITS)
      case NUMBER:
        return number
      case BOOL:
        return value >>> KIND_BITS === 1
      default:
        return null
    }
  }

  #frames(at: number, from: number, to: number): void {
    const { tokens } = this.#stack
    const list = tokens[at] as number
    const before = (list & KIND_MASK) === STACK ? [...this.tables.stacks.frames(list >>> KIND_BITS)] : []
    const added = tokens.slice(from, to).filter((value) => (value & KIND_MASK) === FRAME)
    const frames = Int32Array.from([...before, ...added.map((value) => value >>> KIND_BITS)])
    const id = this.tables.stacks.intern(frames, 0, frames.length)
    this.#put(at, STACK, id, 0)
  }

  /** Runs that follow on each other are one; records that were made elsewhere, which no writer does, are left out. */
  #extend(at: number, kind: number, from: number, to: number): void {
    const { tokens, numbers } = this.#stack
    const list = tokens[at] as number
    const isEmpty = (list & KIND_MASK) === LIST
    const first = isEmpty ? (tokens[from] as number) >>> KIND_BITS : list >>> KIND_BITS
    let count = isEmpty ? 0 : (numbers[at] as number)
    for (let i = from; i < to; i++) if ((tokens[i] as number) >>> KIND_BITS === first + count) count += numbers[i] as number
    this.#put(at, kind, first, count)
  }

  #traces(at: number, from: number, to: number): void {
    const { tokens, numbers } = this.#stack
    const list = tokens[at] as number
    const isEmpty = (list & KIND_MASK) === LIST
    const traces = isEmpty ? [] : (this.#traceLists[list >>> KIND_BITS] ?? [])
    for (let i = from; i < to && this.#traceCount < MOST_RECORDS; i++, this.#traceCount++) {
      const item = tokens[i] as number
      traces.push((item & KIND_MASK) === TRACE ? { first: item >>> KIND_BITS, count: numbers[i] as number } : NONE)
    }
    if (isEmpty && this.#traceCount >= MOST_RECORDS) tokens[at] = OTHER
    else if (isEmpty) this.#put(at, TRACES, this.#traceLists.push(traces) - 1, 0)
  }
}

function orZero(value: number): number {
  return Number.isNaN(value) ? 0 : value
}
