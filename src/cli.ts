import { Command, CommanderError } from 'commander'
import { type ConfigKey, type FlagValues, loadConfig } from './agent/config.ts'
import { type CommandEntry, GROUPS, ONE_GPU } from './commands/command-entry.ts'
import { completionCommand } from './commands/completion.ts'
import { COMMANDS } from './commands/index.ts'
import { EXIT_CODES, manualCommand } from './commands/manual.ts'
import { flagsOf } from './commands/outline.ts'
import { EXIT, Failure } from './core/failure.ts'
import { VERSION } from './core/version.ts'

const DEFAULT_COMMAND = 'top'

export async function main(argv: readonly string[]): Promise<number> {
  // `gpuwarden … | head`: whoever reads has seen enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.internal))
  let exitCode: number = EXIT.ok
  const program = new Command('gpuwarden')
    .description(
      'Watches the GPUs of a machine and the training on them: what the memory is doing, who uses it, what is about to go wrong.',
    )
    .version(VERSION, '-V, --version')
    .commandsGroup(GROUPS.operate)
    .exitOverride()
    .showHelpAfterError('(add --help for what is possible)')
    .addHelpText(
      'after',
      `
Examples:
  gpuwarden                                 live view in the terminal (same as: gpuwarden top)
  gpuwarden monitor --interval 0.5 --gpu 0  one GPU, twice a second
  gpuwarden monitor --demo-scenario leak --source demo
  gpuwarden status --json                   one look, as JSON
  gpuwarden doctor                          what is missing and how to get it

${EXIT_CODES}`,
    )
  for (const entry of commandsInOrder())
    declare(program, entry, async (flags, extras, args) => {
      const { config, ...options } = extras
      exitCode = await entry.run(loadConfig({ flags, file: config as string | undefined }), options, args)
    })
  try {
    await program.parseAsync([...(argv.length === 0 || startsWithFlag(argv) ? [DEFAULT_COMMAND, ...argv] : argv)], { from: 'user' })
  } catch (error) {
    return report(error)
  }
  return exitCode
}

/** `gpuwarden --gpu 0` means the default command; `gpuwarden --help` means the program. */
function startsWithFlag(argv: readonly string[]): boolean {
  return argv[0]?.startsWith('-') === true && !['--help', '-h', '--version', '-V'].includes(argv[0])
}

/** As the help shows them: by what people want to do. */
function commandsInOrder(): CommandEntry[] {
  const groups = Object.keys(GROUPS)
  const all: CommandEntry[] = [...COMMANDS, completionCommand(() => all), manualCommand(() => all)]
  return all.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group))
}

type RunCommand = (flags: FlagValues, extras: Record<string, unknown>, args: readonly string[]) => Promise<void>

function declare(program: Command, entry: CommandEntry, run: RunCommand): void {
  const command = program
    .command(entry.name)
    .helpGroup(GROUPS[entry.group])
    .description(entry.summary)
    .addHelpText('after', `\nExamples:\n${entry.examples.map((line) => `  ${line}`).join('\n')}`)
  const keyOf = new Map<string, ConfigKey>()
  for (const { notation, help, key } of flagsOf(entry)) {
    command.option(notation, help)
    if (key !== null) keyOf.set(command.options.at(-1)?.attributeName() ?? key, key)
  }
  for (const { notation, help } of entry.arguments ?? []) command.argument(notation, help)
  command.action(async () => {
    const given: Record<string, unknown> = command.opts()
    const flags: FlagValues = {}
    const extras: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(given)) {
      const key = keyOf.get(name)
      if (key) flags[key] = value
      else extras[name] = value
    }
    const takesIndex = entry.options.some(({ flag }) => flag === ONE_GPU.flag)
    if (takesIndex && extras.gpu !== undefined) flags.devices = [oneGpu(extras.gpu, flags.devices)]
    await run(flags, extras, command.args)
  })
}

/** `--gpu 0` is short for `--devices 0`. */
function oneGpu(index: unknown, devices: unknown): unknown {
  if (devices !== undefined)
    throw new Failure('--gpu and --devices exclude each other: give all GPUs to --devices, as in --devices 0 1', { exitCode: EXIT.usage })
  if (typeof index === 'string' && /^\d+$/.test(index)) return index
  throw new Failure(`--gpu: expected the index of a GPU, 0 or more; got ${JSON.stringify(index)}`, { exitCode: EXIT.usage })
}

function report(error: unknown): number {
  // commander has printed its own message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (error instanceof Failure) {
    process.stderr.write(`gpuwarden: ${error.message}\n${error.hint === null ? '' : `${error.hint}\n`}`)
    return error.exitCode
  }
  process.stderr.write(`gpuwarden: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.internal
}
