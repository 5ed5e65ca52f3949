import { EXIT, Failure } from '../core/failure.ts'
import { THEME_NAMES, type ThemeName } from '../tui/theme.ts'

export interface TopOptions {
  readonly connect: string | null
  readonly theme: ThemeName | null
  readonly ascii: boolean
  readonly readonly: boolean
}

export function readTopOptions(options: Record<string, unknown>): TopOptions {
  return {
    connect: readUrl(options.connect),
    theme: readTheme(options.theme),
    ascii: options.ascii === true,
    readonly: options.readonly === true,
  }
}

function readUrl(value: unknown): string | null {
  if (value === undefined) return null
  const text = /^https?:\/\//.test(String(value)) ? String(value) : `http://${String(value)}`
  if (URL.canParse(text)) return text.replace(/\/+$/, '')
  throw new Failure(`--connect: expected the address of an agent such as http://node7:4780; got ${JSON.stringify(value)}`, {
    exitCode: EXIT.usage,
  })
}

function readTheme(value: unknown): ThemeName | null {
  if (value === undefined) return null
  const theme = THEME_NAMES.find((name) => name === value)
  if (theme) return theme
  throw new Failure(`--theme: expected ${THEME_NAMES.join(', ')}; got ${JSON.stringify(value)}`, { exitCode: EXIT.usage })
}
