import '../style/settings.css'
import { AccuracyPanel } from './settings/accuracy-panel.tsx'
import { ConfigPanel } from './settings/config-panel.tsx'
import { DoctorPanel } from './settings/doctor-panel.tsx'
import { AboutPanel, LinksPanel } from './settings/links-panel.tsx'
import { OverheadPanel } from './settings/overhead-panel.tsx'

export function SettingsPage() {
  return (
    <>
      <h1>Settings</h1>
      <div class="settings">
        <div class="grid">
          <DoctorPanel />
          <OverheadPanel />
          <AccuracyPanel />
        </div>
        <div class="grid">
          <AboutPanel />
          <LinksPanel />
        </div>
      </div>
      <ConfigPanel />
    </>
  )
}
