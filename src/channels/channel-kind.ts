/** What a kind of channel is: a name, its options, and how one is opened. One file per kind, one line each in index.ts. */
import type { z } from 'zod'
import type { Channel } from '../core/alert-contract.ts'
import { resolveReferences } from './secrets.ts'

export interface ChannelEnv {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Folder of the alerts' state, with the keys and subscriptions of web push. */
  readonly stateDir: string
  /** Another time limit for one delivery, for tests. */
  readonly timeoutMs?: number
}

export interface ChannelKind {
  readonly name: string
  readonly schema: z.ZodType<object>
  /** What the configuration file must say, where the rest comes from elsewhere. */
  readonly written: z.ZodType<object>
  /** `options` as written; throws with the option's name when they are not valid. */
  open(name: string, options: unknown, env: ChannelEnv): Channel
}

interface KindDefinition<Options extends object> {
  readonly name: string
  readonly schema: z.ZodType<Options>
  readonly written?: z.ZodType<object>
  create(name: string, options: Options, env: ChannelEnv): Channel
}

export function channelKind<Options extends object>({ name, schema, written = schema, create }: KindDefinition<Options>): ChannelKind {
  return {
    name,
    schema,
    written,
    open(channel, options, env) {
      const parsed = schema.safeParse(resolveReferences(options, env.env, channel))
      if (!parsed.success) throw new Error(describeIssue(channel, parsed.error.issues[0]))
      return create(channel, parsed.data, env)
    },
  }
}

/** Where and what, never the value itself: it may be a secret. */
export function describeIssue(name: string, issue: z.core.$ZodIssue | undefined): string {
  const place = [name, ...(issue?.path ?? []).map(String)].join('.')
  return `${place}: ${issue?.message ?? 'not valid'}`
}
