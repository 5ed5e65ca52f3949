import { describe, expect, it } from 'vitest'
import { begin, fake } from '../../../test/fake-nvml/open-fake.ts'
import { cardOf, listDriverCards } from './driver-cards.ts'

const ID = (index: number) => `GPU-fa4e0000-0000-4000-8000-00000000000${index}`

const information = (uuid: string, more = '') =>
  `Model: \t\t NVIDIA H200\nIRQ:   \t\t 93\nGPU UUID: \t ${uuid}\nVideo BIOS: \t 96.00.a5.00.03\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n` +
  `DMA Mask: \t 0xfffffffffffff\nBus Location: \t 0000:11:00.0\nDevice Minor: \t 1\nGPU Firmware: \t 580.159.04\nGPU Excluded:\t ${more || 'No'}\n`

const tree = (...cards: readonly [address: string, text: string][]) =>
  Object.fromEntries(cards.map(([address, text]) => [`proc/driver/nvidia/gpus/${address}/information`, text]))

describe('the list of the driver', () => {
  it('lists address, identity and name, in the order of the addresses', () => {
    const { env } = fake({ files: tree(['0000:8d:00.0', information(ID(1))], ['0000:1b:00.0', information(ID(0))]) })
    expect(listDriverCards(env.root)).toEqual([
      { busId: '00000000:1B:00.0', uuid: ID(0), name: 'NVIDIA H200' },
      { busId: '00000000:8D:00.0', uuid: ID(1), name: 'NVIDIA H200' },
    ])
  })

  it('is empty where there is none', () => {
    expect(listDriverCards('/nonexistent')).toEqual([])
  })

  it('has no identity where the driver has question marks or nothing, and leaves out what is excluded', () => {
    expect(cardOf('0000:1b:00.0', information('GPU-????????-????-????-????-????????????'))).toMatchObject({ uuid: null })
    expect(cardOf('0000:1b:00.0', '')).toEqual({ busId: '00000000:1B:00.0', uuid: null, name: null })
    expect(cardOf('0000:1b:00.0', information(ID(0), 'Yes'))).toBe(null)
    expect(cardOf('nonsense', information(ID(0)))).toBe(null)
  })
})

describe('a card that is lost when the source opens', () => {
  it('has the identity that the driver lists it with, and keeps it when it is back', async () => {
    const files = tree(['0000:10:00.0', information(ID(0))], ['0000:11:00.0', information(ID(1))])
    const { source, ticker, script } = await begin({ script: { gpus: 2, lost: [1] }, files })
    expect(source.devices().map(({ id, name, pciBusId }) => [id, name, pciBusId])).toEqual([
      [ID(0), 'NVIDIA H200', '00000000:10:00.0'],
      [ID(1), 'NVIDIA H200', '00000000:11:00.0'],
    ])
    const samples = await ticker.tick()
    expect(samples).toContainEqual(expect.objectContaining({ kind: 'gpu', gpu: ID(1), state: 'lost' }))
    expect(samples).toContainEqual(expect.objectContaining({ kind: 'event', gpu: ID(1), event: 'lost' }))
    script.update({ lost: [] })
    await ticker.tick(11_000)
    expect((await ticker.gpus()).map(({ gpu, state }) => [gpu, state])).toEqual([
      [ID(0), 'ok'],
      [ID(1), 'ok'],
    ])
  })

  it('has its address where the driver does not know more', async () => {
    const unknown = information('GPU-????????-????-????-????-????????????')
    const { source } = await begin({
      script: { gpus: 2, lost: [1] },
      files: tree(['0000:10:00.0', information(ID(0))], ['0000:11:00.0', unknown]),
    })
    expect(source.devices().at(1)).toMatchObject({ id: '00000000:11:00.0', pciBusId: '00000000:11:00.0' })
  })

  it('has only its number where the list is of other cards', async () => {
    const { source } = await begin({ script: { gpus: 2, lost: [1] }, files: tree(['0000:11:00.0', information(ID(1))]) })
    expect(source.devices().at(1)).toMatchObject({ id: 'nvidia-1', pciBusId: null })
  })
})
