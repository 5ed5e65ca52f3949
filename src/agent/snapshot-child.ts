/** Entry of the process that analyzes one memory snapshot. It ends when the agent ends it, or is gone. */
import { Analysis } from '../snapshot/serve/analysis.ts'
import type { ToAnalysis } from '../snapshot/serve/messages.ts'

const analysis = new Analysis((message) => process.send?.(message))

process.on('message', (message: ToAnalysis) => void analysis.take(message))
// Not by exit(), which waits for calls to a disk that may never answer.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A Ctrl-C in the terminal reaches the whole process group; the agent ends this process.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
