import { spawnSync } from 'node:child_process'
import { appendFileSync, chmodSync, closeSync, constants, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { begin, fake } from '../../../test/fake-nvml/open-fake.ts'
import { nvidia } from './index.ts'
import { xidInWords } from './xid.ts'
import { parseXidLine } from './xid-lines.ts'

describe('events of the driver', () => {
  it('are reported once, for the right GPU, in words', async () => {
    const { ticker, source, script } = await begin({ script: { gpus: 2 } })
    expect(await ticker.events()).toEqual([])
    const event = ['1:8:79', '0:8:31', '0:1:0', '0:2:0', '1:0x4000:0', '1:0x8000:2', '9:8:13']
    script.update({ event })
    const [first, second] = source.devices()
    const events = await ticker.events()
    expect(events.map(({ gpu, event: name, code }) => [gpu, name, code])).toEqual([
      [second?.id, 'xid', 79],
      [first?.id, 'xid', 31],
      [first?.id, 'ecc_corrected', null],
      [first?.id, 'ecc_uncorrected', null],
      [second?.id, 'gpu_unavailable', 0],
      [second?.id, 'recovery_action', 2],
      [null, 'xid', 13],
    ])
    expect(events[0]?.message).toContain('fallen off the bus')
    expect(events[5]?.message).toContain('reboot')
    expect(events.every(({ origin }) => origin === 'nvml')).toBe(true)
    expect(await ticker.events()).toEqual([])
  })

  it('come 32 at a time at most', async () => {
    const { ticker, script } = await begin({ script: { gpus: 1 } })
    script.update({ event: Array(40).fill('0:8:13') })
    expect(await ticker.events()).toHaveLength(32)
    expect(await ticker.events()).toHaveLength(8)
  })

  it('are registered only for what the GPU supports', async () => {
    const { counts } = await begin({ script: { gpus: 2, 'gpu0.events_mask': 0x10, 'gpu1.events_mask': 0x8 } })
    expect(await counts()).toMatchObject({ 'nvmlDeviceRegisterEvents@1': 1 })
    expect((await counts())['nvmlDeviceRegisterEvents@0']).toBe(undefined)
  })

  it('leave a queue that fails alone for a while', async () => {
    const { ticker, counts } = await begin({ script: { gpus: 1, ret: ['nvmlEventSetWait_v2:999'] } })
    for (let i = 0; i < 10; i++) await ticker.tick()
    expect((await counts()).nvmlEventSetWait_v2).toBe(1)
  })

  it('work on a driver that has only the first form of waiting', async () => {
    const { ticker } = await begin({ variant: 'old', script: { gpus: 1, event: ['0:8:48'] } })
    expect(await ticker.events()).toMatchObject([{ code: 48, event: 'xid' }])
  })
})

describe('events in the kernel log', () => {
  const line = (code: number, address = '0000:11:00') =>
    `4,1,2,-;NVRM: Xid (PCI:${address}): ${code}, pid='<unknown>', GPU has fallen off the bus.\n`

  it('are reported from the start on, not from before', async () => {
    const { ticker, source, root } = await begin({ files: { 'dev/kmsg': line(48) }, script: { gpus: 2 } })
    expect(await ticker.events()).toEqual([])
    appendFileSync(join(root, 'dev/kmsg'), `6,3,4,-;usb 1-1: new device\n${line(119)}${line(62, '0000:ff:00')}`)
    const events = await ticker.events()
    expect(events).toMatchObject([
      { event: 'xid', code: 119, gpu: source.devices()[1]?.id, origin: 'kmsg' },
      { event: 'xid', code: 62, gpu: null },
    ])
    expect(events[0]?.message).toContain("pid='<unknown>'")
    expect(await ticker.events()).toEqual([])
  })

  it('are not reported twice when the driver reports them, too', async () => {
    const { ticker, root, script } = await begin({ files: { 'dev/kmsg': '' }, script: { gpus: 2 } })
    script.update({ event: ['1:8:79'] })
    appendFileSync(join(root, 'dev/kmsg'), line(79))
    expect(await ticker.events()).toMatchObject([{ code: 79, origin: 'nvml' }])
    appendFileSync(join(root, 'dev/kmsg'), line(79) + line(74))
    expect(await ticker.events()).toMatchObject([{ code: 74 }])
    script.update({ event: ['1:8:79', '1:8:74'] })
    expect(await ticker.events()).toEqual([])
    appendFileSync(join(root, 'dev/kmsg'), line(79))
    expect(await ticker.events(6000)).toMatchObject([{ code: 79, origin: 'kmsg' }])
  })

  it('may be cut anywhere between two reads', async () => {
    const { ticker, root } = await begin({ files: { 'dev/kmsg': '' } })
    const whole = line(95)
    appendFileSync(join(root, 'dev/kmsg'), whole.slice(0, 20))
    expect(await ticker.events()).toEqual([])
    appendFileSync(join(root, 'dev/kmsg'), whole.slice(20))
    expect(await ticker.events()).toMatchObject([{ code: 95 }])
  })

  it('come from a device as well, which has one record for each read and says when there is none', async () => {
    const { env, root } = fake({ script: { gpus: 2 } })
    const path = join(root, 'dev/kmsg')
    mkdirSync(dirname(path))
    expect(spawnSync('mkfifo', [path]).status).toBe(0)
    // Kept open for writing, or reading would say that it is at the end.
    const device = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    writeSync(device, line(48))
    const source = await nvidia.open(env)
    onTestFinished(async () => {
      await source?.close()
      closeSync(device)
    })
    const events = async (monotonicMs: number) => {
      const samples = await source?.read({ at: monotonicMs, monotonicMs, tick: monotonicMs / 1000 })
      return samples?.filter(({ kind }) => kind === 'event')
    }
    expect(await events(1000)).toEqual([])
    writeSync(device, line(119))
    expect(await events(2000)).toMatchObject([{ code: 119, origin: 'kmsg' }])
    expect(await events(3000)).toEqual([])
  })

  it('are said to be missing where the log cannot be read, and the GPUs are watched all the same', async () => {
    const { logged, source } = await begin({ files: { 'dev/kmsg/a-folder': '' }, script: { gpus: 2 } })
    expect(logged.join()).toContain('cannot be read')
    expect(source.devices()).toHaveLength(2)
  })

  it('are said to be missing where the log is not there', async () => {
    const { logged } = await begin()
    expect(logged.filter((entry) => entry.startsWith('info: the kernel log'))).toHaveLength(1)
  })

  it.skipIf(process.getuid?.() === 0)('are said to be missing where the log is forbidden', async () => {
    const { env, root, write, logged } = fake()
    write('dev/kmsg', '')
    chmodSync(join(root, 'dev/kmsg'), 0)
    const source = await nvidia.open(env)
    await source?.close()
    expect(logged.join()).toContain('cannot be read')
  })
})

describe('a line of the kernel log', () => {
  it('is read in the spellings that are met', () => {
    expect(parseXidLine('NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off the bus.')).toEqual({
      pciBusId: '00000000:3B:00.0',
      code: 79,
      detail: 'pid=12, name=python, GPU has fallen off the bus.',
    })
    expect(parseXidLine('6,1,2,-;NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, Contained')).toMatchObject({
      code: 94,
      pciBusId: '00000000:01:00.0',
    })
    expect(parseXidLine('NVRM: loading NVIDIA UNIX x86_64 Kernel Module')).toBe(null)
    expect(parseXidLine('NVRM: Xid (PCI:????): nothing')).toBe(null)
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        parseXidLine(text)
        const xid = parseXidLine(`NVRM: Xid (PCI:${text}): 1`)
        expect(xid === null || xid.code === 1).toBe(true)
      }),
    )
  })
})

describe('XIDs in words', () => {
  it('distinguish application faults from hardware', () => {
    for (const code of [13, 31, 43]) expect(xidInWords(code)).toMatch(/application/)
    for (const code of [48, 62, 63, 64, 74, 79, 94, 95, 119, 120]) expect(xidInWords(code)).toMatch(/hardware/)
    expect(xidInWords(12345)).toContain('12345')
  })
})
