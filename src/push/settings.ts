/** What can be configured about pushing: for machines that nobody can scrape. */
import { z } from 'zod'
import { type Settings, setting, type ValuesOf } from '../core/setting.ts'
import { portFault } from '../core/web-address.ts'

const url = z
  .url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' })
  .superRefine((text, context) => {
    const fault = URL.canParse(text) ? portFault(new URL(text)) : null
    if (fault !== null) context.addIssue({ code: 'custom', message: fault })
  })
  .nullable()

const text = z.string().min(1).nullable()

/** `a=1,b=2` from a flag or a variable, a map from the file. */
const pairs = z.preprocess(
  (value) =>
    typeof value === 'string'
      ? Object.fromEntries(
          value
            .split(',')
            .filter((part) => part.trim() !== '')
            .map(splitPair),
        )
      : value,
  z.record(z.string().min(1), z.coerce.string(), { error: 'expected comma-separated name=value pairs' }),
)

function splitPair(part: string): [string, string] {
  const at = part.indexOf('=')
  return at < 0 ? [part.trim(), ''] : [part.slice(0, at).trim(), part.slice(at + 1).trim()]
}

const labels = pairs.refine(
  (map) => Object.keys(map).every((name) => /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) && !name.startsWith('__')),
  'expected label names of letters, digits and _, not starting with __',
)

export const pushSettings = {
  'push.interval': setting(z.number().min(1).max(3600), 15, 'Seconds between two pushes by remote write or OTLP.'),
  'push.queue': setting(
    z.number().int().min(1).max(10_000),
    240,
    'How many unsent pushes are kept for each unreachable receiver; beyond it the oldest are dropped and counted.',
  ),
  'push.queue_mb': setting(z.number().min(1).max(1024), 16, 'How much memory the unsent pushes of one receiver may take, in MB.'),
  'push.instance': setting(text, null, "The label instance of pushed series, and OTLP's service.instance.id; default: the host name."),
  'push.labels': setting<Readonly<Record<string, string>>>(
    labels,
    {},
    'Labels added to every series sent by remote write, such as cluster=a,team=vision.',
  ),
  'push.remote_write.url': setting(url, null, 'Where to push with Prometheus remote write, such as http://vm:8428/api/v1/write.', {
    flag: '--remote-write <url>',
  }),
  'push.remote_write.headers': setting<Readonly<Record<string, string>>>(
    pairs,
    {},
    'HTTP headers for remote write, such as Authorization=Bearer …, X-Scope-OrgID=team.',
    { secret: true },
  ),
  'push.otlp.url': setting(url, null, 'Where to push OpenTelemetry metrics over HTTP (JSON), such as http://collector:4318/v1/metrics.', {
    flag: '--otlp <url>',
  }),
  'push.otlp.headers': setting<Readonly<Record<string, string>>>(
    pairs,
    {},
    'HTTP headers for OTLP, as OTEL_EXPORTER_OTLP_HEADERS has them: name=value,name=value.',
    { secret: true },
  ),
  'push.mlflow.url': setting(url, null, 'MLflow tracking server to which system metrics of the GPUs are written.'),
  'push.mlflow.run_id': setting(text, null, 'MLflow run that gets the metrics; without it, a run is created in push.mlflow.experiment.', {
    env: 'MLFLOW_RUN_ID',
  }),
  'push.mlflow.experiment': setting(
    z.string().min(1),
    'gpuwarden',
    'MLflow experiment in which a run is created when push.mlflow.run_id is not set; created if it does not exist.',
  ),
  'push.mlflow.interval': setting(z.number().min(1).max(3600), 10, 'Seconds over which values are averaged for MLflow.'),
  'push.mlflow.username': setting(text, null, 'User name for the MLflow server.', { env: 'MLFLOW_TRACKING_USERNAME' }),
  'push.mlflow.password': setting(text, null, 'Password for the MLflow server.', { env: 'MLFLOW_TRACKING_PASSWORD', secret: true }),
  'push.mlflow.token': setting(text, null, 'Bearer token for the MLflow server, instead of user name and password.', {
    env: 'MLFLOW_TRACKING_TOKEN',
    secret: true,
  }),
} satisfies Settings

export type PushSettings = ValuesOf<typeof pushSettings>
