/** Is there a GPU, and does its driver answer? Drivers are tried in the sampler process, as everywhere. */
import { accessSync, constants, existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { VENDOR_NAMES, VENDORS } from '../../sources/vendors.ts'
import { advice, type Check, type CheckResult, missing, ok } from './check.ts'

const DISPLAY_CLASS = '0x03'

const TOOLS = VENDORS.map(({ help }) => help.tool).join(' or ')
const HUNG = `Look for XIDs and hung tasks in the kernel log (dmesg). If ${TOOLS} hangs as well, the machine needs a reboot.`

function isHung(message: string | null): boolean {
  return message?.includes('not responding') ?? false
}

export const checkGpus: Check = async ({ values, sampling }) => {
  const onBus = cardsOnBus(values.root)
  const openings = await Promise.all(VENDORS.map(async ({ name, help }) => ({ help, ...(await sampling.supervisor.open(name)) })))
  const results: CheckResult[] = []
  for (const { source, help, result, message } of openings) {
    const cards = onBus.get(source) ?? 0
    if (result === 'opened') results.push(ok(source, describeDevices(sampling, source)))
    else if (result === 'failed')
      results.push(missing(source, message ?? 'the driver does not answer', isHung(message) ? HUNG : help.install))
    else if (cards > 0) results.push(missing(source, `${cards} card(s) on the PCI bus, but no driver answers for them`, help.install))
  }
  if (openings.every((opening) => opening.result === 'absent') && results.length === 0)
    results.push(
      missing(
        'gpu',
        `no GPU found (looked for ${VENDOR_NAMES.join(' and ')}): only simulated GPUs can be shown`,
        `On a GPU machine install the driver; in a container pass the GPU (${VENDORS.map(({ help }) => help.container).join(', or ')}). To try gpuwarden without one: gpuwarden monitor --source demo`,
      ),
    )
  return results
}

function describeDevices(sampling: Parameters<Check>[0]['sampling'], source: string): string {
  const devices = sampling.state.devices().filter((device) => device.vendor === source)
  const first = devices[0]
  const driver = first?.driverVersion ? `, driver ${first.driverVersion}` : ''
  const cuda = first?.cudaVersion ? `, CUDA ${first.cudaVersion}` : ''
  return `${devices.length} device(s): ${devices.map((device) => device.name ?? device.id).join(', ')}${driver}${cuda}`
}

function cardsOnBus(root: string): Map<string, number> {
  const found = new Map<string, number>()
  const folder = join(root, 'sys/bus/pci/devices')
  if (!existsSync(folder)) return found
  for (const address of readdirSync(folder)) {
    const number = readOr(join(folder, address, 'vendor'))
    const vendor = VENDORS.find(({ pciVendor }) => pciVendor === number)?.name
    if (vendor && readOr(join(folder, address, 'class')).startsWith(DISPLAY_CLASS)) found.set(vendor, (found.get(vendor) ?? 0) + 1)
  }
  return found
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
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
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}
