/** File work written once, for the start (synchronous) and for later (asynchronous): a generator that yields each call and gets its result. */
import * as fs from 'node:fs'
import { promisify } from 'node:util'

export type Asked<T> = Generator<unknown, T, unknown>

/** Does not wait on a pipe, does not follow a link. */
const LOOK = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOFOLLOW

export const AT_ONCE = {
  open: (path: string): unknown => fs.openSync(path, LOOK),
  fstat: fs.fstatSync as (file: number) => unknown,
  stat: fs.lstatSync as (path: string) => unknown,
  readFile: fs.readFileSync as (file: string | number, encoding: 'utf8') => unknown,
  writeFile: fs.writeFileSync as (path: string, text: string, options: fs.WriteFileOptions) => unknown,
  close: fs.closeSync as (file: number) => unknown,
  link: fs.linkSync as (from: string, to: string) => unknown,
  rename: fs.renameSync as (from: string, to: string) => unknown,
  rm: fs.rmSync as (path: string, options: fs.RmOptions) => unknown,
  pause: (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
}

export type FileCalls = typeof AT_ONCE

const openLater = promisify(fs.open)

export const IN_TURN: FileCalls = {
  open: (path) => openLater(path, LOOK),
  fstat: promisify(fs.fstat),
  stat: promisify(fs.lstat),
  readFile: promisify(fs.readFile),
  writeFile: promisify(fs.writeFile),
  close: promisify(fs.close),
  link: promisify(fs.link),
  rename: promisify(fs.rename),
  rm: promisify(fs.rm),
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
}

export function atOnce<T>(work: Asked<T>): T {
  let step = work.next()
  while (!step.done) step = work.next(step.value)
  return step.value
}

export async function inTurn<T>(work: Asked<T>): Promise<T> {
  let step = work.next()
  while (!step.done) {
    const result: Promise<unknown> = Promise.resolve(step.value)
    step = await result.then(
      (value) => work.next(value),
      (error) => work.throw(error),
    )
  }
  return step.value
}
