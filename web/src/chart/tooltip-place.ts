const GAP_PX = 14

/** Beside the pointer, inside the window. */
export function showTooltip(
  tip: HTMLElement,
  lines: readonly string[],
  { clientX, clientY }: Pick<MouseEvent, 'clientX' | 'clientY'>,
): void {
  tip.textContent = lines.join('\n')
  tip.hidden = false
  const { width, height } = tip.getBoundingClientRect()
  const inside = (wanted: number, most: number) => `${Math.max(4, Math.min(most - 4, wanted + GAP_PX))}px`
  tip.style.left = inside(clientX, innerWidth - width)
  tip.style.top = inside(clientY, innerHeight - height)
}
