import { place } from '../location.ts'
import { PAGE_LINKS } from '../page-list.ts'
import { Empty, Panel } from '../parts/parts.tsx'

const LONGEST = 80

export function NoSuchPage() {
  const path = place.value.parts.join('/')
  return (
    <>
      <h1>There is no such page</h1>
      <Panel>
        <Empty title={`Nothing is at #/${path.length > LONGEST ? `${path.slice(0, LONGEST)}…` : path}`}>
          The link may be incomplete or mistyped. These pages exist:
        </Empty>
        <nav class="ways-out" aria-label="Pages that exist">
          {PAGE_LINKS.map(({ name, label }) => (
            <a key={name} class="button" href={`#/${name}`}>
              {label}
            </a>
          ))}
        </nav>
      </Panel>
    </>
  )
}
