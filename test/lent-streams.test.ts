/** A process that a test leaves behind with the runner's own stream in its hands keeps the runner from closing ("close timed out"). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Runs in the runner itself, and waits for the build. */
const ALLOWED = new Set(['test/setup/build.ts', 'test/lent-streams.test.ts'])
const LENT = /stdio:[^\n]*(['"]inherit['"]|process\.std|[[ ,][012][\],])/

const FILES = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.ts') && !ALLOWED.has(path))

describe('what end-to-end tests start', () => {
  it('gets pipes of its own, never the streams of the test runner', () => {
    expect(FILES).toContain('test/pretend-systemd.ts')
    expect(FILES.filter((path) => LENT.test(readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
  })

  it.each([
    "{ stdio: 'inherit' }",
    "{ stdio: ['ignore', 'pipe', 'inherit'] }",
    '{ stdio: [0, 1, 2] }',
    "{ stdio: ['pipe', process.stderr] }",
  ])('would be noticed: %s', (options) => expect(options).toMatch(LENT))
})
