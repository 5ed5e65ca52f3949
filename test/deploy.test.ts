/** The files for containers and clusters, held against a schema of ours: what they must have, and what they must not. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { KEYS, variableOf } from '../src/agent/config.ts'
import { pushSettings } from '../src/push/settings.ts'
import { copyOf, instructions } from './dockerfile.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const VARIABLES = new Set([...KEYS, ...Object.keys(pushSettings)].map(variableOf))

/** Every GPUWARDEN_ variable that is set in a file is one that gpuwarden reads. */
function unknownVariables(text: string): string[] {
  return [...new Set(text.match(/\bGPUWARDEN_[A-Z_]+(?=[=:]|\n\s+value)/g) ?? [])].filter(
    (name) => !VARIABLES.has(name) && name !== 'GPUWARDEN_TOKEN',
  )
}

const INSTRUCTIONS = ['FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD']

describe('deploy/Dockerfile', () => {
  const all = instructions(read('deploy/Dockerfile'))
  const last = all.slice(all.map(({ name }) => name).lastIndexOf('FROM'))

  it('has only instructions that we know, and a pinned base', () => {
    expect(all.map(({ name }) => name).filter((name) => !INSTRUCTIONS.includes(name))).toEqual([])
    for (const { text } of all.filter(({ name }) => name === 'FROM')) expect(text).toMatch(/^node:\d+-bookworm-slim( AS \w+)?$/)
  })

  it('runs as somebody other than root, in the form that needs no shell', () => {
    expect(last.find(({ name }) => name === 'USER')?.text).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    for (const { name, text } of last.filter((one) => ['CMD', 'ENTRYPOINT'].includes(one.name))) expect(text, name).toMatch(/^\[/)
    const order = last.map(({ name }) => name)
    expect(order.lastIndexOf('RUN')).toBeLessThan(order.indexOf('USER'))
  })

  it('asks the NVIDIA runtime for NVML alone, and sets only variables that there are', () => {
    const env = last.find(({ name }) => name === 'ENV')?.text ?? ''
    expect(env).toContain('NVIDIA_VISIBLE_DEVICES=all')
    expect(env).toContain('NVIDIA_DRIVER_CAPABILITIES=utility')
    expect(unknownVariables(read('deploy/Dockerfile'))).toEqual([])
    expect(last.some(({ name }) => name === 'HEALTHCHECK')).toBe(true)
  })

  it('copies what there is, and all that the program needs', () => {
    const copies = all.filter(({ name }) => name === 'COPY').map(copyOf)
    const sources = copies.flatMap((copy) => copy.sources.map((path) => path.replace('/src/', '')))
    expect(sources.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    const { files } = JSON.parse(read('package.json')) as { files: string[] }
    // Not the Python SDK, which belongs to the training, nor these files themselves.
    const needed = ['package.json', 'bin', 'dist', 'docs', 'grafana/dashboards', 'prometheus/rules', 'node_modules']
    expect(needed.filter((path) => !sources.includes(path))).toEqual([])
    expect(needed.filter((path) => !['package.json', 'node_modules'].includes(path) && !files.includes(path))).toEqual([])
  })

  it('leaves out of the build what is large or private', () => {
    const ignored = read('deploy/Dockerfile.dockerignore').split('\n')
    expect(ignored).toEqual(expect.arrayContaining(['.git', '.cache', 'node_modules', 'dist', 'gpu_logs']))
    const copied = all.filter(({ name }) => name === 'COPY').flatMap((one) => (copyOf(one).from === null ? copyOf(one).sources : []))
    expect(copied.filter((path) => ignored.includes(path))).toEqual([])
  })
})

const port = z.string().regex(/^127\.0\.0\.1:\d+:\d+$/, 'published to this machine only')

const composeService = z.strictObject({
  image: z.string().regex(/^[\w./-]+:[\w.-]+$/),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  command: z.array(z.string()).optional(),
  pid: z.literal('host').optional(),
  environment: z.record(z.string(), z.string()).optional(),
  ports: z.array(port),
  volumes: z.array(z.string().regex(/^[\w./-]+:\/[\w./-]+(:ro)?$/)),
  secrets: z.array(z.string()).optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  mem_limit: z.string().optional(),
  restart: z.literal('unless-stopped'),
})

const compose = z.strictObject({
  name: z.string(),
  services: z.strictObject({
    gpuwarden: composeService,
    prometheus: composeService,
    alertmanager: composeService,
    grafana: composeService,
  }),
  secrets: z.record(z.string(), z.strictObject({ environment: z.string() })),
  volumes: z.record(z.string(), z.null()),
})

describe('deploy/compose.yaml', () => {
  const file = compose.parse(parseYaml(read('deploy/compose.yaml')))

  it('gives gpuwarden the PIDs of the host and nothing to write to but its own', () => {
    expect(file.services.gpuwarden).toMatchObject({
      pid: 'host',
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(unknownVariables(read('deploy/compose.yaml'))).toEqual([])
  })

  it('mounts what there is', () => {
    for (const { volumes } of Object.values(file.services))
      for (const volume of volumes) {
        const [from = ''] = volume.split(':')
        if (from.startsWith('.')) expect(existsSync(join(ROOT, 'deploy', from)), from).toBe(true)
        else expect(Object.keys(file.volumes)).toContain(from)
      }
    for (const { secrets = [] } of Object.values(file.services)) for (const secret of secrets) expect(file.secrets).toHaveProperty(secret)
  })

  it('ties Prometheus to the agent, the rules and Alertmanager, and Grafana to Prometheus', () => {
    const config = parseYaml(read('prometheus/prometheus.yml'))
    expect(JSON.stringify(config)).toContain('"gpuwarden:4780"')
    expect(JSON.stringify(config)).toContain('"alertmanager:9093"')
    expect(config.rule_files).toEqual(['/etc/prometheus/rules/*.yml'])
    expect(parseYaml(read('grafana/provisioning/datasources/gpuwarden.yml')).datasources[0].url).toBe('http://prometheus:9090')
    const targets = z.array(
      z.strictObject({ targets: z.array(z.string().regex(/^[\w.-]+:\d+$/)), labels: z.record(z.string(), z.string()) }),
    )
    expect(targets.parse(JSON.parse(read('prometheus/file_sd/gpuwarden.json.example')))).not.toEqual([])
    expect(JSON.parse(read('prometheus/file_sd/gpuwarden.json'))).toEqual([])
  })
})

const labels = z.record(z.string(), z.string())
const metadata = z.strictObject({ name: z.literal('gpuwarden'), namespace: z.literal('gpuwarden'), labels })
const probe = z.strictObject({
  httpGet: z.strictObject({ path: z.enum(['/healthz', '/readyz']), port: z.literal('http') }),
  initialDelaySeconds: z.number().optional(),
  periodSeconds: z.number(),
  timeoutSeconds: z.number().optional(),
})

const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  imagePullPolicy: z.enum(['IfNotPresent', 'Always']),
  args: z.array(z.string()),
  env: z.array(z.strictObject({ name: z.string(), value: z.string().optional(), valueFrom: z.unknown().optional() })),
  ports: z.array(z.strictObject({ name: z.string().max(15), containerPort: z.literal(4780), protocol: z.literal('TCP') })),
  livenessProbe: probe,
  readinessProbe: probe,
  resources: z.strictObject({ requests: labels, limits: z.strictObject({ memory: z.string() }) }),
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.strictObject({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string().startsWith('/'), readOnly: z.boolean().optional() })),
})

const daemonSet = z.strictObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('DaemonSet'),
  metadata,
  spec: z.strictObject({
    selector: z.strictObject({ matchLabels: labels }),
    updateStrategy: z.unknown(),
    template: z.strictObject({
      metadata: z.strictObject({ labels, annotations: labels }),
      spec: z.strictObject({
        serviceAccountName: z.literal('gpuwarden'),
        automountServiceAccountToken: z.literal(false),
        hostPID: z.literal(true),
        runtimeClassName: z.string(),
        nodeSelector: labels,
        tolerations: z.array(labels),
        securityContext: z.strictObject({
          runAsNonRoot: z.literal(true),
          runAsUser: z.number().min(1),
          runAsGroup: z.number().min(1),
          fsGroup: z.number().min(1),
          seccompProfile: z.strictObject({ type: z.literal('RuntimeDefault') }),
        }),
        containers: z.tuple([container]),
        volumes: z.array(z.looseObject({ name: z.string() })),
      }),
    }),
  }),
})

const account = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('ServiceAccount'),
  metadata,
  automountServiceAccountToken: z.literal(false),
})
const service = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata,
  spec: z.strictObject({
    clusterIP: z.literal('None'),
    selector: labels,
    ports: z.array(z.strictObject({ name: z.string(), port: z.literal(4780), targetPort: z.literal('http') })),
  }),
})

describe('deploy/kubernetes/gpuwarden.yaml', () => {
  const text = read('deploy/kubernetes/gpuwarden.yaml')
  const [first, second, third, ...rest] = parseAllDocuments(text).map((document) => document.toJS())

  it('has an account, a DaemonSet and a service, as they should be', () => {
    account.parse(first)
    service.parse(third)
    expect(rest).toEqual([])
    const { spec } = daemonSet.parse(second)
    const pod = spec.template.spec
    expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels)
    const volumes = new Set(pod.volumes.map(({ name }) => name))
    expect(pod.containers[0].volumeMounts.filter(({ name }) => !volumes.has(name))).toEqual([])
    expect(service.parse(third).spec.selector).toEqual(spec.selector.matchLabels)
    expect(account.parse(first).metadata.name).toBe(pod.serviceAccountName)
    const ports = new Set(pod.containers[0].ports.map(({ name }) => name))
    for (const { targetPort } of service.parse(third).spec.ports) expect(ports).toContain(targetPort)
    for (const { httpGet } of [pod.containers[0].livenessProbe, pod.containers[0].readinessProbe]) expect(ports).toContain(httpGet.port)
    // What it writes to is mounted: everything else is read-only.
    const mounts = pod.containers[0].volumeMounts.map(({ mountPath }) => mountPath)
    expect(mounts).toEqual(expect.arrayContaining(['/tmp', read('deploy/Dockerfile').match(/GPUWARDEN_LOG_DIR=(\S+)/)?.[1]]))
    expect(unknownVariables(pod.containers[0].env.map(({ name }) => `${name}=`).join('\n'))).toEqual([])
  })

  it('is found by the Prometheus operator, with the token that the agents want', () => {
    const monitor = parseYaml(read('deploy/kubernetes/servicemonitor.yaml'))
    const [endpoint] = monitor.spec.endpoints
    const { spec } = daemonSet.parse(second)
    expect(monitor.spec.selector.matchLabels).toEqual(service.parse(third).metadata.labels)
    expect(monitor.spec.jobLabel in service.parse(third).metadata.labels).toBe(true)
    expect(service.parse(third).spec.ports.map(({ name }) => name)).toContain(endpoint.port)
    const secrets = spec.template.spec.volumes.flatMap((volume) => (volume as { secret?: { secretName: string } }).secret?.secretName ?? [])
    expect(secrets).toContain(endpoint.authorization.credentials.name)
    expect(text).toContain(`/etc/gpuwarden-token/${endpoint.authorization.credentials.key}`)
    expect(monitor.metadata).toEqual(service.parse(third).metadata)
  })

  it('says why it needs the PIDs of the node', () => {
    expect(text).toMatch(/# The driver reports the PIDs of the node[\s\S]{50,500}hostPID: true/)
  })
})
