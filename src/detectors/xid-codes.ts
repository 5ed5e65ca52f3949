/** What XID errors mean and how bad they are. Unlisted ones are a warning: unknown is not harmless. */
import type { Severity } from '../core/model.ts'

export interface XidMeaning {
  readonly severity: Severity
  readonly meaning: string
  readonly advice: string
}

const APPLICATION = 'A bug in the program on the GPU: check its error message. The card is most likely fine.'
const RESET = 'Drain the GPU and reset it; if the error returns, have the card checked.'
const REPLACE = 'Stop using this GPU, keep the kernel log, and replace the card if it happens again.'

function xid(severity: Severity, meaning: string, advice: string): XidMeaning {
  return { severity, meaning, advice }
}

export const XID_MEANINGS: ReadonlyMap<number, XidMeaning> = new Map([
  [8, xid('warning', 'the GPU stopped processing a program', APPLICATION)],
  [11, xid('warning', 'an invalid command reached the GPU', APPLICATION)],
  [13, xid('warning', 'a program on the GPU raised an exception (often an index out of bounds)', APPLICATION)],
  [31, xid('warning', 'a program on the GPU accessed memory that is not its own', APPLICATION)],
  [32, xid('warning', 'a corrupted command stream reached the GPU', APPLICATION)],
  [43, xid('info', 'the driver stopped a program that had faulted', APPLICATION)],
  [44, xid('critical', 'a fault inside the graphics engine', RESET)],
  [45, xid('info', 'the driver cleaned up after a program that ended early', APPLICATION)],
  [48, xid('critical', 'an uncorrectable memory error (double bit)', REPLACE)],
  [61, xid('critical', 'an internal microcontroller stopped', RESET)],
  [62, xid('critical', 'an internal microcontroller halted', RESET)],
  [63, xid('warning', 'a failing memory row was marked for remapping', 'Reset the GPU when it is free, so that the row is remapped.')],
  [64, xid('critical', 'a failing memory row could not be recorded for remapping', REPLACE)],
  [68, xid('warning', 'the video decoder raised an exception', APPLICATION)],
  [69, xid('warning', 'the graphics engine refused a command', APPLICATION)],
  [74, xid('critical', 'an NVLink error', 'Check the other GPUs for it; reset, and have the bridge or board checked if it returns.')],
  [79, xid('critical', 'the GPU has fallen off the bus', 'The GPU cannot be reached: reboot the server; check power, seating and heat.')],
  [92, xid('warning', 'many corrected memory errors', 'Watch the ECC counters; plan a replacement if they keep rising.')],
  [
    94,
    xid(
      'critical',
      'an uncorrectable memory error, contained to one program',
      'Restart the program that was hit; reset the GPU when it is free.',
    ),
  ],
  [95, xid('critical', 'an uncorrectable memory error that could not be contained', REPLACE)],
  [109, xid('warning', 'a context switch took too long', APPLICATION)],
  [119, xid('critical', "the GPU's system processor did not respond", RESET)],
  [120, xid('critical', "the GPU's system processor failed", RESET)],
  [140, xid('critical', 'an unrecovered memory error', REPLACE)],
])

export const UNKNOWN_XID: XidMeaning = xid(
  'warning',
  'a driver error that gpuwarden does not know',
  "Look the number up in the vendor's list of XID errors.",
)
