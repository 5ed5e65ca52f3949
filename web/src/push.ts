/** Notifications in this browser: the service worker, and the agent's knowledge of it. */
import { ask } from './api.ts'

export type PushState = 'on' | 'off' | 'denied' | 'insecure' | 'unsupported'

/** Also makes the web UI installable. Not there without https, except on the same machine. */
export function registerWorker(): void {
  if (!('serviceWorker' in navigator)) return
  navigator.serviceWorker.register('/sw.js').catch((error: unknown) => console.warn('cannot register the service worker', error))
}

export async function pushState(): Promise<PushState> {
  if (!isSecureContext) return 'insecure'
  if (!('serviceWorker' in navigator) || !('PushManager' in globalThis)) return 'unsupported'
  if (Notification.permission === 'denied') return 'denied'
  const registration = await navigator.serviceWorker.getRegistration()
  return (await registration?.pushManager.getSubscription()) ? 'on' : 'off'
}

export async function subscribe(): Promise<void> {
  // Asked first: the browser wants it to follow the click at once.
  const permission = await Notification.requestPermission()
  if (permission !== 'granted') return
  const registration = await navigator.serviceWorker.ready
  const { publicKey } = await ask<{ publicKey: string }>('/api/v1/push/key')
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: keyBytes(publicKey) })
  try {
    await ask('/api/v1/push/subscriptions', {}, { method: 'POST', body: subscription.toJSON() })
  } catch (error) {
    // The agent does not know of it: then the browser must not expect notifications.
    await subscription.unsubscribe()
    throw error
  }
}

export async function unsubscribe(): Promise<void> {
  const registration = await navigator.serviceWorker.ready
  const subscription = await registration.pushManager.getSubscription()
  if (!subscription) return
  await ask('/api/v1/push/subscriptions', {}, { method: 'DELETE', body: { endpoint: subscription.endpoint } })
  await subscription.unsubscribe()
}

/** base64url → bytes. */
export function keyBytes(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
