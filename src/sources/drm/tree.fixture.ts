/** Trees of files as the kernel shows a machine, made for tests: sysfs and /proc in a folder of their own. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'

/** Files by path. A text ends with a line break, as the kernel's do. */
export type Tree = Readonly<Record<string, string | number | Buffer>>

/** A card on PCI: what it has in its device folder, and what in `cardN` itself. */
export interface CardTree {
  readonly minor: number
  readonly address: string
  readonly device: Tree
  readonly card?: Tree
}

export interface ProcessTree {
  readonly pid: number
  /** Target of each descriptor, and what its fdinfo says. */
  readonly files: readonly { readonly target: string; readonly fdinfo: string }[]
}

export interface MachineTree {
  readonly cards: readonly CardTree[]
  readonly processes?: readonly ProcessTree[]
  readonly other?: Tree
}

export function devicePath(root: string, address: string): string {
  return join(root, 'sys/devices/pci0000:00', address)
}

/** Below a temporary folder, which the caller removes. */
export function makeMachine(machine: MachineTree): { readonly root: string; remove(): void } {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-tree-'))
  writeTree(root, { 'proc/sys/kernel/osrelease': '6.17.0', ...machine.other })
  for (const { minor, address, device, card } of machine.cards) {
    const folder = devicePath(root, address)
    const cardFolder = join(root, 'sys/class/drm', `card${minor}`)
    writeTree(folder, { 'power/runtime_status': 'active', ...device })
    writeTree(cardFolder, card ?? {})
    mkdirSync(cardFolder, { recursive: true })
    symlinkSync(relative(cardFolder, folder), join(cardFolder, 'device'))
  }
  for (const { pid, files } of machine.processes ?? [])
    for (const [descriptor, { target, fdinfo }] of files.entries()) {
      const folder = join(root, 'proc', String(pid))
      writeTree(folder, { [`fdinfo/${descriptor}`]: fdinfo })
      mkdirSync(join(folder, 'fd'), { recursive: true })
      symlinkSync(target, join(folder, 'fd', String(descriptor)))
    }
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) }
}

export function writeTree(folder: string, tree: Tree): void {
  for (const [path, content] of Object.entries(tree)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content instanceof Buffer ? content : `${content}\n`)
  }
}
