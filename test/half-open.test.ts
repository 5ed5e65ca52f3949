/** Who opens many connections and says nothing, or hardly anything, must not keep others out. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Running, startServer } from '../src/server/pretend-agent.contract.ts'

async function start(): Promise<Running> {
  const running = await startServer({})
  onTestFinished(() => running.server.close())
  return running
}

/** In a process of its own, as others would be. Says `open` when all of them are connected, or were closed again. */
const ATTACK = `
  const { connect } = require('node:net')
  const [bytes, ...targets] = process.argv.slice(1)
  const opened = targets.flatMap((target) => {
    const [count, port, localAddress] = target.split(' ')
    return Array.from({ length: Number(count) }, () => new Promise((resolve) => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress })
      socket.on('error', resolve)
      socket.on('close', resolve)
      socket.on('connect', () => { socket.write(bytes); resolve() })
    }))
  })
  Promise.all(opened).then(() => console.log('open'))
  setTimeout(() => {}, 60_000)`

/** `targets`: how many, the port, and from which address. */
async function attack(bytes: string, ...targets: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['-e', ATTACK, bytes, ...targets], { stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}

/** One connection that stays. */
async function opened(port: number, bytes: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

async function answerMs(url: string): Promise<number> {
  const began = performance.now()
  const answer = await fetch(url, { signal: AbortSignal.timeout(20_000), headers: { connection: 'close' } })
  await answer.text()
  expect(answer.status).toBe(200)
  return performance.now() - began
}

describe.each([
  ['nothing', ''],
  ['half a header', 'GET /metrics HTTP/1.1\r\nHost: loc'],
  ['half a body', 'POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{'],
])('1,100 connections that say %s', (_, bytes) => {
  it('leave /metrics, the page and the second port responsive, for others and for the same address', { timeout: 60_000 }, async () => {
    const running = await start()
    const second = await running.server.metricsListen(0)
    await attack(bytes, `1100 ${running.port} 127.0.0.2`, `300 ${running.port} 127.0.0.1`, `300 ${second.port} 127.0.0.1`)
    // Accepting so many at once takes a moment; nobody is refused meanwhile.
    for (const url of [running.url, second.url]) await answerMs(`${url}/healthz`)
    for (const url of [`${running.url}/metrics`, `${running.url}/`, `${second.url}/metrics`, `${second.url}/healthz`])
      expect(await answerMs(url), url).toBeLessThan(1000)
  })
})

it('closes the oldest that says nothing first, never one that is being answered', async () => {
  const running = await start()
  const stream = await opened(running.port, 'GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const silent = await opened(running.port, '')
  await once(stream, 'data')
  await attack('', `400 ${running.port} 127.0.0.1`)
  await until(() => silent.resume().destroyed)
  expect(stream.destroyed).toBe(false)
})

it('ends a connection that sends no whole header within seconds', { timeout: 20_000 }, async () => {
  const running = await start()
  const socket = await opened(running.port, 'GET /metrics HTTP/1.1\r\nHost: loc')
  const began = performance.now()
  await once(socket.resume(), 'close')
  expect(performance.now() - began).toBeLessThan(12_000)
})

const until = (isTrue: () => boolean) => expect.poll(isTrue, { timeout: 10_000 }).toBe(true)
