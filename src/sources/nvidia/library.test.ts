import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fake } from '../../../test/fake-nvml/open-fake.ts'
import { sourceEnv } from '../source.contract.ts'
import { initFault } from './codes.ts'
import { nvidia } from './index.ts'
import { libraryNames, openLibrary } from './library.ts'

describe('opening', () => {
  it.each([
    [18, /different versions.*reboot/],
    [4, /no permission.*\/dev\/nvidiactl/],
    [15, /fallen off the bus.*Xid 79/],
    [17, /operating system.*cgroup/],
    [999, /unknown error.*dmesg/],
    [12, /reinstall/],
    [1, /not initialized/],
    [77, /does not know.*77/],
  ])('says what to do when nvmlInit answers %i', async (code, words) => {
    const { env } = fake({ script: { init: code } })
    await expect(nvidia.open(env)).rejects.toThrow(words)
  })

  it('gives each code words of its own', () => {
    const codes = [1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 23, 999]
    expect(new Set(codes.map((code) => initFault(code, 'x').message.replace(/\d+/g, ''))).size).toBe(codes.length)
  })

  it('takes a driver that is not loaded, or lists no GPU, for a fault where a card or a named library says that there should be one', async () => {
    const { env, write, script } = fake({ script: { init: 9 } })
    await expect(nvidia.open(env)).rejects.toMatchObject({ kind: 'no_driver', message: expect.stringMatching(/not loaded.*modprobe/) })
    script.update({ init: null, gpus: 0 })
    await expect(nvidia.open(env)).rejects.toMatchObject({ kind: 'no_gpu', message: expect.stringContaining('lists no GPU') })
    write('sys/bus/pci/devices/0000:10:00.0/vendor', '0x10de\n')
    write('sys/bus/pci/devices/0000:10:00.0/class', '0x030000\n')
    // What the bus shows of it is judged for all vendors at once.
    expect(await nvidia.open(env)).toBe(null)
  })

  it('says for which machine a library was built', async () => {
    const { env, library } = fake()
    const foreign = join(mkdtempSync(join(tmpdir(), 'foreign-')), 'libnvidia-ml.so.1')
    const bytes = readFileSync(library)
    bytes.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18)
    writeFileSync(foreign, bytes)
    const words = process.arch === 'arm64' ? /is for x64, and this program runs on arm64/ : /is for arm64, and this program runs on x64/
    await expect(nvidia.open({ ...env, options: { nvmlPath: foreign } })).rejects.toMatchObject({
      kind: 'wrong_architecture',
      message: expect.stringMatching(words),
    })
  })

  it('names a library that is not there, by option or by variable', async () => {
    await expect(nvidia.open(sourceEnv({ options: { nvmlPath: '/nowhere/libnvidia-ml.so' } }))).rejects.toThrow('/nowhere/libnvidia-ml.so')
    await expect(nvidia.open(sourceEnv({ env: { GPUWARDEN_NVML: '/nowhere/nvml.so' } }))).rejects.toThrow('/nowhere/nvml.so')
  })

  it('names a file that is not a library', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'no-library-')), 'text.so')
    writeFileSync(path, 'this is not ELF')
    await expect(nvidia.open(sourceEnv({ options: { nvmlPath: path } }))).rejects.toThrow(path)
  })

  it('names a library that is something else', async () => {
    await expect(nvidia.open(sourceEnv({ options: { nvmlPath: 'libm.so.6' } }))).rejects.toThrow(/libm\.so\.6.*not NVML/)
  })

  it('takes the variable when there is no option', async () => {
    const { env, library } = fake()
    const source = await nvidia.open({ ...env, options: {}, env: { GPUWARDEN_NVML: library } })
    expect(source?.devices()).toHaveLength(2)
    await source?.close()
  })

  it('says that the library is missing where the driver is there', async () => {
    const { env, write } = fake()
    write('proc/driver/nvidia/version', 'NVRM version')
    await expect(nvidia.open({ ...env, options: {} })).rejects.toThrow(/libnvidia-ml\.so\.1 was not found.*GPUWARDEN_NVML/)
  })

  it('is null for a card that another driver has', async () => {
    const { env, write } = fake()
    write('sys/bus/pci/devices/0000:10:00.0/vendor', '0x10de\n')
    write('sys/bus/pci/devices/0000:10:00.0/class', '0x030000\n')
    expect(await nvidia.open({ ...env, options: {} })).toBe(null)
  })
})

describe('the search for the library', () => {
  const WSL = 'usr/lib/wsl/lib/libnvidia-ml.so.1'
  const OTHERS = ['run/opengl-driver/lib/libnvidia-ml.so.1', 'usr/local/nvidia/lib64/libnvidia-ml.so.1']

  /** A copy each, so that each is a library of its own to the linker. */
  function install({ root, library }: ReturnType<typeof fake>, path: string): string {
    const target = join(root, path)
    mkdirSync(dirname(target), { recursive: true })
    copyFileSync(library, target)
    return target
  }

  it('takes that of Windows under WSL, where the kernel has no driver and no card is on the bus', async () => {
    const setup = fake({ script: { gpus: 1, name: 'NVIDIA GeForce RTX 4090' } })
    setup.write('dev/dxg', '')
    const [other] = OTHERS
    const wrong = install(setup, other ?? '')
    install(setup, WSL)
    const source = await nvidia.open({ ...setup.env, options: {} })
    onTestFinished(() => source?.close())
    expect(source?.devices()).toMatchObject([{ name: 'NVIDIA GeForce RTX 4090' }])
    expect((await openLibrary({ ...setup.env, options: {} }, 0))?.path).toBe(join(setup.root, WSL))
    rmSync(wrong)
  })

  it('finds nothing under WSL without a GPU in Windows', async () => {
    const setup = fake()
    install(setup, WSL)
    expect(await nvidia.open({ ...setup.env, options: {} })).toBe(null)
  })

  it('goes on to the next where the first does not load', async () => {
    const setup = fake({ script: { gpus: 1 } })
    setup.write('dev/dxg', '')
    setup.write(WSL, 'this is not ELF')
    const second = install(setup, OTHERS[0] ?? '')
    expect((await openLibrary({ ...setup.env, options: {} }, 0))?.path).toBe(second)
  })

  it('asks the linker first elsewhere, and WSL before it only where its device is', () => {
    const { root, write } = fake()
    const others = [WSL, ...OTHERS].map((path) => join(root, path))
    expect(libraryNames(root)).toEqual(others)
    write('dev/dxg', '')
    expect(libraryNames(root)[0]).toBe(join(root, WSL))
    expect(libraryNames('/').filter((name) => !name.startsWith('/usr/lib/wsl'))).toEqual([
      'libnvidia-ml.so.1',
      'libnvidia-ml.so',
      ...OTHERS.map((path) => `/${path}`),
    ])
  })
})
