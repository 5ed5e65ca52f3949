/** docs/configuration.md lists every setting as it is. UPDATE_GOLDEN=1 writes the table anew. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { KEYS, SETTINGS, variableOf } from '../src/agent/config.ts'
import type { Setting } from '../src/core/setting.ts'

const FILE = fileURLToPath(new URL('../docs/configuration.md', import.meta.url))
const [BEGIN, END] = ['<!-- settings -->', '<!-- /settings -->']

function table(): string {
  const rows = KEYS.map((key) => {
    const { flag, env, default: value, help, secret }: Setting = SETTINGS[key]
    const variables = [variableOf(key), ...(env ? [env] : [])].map((name) => `\`${name}\``).join(', ')
    return `| \`${key}\` | ${flag ? `\`${flag}\`` : ''} | ${variables} | \`${JSON.stringify(value)}\` | ${help.replaceAll('|', '\\|')}${secret ? ' (secret)' : ''} |`
  })
  return ['| key | flag | variables | default | meaning |', '|---|---|---|---|---|', ...rows].join('\n')
}

it('docs/configuration.md lists every setting', () => {
  const text = readFileSync(FILE, 'utf8')
  const [before, rest] = text.split(BEGIN)
  const [, after] = (rest ?? '').split(END)
  const expected = `${before}${BEGIN}\n${table()}\n${END}${after ?? ''}`
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(FILE, expected)
  else expect(text).toBe(expected)
})
