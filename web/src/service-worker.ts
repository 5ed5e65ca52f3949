/// <reference lib="webworker" />
export {}

declare const self: ServiceWorkerGlobalScope

interface PushPayload {
  readonly title: string
  readonly body: string
  readonly tone?: string
  readonly tag?: string
  readonly url?: string
}

self.addEventListener('install', () => void self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))

self.addEventListener('push', (event) => {
  const payload = event.data?.json() as PushPayload | undefined
  if (!payload) return
  event.waitUntil(
    self.registration.showNotification(payload.title, {
      body: payload.body,
      icon: '/icon-192.png',
      ...(payload.tag ? { tag: payload.tag } : {}),
      data: { url: payload.url ?? '/#/alerts' },
    }),
  )
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(show(String((event.notification.data as { url?: string } | null)?.url ?? '/#/alerts')))
})

/** An open web UI is reused; only pages of this agent are opened. */
async function show(url: string): Promise<void> {
  const target = new URL(url, self.location.origin)
  const own = target.origin === self.location.origin ? target.href : `${self.location.origin}/#/alerts`
  const [open] = await self.clients.matchAll({ type: 'window' })
  if (!open) {
    await self.clients.openWindow(own)
    return
  }
  await open.navigate(own)
  await open.focus()
}
