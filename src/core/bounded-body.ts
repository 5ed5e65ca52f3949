import type { IncomingMessage } from 'node:http'

/** `cut_off`: the sender left before the end. */
export type BoundedBody = Buffer | 'too_large' | 'cut_off'

/** Stops at the limit without destroying the connection: the answer still has to be sent on it. */
export function readBounded(incoming: IncomingMessage, limitBytes: number): Promise<BoundedBody> {
  if (Number(incoming.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (result: BoundedBody) => {
      incoming.off('data', onData).off('end', onEnd).off('close', onCut).off('error', onCut)
      resolve(result)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= limitBytes) chunks.push(chunk)
      else {
        incoming.pause()
        settle('too_large')
      }
    }
    const onEnd = () => settle(Buffer.concat(chunks))
    const onCut = () => settle('cut_off')
    incoming.on('data', onData).on('end', onEnd).on('close', onCut).on('error', onCut)
  })
}

/** `application/json` of `Application/JSON; charset=utf-8`; empty when not given. */
export function mediaType({ headers }: IncomingMessage): string {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}
