import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type BoundedBody, mediaType, readBounded } from './bounded-body.ts'

const LIMIT = 100

/** A real server that reads every body within the limit and answers with what it made of it. */
async function serve(): Promise<{ readonly port: number; readonly read: Promise<BoundedBody>[] }> {
  const read: Promise<BoundedBody>[] = []
  const server = createServer((incoming, outgoing) => {
    const body = readBounded(incoming, LIMIT)
    read.push(body)
    void body.then((result) => {
      if (!outgoing.destroyed)
        outgoing.writeHead(200, { connection: 'close' }).end(typeof result === 'string' ? result : `${result.length} bytes`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, read }
}

/** Without Content-Length: what is written comes in chunks. */
function post(port: number, chunks: readonly string[], headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request({ port, host: '127.0.0.1', method: 'POST', headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => resolve(text))
    })
    asking.on('error', reject)
    for (const chunk of chunks) asking.write(chunk)
    asking.end()
  })
}

describe('readBounded', () => {
  it('gives the whole body, in however many chunks it came', async () => {
    const { port, read } = await serve()
    expect(await post(port, ['ab', 'c', 'x'.repeat(LIMIT - 3)])).toBe('100 bytes')
    expect((await read[0])?.toString()).toBe(`abc${'x'.repeat(97)}`)
    expect(await post(port, [])).toBe('0 bytes')
  })

  it('stops at the limit and still lets the answer out, whether the length was announced or not', async () => {
    const { port } = await serve()
    expect(await post(port, ['x'.repeat(60), 'x'.repeat(41)])).toBe('too_large')
    expect(await post(port, ['x'.repeat(101)], { 'content-length': '101' })).toBe('too_large')
  })

  it('says when the sender went away before the end', async () => {
    const { port, read } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nhalf')
    while (read.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    socket.destroy()
    expect(await read[0]).toBe('cut_off')
  })
})

describe('mediaType', () => {
  const of = (type: string | undefined) => mediaType({ headers: type === undefined ? {} : { 'content-type': type } } as IncomingMessage)

  it('is the type alone, in small letters', () => {
    expect(['application/json', 'Application/JSON; charset=utf-8', ' text/plain ;x', undefined].map(of)).toEqual([
      'application/json',
      'application/json',
      'text/plain',
      '',
    ])
  })
})
