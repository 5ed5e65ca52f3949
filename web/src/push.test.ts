import { expect, it } from 'vitest'
import { keyBytes } from './push.ts'

it('reads a key as browsers want it', () => {
  expect([...keyBytes('-_8A')]).toEqual([251, 255, 0])
})
