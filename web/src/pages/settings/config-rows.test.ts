import { describe, expect, it } from 'vitest'
import { searchConfig, valueText } from './config-rows.ts'

const ROWS = [
  { key: 'log.dir', value: './gpu_logs', from: 'default', variable: 'GPUWARDEN_LOG_DIR', help: 'Folder of the files' },
  { key: 'server.port', value: 4911, from: 'flag --port', variable: 'GPUWARDEN_SERVER_PORT', help: 'Port of the server' },
]
const keys = (text: string, onlyChanged = false) => searchConfig(ROWS, text, onlyChanged).map(({ key }) => key)

describe('searchConfig', () => {
  it('finds every word in the key, value, origin, variable or help', () => {
    expect(keys('')).toEqual(['log.dir', 'server.port'])
    expect(keys('FOLDER log')).toEqual(['log.dir'])
    expect(keys('4911')).toEqual(['server.port'])
    expect(keys('folder port')).toEqual([])
  })

  it('leaves out what is as it comes', () => {
    expect(keys('', true)).toEqual(['server.port'])
  })
})

it('shows a value as it would be written, and says when there is none', () => {
  expect([null, '', 'a', 0, false, [], ['a'], { a: 1 }].map(valueText)).toEqual([
    'not set',
    '""',
    'a',
    '0',
    'false',
    'none',
    '["a"]',
    '{"a":1}',
  ])
})
