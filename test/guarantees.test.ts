/** Every promise in docs/guarantees.md names tests that exist. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = readFileSync(`${ROOT}/docs/guarantees.md`, 'utf8')
const rows = PAGE.split('\n')
  .filter((line) => /^\| .* \| `[\w./-]+\.(test\.ts|py)`/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, promise = '', tests = '']) => [promise, tests] as const)

describe('docs/guarantees.md', () => {
  it('has promises, and no row without a test', () => {
    expect(rows.length).toBeGreaterThan(20)
    const promises = [...PAGE.matchAll(/^\| promise \| checked by \|\n\|---\|---\|\n((?:\|.*\n)+)/gm)].flatMap(([, body = '']) =>
      body.trim().split('\n'),
    )
    expect(rows.length).toBe(promises.length)
  })

  it.each(rows)('%s', (_, tests) => {
    for (const one of tests.split(/; (?=`)/)) {
      const [, file = '', title, name = ''] = /^`([^`]+)`(?: (?:"([^"]+)"|`(test_\w+)`))?$/.exec(one) ?? []
      expect(file, `${one}: expected a file, and a title or a name`).not.toBe('')
      expect(existsSync(`${ROOT}/${file}`), one).toBe(true)
      expect(readFileSync(`${ROOT}/${file}`, 'utf8'), one).toContain(title ?? name)
    }
  })
})
