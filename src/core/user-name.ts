import { userInfo } from 'node:os'

/** Null for a user without an entry in the password file, as in many containers. */
export function userName(): string | null {
  try {
    return userInfo().username
  } catch {
    return null
  }
}

export function userNameOrNumber(): string {
  return userName() ?? String(process.getuid?.() ?? '')
}
