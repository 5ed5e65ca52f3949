import type { PastAlert } from '../../../../src/core/alert-contract.ts'

/** Every word of the text is somewhere in it. */
export function matchesText({ detector, message, severity, subject }: PastAlert, text: string): boolean {
  const all = [detector, message, severity, subject.user ?? '', subject.run ?? '', subject.pid === null ? '' : String(subject.pid)]
    .join(' ')
    .toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word))
}
