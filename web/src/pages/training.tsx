import '../style/training.css'
import { place } from '../location.ts'
import { later } from '../parts/later.tsx'
import { RunListPage } from './training/run-list.tsx'
import { RunPage } from './training/run-page.tsx'

const ComparePage = later(async () => (await import('./training/compare.tsx')).ComparePage)

export function TrainingPage() {
  const [, name] = place.value.parts
  if (name === undefined) return <RunListPage />
  return name === 'compare' ? <ComparePage /> : <RunPage key={name} id={name} />
}
