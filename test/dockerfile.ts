/** As much of a Dockerfile as the tests need to know what it does. */

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** One for each instruction; continued lines are joined. */
export function instructions(dockerfile: string): Instruction[] {
  return dockerfile
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', ...rest] = line.trim().split(/\s+/)
      return { name, text: rest.join(' ') }
    })
}

/** The instructions from each FROM to the next. */
export function stages(all: readonly Instruction[]): Instruction[][] {
  const found: Instruction[][] = []
  for (const instruction of all) {
    if (instruction.name === 'FROM') found.push([])
    found.at(-1)?.push(instruction)
  }
  return found
}

export interface Copy {
  /** null: from the folder that is built. */
  readonly from: string | null
  readonly sources: readonly string[]
  readonly target: string
}

export function copyOf({ text }: Instruction): Copy {
  const words = text.split(' ')
  const from = words[0]?.startsWith('--from=') ? (words.shift()?.slice('--from='.length) ?? null) : null
  const target = words.pop() ?? ''
  return { from, sources: words, target }
}

/** The words of a form that needs no shell: `["node", "x.js"]`. */
export function execForm(text: string): string[] {
  return JSON.parse(text.slice(text.indexOf('['))) as string[]
}
