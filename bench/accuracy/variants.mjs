// The recorded runs, changed as other machines and other jobs would change them, so that ten recordings are not all there is to go by.
import { random } from './generator.mjs'

/** Each gives a function over items; `speed` is by how much the truth's times shrink; `informative` ones are shown, not asked for;
 * `hides` what cannot be found then, `accepts` what looks like more than it is. */
export const VARIANTS = {
  'as recorded': () => ({ speed: 1, warp: (item) => item }),
  'twice as fast': () => ({ speed: 2, warp: (item, start) => atTime(item, start + (item.at - start) / 2) }),
  'half as fast': () => ({ speed: 0.5, warp: (item, start) => atTime(item, start + (item.at - start) * 2) }),
  // The first evaluation rests for six seconds before it begins to work.
  'ten times slower': () => ({
    speed: 0.1,
    accepts: { eval_spikes: ['stall'] },
    warp: (item, start) => atTime(item, start + (item.at - start) * 10),
  }),
  'five samples a second': () => ({ speed: 1, warp: (item, _start, index) => (index % 2 === 0 || !isGpu(item) ? item : null) }),
  'two samples a second': () => ({
    speed: 1,
    informative: true,
    warp: (item, _start, index) => (index % 5 === 0 || !isGpu(item) ? item : null),
  }),
  'every seventh sample lost': () => ({ speed: 1, warp: (item, _start, index) => (index % 7 === 3 ? null : item) }),
  'one reading in ten missing': (seed) => {
    const draw = random(seed)
    return { speed: 1, warp: (item) => (draw.chance(0.1) ? withMemory(item, () => null) : item) }
  },
  'noise of 0.2 %': (seed) => {
    const draw = random(seed)
    return {
      speed: 1,
      warp: (item) => withMemory(item, (used, total) => Math.min(total, Math.max(0, used + 0.002 * total * draw.normal()))),
    }
  },
  'no process list': () => ({ speed: 1, hides: ['intruder'], warp: (item) => mapGpu(item, (gpu) => ({ ...gpu, processes: null })) }),
  'late by up to 50 ms': (seed) => {
    const draw = random(seed)
    return { speed: 1, warp: (item) => atTime(item, item.at + Math.round(draw.between(0, 50))) }
  },
}

function isGpu(item) {
  return item.samples.some((sample) => sample.kind === 'gpu')
}

function mapGpu(item, change) {
  return { ...item, samples: item.samples.map((sample) => (sample.kind === 'gpu' ? change(sample) : sample)) }
}

function withMemory(item, change) {
  return mapGpu(item, (gpu) => ({
    ...gpu,
    memoryUsedBytes: gpu.memoryUsedBytes > 0 ? change(gpu.memoryUsedBytes, gpu.memoryTotalBytes) : gpu.memoryUsedBytes,
  }))
}

function atTime(item, at) {
  return { ...item, at, samples: item.samples.map((sample) => ({ ...sample, at })) }
}

/** Applies a variant to a recording and to its truth. */
export function vary(name, seed, items, truth) {
  const { speed, warp, informative = false, hides = [], accepts = {} } = VARIANTS[name](seed)
  const start = items[0].at
  const at = (time) => start + (time - start) / speed
  const changed = items.map((item, index) => warp(item, start, index)).filter((item) => item !== null)
  return {
    items: changed,
    truth: {
      ...truth,
      expect: truth.expect.filter((one) => !hides.includes(one)),
      alsoTrue: [...truth.alsoTrue, ...(accepts[truth.name] ?? [])],
      leakStart: at(truth.leakStart),
      oom: at(truth.oom),
      stallStart: at(truth.stallStart),
      end: at(truth.end),
    },
    speed,
    informative,
  }
}
