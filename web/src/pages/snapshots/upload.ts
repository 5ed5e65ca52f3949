/** Sends a file to the agent, in pieces: each has its own request, so that a slow line breaks none. */
import { ask, sendBytes } from '../../api.ts'

/** `onProgress`: share of the file that was sent. Gives the id of the snapshot. */
export async function uploadFile(file: File, signal: AbortSignal, onProgress: (share: number) => void): Promise<string> {
  const { id, pieceBytes } = await ask<{ id: string; pieceBytes: number }>(
    '/api/v1/snapshots',
    {},
    { method: 'POST', body: { name: file.name, bytes: file.size }, signal },
  )
  const path = `/api/v1/snapshots/${encodeURIComponent(id)}`
  try {
    for (let offset = 0; offset < file.size; offset += pieceBytes) {
      await sendBytes(`${path}/content`, { offset }, file.slice(offset, offset + pieceBytes), signal)
      onProgress(Math.min(1, (offset + pieceBytes) / file.size))
    }
  } catch (error) {
    // Half a file is of no use; where the agent cannot be reached it gives it up by itself.
    await ask(path, {}, { method: 'DELETE' }).catch(() => undefined)
    throw error
  }
  return id
}
