/** Is there a GPU, and does its driver answer? Drivers are tried in the sampler process, as everywhere. */
import { accessSync, constants, existsSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { DriverFaultKind } from '../../core/source-contract.ts'
import type { Vendor } from '../../core/vendor.ts'
import type { Opening } from '../../sampler/source-record.ts'
import { undrivenInWords } from '../../sources/driver-fault.ts'
import { type BusCard, type CardUse, PciBus } from '../../sources/pci-bus.ts'
import { VENDOR_NAMES, VENDORS } from '../../sources/vendors.ts'
import { advice, type Check, type CheckResult, missing, ok } from './check.ts'

/** What to do about a fault whose message does not say it; `tool`: the driver's own command. */
const FIXES: Readonly<Partial<Record<DriverFaultKind, (tool: string) => string>>> = {
  not_responding: (tool) =>
    `Look for errors of the driver and hung tasks in the kernel log (dmesg). If ${tool} hangs as well, the machine needs a reboot.`,
  crashed: (tool) => `Look for errors of the driver in the kernel log (dmesg). If ${tool} crashes as well, install the driver again.`,
}

export const checkGpus: Check = async ({ values, sampling }) => {
  const bus = new PciBus(values.root).cards()
  const openings = await Promise.all(VENDORS.map(({ name }) => sampling.supervisor.open(name)))
  const results: CheckResult[] = []
  for (const { source, result, fault, message } of openings) {
    if (result === 'opened') results.push({ ...ok(source, describeDevices(sampling, source)), kind: 'gpus' })
    else if (fault !== null) {
      const tool = VENDORS.find(({ name }) => name === source)?.help.tool ?? 'the command of the driver'
      results.push({ ...missing(source, message ?? 'the driver does not answer', FIXES[fault]?.(tool) ?? null), kind: `driver_${fault}` })
    }
  }
  for (const vendor of VENDORS) results.push(...unread(vendor, bus, openings.find(({ source }) => source === vendor.name)?.result))
  if (results.length === 0) results.push({ ...missing('gpu', NOTHING_FOUND, NOTHING_FOUND_FIX), kind: 'no_gpu_found' })
  return results
}

const NOTHING_FOUND = `no GPU found (looked for ${VENDOR_NAMES.join(' and ')})`
const NOTHING_FOUND_FIX = `On a GPU machine install the driver; in a container pass the GPU (${VENDORS.map(({ help }) => help.container).join(', or ')}). To try gpuwarden without one: gpuwarden monitor --source demo`

/** Cards on the bus that their driver does not show. */
function unread(vendor: Vendor, bus: readonly BusCard[], result: Opening['result'] | undefined): CheckResult[] {
  const { name, title } = vendor
  const of = (use: CardUse) => bus.filter((card) => card.vendor === name && card.use === use)
  const count = (cards: readonly BusCard[]) => `${cards.length} ${title} card${cards.length === 1 ? '' : 's'}`
  const results: CheckResult[] = []
  const [given, display, undriven] = [of('vm'), of('display'), of('undriven')]
  if (given.length > 0)
    results.push({ ...advice(name, `${count(given)} given to a VM (${given[0]?.driver}), not watched`, null), kind: 'given_to_vm' })
  if (display.length > 0)
    results.push({
      ...advice(name, `${count(display)} on ${display[0]?.driver ?? 'no driver'}: for a picture at most, not watched`, null),
      kind: 'display_only',
    })
  // Where nothing could be opened, the fault of the driver says it.
  if (undriven.length > 0 && result === 'opened')
    results.push({ ...missing(name, undrivenInWords(vendor, undriven), null), kind: 'driver_no_driver' })
  return results
}

function describeDevices(sampling: Parameters<Check>[0]['sampling'], source: string): string {
  const devices = sampling.state.devices().filter((device) => device.vendor === source)
  const first = devices[0]
  const driver = first?.driverVersion ? `, driver ${first.driverVersion}` : ''
  const cuda = first?.cudaVersion ? `, CUDA ${first.cudaVersion}` : ''
  return `${devices.length} device(s): ${devices.map((device) => device.name ?? device.id).join(', ')}${driver}${cuda}`
}

const NO_KILLS = 'runs that the kernel kills because memory ran out are reported without that cause'

/** What makes the picture fuller but is not needed. */
export const checkPermissions: Check = async ({ values, sampling }) => {
  const results: CheckResult[] = []
  const present = new Set(sampling.state.devices().map(({ vendor }) => vendor))
  const missed = VENDORS.flatMap(({ name, help }) => (help.kernelLog !== null && present.has(name) ? [help.kernelLog] : []))
  if (!canRead(join(values.root, 'dev/kmsg')))
    results.push(
      advice('kernel log', `/dev/kmsg cannot be read: ${[NO_KILLS, ...missed].join('; ')}`, 'Run as root, or give the service CAP_SYSLOG.'),
    )
  for (const { help, title } of VENDORS)
    if (help.computeFile !== null && existsSync(join(values.root, help.computeFile)) && !canUse(join(values.root, help.computeFile)))
      results.push(
        advice(
          help.computeFile,
          `this user may not use /${help.computeFile}, so its programs cannot compute on the ${title} cards`,
          'Add the user to the groups render and video, and log in again; in a container, pass the device and these groups (--group-add).',
        ),
      )
  const namespace = ownPidNamespace(values.root)
  if (namespace !== null && namespace !== INITIAL_PID_NAMESPACE)
    results.push(
      advice(
        'processes',
        'this container has its own PID namespace: drivers report PIDs of the host, and their owners are not visible here',
        'Start the container with --pid=host (Kubernetes: hostPID: true).',
      ),
    )
  else if (process.getuid?.() !== 0 && !canRead(join(values.root, 'proc/1/stat')))
    results.push(
      advice(
        'processes',
        '/proc is mounted with hidepid: the owners of processes of other users are not visible',
        'Run as root or add the user to the group that hidepid exempts.',
      ),
    )
  else results.push(ok('processes', 'owners and commands of GPU processes can be looked up'))
  return results
}

/** The kernel's fixed number for the first PID namespace (PROC_PID_INIT_INO). */
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]'

function ownPidNamespace(root: string): string | null {
  try {
    return readlinkSync(join(root, 'proc/self/ns/pid'))
  } catch {
    return null
  }
}

function canRead(path: string): boolean {
  return may(path, constants.R_OK)
}

function canUse(path: string): boolean {
  return may(path, constants.R_OK | constants.W_OK)
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
