/** `gpuwarden completion bash|zsh|fish`: a script for the shell, made from the same table as the help. */
import type { Config } from '../agent/config.ts'
import { AgentClient } from '../core/agent-client.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { agentAddress, isNamed } from './agent-address.ts'
import type { CommandEntry, Completion } from './command-entry.ts'
import { flagsOf } from './outline.ts'

const SHELLS = { bash, zsh, fish } as const
/** Somebody waits for it with a key pressed. */
const LONGEST_WAIT_MS = 800
const LIVE = ['gpu', 'run', 'channel'] as const
type Live = (typeof LIVE)[number]

export function completionCommand(all: () => readonly CommandEntry[]): CommandEntry {
  return {
    name: 'completion',
    group: 'operate',
    summary: 'print the tab completion for a shell',
    settings: ['server.host', 'server.port', 'server.token_file'],
    options: [{ flag: '--values <kind>', help: 'print what a running agent knows, one a line: gpu, run or channel', values: LIVE }],
    arguments: [{ notation: '[shell]', help: 'bash, zsh or fish', values: Object.keys(SHELLS) }],
    examples: [
      'source <(gpuwarden completion bash)',
      'gpuwarden completion zsh > ~/.zfunc/_gpuwarden   (with fpath+=~/.zfunc before compinit)',
      'gpuwarden completion fish > ~/.config/fish/completions/gpuwarden.fish',
    ],
    run: async (config, options, args) => {
      if (options.values !== undefined) return printValues(config, String(options.values))
      const shell = Object.keys(SHELLS).find((name) => name === args[0]) as keyof typeof SHELLS | undefined
      if (shell === undefined)
        throw new Failure(`completion: expected bash, zsh or fish${args[0] === undefined ? '' : `, got "${args[0]}"`}`, {
          exitCode: EXIT.usage,
          hint: 'For example: source <(gpuwarden completion bash)',
        })
      process.stdout.write(SHELLS[shell](all()))
      return EXIT.ok
    },
  }
}

/** Nothing where no agent answers: a shell has no place for errors. */
async function printValues(config: Config, kind: string): Promise<number> {
  if (!LIVE.includes(kind as Live))
    throw new Failure(`completion --values: expected ${LIVE.join(', ')}; got "${kind}"`, { exitCode: EXIT.usage })
  try {
    const values = await liveValues(new AgentClient(agentAddress(config.values, isNamed(config.origins)), LONGEST_WAIT_MS), kind as Live)
    // Names of runs are what people gave them: only those that are one word to every shell.
    process.stdout.write(
      values
        .filter((value) => /^[\w.@%+=:,/-]{1,100}$/.test(value))
        .map((value) => `${value}\n`)
        .join(''),
    )
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
  return EXIT.ok
}

async function liveValues(agent: AgentClient, kind: Live): Promise<string[]> {
  if (kind === 'gpu')
    return (await agent.get<{ gpus: { info: { index: number } }[] }>('/api/v1/gpus')).gpus.map(({ info }) => String(info.index))
  if (kind === 'run') return [...new Set((await agent.get<{ runs: { name: string }[] }>('/api/v1/runs')).runs.map(({ name }) => name))]
  return (await agent.get<{ channels: { name: string }[] }>('/api/v1/channels')).channels.map(({ name }) => name)
}

const isLive = (values: Completion | null): values is Live => typeof values === 'string' && LIVE.includes(values as Live)

function bash(entries: readonly CommandEntry[]): string {
  const offer = (values: Completion | null) =>
    isLive(values)
      ? `words="$(gpuwarden completion --values ${values} 2>/dev/null)"`
      : values === 'dir'
        ? 'COMPREPLY=($(compgen -d -- "$cur")); return'
        : values === 'file' || values === null
          ? 'COMPREPLY=($(compgen -f -- "$cur")); return'
          : `words='${values.join(' ')}'`
  const cases = entries.map((entry) => {
    const flags = flagsOf(entry)
    const withValues = flags.filter(({ takesValue }) => takesValue).map(({ long, values }) => `        ${long}) ${offer(values)} ;;`)
    const [first] = entry.arguments ?? []
    const own = first?.values === undefined ? (first ? offer('file') : ':') : offer(first.values)
    return `    ${entry.name})
      case "$prev" in
${withValues.join('\n')}
        *) if [[ $cur == -* ]]; then words='${flags.map(({ long }) => long).join(' ')} --help'; else ${own}; fi ;;
      esac ;;`
  })
  return `# bash completion for gpuwarden
_gpuwarden() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" command=top words='' word
  local names='${entries.map(({ name }) => name).join(' ')}'
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == -- ]]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
    if [[ " $names " == *" $word "* ]]; then command="$word"; break; fi
  done
  if [[ $COMP_CWORD == 1 && $cur != -* ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$cur")); return
  fi
  case "$command" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _gpuwarden gpuwarden
`
}

/** Inside single quotes, and without the marks that _arguments reads. */
const zshText = (text: string) => text.replaceAll("'", '’').replaceAll(/[[\]:]/g, (mark) => `\\${mark}`)

function zsh(entries: readonly CommandEntry[]): string {
  const offer = (values: Completion | null) =>
    isLive(values)
      ? `_gpuwarden_live ${values}`
      : values === 'dir'
        ? '_files -/'
        : values === 'file' || values === null
          ? '_files'
          : `(${values.join(' ')})`
  const cases = entries.map((entry) => {
    const flags = flagsOf(entry).map(
      ({ long, takesValue, help, values }) => `        '${long}[${zshText(help)}]${takesValue ? `:value:${offer(values)}` : ''}'`,
    )
    const args = (entry.arguments ?? []).map(({ notation, help, values }) => {
      const many = notation.includes('...') ? '*' : ''
      return `        '${many}:${zshText(help)}:${offer(values ?? 'file')}'`
    })
    return `    ${entry.name})\n      _arguments \\\n${[...flags, ...args].join(' \\\n')} ;;`
  })
  return `#compdef gpuwarden
_gpuwarden_live() {
  local -a found
  found=(\${(f)"$(gpuwarden completion --values $1 2>/dev/null)"})
  compadd -a found
}
_gpuwarden() {
  local -a commands
  commands=(
${entries.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  shift words; (( CURRENT-- ))
  case "$words[1]" in
${cases.join('\n')}
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gpuwarden "$@"; else compdef _gpuwarden gpuwarden; fi
`
}

const fishText = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

function fish(entries: readonly CommandEntry[]): string {
  const offer = (values: Completion | null) =>
    isLive(values)
      ? ` -x -a '(gpuwarden completion --values ${values} 2>/dev/null)'`
      : values === 'dir'
        ? " -x -a '(__fish_complete_directories)'"
        : values === 'file' || values === null
          ? ' -r'
          : ` -x -a '${values.join(' ')}'`
  const lines = entries.flatMap((entry) => {
    const seen = `complete -c gpuwarden -n '__fish_seen_subcommand_from ${entry.name}'`
    return [
      `complete -c gpuwarden -f -n __fish_use_subcommand -a ${entry.name} -d ${fishText(entry.summary)}`,
      ...flagsOf(entry).map(
        ({ long, takesValue, help, values }) => `${seen} -l ${long.slice(2)} -d ${fishText(help)}${takesValue ? offer(values) : ''}`,
      ),
      ...(entry.arguments ?? []).flatMap(({ values }) => (values === undefined || values === 'file' ? [] : [`${seen}${offer(values)}`])),
    ]
  })
  return `# fish completion for gpuwarden\n${lines.join('\n')}\n`
}
