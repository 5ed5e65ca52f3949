/** Standard output of commands that may be piped into something that stops reading. */

let isWatched = false

/** `gpuwarden detect … | head`: when nobody reads any more there is nothing left to do. */
export function endWhenPipeCloses(): void {
  if (isWatched) return
  isWatched = true
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}

export function writeOut(text: string): void {
  process.stdout.write(text)
}
