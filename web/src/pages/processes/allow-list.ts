/** The allow-list entries for a process, for the configuration file. */
import type { ProcessInfo } from '../../../../src/core/model.ts'

export interface AllowEntry {
  readonly name: 'user' | 'command' | 'container' | 'claim'
  readonly label: string
  /** What it means, and what it means for everybody else. */
  readonly meaning: string
  readonly yaml: string
}

/** What the policy holds already, by its key: `policy.allowed_users` → its list. */
export type Policy = Readonly<Record<string, readonly string[]>>

export function allowEntries(info: ProcessInfo, gpuLabel: string, policy: Policy): readonly AllowEntry[] {
  const { user, container } = info
  const program = info.executable ?? info.name
  const isFirst = ['allowed_users', 'allowed_commands', 'allowed_containers'].every((key) => (policy[`policy.${key}`] ?? []).length === 0)
  const first = isFirst ? ' This is the first rule: from then on, everybody not named in a rule is an intruder.' : ''
  const entries: AllowEntry[] = []
  if (user !== null)
    entries.push({
      name: 'user',
      label: `Allow the user ${user}`,
      meaning: `${user} may use every GPU.${first}`,
      yaml: yamlOf('allowed_users', user, policy),
    })
  if (program !== null)
    entries.push({
      name: 'command',
      label: 'Allow the program',
      meaning: `Anybody may run this program on every GPU; * and ? are wildcards.${first}`,
      yaml: yamlOf('allowed_commands', program, policy),
    })
  if (container !== null)
    entries.push({
      name: 'container',
      label: 'Allow the container',
      meaning: `What runs in this container may use every GPU. A new container has another name.${first}`,
      yaml: yamlOf('allowed_containers', container, policy),
    })
  if (user !== null)
    entries.push({
      name: 'claim',
      label: `Give GPU ${gpuLabel} to ${user}`,
      meaning: `GPU ${gpuLabel} belongs to ${user}: anybody else who uses it is an intruder.`,
      yaml: yamlOf('claims', `${gpuLabel}=${user}`, policy),
    })
  return entries
}

/** With what is allowed already, so that the lines can take the place of the old ones. */
function yamlOf(key: string, value: string, policy: Policy): string {
  const values = new Set([...(policy[`policy.${key}`] ?? []), value])
  return ['policy:', `  ${key}:`, ...[...values].map((one) => `    - ${quoted(one)}`), ''].join('\n')
}

/** A JSON string is a YAML string: nothing in a name can end it or mean something else. */
function quoted(text: string): string {
  return JSON.stringify(text)
}

/** From the settings as the agent reports them. */
export function policyOf(settings: readonly { readonly key: string; readonly value: unknown }[]): Policy {
  const lists = settings
    .filter(({ key }) => key.startsWith('policy.'))
    .flatMap(({ key, value }) => (Array.isArray(value) ? [[key, value.map(String)] as const] : []))
  return Object.fromEntries(lists)
}
