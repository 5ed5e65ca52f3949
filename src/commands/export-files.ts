import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EXIT, Failure } from '../core/failure.ts'
import { makeFolderSync } from '../core/make-folder.ts'

const PACKAGE = new URL('../../', import.meta.url)

export interface Copy {
  readonly from: string
  readonly ending: string
  readonly to: string
  readonly change?: (text: string) => string
}

export function copyFiles({ from, ending, to, change = (text) => text }: Copy): readonly string[] {
  const source = fileURLToPath(new URL(from, PACKAGE))
  const target = resolve(to)
  try {
    makeFolderSync(target)
    return readdirSync(source)
      .filter((name) => name.endsWith(ending))
      .sort()
      .map((name) => {
        const path = join(target, name)
        writeFileSync(path, change(readFileSync(join(source, name), 'utf8')))
        return path
      })
  } catch (cause) {
    throw new Failure(`cannot export to ${target}: ${(cause as Error).message}`, { exitCode: EXIT.checkFailed, cause })
  }
}

export function exportFolder(command: string, args: readonly string[]): string {
  const [action, folder, ...rest] = args
  if (action === 'export' && folder !== undefined && rest.length === 0) return folder
  throw new Failure(`${command}: expected "export DIR"; got ${JSON.stringify(args.join(' '))}`, { exitCode: EXIT.usage })
}
