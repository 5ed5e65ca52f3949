import '../style/training.css'
import { place } from '../location.ts'
import { ComparePage } from './training/compare.tsx'
import { RunListPage } from './training/run-list.tsx'
import { RunPage } from './training/run-page.tsx'

export function TrainingPage() {
  const [, name] = place.value.parts
  if (name === undefined) return <RunListPage />
  return name === 'compare' ? <ComparePage /> : <RunPage key={name} id={name} />
}
