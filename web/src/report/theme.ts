/** Dark or light as the reader chooses: the style follows the system by a media rule, and that is made to hold always or never. */

export function toggleTheme(): void {
  const isDark = getComputedStyle(document.documentElement).colorScheme === 'dark'
  for (const sheet of document.styleSheets)
    for (const rule of sheet.cssRules)
      if (rule instanceof CSSMediaRule && (rule.media.mediaText.includes('prefers-color-scheme') || chosen.has(rule))) {
        chosen.add(rule)
        rule.media.mediaText = isDark ? 'not all' : 'all'
      }
}

const chosen = new WeakSet<CSSRule>()
