import '../style/training.css'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { place } from '../location.ts'
import { Fault } from '../parts/parts.tsx'
import { RunListPage } from './training/run-list.tsx'
import { RunPage } from './training/run-page.tsx'

export function TrainingPage() {
  const [, name] = place.value.parts
  if (name === undefined) return <RunListPage />
  return name === 'compare' ? <Comparison /> : <RunPage key={name} id={name} />
}

/** Comes when somebody compares: most who look at a run do not. */
function Comparison() {
  const [Page, setPage] = useState<ComponentType | null>(null)
  useEffect(() => {
    import('./training/compare.tsx').then(
      ({ ComparePage }) => setPage(() => ComparePage),
      () => setPage(() => NotLoaded),
    )
  }, [])
  return Page && <Page />
}

function NotLoaded() {
  return <Fault text="The comparison could not be loaded. Reload to get the current version." />
}
