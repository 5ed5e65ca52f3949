import { z } from 'zod'
import { type Setting, type Settings, setting } from '../core/setting.ts'

/** Where samples come from: the sources of `vendors`, several with commas, or one that stands in for them. */
export function sourceSetting(vendors: readonly string[]): Setting<string> {
  const one = `(${vendors.join('|')})`
  const named = vendors.join(', ')
  return setting(
    z
      .string()
      .regex(
        new RegExp(`^(auto|demo|replay:.+|${one}(,${one})*)$`),
        `expected auto, ${named}, "${vendors.join(',')}", demo or replay:PATH`,
      ),
    'auto',
    `where samples come from: auto, ${named}, demo, or replay:PATH`,
    { flag: '--source <source>' },
  )
}

export const samplerSettings = {
  interval: setting(
    z.number().min(0.1).max(86_400),
    1,
    'seconds between samples, from 0.1 (60 if only the MONITORING_INTERVAL family of variables is set)',
    { flag: '--interval <seconds>', env: 'MONITORING_INTERVAL' },
  ),
  devices: setting<number[] | null>(z.array(z.number().int().min(0)).nullable(), null, 'only these GPUs, by index', {
    flag: '--devices <index...>',
  }),
  deadline: setting(
    z.number().min(0.1).max(600),
    5,
    'seconds without an answer after which a driver is "not responding" and its process is replaced',
    { flag: '--deadline <seconds>' },
  ),
  open_deadline: setting(z.number().min(0.1).max(600), 30, 'the same while a driver starts: cards without persistence mode take seconds'),
  slow_interval: setting(
    z.number().min(0.5).max(3600),
    10,
    'seconds between expensive readings: energy, ECC, remapped rows, violation times (process utilization: at most 5)',
  ),
  restart_first: setting(z.number().min(0.05).max(600), 1, 'seconds before a failed source is restarted; doubles with each failure'),
  restart_most: setting(z.number().min(0.05).max(3600), 60, 'longest pause between two starts of a failed source, in seconds'),
  nvml: setting(z.string().min(1).nullable(), null, 'path of another NVML library'),
  wake: setting(z.boolean(), false, 'also read GPUs that are asleep, which wakes them', { flag: '--wake' }),
  root: setting(z.string().min(1), '/', 'prefix of /sys, /proc and /dev, for containers that mount them elsewhere'),
  'demo.gpus': setting(
    z.number().int().min(1).max(64).nullable(),
    null,
    'simulated GPUs, 1 to 64 (by default as many as the scenario needs)',
    {
      flag: '--demo-gpus <count>',
    },
  ),
  'demo.scenario': setting(
    z.enum(['story', 'idle', 'healthy', 'leak', 'oom', 'intruder', 'overheat', 'stall', 'straggler', 'lost', 'all']),
    'story',
    'what happens to the simulated GPUs: story (a bit of everything), idle, healthy, leak, oom, intruder, overheat, stall, straggler, lost or all',
    { flag: '--demo-scenario <name>' },
  ),
  'demo.seed': setting(z.number().int(), 1, 'the same seed gives the same simulation', { flag: '--seed <number>' }),
  'replay.speed': setting<number | 'max'>(
    z.union([z.literal('max'), z.number().positive()], 'expected a number above 0, or max'),
    1,
    'how fast a recording is played: 1, 10, …, or max',
    { flag: '--speed <factor>' },
  ),
} satisfies Settings
