import { z } from 'zod'
import { type Setting, type Settings, setting } from '../core/setting.ts'

/** Where samples come from: the sources of `vendors`, several with commas, or one that stands in for them. */
export function sourceSetting(vendors: readonly string[]): Setting<string> {
  const one = `(${vendors.join('|')})`
  const named = vendors.join(', ')
  return setting({
    schema: z
      .string()
      .regex(
        new RegExp(`^(auto|demo|replay:.+|${one}(,${one})*)$`),
        `expected auto, ${named}, "${vendors.join(',')}", demo or replay:PATH`,
      ),
    default: 'auto',
    flag: '--source <source>',
    help: `where samples come from: auto, ${named}, demo, or replay:PATH`,
  })
}

export const samplerSettings = {
  interval: setting({
    schema: z.number().min(0.1).max(86_400),
    default: 1,
    flag: '--interval <seconds>',
    env: 'MONITORING_INTERVAL',
    help: 'seconds between samples, from 0.1 (60 if only the MONITORING_INTERVAL family of variables is set)',
  }),
  devices: setting<number[] | null>({
    schema: z.array(z.number().int().min(0)).nullable(),
    default: null,
    flag: '--devices <index...>',
    help: 'only these GPUs, by index',
  }),
  deadline: setting({
    schema: z.number().min(0.1).max(600),
    default: 5,
    flag: '--deadline <seconds>',
    help: 'seconds without an answer after which a driver is "not responding" and its process is replaced',
  }),
  open_deadline: setting({
    schema: z.number().min(0.1).max(600),
    default: 30,
    help: 'the same while a driver starts: cards without persistence mode take seconds',
  }),
  slow_interval: setting({
    schema: z.number().min(0.5).max(3600),
    default: 10,
    help: 'seconds between expensive readings: energy, ECC, remapped rows, violation times (process utilization: at most 5)',
  }),
  restart_first: setting({
    schema: z.number().min(0.05).max(600),
    default: 1,
    help: 'seconds before a failed source is restarted; doubles with each failure',
  }),
  restart_most: setting({
    schema: z.number().min(0.05).max(3600),
    default: 60,
    help: 'longest pause between two starts of a failed source, in seconds',
  }),
  nvml: setting<string | null>({ schema: z.string().min(1).nullable(), default: null, help: 'path of another NVML library' }),
  wake: setting({ schema: z.boolean(), default: false, flag: '--wake', help: 'also read GPUs that are asleep, which wakes them' }),
  root: setting({
    schema: z.string().min(1),
    default: '/',
    help: 'prefix of /sys, /proc and /dev, for containers that mount them elsewhere',
  }),
  'demo.gpus': setting<number | null>({
    schema: z.number().int().min(1).max(64).nullable(),
    default: null,
    flag: '--demo-gpus <count>',
    help: 'simulated GPUs, 1 to 64 (by default as many as the scenario needs)',
  }),
  'demo.scenario': setting({
    schema: z.enum(['story', 'idle', 'healthy', 'leak', 'oom', 'intruder', 'overheat', 'stall', 'straggler', 'lost', 'all']),
    default: 'story',
    flag: '--demo-scenario <name>',
    help: 'what happens to the simulated GPUs: story (a bit of everything), idle, healthy, leak, oom, intruder, overheat, stall, straggler, lost or all',
  }),
  'demo.seed': setting({ schema: z.number().int(), default: 1, flag: '--seed <number>', help: 'the same seed gives the same simulation' }),
  'replay.speed': setting<number | 'max'>({
    schema: z.union([z.literal('max'), z.number().positive()], 'expected a number above 0, or max'),
    default: 1,
    flag: '--speed <factor>',
    help: 'how fast a recording is played: 1, 10, …, or max',
  }),
} satisfies Settings
