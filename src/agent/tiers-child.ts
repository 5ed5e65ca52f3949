/** Entry of the process that looks after the history on disk. It ends when it is done, or when the agent is gone. */
import { keepUp, type UpkeepNews, type UpkeepOrder } from '../store/tiers/upkeep-work.ts'

let said: Promise<unknown> = Promise.resolve()
const say = (news: UpkeepNews) => {
  said = new Promise((resolve) => process.send?.(news, undefined, undefined, resolve))
}

process.on('message', async (order: UpkeepOrder) => {
  await keepUp(order, say)
  await said
  process.disconnect()
})
// Not by exit(), which waits for calls to a disk that may never answer.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A Ctrl-C in the terminal reaches the whole process group; the agent ends this process.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
