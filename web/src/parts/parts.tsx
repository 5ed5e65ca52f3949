import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Tone } from '../words.ts'

type Children = { readonly children: ComponentChildren }

export function Panel({
  title,
  aside,
  children,
  id,
}: Children & { readonly title?: string; readonly aside?: ComponentChildren; readonly id?: string }) {
  return (
    <section class="panel" id={id} aria-label={title}>
      {title !== undefined && (
        <header class="panel-head">
          <h2>{title}</h2>
          <span class="grow" />
          {aside}
        </header>
      )}
      {children}
    </section>
  )
}

export function Badge({ tone = 'plain', title, children }: Children & { readonly tone?: Tone | 'simulated'; readonly title?: string }) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  )
}

export function Fact({
  label,
  tone = 'plain',
  title,
  children,
}: Children & { readonly label: string; readonly tone?: Tone; readonly title?: string }) {
  return (
    <div class="fact" title={title}>
      <span class="label">{label}</span>
      <span class={`value tone-${tone}`}>{children}</span>
    </div>
  )
}

export interface MeterPart {
  readonly ratio: number
  /** A class that gives the color: `fill-1` … `fill-8`, `fill-warning`, `fill-critical`. */
  readonly fill: string
  readonly label?: string
}

/** A bar of parts that add up to at most 1. `value` says it in words for screen readers. */
export function Meter({
  parts,
  limit,
  label,
  value,
}: {
  readonly parts: readonly MeterPart[]
  readonly limit?: number | null
  readonly label: string
  readonly value: string
}) {
  const sum = Math.min(
    1,
    parts.reduce((total, { ratio }) => total + ratio, 0),
  )
  return (
    // biome-ignore lint/a11y/useSemanticElements: <meter> cannot show several parts
    <div
      class="meter"
      role="meter"
      aria-label={label}
      aria-valuetext={value}
      aria-valuenow={Math.round(sum * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      {parts.map(({ ratio, fill, label: name }, index) => (
        <span key={name ?? index} class={fill} title={name} style={{ width: `${Math.max(0, Math.min(1, ratio)) * 100}%` }} />
      ))}
      {limit !== undefined && limit !== null && <i class="limit" style={{ left: `${limit * 100}%` }} />}
    </div>
  )
}

export function Empty({ title, children }: Partial<Children> & { readonly title: string }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p class="small">{children}</p>}
    </div>
  )
}

export function Fault({ text }: { readonly text: string | null }) {
  return text === null ? null : (
    <p class="fault" role="alert">
      {text}
    </p>
  )
}

export interface Choice<Value extends string> {
  readonly value: Value
  readonly label: string
}

export function Choices<Value extends string>({
  label,
  options,
  value,
  onChoose,
}: {
  readonly label: string
  readonly options: readonly Choice<Value>[]
  readonly value: Value
  readonly onChoose: (value: Value) => void
}) {
  return (
    <fieldset class="choices" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChoose(option.value)}>
          {option.label}
        </button>
      ))}
    </fieldset>
  )
}

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [said, setSaid] = useState<string | null>(null)
  const copy = () => {
    const say = (words: string) => {
      setSaid(words)
      setTimeout(() => setSaid(null), 2000)
    }
    copyText(text).then(
      () => say('Copied'),
      () => say('Cannot copy here'),
    )
  }
  return (
    <button type="button" class="quiet" onClick={copy} aria-live="polite">
      {said ?? label}
    </button>
  )
}

/** The clipboard API needs https or this machine; elsewhere the old way. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  if (!done) throw new Error('the browser refused')
}

/** What may be wider than the page scrolls by itself, also with the keyboard. */
export function ScrollBox({ label, children }: Children & { readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus it could not be scrolled with the keyboard
    <section class="scroll-x" tabIndex={0} aria-label={label}>
      {children}
    </section>
  )
}
