/** What `npm run docs` writes is what stands in docs/. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { made, PARTS } from '../tools/docs.js'

describe('generated documentation', () => {
  it.each(PARTS.map((part) => [`${part.file} ${part.part ?? ''}`.trim(), part] as const))(
    '%s is up to date (npm run docs)',
    async (_, part) => {
      const text = readFileSync(new URL(`../docs/${part.file}`, import.meta.url), 'utf8')
      expect(await made(part)).toBe(text)
    },
  )
})
