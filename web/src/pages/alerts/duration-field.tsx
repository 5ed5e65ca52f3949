export const DURATIONS = [
  { seconds: 3600, label: '1 hour' },
  { seconds: 4 * 3600, label: '4 hours' },
  { seconds: 24 * 3600, label: '1 day' },
  { seconds: 7 * 24 * 3600, label: '1 week' },
] as const

/** How long something lasts: nothing here is forever. */
export function DurationField({ seconds, onChange }: { readonly seconds: number; readonly onChange: (seconds: number) => void }) {
  return (
    <label class="field">
      For
      <select value={String(seconds)} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {DURATIONS.map((one) => (
          <option key={one.seconds} value={String(one.seconds)}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  )
}
