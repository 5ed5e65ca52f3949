import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { buildFakeNvml, type FakeNvmlValues, fakeNvmlScript } from './index.ts'

const koffi = pathToFileURL(createRequire(import.meta.url).resolve('koffi')).href

/** Calls nvmlInit, then nvmlDeviceGetCount every 20 ms, printing each answer, until told to end. */
const PROGRAM = `
import koffi from ${JSON.stringify(koffi)}
const library = koffi.load(process.argv[1])
const count = library.func('nvmlDeviceGetCount_v2', 'int', ['void *'])
const out = Buffer.alloc(4)
console.log('init', library.func('nvmlInit_v2', 'int', [])())
const timer = setInterval(() => console.log('count', count(out), out.readUInt32LE(0)), 20)
process.stdin.on('end', () => { clearInterval(timer); library.func('nvmlShutdown', 'int', [])(); process.exit(0) })
process.stdin.resume()
`

function run(values: FakeNvmlValues) {
  const script = fakeNvmlScript(values)
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, buildFakeNvml()], {
    env: { ...process.env, ...script.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      text += chunk
    })
  const ended = new Promise<string | number | null>((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)))
  const until = async (words: string) => {
    for (let i = 0; i < 500 && !text.includes(words); i++) await sleep(20)
    expect(text).toContain(words)
  }
  afterAll(() => {
    child.kill('SIGKILL')
    script.remove()
  })
  return { script, child, ended, until, text: () => text }
}

describe('the fake library', () => {
  it('is compiled once and kept', () => {
    const path = buildFakeNvml()
    expect(existsSync(path)).toBe(true)
    expect(buildFakeNvml()).toBe(path)
    expect(buildFakeNvml('old')).not.toBe(path)
  })

  it('obeys its script from another process, and counts', async () => {
    const { script, child, until, ended } = run({ gpus: 3 })
    await until('init 0')
    await until('count 0 3')
    script.update({ gpus: 4 })
    await until('count 0 4')
    script.update({ dump: 1 })
    for (let i = 0; i < 500 && !existsSync(script.countsPath); i++) await sleep(20)
    expect(script.dumped().nvmlInit_v2).toBe(1)
    child.stdin.end()
    expect(await ended).toBe(0)
    expect(script.dumped()).toMatchObject({ nvmlShutdown: 1 })
  })

  it('hangs when the script says so', async () => {
    const { script, child, until, ended, text } = run({})
    await until('count 0 2')
    script.update({ hang: ['nvmlDeviceGetCount_v2'] })
    let before = ''
    for (let i = 0; i < 20 && text() !== before; i++) {
      before = text()
      await sleep(400)
    }
    child.stdin.end()
    await sleep(300)
    expect(text()).toBe(before)
    child.kill('SIGKILL')
    expect(await ended).toBe('SIGKILL')
  })

  it('crashes when the script says so', async () => {
    const { script, until, ended } = run({})
    await until('count 0 2')
    script.update({ crash: ['nvmlDeviceGetCount_v2'] })
    expect(await ended).toBe('SIGSEGV')
  })
})
