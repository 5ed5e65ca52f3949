/** `gpuwarden hang DIR`: what the files of PyTorch's flight recorder say about a hang. */
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import { formatCount, printable } from '../core/format.ts'
import { type FlightDump, flightDump } from '../core/hang/flight-dump.ts'
import { type FlightFault, type FlightGroup, type FlightVerdict, flightVerdict } from '../core/hang/flight-verdict.ts'
import { PickleFault } from '../snapshot/read/opcodes.ts'
import { readValues } from '../snapshot/read/read-values.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'

const MOST_FILES = 16_384
const MOST_NAMED = 16

export async function hang(options: Readonly<Record<string, unknown>>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  if (args.length === 0)
    throw new Failure('which files? Give the folder into which PyTorch wrote them', {
      exitCode: EXIT.usage,
      hint: 'It is the folder of TORCH_FR_DUMP_TEMP_FILE (before torch 2.9: TORCH_NCCL_DEBUG_INFO_TEMP_FILE), one file per rank.',
    })
  const { dumps, faults } = await readDumps(args)
  if (dumps.length === 0)
    throw new Failure(`no dump of the flight recorder in ${args.join(', ')}`, {
      exitCode: EXIT.noSource,
      hint: faults[0] ?? 'Expected files whose names end with the rank, such as nccl_trace_rank_0.',
    })
  const verdict = flightVerdict(dumps)
  if (options.json === true) writeOut(`${JSON.stringify({ ...verdict, faults }, null, 2)}\n`)
  else writeOut(`${[...faults.map((fault) => `note: ${fault}`), ...verdictText(verdict)].map(printable).join('\n')}\n`)
  return verdict.groups.some(({ fault, open }) => fault !== null || open !== null) ? EXIT.checkFailed : EXIT.ok
}

async function readDumps(paths: readonly string[]): Promise<{ dumps: readonly FlightDump[]; faults: readonly string[] }> {
  const dumps = new Map<number, FlightDump>()
  const faults: string[] = []
  for (const path of await filesOf(paths)) {
    const rank = rankOf(path)
    try {
      const dump = rank === null ? null : flightDump(rank, await readValues(path))
      if (dump === null)
        faults.push(`${path} is left out: ${rank === null ? 'its name does not end with a rank' : 'it is no dump of the flight recorder'}`)
      else if (dumps.has(dump.rank)) faults.push(`${path} is left out: there is another file of rank ${dump.rank}`)
      else dumps.set(dump.rank, dump)
    } catch (error) {
      if (!(error instanceof PickleFault) && (error as NodeJS.ErrnoException).code === undefined) throw error
      faults.push(`${path} is left out: ${(error as Error).message}`)
    }
  }
  return { dumps: [...dumps.values()], faults }
}

async function filesOf(paths: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for (const path of paths) {
    const found = await stat(path).catch((cause: unknown) => {
      throw new Failure(`${path} cannot be read: ${(cause as Error).message}`, { exitCode: EXIT.noSource, cause })
    })
    if (found.isFile()) files.push(path)
    else for (const name of (await readdir(path)).sort()) if (rankOf(name) !== null) files.push(join(path, name))
  }
  return files.slice(0, MOST_FILES)
}

/** The digits at the end of its name. */
function rankOf(path: string): number | null {
  const digits = /(\d{1,7})(\.(pkl|pickle))?$/.exec(basename(path))
  return digits ? Number(digits[1]) : null
}

function verdictText({ ranks, groups, culprits }: FlightVerdict): readonly string[] {
  const faulty = groups.filter(({ fault }) => fault !== null)
  const open = groups.some((group) => group.open !== null)
  const look = culprits.length > 0 ? `Look at ${namesOf(culprits)} first.` : ''
  const verdict =
    faulty.length > 0
      ? `${formatCount(faulty.length, 'process group does', 'process groups do')} not agree. ${look}`.trim()
      : open
        ? 'All ranks called the same collectives, and some are not done: the network or a GPU is stuck, or a rank without a file.'
        : 'All collectives match and are done: the hang is not in a collective.'
  return [verdict, `${formatCount(ranks.length, 'rank')} read: ${listOf(ranks)}`, ...groups.flatMap(groupText)]
}

function groupText({ group, description, members, unread, from, to, matching, fault, open }: FlightGroup): readonly string[] {
  const name = `group ${group}${description ? ` (${description})` : ''} of ${formatCount(members.length, 'rank')}`
  const compared = `#${count(from)} to #${count(to)} compared, ${count(matching)} match`
  return [
    '',
    `${name}: ${compared}`,
    ...(unread.length > 0 ? [`  no file of ${namesOf(unread)}`] : []),
    ...(fault ? faultText(fault) : []),
    ...(open && (fault === null || open.seq < fault.seq) ? [`  #${count(open.seq)} ${open.call}: called by all, not done`] : []),
  ]
}

const WORDS: Readonly<Record<Exclude<FlightFault['kind'], 'missing'>, string>> = {
  collective: 'different collectives',
  size: 'different sizes',
  type: 'different types',
  state: 'done on some ranks only',
}

function faultText({ kind, seq, ranks, others, call, otherCall, place, otherPlace, lastSeq }: FlightFault): readonly string[] {
  const at = (where: string | null) => (where === null ? '' : `, called from ${where}`)
  if (kind === 'missing')
    return [
      `  #${count(seq)} ${otherCall}: ${namesOf(ranks)} ${ranks.length === 1 ? 'has' : 'have'} not called it`,
      `    ${namesOf(others)}: in it${at(otherPlace)}`,
      `    ${namesOf(ranks)}: ${call === null ? 'no call in this group' : `last call #${count(lastSeq)} ${call}${at(place)}`}`,
    ]
  return [
    `  #${count(seq)}: ${WORDS[kind]}`,
    `    ${namesOf(ranks)}: ${call}${at(place)}`,
    `    ${namesOf(others)}: ${otherCall}${at(otherPlace)}`,
  ]
}

function namesOf(ranks: readonly number[]): string {
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${listOf(ranks)}`
}

/** `0, 1, 5`; `0 to 7` where none is left out. */
function listOf(ranks: readonly number[]): string {
  const [first, last] = [ranks[0] ?? 0, ranks.at(-1) ?? 0]
  if (ranks.length > 2 && last - first === ranks.length - 1) return `${first} to ${last}`
  const more = ranks.length - MOST_NAMED
  return `${ranks.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function count(value: number | null): string {
  return value === null ? '?' : value.toLocaleString('en-US')
}
