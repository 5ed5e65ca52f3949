/** Lines of a file, plain or compressed, some hundred at a time, through the lane of the log folder. */
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { STREAM_CALLS } from '../../core/disk.ts'

const BLOCK_BYTES = 256 * 1024
const MAX_LINE_CHARS = 1024 * 1024

/** Throws when the file is damaged or cannot be read. From `start` > 0 on, the first line is most likely not whole, and left out. */
export async function* lineBlocks(path: string, start = 0): AsyncGenerator<readonly string[]> {
  const file = createReadStream(path, { fs: STREAM_CALLS, start, highWaterMark: BLOCK_BYTES })
  const source: Readable = path.endsWith('.gz') ? file.pipe(createGunzip({ chunkSize: BLOCK_BYTES })) : file
  file.on('error', (error) => source.destroy(error))
  let rest = ''
  let skipsFirst = start > 0
  try {
    for await (const chunk of source.setEncoding('utf8')) {
      const lines = (rest + (chunk as string)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE_CHARS) rest = ''
      yield skipsFirst ? lines.slice(1) : lines
      if (lines.length > 0) skipsFirst = false
    }
    if (rest !== '' && !skipsFirst) yield [rest]
  } finally {
    source.destroy()
    file.destroy()
  }
}
