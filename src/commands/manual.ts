/** `gpuwarden man`: the man page, made from the same table as the help. */
import { EXIT } from '../core/failure.ts'
import { VERSION } from '../core/version.ts'
import { type CommandEntry, GROUPS } from './command-entry.ts'
import { flagsOf } from './outline.ts'

export const EXIT_CODES =
  'Exit codes: 0 fine, 1 a check said no, 2 wrong argument or configuration, 3 no such GPU or recording, 4 cannot listen, 70 internal error.'

export function manualCommand(all: () => readonly CommandEntry[]): CommandEntry {
  return {
    name: 'man',
    group: 'operate',
    summary: 'print the manual as a man page',
    settings: [],
    options: [],
    examples: ['gpuwarden man | man -l -'],
    run: async () => {
      process.stdout.write(manualPage(all()))
      return EXIT.ok
    },
  }
}

/** roff reads a backslash, and a dot or a quote at the beginning of a line, as its own. */
const roff = (text: string) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll(/^[.']/gm, '\\&$&')

export function manualPage(entries: readonly CommandEntry[]): string {
  const sections = Object.entries(GROUPS).flatMap(([group, heading]) => [
    `.SH ${roff(heading.replace(/:$/, '').toUpperCase())}`,
    ...entries.filter((entry) => entry.group === group).flatMap(commandLines),
  ])
  return `${[
    `.TH GPUWARDEN 1 "" "gpuwarden ${VERSION}" "gpuwarden"`,
    '.SH NAME',
    'gpuwarden \\- watches the GPUs of a machine and the training on them',
    '.SH SYNOPSIS',
    '.B gpuwarden',
    '[\\fIcommand\\fR] [\\fIoptions\\fR]',
    '.SH DESCRIPTION',
    roff('Says what GPU memory is doing, who uses it, what is about to go wrong and why. Without a command it opens the live view (top).'),
    ...sections,
    '.SH FILES',
    '.TP',
    roff('~/.config/gpuwarden/gpuwarden.yaml, /etc/gpuwarden/gpuwarden.yaml'),
    roff('The configuration; the first that exists is read. "gpuwarden config" shows every key.'),
    '.SH EXIT STATUS',
    roff(EXIT_CODES.replace(/^Exit codes: /, '')),
  ].join('\n')}\n`
}

function commandLines(entry: CommandEntry): string[] {
  const words = (entry.arguments ?? []).map(({ notation }) => ` ${roff(notation)}`).join('')
  return [
    `.SS gpuwarden ${roff(entry.name)}${words}`,
    `${roff(entry.summary[0]?.toUpperCase() + entry.summary.slice(1))}.`,
    ...(entry.arguments ?? []).flatMap(({ notation, help }) => ['.TP', `.I ${roff(notation)}`, roff(help)]),
    ...flagsOf(entry).flatMap(({ notation, help }) => ['.TP', `.B ${roff(notation)}`, roff(help)]),
    '.PP',
    'Examples:',
    '.nf',
    ...entry.examples.map((line) => `  ${roff(line)}`),
    '.fi',
  ]
}
