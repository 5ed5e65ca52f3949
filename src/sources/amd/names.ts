/** Names of cards whose firmware has none (`product_name` is for server boards), by PCI device and revision. */
import { join } from 'node:path'
import { tryReadText } from '../../core/system-file.ts'

interface Model {
  readonly name: string
  /** Graphics inside a processor: its memory is the host's. */
  readonly apu?: true
}

/** Where libdrm keeps its list: the system's, then that of the vendor's packages. */
const NAME_FILES = ['usr/share/libdrm/amdgpu.ids', 'opt/amdgpu/share/libdrm/amdgpu.ids']

/** Cards that many people own, for machines without libdrm or with one that is older than the card: `device revision`. */
const CARDS: Readonly<Record<string, string>> = {
  '66af c1': 'AMD Radeon VII',
  '687f c1': 'AMD Radeon RX Vega 64',
  '687f c3': 'AMD Radeon RX Vega 56',
  '731f c1': 'AMD Radeon RX 5700 XT',
  '731f c4': 'AMD Radeon RX 5700',
  '731f ca': 'AMD Radeon RX 5600 XT',
  '73bf c0': 'AMD Radeon RX 6900 XT',
  '73bf c1': 'AMD Radeon RX 6800 XT',
  '73bf c3': 'AMD Radeon RX 6800',
  '73df c0': 'AMD Radeon RX 6750 XT',
  '73df c1': 'AMD Radeon RX 6700 XT',
  '73ff c1': 'AMD Radeon RX 6600 XT',
  '73ff c3': 'AMD Radeon RX 6600M',
  '73ff c7': 'AMD Radeon RX 6600',
  '73ff cb': 'AMD Radeon RX 6600S',
  '744c c8': 'AMD Radeon RX 7900 XTX',
  '744c cc': 'AMD Radeon RX 7900 XT',
  '744c ce': 'AMD Radeon RX 7900 GRE',
  '747e c8': 'AMD Radeon RX 7800 XT',
  '747e ff': 'AMD Radeon RX 7700 XT',
  '7480 c0': 'AMD Radeon RX 7600 XT',
  '7480 c1': 'AMD Radeon RX 7700S',
  '7480 c3': 'AMD Radeon RX 7600S',
  '7480 c7': 'AMD Radeon RX 7600M XT',
  '7480 cf': 'AMD Radeon RX 7600',
  '7550 c0': 'AMD Radeon RX 9070 XT',
  '7550 c3': 'AMD Radeon RX 9070',
  '7590 c0': 'AMD Radeon RX 9060 XT',
}

/** By device alone, where the revision says nothing. */
const MODELS: ReadonlyMap<number, Model> = new Map<number, Model>([
  [0x1114, { name: 'AMD Radeon 840M/860M', apu: true }],
  [0x13c0, { name: 'AMD Radeon Graphics (Granite Ridge)', apu: true }],
  [0x150e, { name: 'AMD Radeon 880M/890M', apu: true }],
  [0x1506, { name: 'AMD Radeon 610M (Mendocino)', apu: true }],
  [0x1586, { name: 'AMD Radeon 8050S/8060S', apu: true }],
  [0x15bf, { name: 'AMD Radeon 760M/780M', apu: true }],
  [0x15c8, { name: 'AMD Radeon 740M', apu: true }],
  [0x15d8, { name: 'AMD Radeon Vega (Picasso)', apu: true }],
  [0x15dd, { name: 'AMD Radeon Vega (Raven Ridge)', apu: true }],
  [0x15e7, { name: 'AMD Radeon Graphics (Barcelo)', apu: true }],
  [0x1636, { name: 'AMD Radeon Graphics (Renoir)', apu: true }],
  [0x1638, { name: 'AMD Radeon Graphics (Cezanne)', apu: true }],
  [0x163f, { name: 'AMD Custom GPU 0405 (Van Gogh)', apu: true }],
  [0x164c, { name: 'AMD Radeon Graphics (Lucienne)', apu: true }],
  [0x164e, { name: 'AMD Radeon Graphics (Raphael)', apu: true }],
  [0x1681, { name: 'AMD Radeon 660M/680M', apu: true }],
  [0x1900, { name: 'AMD Radeon 780M (Hawk Point)', apu: true }],
  [0x66a0, { name: 'AMD Radeon Instinct MI50/MI60' }],
  [0x66a1, { name: 'AMD Radeon Pro VII / Instinct MI50' }],
  [0x66af, { name: 'AMD Radeon VII' }],
  [0x6860, { name: 'AMD Radeon Instinct MI25' }],
  [0x687f, { name: 'AMD Radeon RX Vega 56/64' }],
  [0x731f, { name: 'AMD Radeon RX 5600/5700' }],
  [0x7340, { name: 'AMD Radeon RX 5500' }],
  [0x738c, { name: 'AMD Instinct MI100' }],
  [0x738e, { name: 'AMD Instinct MI100' }],
  [0x73a1, { name: 'AMD Radeon Pro V620' }],
  [0x73a3, { name: 'AMD Radeon PRO W6800' }],
  [0x73a5, { name: 'AMD Radeon RX 6950 XT' }],
  [0x73af, { name: 'AMD Radeon RX 6900 XT' }],
  [0x73bf, { name: 'AMD Radeon RX 6800/6900' }],
  [0x73df, { name: 'AMD Radeon RX 6700/6750' }],
  [0x73ef, { name: 'AMD Radeon RX 6650 XT' }],
  [0x73ff, { name: 'AMD Radeon RX 6600' }],
  [0x7408, { name: 'AMD Instinct MI250X' }],
  [0x740c, { name: 'AMD Instinct MI250' }],
  [0x740f, { name: 'AMD Instinct MI210' }],
  [0x743f, { name: 'AMD Radeon RX 6400/6500' }],
  [0x7448, { name: 'AMD Radeon PRO W7900' }],
  [0x744c, { name: 'AMD Radeon RX 7900' }],
  [0x745e, { name: 'AMD Radeon PRO W7800' }],
  [0x747e, { name: 'AMD Radeon RX 7700/7800' }],
  [0x7480, { name: 'AMD Radeon RX 7600' }],
  [0x74a0, { name: 'AMD Instinct MI300A' }],
  [0x74a1, { name: 'AMD Instinct MI300X' }],
  [0x74a5, { name: 'AMD Instinct MI325X' }],
  [0x7550, { name: 'AMD Radeon RX 9070' }],
  [0x7590, { name: 'AMD Radeon RX 9060' }],
  [0x75a0, { name: 'AMD Instinct MI350X' }],
  [0x75a3, { name: 'AMD Instinct MI355X' }],
])

export function isApu(device: number): boolean {
  return MODELS.get(device)?.apu === true
}

/** The full name from libdrm's list; a table of common cards; the family; the number. */
export function nameOf(device: number | null, revision: number | null, readNames: () => string | null): string {
  if (device === null) return 'AMD GPU'
  const id = device.toString(16).padStart(4, '0')
  const full = revision === null ? null : (findName(readNames() ?? '', device, revision) ?? CARDS[`${id} ${revision.toString(16)}`])
  return full ?? MODELS.get(device)?.name ?? `AMD GPU 0x${id}`
}

export function readNameFile(root: string): string | null {
  for (const file of NAME_FILES) {
    const text = tryReadText(join(root, file))
    if (text !== null) return text
  }
  return null
}

/** A line of `amdgpu.ids`: `744C, C8, AMD Radeon RX 7900 XTX`, numbers in hexadecimal. */
export function findName(text: string, device: number, revision: number): string | null {
  for (const line of text.split('\n')) {
    const match = /^\s*([0-9a-f]{1,4}),\s*([0-9a-f]{1,2}),\s*(\S.*?)\s*$/i.exec(line)
    if (match !== null && Number.parseInt(match[1] ?? '', 16) === device && Number.parseInt(match[2] ?? '', 16) === revision)
      return match[3] ?? null
  }
  return null
}
