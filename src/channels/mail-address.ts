import { z } from 'zod'
import { isReference } from './secrets.ts'

/** No characters that mean something in an address list. */
export const ADDRESS = /^[^@\s<>,;:"()[\]\\]+@[^@\s<>,;:"()[\]\\]+$/

export const mailAddress = z
  .string()
  .refine((text) => ADDRESS.test(text) || isReference(text), 'expected an e-mail address such as gpu@example.org')
