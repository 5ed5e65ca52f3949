import type { Vendor } from '../../core/vendor.ts'

export const intelVendor: Vendor = {
  name: 'intel',
  title: 'Intel',
  load: async () => (await import('./index.ts')).intel,
  pciVendor: '0x8086',
  driver: {
    names: ['xe', 'i915'],
    displayOnly: ['gma500_gfx'],
    classes: ['0x03'],
    integratedAt: /:00:02\.0$/,
    deviceFile: null,
    signs: ['sys/module/xe', 'sys/module/i915'],
  },
  models: /\b(Intel|Arc|Iris|UHD Graphics)\b/i,
  deviceFiles: /^\/dev\/dri\//,
  metricSets: { dcgm: 'shared' },
  deviceNode: 'card',
  help: {
    install:
      'Load the xe or i915 kernel module ("modprobe xe", for older cards "modprobe i915"); in a container, mount /sys and pass /dev/dri.',
    container: '/dev/dri',
    tool: 'intel_gpu_top',
    kernelLog: null,
    computeFile: null,
    nativePackage: null,
  },
  unit: { after: [], devices: [], note: 'Intel cards are read through /sys and need no device.' },
}
