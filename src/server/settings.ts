import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'

const port = z.number().int().min(0).max(65_535)

export const serverSettings = {
  'server.enabled': setting(z.boolean(), true, 'Serve the HTTP API, the live stream and /metrics.'),
  'server.host': setting(z.string().min(1), '127.0.0.1', 'Address to listen on; any address other than loopback needs a token.', {
    flag: '--host <address>',
  }),
  'server.port': setting(port, 4780, 'Port of the HTTP server; 0: any free port.', { flag: '--port <port>' }),
  'server.token': setting(
    z.string().min(8, 'must be at least 8 characters long').nullable(),
    null,
    'Token that every request must send as `Authorization: Bearer`; other users can see it in the process list, so prefer --token-file.',
    { flag: '--token <token>', secret: true },
  ),
  'server.token_file': setting(
    z.string().min(1).nullable(),
    null,
    'File that holds the token; if missing, it is created with a random token, readable only by you.',
    { flag: '--token-file <file>' },
  ),
  'server.prometheus_port': setting(port.nullable(), null, 'A second port that serves only /metrics and /healthz.', {
    flag: '--prometheus-port <port>',
  }),
  'server.allowed_hosts': setting<readonly string[]>(
    z.array(z.string().min(1)),
    [],
    'More host names under which the server answers (localhost and this host always work); a leading dot allows every subdomain.',
  ),
  'server.max_clients': setting(z.number().int().min(1).max(10_000), 64, 'How many clients may follow the live stream at the same time.'),
  'server.allow_kill': setting(
    z.boolean(),
    false,
    'Let whoever has the token end processes on the GPUs from the web UI, with the rights of the user that runs gpuwarden; never without a token.',
  ),
  'server.max_upload_mb': setting(
    z.number().int().min(0).max(65_536),
    2048,
    'How many MiB of memory snapshots may be uploaded to look at them, all together; 0: none. They are kept in the temporary folder until the agent ends.',
  ),
  'server.web_dir': setting(
    z.string().min(1).nullable(),
    null,
    'Folder with the files of another web UI, served without the token; default: the one that comes with gpuwarden.',
  ),
} satisfies Settings

export type ServerSettings = ValuesOf<typeof serverSettings>
