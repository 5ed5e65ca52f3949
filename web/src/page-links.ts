/** The pages that the bar at the top leads to. */
export const PAGE_LINKS = [
  { name: '', label: 'Overview' },
  { name: 'memory', label: 'Memory' },
  { name: 'processes', label: 'Processes' },
  { name: 'training', label: 'Training' },
  { name: 'alerts', label: 'Alerts' },
  { name: 'settings', label: 'Settings' },
] as const
