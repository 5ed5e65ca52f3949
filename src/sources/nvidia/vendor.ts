import type { Vendor } from '../../core/vendor.ts'

export const nvidiaVendor: Vendor = {
  name: 'nvidia',
  title: 'NVIDIA',
  load: async () => (await import('./index.ts')).nvidia,
  pciVendor: '0x10de',
  driver: {
    names: ['nvidia'],
    displayOnly: [],
    classes: ['0x03', '0x1200'],
    deviceFile: 'dev/nvidiactl',
    signs: [
      'dev/nvidiactl',
      'dev/dxg',
      'proc/driver/nvidia/version',
      'sys/module/nvidia',
      'usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
      'usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
      'usr/lib64/libnvidia-ml.so.1',
      'usr/lib/wsl/lib/libnvidia-ml.so.1',
    ],
  },
  models: /\b(NVIDIA|GeForce|Quadro|Tesla)\b/i,
  deviceFiles: /^\/dev\/nvidia/,
  metricSets: { dcgm: 'all', nvidia_smi: 'all' },
  deviceNode: 'nvidia',
  help: {
    install:
      'Install the NVIDIA driver of your distribution (Debian: nvidia-driver, Ubuntu: "ubuntu-drivers install"), reboot, and see that nvidia-smi works.',
    container: '"--gpus all"',
    tool: 'nvidia-smi',
    kernelLog: 'XIDs that NVML does not report are not seen',
    computeFile: null,
    nativePackage: 'koffi',
  },
  unit: { after: ['nvidia-persistenced.service'], devices: ['char-nvidia* rw'], note: null },
}
