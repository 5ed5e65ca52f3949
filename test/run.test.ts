/** `gpuwarden run`: the command is not disturbed, and what it did is known afterwards. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { nameOf } from '../src/commands/run.ts'
import { AgentClient } from '../src/core/agent-client.ts'
import { OutputParser } from '../src/training/output-parser.ts'
import { PrintedSteps } from '../src/training/printed-steps.ts'
import { ProcessTree } from '../src/training/process-tree.ts'
import { ProgressBar } from '../src/training/progress-bar.ts'
import { RunFollower } from '../src/training/run-follow.ts'
import { TrainingMonitorCallback } from '../src/training/training-callback.ts'
import { BIN, RunningAgent, run, temporaryFolder, until } from './program.ts'

const OWN_AGENT = ['--source', 'demo', '--demo-scenario', 'idle', '--port', '0', '--interval', '0.2']
const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

interface RunFile {
  id: string
  name: string
  outcome: string
  message: string | null
  command: string
  pid: number
}
const runsIn = (dir: string): RunFile[] =>
  readdirSync(join(dir, 'runs'))
    .filter((name) => name.endsWith('.run.json'))
    .map((name) => JSON.parse(readFileSync(join(dir, 'runs', name), 'utf8')) as RunFile)

describe('the command', () => {
  it('has its output, its environment and its exit code', async () => {
    const dir = temporaryFolder()
    const script = 'printf "out\\n"; printf "err\\n" >&2; env | grep ^GPUWARDEN_ | cut -d= -f1 | sort; exit 7'
    const ended = await run(['run', ...OWN_AGENT, '--log-dir', dir, '--name', 'mine', '--', 'bash', '-c', script])
    expect(ended.code).toBe(7)
    expect(ended.stdout).toBe('out\nGPUWARDEN_CORRELATION_ID\nGPUWARDEN_PROGRAM\nGPUWARDEN_RUN_ID\nGPUWARDEN_RUN_NAME\nGPUWARDEN_URL\n')
    expect(ended.stderr.startsWith('err\n\ngpuwarden · mine: failed (exit code 7)\n')).toBe(true)
    expect(ended.stderr).toMatch(/critical run_died: Run mine died after [\d.]+ m?s: exit code 7\./)
    expect(ended.stderr).toContain('This machine has no GPU: the SIMULATED ones are not part of the run.')
    expect(ended.stderr).not.toMatch(/GPU (seconds|time|0)|cost|energy/)
    expect(runsIn(dir)).toMatchObject([
      { name: 'mine', outcome: 'failed', message: 'exit code 7', command: expect.stringContaining('bash') },
    ])
  })

  it('has the hooks of the SDK first on its Python path, unless told otherwise', async () => {
    const path = async (flags: string[], env: Record<string, string>) =>
      (await run(['run', ...OWN_AGENT, '--quiet', ...flags, '--', 'bash', '-c', 'echo "$PYTHONPATH"'], env)).stdout.trim()
    expect(await path([], { PYTHONPATH: '/mine' })).toMatch(/python\/gpuwarden\/startup:\/mine$/)
    expect(await path(['--no-hooks'], { PYTHONPATH: '/mine' })).toBe('/mine')
    expect(await path([], { PYTHONPATH: '/mine', GPUWARDEN_NO_HOOKS: '1' })).toBe('/mine')
  })

  it('that does not exist gives 127, and prints no summary with --quiet', async () => {
    const missing = await run(['run', ...OWN_AGENT, '--', 'no-such-command-here'])
    expect([missing.code, missing.stderr]).toEqual([127, 'gpuwarden: no-such-command-here: command not found\n'])
    const quiet = await run(['run', ...OWN_AGENT, '--quiet', '--', 'true'])
    expect([quiet.code, quiet.stdout, quiet.stderr]).toEqual([0, '', ''])
    expect((await run(['run'])).code).toBe(2)
  })

  it('gets the signals, and its end by a signal is ours', async () => {
    const dir = temporaryFolder()
    const start = (script: string) => {
      const child = spawn(process.execPath, [BIN, 'run', ...OWN_AGENT, '--log-dir', dir, '--', 'bash', '-c', script], {
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
        child.once('close', (code, signal) => resolve({ code, signal })),
      )
      const ready = new Promise<void>((resolve) => child.stdout.once('data', () => resolve()))
      return { child, ended, ready }
    }
    const trapping = start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")
    await trapping.ready
    trapping.child.kill('SIGTERM')
    expect(await trapping.ended).toEqual({ code: 9, signal: null })
    const killed = start('echo ready; kill -KILL $$')
    expect(await killed.ended).toEqual({ code: null, signal: 'SIGKILL' })
    expect(
      runsIn(dir)
        .map(({ outcome }) => outcome)
        .sort(),
    ).toEqual(['failed', 'killed'])
  })

  it('ends as it would have when nobody reads its output anymore', async () => {
    const pipeline = `"${process.execPath}" "${BIN}" run --source demo --port 0 --parse-output --quiet -- bash -c 'while echo line; do :; done' | head -1`
    const child = spawn('bash', ['-c', pipeline], { cwd: temporaryFolder(), stdio: ['ignore', 'pipe', 'ignore'] })
    stops.push(() => child.kill('SIGKILL'))
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
    })
    await new Promise((resolve) => child.once('close', resolve))
    expect(text).toBe('line\n')
  })

  it('runs although it cannot be watched', async () => {
    const ended = await run(['run', '--source', 'replay:/nonexistent', '--port', '0', '--', 'bash', '-c', 'echo done'])
    expect([ended.code, ended.stdout]).toEqual([0, 'done\n'])
    expect(ended.stderr).toContain('runs without being watched')
  })

  it('uses the agent that is running, and leaves it running', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle', '--interval', '0.2'])
    stops.push(() => agent.stop('SIGKILL'))
    const ended = await run(['run', '--name', 'guest', '--', 'bash', '-c', 'echo "$GPUWARDEN_URL"'], { GPUWARDEN_URL: agent.url })
    expect([ended.code, ended.stdout.trim()]).toEqual([0, agent.url])
    const { runs } = await agent.get<{ runs: RunFile[] }>('/api/v1/runs')
    expect(runs).toMatchObject([{ name: 'guest', outcome: 'success' }])
    expect(await agent.text('/metrics')).toMatch(/training_run_info\{[^}]*name="guest"/)
  })

  it('has as many steps as one of its ranks took', async () => {
    const script = `
      const post = (path, type, body) => fetch(process.env.GPUWARDEN_URL + path, { method: 'POST', headers: { 'content-type': type }, body })
      const id = process.env.GPUWARDEN_RUN_ID
      await post('/api/v1/runs', 'application/json', JSON.stringify({ id, name: 'two ranks' }))
      const lines = [0, 1].flatMap((rank) => [1, 2, 3].map((seq) => JSON.stringify({ seq, rank, step: seq, loss: 1 / seq })))
      await post('/api/v1/runs/' + id + '/steps', 'application/x-ndjson', lines.join('\\n'))`
    const command = [process.execPath, '--input-type=module', '-e', script]
    const ended = await run(['run', ...OWN_AGENT, '--log-dir', temporaryFolder(), '--', ...command])
    expect(ended.stderr).toMatch(/training {2}3 steps,/)
  })

  it('that runs out of memory: the summary says why, where and who held it', async () => {
    const script = `
      const post = (path, body) => fetch(process.env.GPUWARDEN_URL + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
      const id = process.env.GPUWARDEN_RUN_ID
      await post('/api/v1/runs', { id, name: 'hungry' })
      await post('/api/v1/runs/' + id + '/report', {
        kind: 'oom',
        requested_bytes: 2 ** 30,
        message: 'CUDA out of memory.',
        cause: { kind: 'leak', message: 'it grew' },
        stack: [{ file: '/home/user/train.py', line: 7, function: 'main' }, { file: '/v/lib/python3.12/site-packages/torch/a.py', line: 1, function: 'f' }],
        ledger: [{ name: 'torch_allocated', bytes: 79 * 2 ** 30 }, { name: 'free', bytes: 2 ** 20 }],
        holders: [{ file: '/home/user/train.py', line: 5, function: 'keep', bytes: 70 * 2 ** 30, blocks: 9 }],
      })
      await post('/api/v1/runs/' + id + '/end', { outcome: 'oom', message: 'OutOfMemoryError: CUDA out of memory.' })
      process.exitCode = 1`
    const page = join(temporaryFolder(), 'r.html')
    const command = [process.execPath, '--input-type=module', '-e', script]
    const ended = await run(['run', ...OWN_AGENT, '--log-dir', temporaryFolder(), '--name', 'hungry', '--report', page, '--', ...command])
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain(`gpuwarden · hungry: ran out of GPU memory
  cause     a leak: it grew
  where     /home/user/train.py:7 in main, asked for 1.0 GiB
  memory    79.0 GiB tensors, 1.0 MiB free
  held by   70.0 GiB  /home/user/train.py:5 in keep (9 blocks)
  duration  `)
    expect(readFileSync(page, 'utf8')).toContain('<h2>Why memory ran out</h2>')
  })

  it('outlives its agent: the summary says what is missing, and how it ended is kept', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle', '--interval', '0.2'])
    stops.push(() => agent.stop('SIGKILL'))
    const spool = temporaryFolder()
    const env = { GPUWARDEN_URL: agent.url, GPUWARDEN_SPOOL: spool }
    const go = join(spool, 'go')
    const page = join(spool, 'report.html')
    const script = `until [ -e ${go} ]; do sleep 0.05; done; exit 3`
    const ending = run(['run', '--name', 'survivor', '--report', page, '--', 'bash', '-c', script], env)
    await until('the run is known', async () => (await agent.get<{ runs: RunFile[] }>('/api/v1/runs')).runs.length === 1)
    await agent.stop('SIGKILL')
    writeFileSync(go, '')
    const ended = await ending
    expect(ended.code).toBe(3)
    expect(ended.stderr).toContain('survivor: failed (exit code 3)')
    expect(ended.stderr).toContain('stopped answering')
    expect(ended.stderr).toContain('no report was written')
    const kept = readdirSync(spool).filter((name) => name.endsWith('.jsonl'))
    expect(kept.length).toBe(1)
    const dir = temporaryFolder()
    await run(['import', join(spool, kept[0] ?? ''), '--log-dir', dir, '--port', '1'])
    expect(runsIn(dir)).toMatchObject([{ name: 'survivor', outcome: 'failed', message: 'exit code 3' }])
  })

  it('with --parse-output and --report has its steps, how it ended and a page', async () => {
    const dir = temporaryFolder()
    const page = join(dir, 'report.html')
    const bar = 'printf " 0%%| | 4/5000 [00:01<00:09, 9.9it/s, loss=0.4]\\n"'
    const script = `for i in 1 2 3; do echo "step $i | loss 0.$i | lr 1e-4"; done; ${bar}; echo "step 5 | loss nan"`
    const ended = await run(['run', ...OWN_AGENT, '--log-dir', dir, '--parse-output', '--report', page, '--', 'bash', '-c', script])
    expect([ended.code, ended.stdout.split('\n').length]).toEqual([0, 6])
    expect(ended.stderr).toContain('the loss became NaN')
    expect(ended.stderr).toContain('5 steps')
    expect(runsIn(dir)).toMatchObject([{ name: 'bash', outcome: 'nan', totalSteps: 5000 }])
    expect(readFileSync(page, 'utf8')).toContain('"title":"Loss"')
  })
})

describe('import', () => {
  const line = (seq: number) => JSON.stringify({ seq, rank: 0, step: seq, t: Date.now(), loss: 1 / seq })
  const spool = () => {
    const file = join(temporaryFolder(), 'spool.jsonl')
    const head = { run: { id: 'r1', name: 'spooled' }, url: 'http://127.0.0.1:4780', format: 1 }
    const tail = [{ report: { message: 'm' } }, { end: { outcome: 'oom', message: 'CUDA out of memory' } }].map((one) =>
      JSON.stringify(one),
    )
    writeFileSync(file, `${[JSON.stringify(head), line(1), line(2), ...tail].join('\n')}\n{"seq":3,"torn`)
    return file
  }

  it('delivers to the agent, and once only', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle', '--interval', '1'])
    stops.push(() => agent.stop('SIGKILL'))
    const file = spool()
    const kept = await run(['import', '--keep', file], { GPUWARDEN_URL: agent.url })
    expect([kept.code, kept.stdout]).toEqual([0, `${file}: 2 new steps, 0 already known, 1 refused → ${agent.url}\n`])
    expect((await run(['import', file], { GPUWARDEN_URL: agent.url })).stdout).toContain('0 new steps, 2 already known')
    expect(existsSync(file)).toBe(false)
    expect(await agent.get('/api/v1/runs/r1')).toMatchObject({
      name: 'spooled',
      outcome: 'oom',
      report: { message: 'm' },
      training: { steps: 2 },
    })
  })

  it('writes to the log folder when no agent answers', async () => {
    const dir = temporaryFolder()
    const file = spool()
    const ended = await run(['import', file, '--log-dir', dir, '--port', '1'])
    expect([ended.code, ended.stderr]).toEqual([0, ''])
    const log = readdirSync(dir).find((name) => name.startsWith('training_metrics_')) ?? ''
    expect(readFileSync(join(dir, log), 'utf8').trim().split('\n').length).toBe(2)
    expect(runsIn(dir)).toMatchObject([{ id: 'r1', outcome: 'oom' }])
    writeFileSync(file, '{"seq":1}\n')
    expect((await run(['import', file, '--log-dir', dir, '--port', '1'])).stderr).toContain('is not a spool file')
  })
})

describe('TrainingMonitorCallback', () => {
  it('reports every step to the agent, with NaN, rank and custom figures', async () => {
    const agent = await RunningAgent.start(['--source', 'demo', '--demo-scenario', 'idle', '--interval', '1'])
    stops.push(() => agent.stop('SIGKILL'))
    const callback = new TrainingMonitorCallback({
      name: 'node',
      url: agent.url,
      rank: 2,
      worldSize: 4,
      hyperparameters: { lr: 0.1, token: 'abc' },
    })
    callback.onTrainBegin()
    for (let step = 1; step <= 50; step++) {
      callback.onStepBegin()
      callback.onStepEnd({ step, epoch: 0.1, loss: step === 7 ? Number.NaN : 1 / step, lr: 0.1, gradNorm: 1, throughput: 5, accuracy: 0.5 })
    }
    await callback.flush()
    await callback.onTrainEnd('failed', 'ended by the test')
    expect([callback.delivered, callback.dropped, callback.lastProblem]).toEqual([50, 0, null])
    const found = await agent.get<{ ranks: unknown[]; training: Record<string, unknown> }>(`/api/v1/runs/${callback.runId}`)
    expect(found).toMatchObject({ name: 'node', outcome: 'failed', worldSize: 4, ranks: [{ rank: 2, steps: 50, lastSeq: 50 }] })
    expect(found).toMatchObject({ hyperparameters: { lr: 0.1, token: '***' } })
    expect(found.training).toMatchObject({ steps: 50, nonFiniteSteps: 1, custom: { accuracy: 0.5 } })
  })

  it('never throws and keeps no more than it may when there is no agent', async () => {
    const callback = new TrainingMonitorCallback({ url: 'http://127.0.0.1:1', queueSize: 10, spool: null })
    for (let step = 1; step <= 25; step++) callback.onStepEnd({ step, loss: 1 })
    await callback.flush()
    expect([callback.dropped, callback.delivered]).toEqual([15, 0])
    await callback.onTrainEnd()
    expect([callback.dropped, callback.delivered, callback.spooled]).toEqual([25, 0, 0])
    expect(callback.lastProblem).toBeTruthy()
  })
})

describe('what a command prints', () => {
  const parse = (text: string) => new OutputParser().feed(`${text}\n`)

  it('is understood where it is one of the common forms', () => {
    expect(parse("{'loss': 6.1354, 'grad_norm': 0.8609, 'learning_rate': 4.06e-05, 'epoch': 0.5}")).toMatchObject([
      { loss: 6.1354, grad_norm: 0.8609, lr: 4.06e-5, epoch: 0.5, step: 1 },
    ])
    expect(parse("{'loss': '6.1354', 'learning_rate': '4.06e-05', 'epoch': '0.5'}")).toMatchObject([
      { loss: 6.1354, lr: 4.06e-5, epoch: 0.5 },
    ])
    expect(parse('{"step": 12, "train_loss": 0.25, "lr": 0.001, "epoch": 2}')).toMatchObject([
      { step: 12, loss: 0.25, lr: 0.001, epoch: 2 },
    ])
    expect(parse('Epoch 1:  45%|████▌     | 45/100 [00:12<00:15,  4.00it/s, loss=0.123, lr=1e-3]')).toMatchObject([
      { step: 45, loss: 0.123, lr: 0.001, step_seconds: 0.25 },
    ])
    expect(parse('step 100 | loss 2.3456 | lr 3.00e-04 | grad_norm 1.5')).toMatchObject([
      { step: 100, loss: 2.3456, lr: 3e-4, grad_norm: 1.5 },
    ])
    expect(parse('iter 250: loss 1.9, time 12.5ms')).toMatchObject([{ step: 250, loss: 1.9 }])
    expect(parse('Train Epoch: 3 [640/60000 (1%)]\tLoss: 2.30')).toMatchObject([{ epoch: 3, step: 640, loss: 2.3 }])
    expect(parse('\u001b[32mINFO\u001b[0m step=7 loss=nan')).toMatchObject([{ step: 7, loss: Number.NaN }])
    expect(parse('step 8 loss: inf')).toMatchObject([{ step: 8, loss: Infinity }])
  })

  it('takes the step of a progress bar for the line that follows it, and draws no step twice', () => {
    const parser = new OutputParser()
    expect(parser.feed(' 10%|█ | 10/100 [00:01<00:09, 9.9it/s]\r')).toEqual([])
    expect(parser.feed("{'loss': 1.5}\n")).toMatchObject([{ step: 10, loss: 1.5 }])
    const bar = ' 11%|█ | 11/100 [00:01<00:09, 9.9it/s, loss=1.4]\r'
    expect(parser.feed(bar + bar + bar).length).toBe(1)
  })

  it('counts by itself where the only bar was over long before', () => {
    const bar = new ProgressBar()
    bar.read('Loading weights: 100%|██| 26/26 [00:01<00:00, 9.9it/s]', Date.now() - 60_000)
    expect(new OutputParser(bar).feed("{'loss': 1.5}\n{'loss': 1.4}\n")).toMatchObject([{ step: 1 }, { step: 2 }])
    bar.read('  0%| | 0/40 [00:00<?, ?it/s]', Date.now() - 60_000)
    expect(new OutputParser(bar).feed("{'loss': 1.5}\n")).toMatchObject([{ step: 0, isByBar: true }])
  })

  it('takes the step of a bar that is drawn on the other stream, also right after the line', async () => {
    const posted: { step: number; loss: number; epoch: number; isByBar?: boolean }[] = []
    let plan: number | null = null
    const link = {
      tryGet: async () => ({ status: 200, body: { training: { steps: posted.length } } }),
      tryPost: async (_: string, body: { total_steps: number }) => {
        plan = body.total_steps
        return { status: 200, body: {} }
      },
      tryPostLines: async (_: string, lines: readonly string[]) => {
        posted.push(...lines.map((line) => JSON.parse(line)))
        return { status: 200, body: { run: 'r', accepted: lines.length, duplicates: 0, rejected_count: 0 } }
      },
    } as unknown as AgentClient
    const printed = new PrintedSteps(link, { id: 'r', name: 'r', started_at: 1 })
    // As the Trainer of Hugging Face prints it: dicts to standard output, the bar below them to standard error, drawn late.
    printed.feed('stderr', '  0%|          | 0/40 [00:00<?, ?it/s]\r')
    printed.feed('stdout', "{'loss': '5.453', 'epoch': '0.1087'}\n")
    printed.feed('stderr', '                  \r 12%|█▎  | 5/40 [00:00<00:00, 61.92it/s]\r 18%|█▊  | 7/40 [00:00<00:00, 66.65it/s]\r')
    printed.feed('stderr', ' 25%|██▌ | 10/40 [00:00<00:00, 66.65it/s]\r')
    printed.feed('stdout', "{'loss': '5.315', 'epoch': '0.2174'}\n{'train_runtime': '10.5', 'train_loss': '5.2'}\n")
    await printed.close()
    expect(posted).toMatchObject([
      { step: 5, loss: 5.453, epoch: 0.1087 },
      { step: 10, loss: 5.315, epoch: 0.2174 },
    ])
    expect(posted[0]).not.toHaveProperty('isByBar')
    expect(plan).toBe(40)
  })

  it('takes what the bar of the losses counts up to for the plan, and nothing else', () => {
    const parser = new OutputParser()
    parser.feed('100%|██| 3/3 [00:01<00:00, 9.9it/s]\rstep 7 loss 1.0\n')
    expect(parser.totalSteps).toBe(null)
    parser.feed(' 2%|█ | 120/5000 [00:01<00:09, 9.9it/s]\r')
    expect(parser.totalSteps).toBe(null)
    parser.feed("{'loss': 1.5}\n")
    expect(parser.totalSteps).toBe(5000)
    parser.feed('Train Epoch: 3 [640/60000 (1%)]\tLoss: 2.30\n')
    expect(parser.totalSteps).toBe(5000)
  })

  it('counts steps by their number, also those of each epoch, and knows how many there will be', () => {
    const parser = new OutputParser()
    expect(parser.feed('step 12/240 loss 1.5\nstep 24 / 240: loss=1.4\n')).toMatchObject([{ step: 12 }, { step: 24 }])
    expect(parser.totalSteps).toBe(240)
    expect(parse('Step [3/10], Loss: 0.5')).toMatchObject([{ step: 3 }])
    expect(parse('iteration 7 of 90 | loss 2')).toMatchObject([{ step: 7 }])
    const epochs = new OutputParser()
    const lines = [
      'Epoch 1/3 step 50/100 loss 3',
      'Epoch 1/3 step 100/100 loss 2',
      'Epoch 2/3 step 50/100 loss 1',
      'Epoch [3/3], Step [50/100], Loss: 1',
    ]
    expect(epochs.feed(`${lines.join('\n')}\n`)).toMatchObject([{ step: 50 }, { step: 100 }, { step: 150 }, { step: 250 }])
    expect(epochs.totalSteps).toBe(300)
    const unknown = new OutputParser()
    unknown.feed('epoch 1 batch 5/10 loss 1\n')
    expect(unknown.totalSteps).toBe(null)
    expect(parse('step 12/7 loss 1')).toMatchObject([{ step: 12 }])
  })

  it('says nothing of other losses and of prose', () => {
    for (const text of [
      'val_loss: 0.5',
      'eval loss = 3',
      'the loss of a friend',
      'Using cross entropy loss',
      'test/loss 0.4',
      "{'eval_loss': 1.2}",
      "{'train_runtime': '10.54', 'train_samples_per_second': '45.54', 'train_loss': '5.21', 'epoch': '1.304'}",
    ])
      expect(parse(text)).toEqual([])
    expect(parse('step 5 loss 1.0 val_loss 2.0')).toMatchObject([{ step: 5, loss: 1 }])
    const parser = new OutputParser()
    parser.feed('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n')
    expect(parser.sawOutOfMemory).toBe(true)
  })

  it('is read the same however it is cut into pieces, and never throws', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.constant('step 1 loss 0.5\n'), fc.constant('\r'), fc.constant("{'loss': 2}"))),
        (pieces) => {
          const parser = new OutputParser()
          expect(pieces.flatMap((piece) => parser.feed(piece)).concat(parser.feed('\n'))).toEqual(parse(pieces.join('')))
        },
      ),
    )
  })

  it('names the run after the script', () => {
    expect(nameOf(['python3', '-u', 'exp/train.py', '--lr', '1'])).toBe('train.py')
    expect(nameOf(['torchrun', '--nproc-per-node=8', 'train.py'])).toBe('train.py')
    expect(nameOf(['accelerate', 'launch', 'finetune.py'])).toBe('finetune.py')
    expect(nameOf(['env', 'A=1', 'python', 'x.py'])).toBe('x.py')
    expect(nameOf(['./a.out', 'x'])).toBe('a.out')
    expect(nameOf(['bash', '-c', 'python x.py'])).toBe('bash')
    expect(nameOf(['python', '-u', '-c', 'print(1)'])).toBe('python')
    expect(nameOf(['torchrun', '--nproc-per-node', '8', '-m', 'pkg.train'])).toBe('pkg.train')
  })
})

describe('following a command from outside', () => {
  it('finds its processes, children of children too, and the GPUs they are on', async () => {
    const child = spawn('bash', ['-c', `bash -c 'sleep 60 & echo $!; wait'; true`], { stdio: ['ignore', 'pipe', 'ignore'] })
    stops.push(() => child.kill('SIGKILL'))
    const sleeper = Number(await new Promise((resolve) => child.stdout.once('data', (data) => resolve(String(data)))))
    expect(sleeper).toBeGreaterThan(1)
    stops.push(() => process.kill(sleeper, 'SIGKILL'))
    const tree = new ProcessTree(child.pid ?? 0)
    await until('the sleeper is in the tree', () => tree.pids().has(sleeper))
    expect(tree.pids().has(process.pid)).toBe(false)
    const info = (id: string, index: number) => ({ id, index, label: String(index), mig: null, provenance: 'live' })
    const answers: Record<string, unknown> = {
      '/api/v1/gpus': { gpus: ['a', 'b'].map((id, index) => ({ info: info(id, index), sample: { gpu: id, at: 1 }, live: true })) },
      '/api/v1/processes': {
        processes: [
          { gpu: 'b', pid: sleeper, memoryUsedBytes: 5 },
          { gpu: 'a', pid: 1, memoryUsedBytes: 7 },
        ],
      },
      '/api/v1/findings': { findings: [] },
      '/api/v1/host': { host: { sample: { processesReason: null } } },
    }
    const server = createServer((request, response) => void response.end(JSON.stringify(answers[request.url ?? ''])))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    stops.push(() => new Promise((resolve) => server.close(resolve)))
    const link = new AgentClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null })
    const samples: string[] = []
    const used: (readonly string[])[] = []
    const follower = new RunFollower({
      link,
      pid: child.pid ?? 0,
      everyMs: 20,
      onSample: ({ gpu }) => void samples.push(gpu),
      onGpus: (gpus) => void used.push(gpus),
    })
    await until('the GPU is known', () => used.length > 0)
    await follower.stop()
    expect(used).toEqual([['b']])
    expect(samples).toEqual(['a', 'b'])
    expect(follower.gpus.get('b')).toMatchObject({ isOwn: true, peakProcessBytes: 5 })
    expect(follower.gpus.get('a')).toMatchObject({ isOwn: false, peakProcessBytes: null })
    expect(follower.processesAreKnown).toBe(true)
  })
})
