/** A GPU that no driver answers for is a fault that everybody sees, and it is over when the driver comes. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SourceHealth } from '../src/core/model.ts'
import { VENDORS } from '../src/sources/vendors.ts'
import { buildFakeNvml, type FakeNvmlValues, fakeNvmlScript } from './fake-nvml/index.ts'
import { driver, gpusOf, type Health, Machine, monitor, NVIDIA } from './machine.ts'
import { BIN, FIXTURES, type RunningAgent, run, temporaryFolder, until } from './program.ts'

interface Alerts {
  readonly alerts: readonly { readonly state: string; readonly finding: { readonly detector: string; readonly message: string } }[]
}

/** A driver that starts slower than this hangs, for this test. */
const IMPATIENT = { GPUWARDEN_OPEN_DEADLINE: '3', GPUWARDEN_DEADLINE: '2' }

function twoCards(driver?: string): Machine {
  const card = driver === undefined ? NVIDIA : { ...NVIDIA, driver }
  // The sound of a card is no card.
  return new Machine({ '0000:01:00.0': card, '0000:01:00.1': { vendor: '0x10de', class: '0x040300' }, '0000:02:00.0': card })
}

const portOf = ({ url }: RunningAgent) => new URL(url).port

/** What everybody has to see of it, and no sign of a simulation or of a vendor that is not there. */
async function expectFault(agent: RunningAgent, reason: RegExp, source = 'nvidia', rows = 2): Promise<void> {
  const gpus = await until('the rows are there', async () => {
    const all = await gpusOf(agent)
    return all.length === rows && all.every(({ sample }) => sample?.state === 'no_driver' && reason.test(sample.stateReason ?? ''))
      ? all
      : null
  })
  for (const { info, sample } of gpus)
    expect([info.vendor, info.provenance, sample?.memoryUsedBytes, sample?.processes]).toEqual([source, 'live', null, null])
  const health = await agent.get<Health>('/api/v1/health')
  expect(health.status).toBe('degraded')
  expect(health.sources.map((one) => one.source).sort()).toEqual([source, 'host'].sort())
  expect((await fetch(`${agent.url}/readyz`)).status).toBe(503)
  const metrics = await agent.text('/metrics')
  expect(metrics).toMatch(new RegExp(`^gpuwarden_up\\{source="${source}"\\} 0$`, 'm'))
  if (rows > 0) expect(metrics).toMatch(/^gpuwarden_gpu_state\{[^}]*state="no_driver"\} 1$/m)
  expect(metrics).not.toMatch(/^gpu_memory_used_mb/m)
  await until('there is an alert', async () =>
    (await agent.get<Alerts>('/api/v1/alerts')).alerts.some(
      ({ finding }) => finding.detector === 'driver_stuck' && reason.test(finding.message),
    ),
  )
  const status = await run(['status', '--port', portOf(agent)])
  expect(status.code).toBe(5)
  expect(status.stdout).toMatch(reason)
  if (rows > 0) expect(status.stdout).toMatch(/^0 .* no driver /m)
}

describe('an NVIDIA card', { timeout: 120_000 }, () => {
  it('without a driver', async () => {
    const machine = twoCards()
    await expectFault(await monitor(machine.env), /no driver is loaded\. Install the NVIDIA driver/)
    const own = await run(['status', '--port', '1'], machine.env)
    expect([own.code, own.stdout]).toEqual([5, expect.stringMatching(/^1 .* no driver [\s\S]*Install the NVIDIA driver/m)])
    const json = await run(['status', '--json', '--port', '1'], machine.env)
    expect([json.code, JSON.parse(json.stdout).devices['1']]).toMatchObject([5, { state: 'no_driver', temperature_celsius: null }])
    expect(await run(['metrics'], machine.env)).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/^gpuwarden_up\{source="nvidia"\} 0$/m),
    })
    const top = await run(['top', '--once', '--port', '1'], machine.env)
    expect(top.stdout.replace(/\s+/g, ' ')).toMatch(/NO DRIVER: NVIDIA: .* Install the NVIDIA driver of your distribution/)
    expect(top.stdout).not.toContain('SIMULATED')
  })

  it.each([
    ['bound to nouveau', 'nouveau', {}, /bound to nouveau, which gives no readings/],
    [
      'of which NVML says that its driver is not loaded',
      undefined,
      { init: 9 },
      /not loaded \(NVML code 9\): load it with `modprobe nvidia`/,
    ],
    ['whose library was updated without the driver', 'nvidia', { init: 18 }, /different versions \(NVML code 18\).*reboot, or .*reload/],
    ['that the user may not open', 'nvidia', { init: 4 }, /no permission \(NVML code 4\).*join the group/],
    ['that the driver does not list', 'nvidia', { gpus: 0 }, /the driver is loaded, but lists no GPU, although the PCI bus shows 2 cards/],
    ['whose driver crashes in its start', 'nvidia', { crash: ['nvmlInit_v2'] }, /nvidia driver crashed while it started: .*SIGSEGV/],
    ['whose driver hangs in its start', 'nvidia', { hang: ['nvmlInit_v2'] }, /nvidia driver is not responding while it starts: no answer/],
  ])('%s', async (_name, bound, values, reason) => {
    const machine = twoCards(bound)
    if (bound === 'nvidia') machine.write('dev/nvidiactl', '')
    const env = Object.keys(values).length === 0 ? {} : driver(values)
    await expectFault(await monitor({ ...machine.env, ...env, ...IMPATIENT }), reason)
  })

  it('in a container that was not given its device files', async () => {
    const { env } = twoCards('nvidia')
    await expectFault(
      await monitor(env),
      /the driver runs, but \/dev\/nvidiactl is missing here\. In a container, start it with "--gpus all"/,
    )
  })

  it.each([
    ['is not there', () => undefined, /there is no library at .*gone\.so/],
    ['is no library', (path: string) => writeFileSync(path, 'text'), /cannot be loaded as a library/],
    ['is for another machine', (path: string) => copyForeign(path), /is for (x64|arm64), and this program runs on/],
  ])('with a named library that %s', async (_name, make, reason) => {
    const machine = twoCards('nvidia')
    machine.write('dev/nvidiactl', '')
    const library = join(machine.root, 'gone.so')
    make(library)
    await expectFault(await monitor({ ...machine.env, GPUWARDEN_NVML: library }), reason)
  })

  it('that is not on the bus: a named library that lists none is a fault all the same', async () => {
    await expectFault(await monitor({ ...new Machine().env, ...driver({ gpus: 0 }) }), /lists no GPU: correct GPUWARDEN_NVML/, 'nvidia', 0)
  })
})

/** The cards of other vendors are read through files of the kernel's driver alone. */
const OTHERS = VENDORS.flatMap(({ name, title, pciVendor, driver: { deviceFile }, help }) =>
  pciVendor === null || deviceFile !== null ? [] : [{ name, title, pciVendor, help }],
)

it.each(OTHERS)('a card of $title without its kernel driver is one, too', { timeout: 60_000 }, async ({ name, title, pciVendor, help }) => {
  const { env } = new Machine({ '0000:03:00.0': { vendor: pciVendor, class: '0x030000' } })
  await expectFault(
    await monitor(env),
    new RegExp(`${title}: the card at 0000:03:00.0: no driver is loaded. ${help.install.slice(0, 20)}`),
    name,
    1,
  )
})

describe('when the driver comes', { timeout: 120_000 }, () => {
  const isReal = async (agent: RunningAgent, count = 2) => {
    const gpus = await gpusOf(agent)
    return gpus.length === count && gpus.every(({ info, sample, live }) => live && sample?.state === 'ok' && info.id.startsWith('GPU-'))
  }

  it.each([
    ['by a library that is put in place', {}],
    ['after it had crashed', { crash: ['nvmlInit_v2'] }],
    ['after it had hung', { hang: ['nvmlInit_v2'] }],
  ])('it is read within ten seconds: %s', async (_name, broken: FakeNvmlValues) => {
    const machine = twoCards('nvidia')
    machine.write('dev/nvidiactl', '')
    const library = join(machine.root, 'libnvidia-ml.so.1')
    const script = fakeNvmlScript(broken)
    onTestFinished(() => script.remove())
    if (Object.keys(broken).length > 0) copyFileSync(buildFakeNvml(), library)
    const agent = await monitor({ ...machine.env, ...script.env, ...IMPATIENT, GPUWARDEN_NVML: library })
    await until('it is a fault', async () => (await gpusOf(agent)).some(({ sample }) => sample?.state === 'no_driver'))
    await until('it was tried several times', async () => ((await sourceOf(agent))?.restarts ?? 0) > 1)
    script.update({ crash: null, hang: null })
    copyFileSync(buildFakeNvml(), `${library}.new`)
    renameSync(`${library}.new`, library)
    await until('the GPUs are real', () => isReal(agent), 10_000)
    expect((await gpusOf(agent)).map(({ info }) => info.index)).toEqual([0, 1])
    await until('all is well', async () => (await agent.get<Health>('/api/v1/health')).status === 'ok')
    await until('the alert is over', async () =>
      (await agent.get<Alerts>('/api/v1/alerts')).alerts.every(
        ({ finding, state }) => finding.detector !== 'driver_stuck' || state !== 'firing',
      ),
    )
    expect(await agent.text('/metrics')).toMatch(/^gpuwarden_up\{source="nvidia"\} 1$/m)
    expect((await run(['status', '--port', portOf(agent)])).code).toBe(0)
    expect(agent.lines('gpu_events').filter(({ event }) => event === 'lost')).toEqual([])
  })
})

async function sourceOf(agent: RunningAgent, name = 'nvidia'): Promise<SourceHealth | undefined> {
  return (await agent.get<Health>('/api/v1/health')).sources.find(({ source }) => source === name)
}

function copyForeign(path: string): void {
  const bytes = readFileSync(buildFakeNvml())
  bytes.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18)
  writeFileSync(path, bytes)
}

describe('a card among others', { timeout: 60_000 }, () => {
  it('is a fault of its own where the others have their driver', async () => {
    // The fake driver lists the cards at 10:00.0 and 11:00.0.
    const machine = new Machine({
      '0000:10:00.0': { ...NVIDIA, driver: 'nvidia' },
      '0000:11:00.0': { ...NVIDIA, driver: 'nvidia' },
      '0000:12:00.0': NVIDIA,
      '0000:13:00.0': { ...NVIDIA, driver: 'nvidia' },
    })
    const agent = await monitor({ ...machine.env, ...driver({ gpus: 2 }) })
    const gpus = await until('its row is there', async () => {
      const all = await gpusOf(agent)
      return all.length === 3 ? all : null
    })
    // The fourth is bound to the driver, which does not show it here: it belongs to another container.
    expect(gpus.map(({ info, sample }) => [info.pciBusId, sample?.state])).toEqual([
      ['00000000:10:00.0', 'ok'],
      ['00000000:11:00.0', 'ok'],
      ['00000000:12:00.0', 'no_driver'],
    ])
    expect((await agent.get<Health>('/api/v1/health')).status).toBe('degraded')
    await until('there is an alert about it alone', async () => {
      const { alerts } = await agent.get<Alerts>('/api/v1/alerts')
      return alerts.length === 1 && alerts[0]?.finding.message.startsWith('GPU 2 has no driver. NVIDIA: the card at 0000:12:00.0')
    })
    expect((await run(['status', '--port', portOf(agent)])).code).toBe(5)
  })

  it('that comes while others are read is read, too', async () => {
    const bound = { ...NVIDIA, driver: 'nvidia' }
    const machine = new Machine({ '0000:10:00.0': bound, '0000:11:00.0': bound })
    const script = fakeNvmlScript({ gpus: 2 })
    onTestFinished(() => script.remove())
    const agent = await monitor({ ...machine.env, GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    await until('two are read', async () => (await gpusOf(agent)).length === 2)
    script.update({ gpus: 3 })
    machine.plug('0000:12:00.0', bound)
    const isRead = async () => {
      const gpus = await gpusOf(agent)
      return gpus.length === 3 && gpus.every(({ sample, live }) => live && sample?.state === 'ok') ? gpus : null
    }
    expect((await until('the third is read', isRead, 10_000)).map(({ info }) => info.index)).toEqual([0, 1, 2])
    await agent.stop()
    expect(agent.lines('gpu_events')).toEqual([])
  })

  it('that had its driver, and has none any more, says so in its own row', async () => {
    const machine = new Machine({ '0000:10:00.0': { ...NVIDIA, driver: 'nvidia' }, '0000:11:00.0': { ...NVIDIA, driver: 'nvidia' } })
    const script = fakeNvmlScript({ gpus: 2 })
    onTestFinished(() => script.remove())
    const agent = await monitor({ ...machine.env, GPUWARDEN_NVML: buildFakeNvml(), ...script.env })
    const states = async () => (await gpusOf(agent)).map(({ info, sample }) => [info.id.slice(0, 4), sample?.state])
    await until('they are read', async () => (await states()).every(([, state]) => state === 'ok'))
    script.update({ init: 9, crash: ['nvmlDeviceGetUtilizationRates'] })
    await until('both say it', async () => (await states()).every(([id, state]) => id === 'GPU-' && state === 'no_driver'))
    expect(await states()).toHaveLength(2)
    script.update({ init: null, crash: null })
    await until('they are read again', async () => (await states()).every(([, state]) => state === 'ok'), 10_000)
  })
})

describe('no fault', { timeout: 60_000 }, () => {
  it('is a card that was given to a VM', async () => {
    const { env } = twoCards('vfio-pci')
    const agent = await monitor(env)
    // On a busy machine the host's source may start slowly, which is a fault for a moment.
    await until('all is well', async () => (await agent.get<Health>('/api/v1/health')).status === 'ok')
    expect(await agent.get<Health>('/api/v1/health')).toMatchObject({ status: 'ok', sources: [{ source: 'host' }] })
    expect(await gpusOf(agent)).toEqual([])
    const status = await run(['status', '--port', '1'], env)
    expect([status.code, status.stderr]).toEqual([
      3,
      expect.stringContaining('2 NVIDIA cards are given to a VM (vfio-pci) and not watched'),
    ])
    const doctor = JSON.parse((await run(['doctor', '--json', '--port', '0'], env)).stdout)
    expect(doctor.checks).toContainEqual(expect.objectContaining({ name: 'nvidia', state: 'advice', kind: 'given_to_vm' }))
  })

  it('is a crash next to a vendor that was never there', async () => {
    const machine = twoCards('nvidia')
    const agent = await monitor({ ...machine.env, ...driver({ crash: ['nvmlInit_v2'] }) })
    await until('it crashed twice', async () => ((await sourceOf(agent))?.restarts ?? 0) > 1)
    expect((await agent.get<Health>('/api/v1/health')).sources.map(({ source }) => source).sort()).toEqual(['host', 'nvidia'])
  })
})

describe('status and doctor', { timeout: 60_000 }, () => {
  it.each([
    ['hangs', { hang: ['nvmlInit_v2'] }, 'driver_not_responding', /waiting for the nvidia driver to answer/],
    ['crashes', { crash: ['nvmlInit_v2'] }, 'driver_crashed', /^(?![\s\S]*waiting)/],
  ])('end within ten seconds where the driver %s in its start, and name it', async (_name, values, kind, said) => {
    const machine = twoCards('nvidia')
    const env = { ...machine.env, ...driver(values) }
    const begun = Date.now()
    const status = await run(['status', '--json', '--port', '1'], env)
    const statusMs = Date.now() - begun
    expect([status.code, status.stderr]).toEqual([5, expect.stringMatching(said)])
    const doctor = await run(['doctor', '--json', '--port', '0'], env)
    const doctorMs = Date.now() - begun - statusMs
    expect([doctor.code, doctor.stderr]).toEqual([1, expect.stringMatching(said)])
    expect(JSON.parse(doctor.stdout).checks).toContainEqual(expect.objectContaining({ name: 'nvidia', state: 'missing', kind }))
    expect(doctor.stdout).toContain('If nvidia-smi ')
    expect([statusMs < 10_000, doctorMs < 10_000]).toEqual([true, true])
  })

  it('say for which machine a library was built', async () => {
    const machine = twoCards('nvidia')
    const library = join(machine.root, 'foreign.so')
    copyForeign(library)
    const doctor = await run(['doctor', '--json', '--port', '0'], { ...machine.env, GPUWARDEN_NVML: library })
    expect(JSON.parse(doctor.stdout).checks).toContainEqual(
      expect.objectContaining({ name: 'nvidia', kind: 'driver_wrong_architecture', message: expect.stringContaining('is for') }),
    )
  })
})

it('cards of several vendors are watched in one run', { timeout: 60_000 }, async () => {
  // A card of AMD in a desktop whose processor has graphics, too.
  const root = join(temporaryFolder(), 'root')
  cpSync(join(FIXTURES, 'amd/radeon'), root, { recursive: true, verbatimSymlinks: true })
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const agent = await monitor({ GPUWARDEN_ROOT: root, ...driver({ gpus: 2 }) })
  const gpus = await until('all are read', async () => {
    const all = await gpusOf(agent)
    return all.length === 4 && all.every(({ sample, live }) => live && sample?.state === 'ok') ? all : null
  })
  expect(gpus.map(({ info }) => [info.index, info.vendor])).toEqual([
    [0, 'nvidia'],
    [1, 'nvidia'],
    [2, 'amd'],
    // Inside the processor of the same machine.
    [3, 'intel'],
  ])
  const metrics = await agent.text('/metrics')
  for (const vendor of ['nvidia', 'amd']) expect(metrics).toMatch(new RegExp(`^gpu_memory_used_mb\\{[^}]*vendor="${vendor}"`, 'm'))
})

it('a vendor without a driver next to one that is read: ready, degraded, and named', { timeout: 60_000 }, async () => {
  const root = join(temporaryFolder(), 'root')
  cpSync(join(FIXTURES, 'amd/radeon'), root, { recursive: true, verbatimSymlinks: true })
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const card = join(root, 'sys/bus/pci/devices/0000:41:00.0')
  mkdirSync(card, { recursive: true })
  for (const [file, text] of Object.entries({ vendor: '0x10de', class: '0x030200', device: '0x2330' }))
    writeFileSync(join(card, file), `${text}\n`)
  const agent = await monitor({ GPUWARDEN_ROOT: root })
  const rows = await until('all rows are there', async () => {
    const all = await gpusOf(agent)
    return all.some(({ sample }) => sample?.state === 'ok') && all.some(({ sample }) => sample?.state === 'no_driver') ? all : null
  })
  expect(rows.find(({ sample }) => sample?.state === 'no_driver')?.info.vendor).toBe('nvidia')
  const ready = await fetch(`${agent.url}/readyz`)
  expect([ready.status, await ready.json()]).toEqual([
    200,
    { status: 'ready', reasons: [expect.stringMatching(/^nvidia has been failed since .*no driver is loaded/)] },
  ])
  const health = await agent.get<Health>('/api/v1/health')
  expect(health.status).toBe('degraded')
  expect(await agent.text('/metrics')).toMatch(/^gpuwarden_up\{source="nvidia"\} 0$/m)
  await until('there is an alert', async () =>
    (await agent.get<Alerts>('/api/v1/alerts')).alerts.some(({ finding }) => finding.detector === 'driver_stuck'),
  )
  expect((await run(['status', '--port', portOf(agent)])).code).toBe(5)
})

it('a driver that is slow to start is named, is a warning until it answers, and holds up nobody', { timeout: 90_000 }, async () => {
  const machine = twoCards('nvidia')
  machine.write('dev/nvidiactl', '')
  // It counts as too slow after 8 s, and may take 30.
  const agent = await monitor({ ...machine.env, ...driver({ delay_us: ['nvmlInit_v2:20000000'], gpus: 2 }) })
  const sources = async () => {
    const { sources: all } = await agent.get<Health>('/api/v1/health')
    return new Map(all.map((one) => [one.source, one]))
  }
  const alert = await until('there is an alert', async () =>
    (await agent.get<Alerts>('/api/v1/alerts')).alerts.find(({ finding }) => finding.detector === 'driver_stuck'),
  )
  const message = /waiting for the nvidia driver to start: no answer for \d+(\.\d+)? s, up to 30 s are allowed \(open_deadline\)/
  expect(alert).toMatchObject({ state: 'firing', finding: { severity: 'warning', message: expect.stringMatching(message) } })
  await until('the host is read', async () => (await sources()).get('host')?.state === 'ok')
  const slow = (await sources()).get('nvidia')
  expect(slow).toMatchObject({ state: 'not_responding', restarts: 0, message: expect.stringMatching(message) })
  expect((await gpusOf(agent)).map(({ sample }) => sample?.state)).toEqual(['no_driver', 'no_driver'])
  const isRead = async () => (await gpusOf(agent)).every(({ info, sample }) => info.id.startsWith('GPU-') && sample?.state === 'ok')
  await until('it is read', isRead)
  expect((await sources()).get('nvidia')).toMatchObject({ state: 'ok', restarts: 0, pid: slow?.pid, message: null })
  await until('all is well', async () => (await agent.get<Health>('/api/v1/health')).status === 'ok')
  const { stderr } = await agent.stop()
  expect(
    stderr
      .split('\n')
      .filter((line) => message.test(line))
      .map((line) => JSON.parse(line).level),
  ).toEqual(['info', 'warn', 'warn'])
})

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0

describe.skipIf(!mayMount)('on this very machine, with another bus mounted over its own', { timeout: 60_000 }, () => {
  it('npm start shows the fault and no simulation', async () => {
    const machine = twoCards()
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'logs'))
    const script = `mount --bind "${machine.root}/sys/bus/pci/devices" /sys/bus/pci/devices && exec "${process.execPath}" "${BIN}" "$@"`
    const inside = (...args: string[]) => spawnSync('unshare', ['-m', 'sh', '-c', script, 'sh', ...args], { encoding: 'utf8', cwd: folder })
    const status = inside('status', '--port', '1')
    expect([status.status, status.stdout]).toEqual([5, expect.stringMatching(/^0 .* no driver [\s\S]*no driver is loaded/m)])
    const started = inside('monitor', '--or-demo', '--port', '0', '--duration', '3', '--log-dir', join(folder, 'logs'))
    expect(started.stderr).toMatch(/no driver is loaded/)
    expect(started.stderr).not.toMatch(/SIMULATED/)
  })
})
