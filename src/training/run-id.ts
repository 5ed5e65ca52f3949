import { randomBytes } from 'node:crypto'

export function newRunId(): string {
  return randomBytes(8).toString('hex')
}
