/** Memory → Snapshots: what the allocator of a run held, event by event. */
import { place } from '../location.ts'
import { SnapshotList } from './snapshots/list.tsx'
import { OneSnapshot } from './snapshots/one.tsx'

export function SnapshotsPage() {
  const [, id] = place.value.parts
  return id === undefined ? <SnapshotList /> : <OneSnapshot key={id} id={id} />
}
