/** What the driver's error numbers (XIDs) mean, for those that are met in practice. */

const MEANINGS: ReadonlyMap<number, string> = new Map([
  [8, 'a GPU program ran too long and was stopped'],
  [13, 'graphics engine exception: usually a fault of the application (out-of-bounds access, bad instruction)'],
  [31, 'GPU memory page fault: usually a fault of the application (illegal address)'],
  [32, 'invalid or corrupted push buffer: driver, PCIe or application fault'],
  [38, 'driver firmware error'],
  [43, 'GPU stopped processing: the application was ended, the GPU itself is healthy'],
  [45, 'work was removed from the GPU: the application ended or was killed, often after another error'],
  [48, 'double-bit ECC error: hardware; drain the GPU and reset it'],
  [56, 'display engine error'],
  [57, 'error programming the video memory interface'],
  [61, 'internal micro-controller breakpoint: hardware or firmware; reset the GPU'],
  [62, 'internal micro-controller halt: hardware or firmware; reset the GPU'],
  [63, 'a memory page was retired or a row remapped: hardware; reset the GPU when it can be drained'],
  [64, 'retiring a page or remapping a row failed: hardware; reset, and replace the card if it comes back'],
  [68, 'video processor exception'],
  [69, 'graphics engine class error: usually a fault of the application'],
  [74, 'NVLink error: hardware; check link, bridge and neighbor GPU'],
  [79, 'the GPU has fallen off the bus: hardware; check power, seating and temperature, then reboot'],
  [92, 'high rate of single-bit ECC errors: hardware; watch the card'],
  [94, 'contained uncorrectable ECC error: hardware; the application was hit, reset the GPU soon'],
  [95, 'uncontained uncorrectable ECC error: hardware; every application on the GPU was hit, reset it now'],
  [109, 'context switch timeout'],
  [110, 'security fault'],
  [119, 'the GPU system processor (GSP) does not answer: hardware or firmware; reset the GPU or reboot'],
  [120, 'GPU system processor (GSP) error: hardware or firmware; reset the GPU or reboot'],
  [121, 'chip-to-chip link error: hardware'],
  [140, 'unrecovered ECC error: hardware; reset the GPU'],
  [143, 'GPU initialization failed'],
  [149, 'NVLink error: hardware; check the fabric'],
  [154, 'the recovery action of the GPU has changed'],
])

export function xidInWords(code: number | null): string {
  if (code === null) return 'the driver reported an error (XID) without its number'
  return `XID ${code}: ${MEANINGS.get(code) ?? "see NVIDIA's list of XID errors"}`
}
