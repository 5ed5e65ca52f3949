// A training run that never was, as a PyTorch memory snapshot of any size with everything in it known: the peak, a leak, what only
// looks like one, fragmentation, and an out-of-memory at the end.
//   node bench/snapshot/planted.mjs --size 100MB --out FILE [--seed 1] [--stacks all|python] [--writer python|cpp] > truth.json
import { closeSync, openSync, writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Float, PickleWriter, Shared, Tuple } from './pickle-writer.mjs'

const MIB = 1 << 20
const KIB = 1 << 10
const LAYERS = 24
const SECOND = 1_000_000
const BEGUN_AT = 1_790_000_000 * SECOND
const LEAK = 64 * KIB
const CACHED = 128 * KIB
const PEAK = 1536 * MIB
const PIN = 2 * MIB
const HALF = 31 * MIB
const REQUEST = 48 * MIB
const DEVICE_FREE = 20 * MIB
const PINNED_SEGMENTS = 40

const TORCH = '/usr/lib/python3/dist-packages/torch'
const python = (name, file, line) => ({ name, filename: file, line })
const cpp = (name) => ({ name, filename: '??', line: 0 })
const TRAIN = [python('train', '/app/train.py', 120), python('main', '/app/train.py', 201), python('<module>', '/app/train.py', 240)]
const CALL = [
  python('_call_impl', `${TORCH}/nn/modules/module.py`, 1784),
  python('_wrapped_call_impl', `${TORCH}/nn/modules/module.py`, 1773),
]
const UNWIND = ['torch::unwind::unwind()', 'torch::CapturedTraceback::gather(bool, bool, bool)', 'torch::cuda::gather_with_cpp()'].map(cpp)
const INTERPRETER = ['_PyEval_EvalFrameDefault', 'Py_RunMain', '__libc_start_main', '_start'].map(cpp)
const ENGINE = ['evaluate_function', 'thread_main', 'thread_init']
  .map((name) => cpp(`torch::autograd::Engine::${name}()`))
  .concat(cpp('clone3'))
const OPERATORS = ['mul', 'empty_like', 'linear', 'softmax', 'gelu', 'native_layer_norm', 'bmm', 'copy_', 'add', 'cat', 'index', 'fill_']

/** What a stack is for → its category; the tests compare with it. */
const CATEGORY = {
  weight: 'weights',
  state: 'optimizer_state',
  attention: 'activations',
  mlp: 'activations',
  scratch: 'temporary',
  backward: 'temporary',
  gradient: 'gradients',
  update: 'temporary',
  peak: 'temporary',
  resize: 'temporary',
  bucket: 'communication',
  batch: 'input',
  leak: 'unknown',
  cache: 'unknown',
  periodic: 'unknown',
  pin: 'unknown',
}

/** A repeatable draw from 0 to `most` − 1. */
function dice(seed) {
  let state = (seed * 2_654_435_761 + 1) >>> 0
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * most)
  }
}

/** Stacks by purpose and layer, innermost frame first. */
function makeStacks(hasCpp) {
  const frames = new Map()
  const frame = (one) => {
    const key = JSON.stringify(one)
    if (!frames.has(key)) frames.set(key, new Shared(one))
    return frames.get(key)
  }
  const bodies = OPERATORS.map((name, i) =>
    Array.from({ length: 14 + (i % 7) }, (_, depth) =>
      cpp(
        depth % 5 === 3
          ? `c10::impl::wrap_kernel_functor_unboxed_<${'at::Tensor const&, '.repeat(i + depth)}>()`
          : `at::_ops::${name}::call_${depth}()`,
      ),
    ),
  )
  const stacks = new Map()
  const add = (name, purpose, operator, own, isBackward = false) => {
    const lines = isBackward ? [] : [...own, ...TRAIN]
    const all = [...UNWIND, ...bodies[operator % bodies.length], ...lines, ...(isBackward ? ENGINE : INTERPRETER)]
    const top = lines[0]
    stacks.set(name, {
      purpose,
      frames: (hasCpp ? all : lines).map(frame),
      line: top ? `${top.filename}:${top.line} ${top.name}` : 'c++ only',
    })
  }
  for (let layer = 0; layer < LAYERS; layer++) {
    const forward = [...CALL, python('forward', '/app/model.py', 300 + layer), ...CALL, python('forward', '/app/model.py', 90), ...CALL]
    add(`attention${layer}`, 'attention', layer, [python('forward', '/app/model.py', 41), ...forward])
    add(`mlp${layer}`, 'mlp', layer + 1, [python('forward', '/app/model.py', 62), ...forward])
    add(`scratch${layer}`, 'scratch', layer + 2, [python('scaled', '/app/ops.py', 17), ...forward])
    add(`release${layer}`, 'release', layer + 6, forward)
    add(`backward${layer}`, 'backward', layer + 3, [], true)
    add(`gradient${layer}`, 'gradient', layer + 5, [], true)
    add(`letgo${layer}`, 'letgo', layer + 4, [], true)
    add(`update${layer}`, 'update', layer + 5, [python('step', `${TORCH}/optim/adamw.py`, 220 + (layer % 3))])
    add(`weight${layer}`, 'weight', layer, [python('__init__', '/app/model.py', 20)])
    add(`state${layer}`, 'state', layer + 1, [python('_init_group', `${TORCH}/optim/adamw.py`, 140)])
  }
  add('leak', 'leak', 0, [python('log_metrics', '/app/metrics.py', 57)])
  add('cache', 'cache', 1, [python('lookup', '/app/cache.py', 31)])
  add('periodic', 'periodic', 2, [python('evaluate', '/app/eval.py', 12)])
  add('peak', 'peak', 3, [python('long_sequence', '/app/data.py', 88)])
  add('pin', 'pin', 4, [python('register', '/app/hooks.py', 9)])
  add('resize', 'resize', 5, [python('resize', '/app/data.py', 41)])
  add('zero', 'zero', 6, [python('zero_grad', `${TORCH}/optim/optimizer.py`, 1002)])
  add('bucket', 'bucket', 7, [python('all_reduce', `${TORCH}/distributed/distributed_c10d.py`, 2500)])
  add('batch', 'batch', 8, [python('_fetch', `${TORCH}/utils/data/dataloader.py`, 733)])
  return stacks
}

/** The run itself, as operations; afterwards `state` says what is left. */
function* training(steps, seed, state) {
  const draw = dice(seed)
  const { live, segments, pinned } = state
  let next = 0x7f0000000000
  const newSegment = (size, pool) => {
    const address = next
    next += Math.ceil(size / (2 * MIB)) * 2 * MIB + 2 * MIB
    segments.set(address, { size, pool })
    return address
  }
  const alloc = (address, size, stack) => {
    live.set(address, { size, stack })
    return { action: 'alloc', address, size, stack }
  }
  const free = (address, stack) => {
    const { size } = live.get(address)
    live.delete(address)
    return { action: 'free', address, size, stack }
  }
  const opened = (address, stack) => ({ action: 'segment_alloc', address, size: segments.get(address).size, stack })
  for (let layer = 0; layer < LAYERS; layer++) {
    live.set(newSegment(32 * MIB, 'large'), { size: 32 * MIB, stack: `weight${layer}` })
    for (let i = 0; i < 2; i++) live.set(newSegment(32 * MIB, 'large'), { size: 32 * MIB, stack: `state${layer}` })
  }
  state.staticBytes = [...live.values()].reduce((sum, { size }) => sum + size, 0)
  const work = Array.from({ length: LAYERS }, () => newSegment(20 * MIB, 'large'))
  const gradients = Array.from({ length: LAYERS }, () => newSegment(20 * MIB, 'large'))
  const shared = newSegment(40 * MIB, 'large')
  for (const [layer, address] of work.entries()) yield opened(address, `attention${layer}`)
  for (const [layer, address] of gradients.entries()) yield opened(address, `gradient${layer}`)
  yield opened(shared, 'bucket')
  yield alloc(shared, 16 * MIB, 'bucket')
  const bounded = Math.max(4, Math.min(64, Math.floor(steps / 4)))
  const cache = []
  const pinAt = new Set(Array.from({ length: PINNED_SEGMENTS }, (_, i) => Math.floor((steps * (i + 1)) / 100)))
  let periodic = null
  let small = 0
  let cacheSegment = 0
  for (let step = 0; step < steps; step++) {
    if (step > 0) yield free(shared + 16 * MIB, 'batch')
    yield alloc(shared + 16 * MIB, 4 * MIB, 'batch')
    for (const [layer, address] of work.entries()) {
      yield alloc(address, (draw(2) + 2) * 2 * MIB, `attention${layer}`)
      yield alloc(address + 12 * MIB, 2 * MIB, `scratch${layer}`)
      yield free(address + 12 * MIB, `release${layer}`)
      yield alloc(address + 6 * MIB, 6 * MIB, `mlp${layer}`)
    }
    if (step % 32 === 0) {
      small = newSegment(2 * MIB, 'small')
      yield opened(small, 'leak')
    }
    yield alloc(small + (step % 32) * LEAK, LEAK, 'leak')
    let place = 0
    if (cache.length >= bounded) {
      place = cache.shift()
      yield free(place, 'cache')
    } else {
      if (cache.length % 16 === 0) {
        cacheSegment = newSegment(2 * MIB, 'small')
        yield opened(cacheSegment, 'cache')
      }
      place = cacheSegment + (cache.length % 16) * CACHED
    }
    yield alloc(place, CACHED, 'cache')
    cache.push(place)
    if (step % 50 === 0) {
      if (periodic !== null) yield free(periodic, 'periodic')
      else {
        periodic = newSegment(24 * MIB, 'large')
        yield opened(periodic, 'periodic')
      }
      yield alloc(periodic, 24 * MIB, 'periodic')
    }
    if (pinAt.has(step)) {
      const address = newSegment(2 * HALF + PIN, 'large')
      pinned.push(address)
      yield opened(address, 'resize')
      yield alloc(address, HALF, 'resize')
      yield alloc(address + HALF, PIN, 'pin')
      yield alloc(address + HALF + PIN, HALF, 'resize')
      yield free(address, 'resize')
      yield free(address + HALF + PIN, 'resize')
    }
    if (step === Math.floor(steps * 0.6)) {
      const address = newSegment(PEAK, 'large')
      yield opened(address, 'peak')
      yield alloc(address, PEAK, 'peak')
      yield { action: 'peak' }
      yield free(address, 'peak')
      yield { action: 'segment_free', address, size: PEAK, stack: 'peak' }
      segments.delete(address)
    }
    for (let layer = LAYERS - 1; layer >= 0; layer--) {
      const address = work[layer]
      yield alloc(address + 12 * MIB, 4 * MIB, `backward${layer}`)
      yield alloc(gradients[layer], 8 * MIB, `gradient${layer}`)
      yield free(address + 6 * MIB, `letgo${layer}`)
      yield free(address, `letgo${layer}`)
      yield free(address + 12 * MIB, `letgo${layer}`)
    }
    yield { action: 'annotate', stage: 'START' }
    for (const [layer, address] of work.entries()) {
      yield alloc(address, MIB, `update${layer}`)
      yield free(address, `update${layer}`)
    }
    yield { action: 'annotate', stage: 'END' }
    for (const address of gradients) yield free(address, 'zero')
  }
  // The allocator gives back what is wholly free before it gives up.
  for (const address of work) {
    yield { action: 'segment_free', address, size: 20 * MIB, stack: 'resize' }
    segments.delete(address)
  }
  for (const address of gradients) {
    yield { action: 'segment_free', address, size: 20 * MIB, stack: 'resize' }
    segments.delete(address)
  }
  yield { action: 'oom', deviceFree: DEVICE_FREE, size: REQUEST, stack: 'resize' }
}

const emptyState = () => ({ live: new Map(), segments: new Map(), pinned: [], staticBytes: 0 })

/** Writes one snapshot of so many steps; gives its truth. `cutEvents`: so many of the first events are left out, as a full ring does. */
export function writePlanted(sink, { steps, seed = 1, stacks: kind = 'all', writer = 'python', protocol, cutEvents = 0 }) {
  const stacks = makeStacks(kind === 'all')
  const last = emptyState()
  for (const _ of training(steps, seed, last)); // The final state comes first in the file.
  const none = new Shared([])
  const words = new Map()
  const word = (text) => words.get(text) ?? words.set(text, new Shared(text)).get(text)
  const kept = new Map()
  /** A list of frames is one object with the block that lives on. */
  const framesOf = (address, name) => {
    const { frames } = stacks.get(name)
    if (last.live.get(address)?.stack !== name) return frames
    if (!kept.has(address)) kept.set(address, new Shared(frames))
    return kept.get(address)
  }
  const pickle = new PickleWriter(sink, { writer, ...(protocol === undefined ? {} : { protocol }) })
  const ordered = [...last.segments].sort(([a], [b]) => a - b)
  const addresses = [...last.live.keys()].sort((a, b) => a - b)
  const truth = newTruth(last)
  let nextBlock = 0
  function* segments() {
    for (const [address, { size, pool }] of ordered) {
      const blocks = []
      let at = address
      const block = (where, bytes, state, frames) =>
        blocks.push({ address: where, size: bytes, requested_size: bytes, state: word(state), frames })
      let used = 0
      while (nextBlock < addresses.length && addresses[nextBlock] < address + size) {
        const where = addresses[nextBlock++]
        const { size: bytes, stack } = last.live.get(where)
        if (where > at) block(at, where - at, 'inactive', none)
        block(where, bytes, 'active_allocated', framesOf(where, stack))
        used += bytes
        at = where + bytes
      }
      if (at < address + size) block(at, address + size - at, 'inactive', none)
      yield {
        device: 0,
        address,
        total_size: size,
        allocated_size: used,
        active_size: used,
        requested_size: used,
        stream: 0,
        segment_type: word(pool),
        segment_pool_id: new Tuple(0, 0),
        is_expandable: false,
        blocks,
        frames: none,
      }
    }
  }
  const annotations = []
  function* events() {
    const draw = dice(3)
    let time = BEGUN_AT
    let index = 0
    const event = (action, size, stack, frames, where) => {
      time += draw(28) + 2
      index++
      return {
        action: word(action),
        ...where,
        size,
        stream: 0,
        time_us: time,
        compile_context: 'N/A',
        user_metadata: word(''),
        frames: frames ?? stacks.get(stack).frames,
      }
    }
    const written = (made) => (index > cutEvents ? [made] : [])
    for (const { action, address, size, stack, stage, deviceFree } of training(steps, seed, emptyState())) {
      if (action === 'alloc') {
        yield* written(event('alloc', size, stack, framesOf(address, stack), { addr: address }))
        truth.alloc(address, size, stack, index - 1 - cutEvents, time)
      } else if (action === 'free') {
        const frames = new Shared(stacks.get(stack).frames)
        yield* written(event('free_requested', size, stack, frames, { addr: address }))
        yield* written(event('free_completed', size, stack, frames, { addr: address }))
        truth.free(address, size)
      } else if (action === 'annotate') annotations.push({ stage, time })
      else if (action === 'oom') yield* written(event('oom', size, stack, null, { device_free: deviceFree }))
      else if (action !== 'peak') yield* written(event(action, size, stack, null, { addr: address }))
    }
    truth.events = index - cutEvents
  }
  function* notes() {
    for (const { stage, time } of annotations) yield { stage, name: 'Optimizer.step#AdamW.step', device: 0, time_us: time }
  }
  pickle.write({
    segments: segments(),
    device_traces: [events()],
    allocator_settings: {
      PYTORCH_CUDA_ALLOC_CONF: '',
      max_split_size: -1,
      garbage_collection_threshold: new Float(0),
      expandable_segments: false,
    },
    external_annotations: notes(),
  })
  return truth.done({ bytes: pickle.written, steps, stacks, last, ordered })
}

/** Follows the run and keeps what a reader has to find. */
function newTruth(last) {
  let now = last.staticBytes
  let peak = { bytes: 0 }
  const holders = new Map()
  const owner = new Map()
  const leaked = { blocks: 0 }
  const add = (stack, bytes) => holders.set(stack, (holders.get(stack) ?? 0) + bytes)
  for (let layer = 0; layer < LAYERS; layer++) {
    add(`weight${layer}`, 32 * MIB)
    add(`state${layer}`, 64 * MIB)
  }
  return {
    events: 0,
    alloc(address, size, stack, index, time) {
      now += size
      owner.set(address, stack)
      add(stack, size)
      if (stack === 'leak') leaked.blocks++
      if (now > peak.bytes) peak = { bytes: now, event_index: index, time_us: time, holders: stack === 'peak' ? new Map(holders) : null }
    },
    free(address, size) {
      now -= size
      add(owner.get(address), -size)
      owner.delete(address)
    },
    done({ bytes, steps, stacks, last: end, ordered }) {
      const byLine = {}
      const byCategory = {}
      for (const [name, held] of peak.holders ?? []) {
        const { line, purpose } = stacks.get(name)
        if (held > 0) byLine[line] = (byLine[line] ?? 0) + held
        if (held > 0) byCategory[CATEGORY[purpose]] = (byCategory[CATEGORY[purpose]] ?? 0) + held
      }
      const reserved = ordered.reduce((sum, [, { size }]) => sum + size, 0)
      const live = [...end.live.values()].reduce((sum, { size }) => sum + size, 0)
      return {
        bytes,
        events: this.events,
        steps,
        end: { reserved, live, free: reserved - live },
        peak: { bytes: peak.bytes, event_index: peak.event_index, time_us: peak.time_us, by_line: byLine, by_category: byCategory },
        leak: { line: '/app/metrics.py:57 log_metrics', bytes_per_step: LEAK, bytes: leaked.blocks * LEAK },
        not_leaks: ['/app/cache.py:31 lookup', '/app/eval.py:12 evaluate'],
        fragmentation: {
          line: '/app/hooks.py:9 register',
          pinned_segments: end.pinned.length,
          free_in_pinned: end.pinned.length * 2 * HALF,
          pin_bytes: PIN,
          largest_free_block: HALF,
          request: REQUEST,
          device_free: DEVICE_FREE,
        },
        retries: { segments: 2 * LAYERS, bytes: 2 * LAYERS * 20 * MIB },
      }
    },
  }
}

/** How many steps make a file of about this size. */
export function stepsFor(bytes, options = {}) {
  const nothing = () => undefined
  const [a, b] = [60, 120].map((steps) => writePlanted(nothing, { ...options, steps }).bytes)
  return Math.max(60, Math.round(60 + ((bytes - a) * 60) / (b - a)))
}

const UNITS = { K: 1e3, M: 1e6, G: 1e9 }

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      size: { type: 'string', default: '10MB' },
      out: { type: 'string', default: 'snapshot.pickle' },
      seed: { type: 'string', default: '1' },
      stacks: { type: 'string', default: 'all' },
      writer: { type: 'string', default: 'python' },
    },
  })
  const [, amount, unit] = /^([\d.]+)([KMG])B?$/i.exec(values.size) ?? []
  const options = { seed: Number(values.seed), stacks: values.stacks, writer: values.writer }
  const steps = stepsFor(Number(amount) * UNITS[unit.toUpperCase()], options)
  const file = openSync(values.out, 'w')
  const truth = writePlanted((bytes) => writeSync(file, bytes), { ...options, steps })
  closeSync(file)
  process.stdout.write(`${JSON.stringify(truth, null, 1)}\n`)
}
