import { expect, it } from 'vitest'
import type { Run } from './model.ts'
import { RunNames } from './run-names.ts'

const run = (id: string, name: string, endedAt: number | null = null) => ({ id, name, endedAt }) as Run

it('calls a run by its name, and adds the id only where another one that runs has the same', () => {
  const names = new RunNames()
  expect(names.of('5f3a9c0d5f3a')).toBe('5f3a9c0d5f3a')
  names.note(run('5f3a9c0d5f3a', 'llama'))
  expect(names.of('5f3a9c0d5f3a')).toBe('llama')
  names.note(run('77777777aaaa', 'llama', 5))
  expect([names.of('5f3a9c0d5f3a'), names.of('77777777aaaa')]).toEqual(['llama', 'llama [77777777]'])
  names.note(run('88888888bbbb', 'llama'))
  const restored = new RunNames()
  restored.load(JSON.parse(JSON.stringify(names.saved())))
  expect([restored.of('5f3a9c0d5f3a'), restored.of('88888888bbbb')]).toEqual(['llama [5f3a9c0d]', 'llama [88888888]'])
})
