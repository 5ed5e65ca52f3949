/** Models by PCI device number, for cards whose firmware has no name (`product_name` is for server boards). */
export interface Model {
  readonly name: string
  /** Graphics inside a processor: its memory is the host's. */
  readonly apu?: true
}

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

export function modelOf(device: number): Model | null {
  return MODELS.get(device) ?? null
}
