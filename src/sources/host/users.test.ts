import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Users } from './users.ts'

function rootWith(passwd: string): string {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-users-'))
  mkdirSync(join(root, 'etc'))
  writeFileSync(join(root, 'etc/passwd'), passwd)
  return root
}

describe('Users', () => {
  it('asks the directory service once for whom the file does not know, and gives its answer when it is there', () => {
    const asked: number[] = []
    let reply: (line: string | null) => void = () => undefined
    const users = new Users({
      root: rootWith('alice:x:1000:1000::/home/alice:/bin/sh\n'),
      ask: (uid, answer) => {
        asked.push(uid)
        reply = answer
      },
    })
    expect(users.nameOf(1000, 0)).toBe('alice')
    expect(users.nameOf(70_001, 0)).toBe(null)
    expect(users.nameOf(70_001, 1000)).toBe(null)
    reply('carol:*:70001:70001:Carol:/home/carol:/bin/bash\n')
    expect(users.nameOf(70_001, 2000)).toBe('carol')
    expect(asked).toEqual([70_001])
  })

  it('does not take the name of another user for the answer', () => {
    const users = new Users({ root: rootWith(''), ask: (_uid, answer) => answer('mallory:x:1:1::/:/bin/sh\n') })
    users.nameOf(5, 0)
    expect(users.nameOf(5, 1)).toBe(null)
  })

  it('asks nobody when it looks at another root', () => {
    expect(new Users({ root: rootWith('') }).nameOf(0, 0)).toBe(null)
  })
})
