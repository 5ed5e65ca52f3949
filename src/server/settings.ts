import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

const port = z.number().int().min(0).max(65_535)

export const serverSettings = {
  'server.enabled': setting<boolean>({
    schema: z.boolean(),
    default: true,
    help: 'Serve the HTTP API, the live stream and /metrics.',
  }),
  'server.host': setting<string>({
    schema: z.string().min(1),
    default: '127.0.0.1',
    help: 'Address to listen on; any address but a loopback one needs a token.',
    flag: '--host <address>',
  }),
  'server.port': setting<number>({
    schema: port,
    default: 4780,
    help: 'Port of the HTTP server; 0 takes any free one.',
    flag: '--port <port>',
  }),
  'server.token': setting<string | null>({
    schema: z.string().min(8, 'must be at least 8 characters long').nullable(),
    default: null,
    help: 'Token that every request must send as `Authorization: Bearer`; other users can see it in the process list, so prefer --token-file.',
    flag: '--token <token>',
    secret: true,
  }),
  'server.token_file': setting<string | null>({
    schema: z.string().min(1).nullable(),
    default: null,
    help: 'File that holds the token; if it does not exist, it is created with a random token that only you can read.',
    flag: '--token-file <file>',
  }),
  'server.prometheus_port': setting<number | null>({
    schema: port.nullable(),
    default: null,
    help: 'A second port that serves only /metrics and /healthz.',
    flag: '--prometheus-port <port>',
  }),
  'server.allowed_hosts': setting<readonly string[]>({
    schema: z.array(z.string().min(1)),
    default: [],
    help: 'Allow list of other host names that the server answers to; a leading dot allows every name below it.',
  }),
  'server.max_clients': setting<number>({
    schema: z.number().int().min(1).max(10_000),
    default: 64,
    help: 'Most clients of the live stream at the same time.',
  }),
  'server.allow_kill': setting<boolean>({
    schema: z.boolean(),
    default: false,
    help: 'Lets anyone with the token end processes on the GPUs from the web UI, with the rights of the user that runs gpuwarden; has no effect without a token.',
  }),
  'server.web_dir': setting<string | null>({
    schema: z.string().min(1).nullable(),
    default: null,
    help: 'Folder with another web UI, served without the token; by default the one that comes with gpuwarden.',
  }),
} satisfies Settings

export type ServerSettings = ValuesOf<typeof serverSettings>
