/** Tab completion and the manual, made from the table of commands, in the shells that are here. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RunningAgent, run, temporaryFolder } from './program.ts'

const has = (program: string) => spawnSync(program, ['--version']).error === undefined

async function scriptOf(shell: string): Promise<string> {
  const { code, stdout } = await run(['completion', shell])
  expect(code).toBe(0)
  return stdout
}

/** What bash offers after these words; `live` stands for what an agent knows. */
async function offered(words: readonly string[], live = ''): Promise<string[]> {
  const file = join(temporaryFolder(), 'completion.bash')
  writeFileSync(file, await scriptOf('bash'))
  const script = `gpuwarden() { printf '%s\\n' ${live}; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpuwarden; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = spawnSync('bash', ['-c', script, 'bash', file, 'gpuwarden', ...words], { encoding: 'utf8', cwd: temporaryFolder() })
  return stdout.trim().split('\n')
}

describe.skipIf(!has('bash'))(`completion in bash${has('bash') ? '' : ' (skipped: bash is not installed)'}`, () => {
  it('knows commands, flags, values, and what an agent knows', async () => {
    expect(await offered(['do'])).toEqual(['doctor'])
    expect(await offered(['top', '--th'])).toEqual(['--theme'])
    expect(await offered(['top', '--theme', ''])).toEqual(['dark', 'light', 'mono'])
    expect(await offered(['alerts', 'un'])).toEqual(['unsilence', 'unack'])
    expect(await offered(['top', '--gpu', ''], '0 1 7')).toEqual(['0', '1', '7'])
    expect(await offered(['snapshot', '--run', 're'], 'resnet-50 llama')).toEqual(['resnet-50'])
    expect(await offered(['--source', 'demo', '--demo-sc'])).toEqual(['--demo-scenario'])
  })
})

describe('completion', () => {
  it.each(['zsh', 'fish'])('for %s is a script that this shell reads, where it is installed', async (shell) => {
    const script = await scriptOf(shell)
    expect(script).toContain('demo-scenario')
    if (!has(shell)) return
    const file = join(temporaryFolder(), 'script')
    writeFileSync(file, script)
    expect(spawnSync(shell, ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })

  it('asks a running agent, and is silent without one', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-gpus', '2'])
    const ask = (kind: string, url: string) => run(['completion', '--values', kind, '--port', new URL(url).port])
    await expect.poll(() => ask('gpu', agent.url), { timeout: 20_000 }).toMatchObject({ code: 0, stdout: '0\n1\n' })
    expect((await ask('run', agent.url)).code).toBe(0)
    await agent.stop()
    expect(await ask('gpu', agent.url)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(await ask('cheese', agent.url)).toMatchObject({
      code: 2,
      stderr: 'gpuwarden: completion --values: expected gpu, run, channel; got "cheese"\n',
    })
  })

  it('says which shells there are', async () => {
    const { code, stderr } = await run(['completion', 'tcsh'])
    expect(code).toBe(2)
    expect(stderr).toContain('expected bash, zsh or fish, got "tcsh"')
  })
})

describe('the manual', () => {
  it('has every command with its flags', async () => {
    const { stdout } = await run(['man'])
    for (const word of ['.SS gpuwarden top', '\\-\\-demo\\-scenario', '.SS gpuwarden completion', '.SH EXIT STATUS'])
      expect(stdout).toContain(word)
    if (has('groff'))
      expect(spawnSync('groff', ['-Kutf8', '-man', '-Tutf8', '-ww', '-z'], { input: stdout, encoding: 'utf8' }).stderr).toBe('')
  })
})
