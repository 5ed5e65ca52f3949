import type { Vendor } from '../../core/vendor.ts'

export const jetsonVendor: Vendor = {
  name: 'jetson',
  title: 'NVIDIA Jetson',
  load: async () => (await import('./index.ts')).jetson,
  // Its GPU is a part of the chip and is on no bus.
  pciVendor: null,
  driver: { names: [], displayOnly: [], classes: [], deviceFile: null, signs: ['sys/class/devfreq'] },
  models: /\b(Jetson|Tegra)\b/i,
  deviceFiles: /^\/dev\/nv(?:host-|map$|gpu\/)/,
  metricSets: {},
  deviceNode: 'card',
  help: {
    install: 'Use the kernel of Jetson Linux (JetPack), which has the driver of the GPU; in a container, mount /sys.',
    container: '/sys of the host',
    tool: 'tegrastats',
    kernelLog: null,
    computeFile: null,
    nativePackage: null,
  },
  unit: { after: [], devices: [], note: 'The GPU of a Jetson is read through /sys and needs no device.' },
}
