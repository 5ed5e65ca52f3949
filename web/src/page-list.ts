/** The list of pages, in the order of the bar at the top. A new page is its file and its row here; it is loaded when it is first wanted. */
import type { ComponentType } from 'preact'

interface PageRow {
  /** What stands in the address: `#/memory`. */
  readonly name: string
  /** In the bar at the top; null: other pages lead to it. */
  readonly label: string | null
  /** Whose place in the bar is marked, where it has none of its own. */
  readonly under?: string
  readonly load: () => Promise<ComponentType>
}

export const PAGES: readonly PageRow[] = [
  { name: '', label: 'Overview', load: async () => (await import('./pages/overview.tsx')).OverviewPage },
  { name: 'gpu', label: null, under: '', load: async () => (await import('./pages/gpu.tsx')).GpuPage },
  { name: 'memory', label: 'Memory', load: async () => (await import('./pages/memory.tsx')).MemoryPage },
  { name: 'snapshots', label: null, under: 'memory', load: async () => (await import('./pages/snapshots.tsx')).SnapshotsPage },
  { name: 'processes', label: 'Processes', load: async () => (await import('./pages/processes.tsx')).ProcessesPage },
  { name: 'training', label: 'Training', load: async () => (await import('./pages/training.tsx')).TrainingPage },
  { name: 'layers', label: null, under: 'training', load: async () => (await import('./pages/layers.tsx')).LayersPage },
  { name: 'usage', label: 'Usage', load: async () => (await import('./pages/usage.tsx')).UsagePage },
  { name: 'alerts', label: 'Alerts', load: async () => (await import('./pages/alerts.tsx')).AlertsPage },
  { name: 'silence', label: null, under: 'alerts', load: async () => (await import('./pages/silence.tsx')).SilencePage },
  { name: 'settings', label: 'Settings', load: async () => (await import('./pages/settings.tsx')).SettingsPage },
]

/** The pages that the bar at the top leads to. */
export const PAGE_LINKS = PAGES.filter(({ label }) => label !== null)
