/** Web push over HTTP: how a browser subscribes to notifications, and unsubscribes. */
import { z } from 'zod'
import { type Reply, type Route, type RouteContext, route } from '../core/route.ts'
import type { PushSubscriptions } from './push-subscriptions.ts'

const nothing = z.strictObject({})

const SUBSCRIPTIONS = {
  path: '/api/v1/push/subscriptions',
  body: z.looseObject({ endpoint: z.string() }),
  bodyLimitBytes: 8 * 1024,
  answer: z.strictObject({ subscriptions: z.number().int().describe('How many browsers there are now') }),
  errors: ['unavailable'],
} as const

/** null: there is no folder to keep keys and browsers in, or alerts are off. */
export function pushRoutes(push: PushSubscriptions | null): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v1/push/key',
      summary: 'The public key that a browser subscribes with (applicationServerKey, base64url)',
      query: nothing,
      answer: z.strictObject({ publicKey: z.string() }),
      errors: ['unavailable'],
      handler: (context) => withDisk(context, push, async (store) => ({ publicKey: (await store.keys()).publicKey })),
    }),
    route({
      method: 'POST',
      ...SUBSCRIPTIONS,
      summary: 'Subscribes a browser to notifications: the body is what PushSubscription.toJSON() returns',
      handler: (context) =>
        withDisk(context, push, async (store) => {
          const added = await store.add(context.body)
          return added.ok ? { subscriptions: store.list().length } : context.refuse('invalid_body', `${added.reason}.`)
        }),
    }),
    route({
      method: 'DELETE',
      ...SUBSCRIPTIONS,
      summary: 'Unsubscribes a browser from notifications; an unknown one is not an error',
      handler: (context) =>
        withDisk(context, push, async (store) => {
          await store.remove(context.body.endpoint)
          return { subscriptions: store.list().length }
        }),
    }),
  ]
}

async function withDisk<T>(
  context: RouteContext,
  push: PushSubscriptions | null,
  use: (store: PushSubscriptions) => Promise<T>,
): Promise<T | Reply> {
  if (!push) return unavailable(context, 'There is no folder to keep them in: set alerts.dir, or turn the log and the alerts on.')
  try {
    return await use(push)
  } catch (error) {
    context.log.warn({ err: error }, 'the keys or subscriptions of web push cannot be read or written')
    return unavailable(context, 'Their files cannot be read or written now: see the log of the agent.')
  }
}

function unavailable({ refuse }: RouteContext, hint: string): Reply {
  return { ...refuse('unavailable', 'Browser notifications are not available.', hint), expected: true }
}
