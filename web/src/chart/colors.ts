/** The palette as the page has it at this moment: it changes with the preference for dark or light. */
import { signal } from '@preact/signals'
import { type ChartColors, readColors } from './palette.ts'

export const colors = signal<ChartColors>(readColors())

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  colors.value = readColors()
})
