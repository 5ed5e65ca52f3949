/** What tones look like. Everybody can distinguish blue, orange and vermilion; signs say the same without color. */
import { BOLD, SELECTED, type Style, TONE, TONE_MASK } from './grid.ts'

export const THEME_NAMES = ['dark', 'light', 'mono'] as const
export type ThemeName = (typeof THEME_NAMES)[number]

export interface Theme {
  readonly name: ThemeName
  /** Braille, blocks and lines, or ASCII alone. */
  readonly ascii: boolean
  sgr(style: Style): string
  color(style: Style): { readonly front: string; readonly back: string | null; readonly bold: boolean }
}

export type ColorDepth = 'none' | 'few' | 'many'

interface Paint {
  /** Index of the 256 colors; null: the terminal's own. */
  readonly many: number | null
  /** SGR of the 16 colors. */
  readonly few: string
  readonly hex: string
}

const paint = (many: number | null, few: string, hex: string): Paint => ({ many, few, hex })

const DARK: Readonly<Record<number, Paint>> = {
  [TONE.text]: paint(null, '39', '#d0d4da'),
  [TONE.muted]: paint(246, '37', '#949494'),
  [TONE.faint]: paint(240, '90', '#585858'),
  [TONE.title]: paint(255, '97', '#eeeeee'),
  [TONE.accent]: paint(117, '96', '#87d7ff'),
  [TONE.good]: paint(74, '36', '#5fafd7'),
  [TONE.warning]: paint(214, '33', '#ffaf00'),
  [TONE.critical]: paint(203, '91', '#ff5f5f'),
  [TONE.simulated]: paint(176, '95', '#d787d7'),
  [TONE.busy]: paint(74, '36', '#5fafd7'),
  [TONE.memory]: paint(140, '35', '#af87d7'),
  [TONE.reserved]: paint(242, '90', '#6c6c6c'),
}

const LIGHT: Readonly<Record<number, Paint>> = {
  [TONE.text]: paint(null, '39', '#24292f'),
  [TONE.muted]: paint(242, '90', '#6c6c6c'),
  [TONE.faint]: paint(250, '37', '#bcbcbc'),
  [TONE.title]: paint(232, '30', '#080808'),
  [TONE.accent]: paint(25, '34', '#005faf'),
  [TONE.good]: paint(25, '34', '#005faf'),
  [TONE.warning]: paint(130, '33', '#af5f00'),
  [TONE.critical]: paint(160, '31', '#d70000'),
  [TONE.simulated]: paint(90, '35', '#870087'),
  [TONE.busy]: paint(25, '34', '#005faf'),
  [TONE.memory]: paint(91, '35', '#8700af'),
  [TONE.reserved]: paint(247, '37', '#9e9e9e'),
}

const SELECTED_BACK = {
  dark: { many: '48;5;237', few: '7', hex: '#3a3a3a' },
  light: { many: '48;5;253', few: '7', hex: '#dadada' },
} as const

/** Without color: bold for what matters, reverse for critical or selected. */
function monoSgr(style: Style): string {
  const tone = style & TONE_MASK
  let codes = '0'
  if (style & BOLD || tone === TONE.title || tone === TONE.warning || tone === TONE.critical || tone === TONE.simulated) codes += ';1'
  if (tone === TONE.faint || tone === TONE.muted || tone === TONE.reserved) codes += ';2'
  if (tone === TONE.critical || style & SELECTED) codes += ';7'
  return `\u001b[${codes}m`
}

export function createTheme(name: ThemeName, depth: ColorDepth, ascii: boolean): Theme {
  const isMono = name === 'mono' || depth === 'none'
  const base = name === 'light' ? LIGHT : DARK
  const back = SELECTED_BACK[name === 'light' ? 'light' : 'dark']
  const known = new Map<Style, string>()
  const colorSgr = (style: Style): string => {
    const { many, few } = base[style & TONE_MASK] ?? paint(null, '39', '')
    let codes = '0'
    if (style & BOLD) codes += ';1'
    if (style & SELECTED) codes += `;${depth === 'many' ? back.many : back.few}`
    if (depth === 'few') codes += `;${few}`
    else if (many !== null) codes += `;38;5;${many}`
    return `\u001b[${codes}m`
  }
  return {
    name: isMono ? 'mono' : name,
    ascii,
    sgr(style) {
      let codes = known.get(style)
      if (codes === undefined) {
        codes = isMono ? monoSgr(style) : colorSgr(style)
        known.set(style, codes)
      }
      return codes
    },
    color: (style) => ({
      front: isMono ? (name === 'light' ? '#24292f' : '#d0d4da') : (base[style & TONE_MASK]?.hex ?? '#d0d4da'),
      back: style & SELECTED ? back.hex : null,
      bold: (style & BOLD) !== 0,
    }),
  }
}

/** NO_COLOR (no-color.org) wins over everything; then what TERM promises. */
export function colorDepth(env: NodeJS.ProcessEnv): ColorDepth {
  if (env.NO_COLOR) return 'none'
  const term = env.TERM ?? ''
  if (term === 'dumb' || term === 'vt100' || term === 'vt220') return 'none'
  return /256|direct|kitty|alacritty|ghostty|wezterm/.test(term) || env.COLORTERM ? 'many' : 'few'
}

/** A terminal whose locale is not UTF-8 shows garbage for anything beyond ASCII. */
export function speaksUtf8(env: NodeJS.ProcessEnv): boolean {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG
  if (env.TERM === 'linux') return false
  return locale === undefined || locale === '' ? true : /utf-?8/i.test(locale)
}
