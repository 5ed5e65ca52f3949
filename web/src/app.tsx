import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { session } from './api.ts'
import { epoch, link } from './live/store.ts'
import { place } from './location.ts'
import { PAGES } from './page-list.ts'
import { LoginPage } from './pages/login.tsx'
import { NoSuchPage } from './pages/no-such-page.tsx'
import { Banners } from './parts/banners.tsx'
import { ReplayBar } from './parts/replay-bar.tsx'
import { Footer, TopBar } from './parts/shell.tsx'

type Page = ComponentType

export function App() {
  const known = session.value
  if (known?.required && !known.signedIn) return <LoginPage />
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <TopBar />
      <div>
        <Banners />
        <ReplayBar />
      </div>
      <main id="main" tabIndex={-1}>
        <CurrentPage />
      </main>
      <Footer />
    </div>
  )
}

/** No link: the address says which page is shown, and would lead to another. */
function skip(): void {
  document.getElementById('main')?.focus()
}

async function loadPage(name: string): Promise<Page> {
  return PAGES.find((page) => page.name === name)?.load() ?? NoSuchPage
}

function CurrentPage() {
  const name = place.value.parts[0] ?? ''
  const [shown, setShown] = useState<{ name: string; page: Page } | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  // A page that could not be loaded is tried again when the agent is back.
  const attempt = fault === null ? 0 : epoch.value
  useEffect(() => {
    let isWanted = true
    loadPage(name).then(
      (page) => {
        if (!isWanted) return
        setShown({ name, page })
        setFault(null)
      },
      // The agent was replaced by another version meanwhile: its files have other names.
      () => isWanted && setFault('This page could not be loaded. Reload to get the current version.'),
    )
    return () => {
      isWanted = false
    }
  }, [name, attempt])
  if (fault !== null && link.value.state !== 'live')
    return (
      <p class="fault" role="alert">
        This page has not been loaded yet, and the agent does not answer. It appears as soon as the agent is back.
      </p>
    )
  if (fault !== null)
    return (
      <p class="fault" role="alert">
        {fault}{' '}
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </p>
    )
  if (!shown) return <p class="faint">Loading…</p>
  const { page: Shown } = shown
  return <Shown />
}
