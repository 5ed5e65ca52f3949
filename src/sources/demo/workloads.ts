export interface Workload {
  readonly project: string
  readonly user: string
  readonly uid: number
  readonly command: readonly string[]
  /** In the home of its user. */
  readonly script: string
  readonly framework: string
  readonly container: string | null
  readonly slurmJob: string | null
  /** Of the card's memory, once warmed up. */
  readonly memoryShare: number
  readonly stepSeconds: number
  readonly batch: number
  readonly datasetSize: number
  readonly utilization: number
  readonly tensor: number
  readonly dram: number
  readonly powerShare: number
  /** Training, then evaluation, then a checkpoint, over and over. */
  readonly cycleSeconds: number
  readonly evalSeconds: number
  readonly checkpointSeconds: number
  readonly lossStart: number
  readonly lossFloor: number
  readonly learningRate: number
  readonly residentGibibytes: number
}

export const WORKLOADS: readonly Workload[] = [
  {
    project: 'llama-1b-pretrain',
    user: 'alice',
    uid: 1001,
    command: ['python', 'train.py', '--config', 'configs/llama-1b.yaml'],
    script: 'llama/train.py',
    framework: 'pytorch',
    container: null,
    slurmJob: '48213',
    memoryShare: 0.62,
    stepSeconds: 0.42,
    batch: 32,
    datasetSize: 400_000,
    utilization: 0.97,
    tensor: 0.54,
    dram: 0.41,
    powerShare: 0.86,
    cycleSeconds: 61,
    evalSeconds: 2.2,
    checkpointSeconds: 1.2,
    lossStart: 10.8,
    lossFloor: 2.4,
    learningRate: 3e-4,
    residentGibibytes: 14,
  },
  {
    project: 'mistral-lora',
    user: 'bob',
    uid: 1002,
    command: ['python', 'finetune.py', '--model', 'mistral-7b', '--lora-rank', '16'],
    script: 'lora/finetune.py',
    framework: 'transformers',
    container: 'docker:9f3c2b1a77de',
    slurmJob: null,
    memoryShare: 0.48,
    stepSeconds: 0.63,
    batch: 16,
    datasetSize: 52_000,
    utilization: 0.94,
    tensor: 0.47,
    dram: 0.52,
    powerShare: 0.74,
    cycleSeconds: 53,
    evalSeconds: 3.5,
    checkpointSeconds: 2,
    lossStart: 2.1,
    lossFloor: 0.9,
    learningRate: 2e-4,
    residentGibibytes: 22,
  },
  {
    project: 'latent-diffusion',
    user: 'carol',
    uid: 1003,
    command: ['python', '-m', 'diffusion.train', '--config', 'configs/ldm-256.yaml'],
    script: 'ldm/diffusion/train.py',
    framework: 'lightning',
    container: null,
    slurmJob: '48220',
    memoryShare: 0.71,
    stepSeconds: 0.55,
    batch: 64,
    datasetSize: 1_200_000,
    utilization: 0.98,
    tensor: 0.44,
    dram: 0.58,
    powerShare: 0.9,
    cycleSeconds: 83,
    evalSeconds: 3.4,
    checkpointSeconds: 1.6,
    lossStart: 1,
    lossFloor: 0.11,
    learningRate: 1e-4,
    residentGibibytes: 18,
  },
  {
    project: 'resnet50-imagenet',
    user: 'dave',
    uid: 1004,
    command: ['python', 'main.py', '--arch', 'resnet50', '--data', '/data/imagenet'],
    script: 'imagenet/main.py',
    framework: 'pytorch',
    container: null,
    slurmJob: null,
    memoryShare: 0.35,
    stepSeconds: 0.19,
    batch: 256,
    datasetSize: 1_281_167,
    utilization: 0.86,
    tensor: 0.29,
    dram: 0.63,
    powerShare: 0.58,
    cycleSeconds: 72,
    evalSeconds: 1.6,
    checkpointSeconds: 0.9,
    lossStart: 6.9,
    lossFloor: 1.7,
    learningRate: 0.1,
    residentGibibytes: 31,
  },
  {
    project: 'policy-gradient',
    user: 'erin',
    uid: 1005,
    command: ['python', 'train_rl.py', '--env', 'cheetah-run', '--actors', '48'],
    script: 'rl/train_rl.py',
    framework: 'pytorch',
    container: 'docker:41ab77c0e9d2',
    slurmJob: null,
    memoryShare: 0.22,
    stepSeconds: 0.88,
    batch: 512,
    datasetSize: 2_000_000,
    utilization: 0.57,
    tensor: 0.12,
    dram: 0.21,
    powerShare: 0.33,
    cycleSeconds: 47,
    evalSeconds: 4,
    checkpointSeconds: 1.2,
    lossStart: 3.4,
    lossFloor: 0.6,
    learningRate: 7e-4,
    residentGibibytes: 9,
  },
  {
    project: 'bert-large-mlm',
    user: 'frank',
    uid: 1006,
    command: ['python', 'train.py', '--config', 'configs/bert-large.yaml', '--bf16'],
    script: 'bert/train.py',
    framework: 'accelerate',
    container: null,
    slurmJob: '48231',
    memoryShare: 0.54,
    stepSeconds: 0.29,
    batch: 128,
    datasetSize: 3_500_000,
    utilization: 0.95,
    tensor: 0.49,
    dram: 0.46,
    powerShare: 0.81,
    cycleSeconds: 66,
    evalSeconds: 2.2,
    checkpointSeconds: 1.1,
    lossStart: 10.1,
    lossFloor: 1.5,
    learningRate: 1e-4,
    residentGibibytes: 12,
  },
]
