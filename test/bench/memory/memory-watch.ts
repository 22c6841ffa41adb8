import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'
import { TurnWatch } from '../thread-use.js'

/**
 * Loaded into a gateway before its own code: asked for `held`, it tells what held the event loop since it was last asked.
 * `held in all` counts apart from that.
 */

/** What held the event loop, in milliseconds. */
export interface Held {
  /** Longest time from one turn to the next: what other processes took is in it. */
  readonly most: number
  readonly p999: number
  /** Longest time of the processor that the thread used between two turns; null where the system does not tell. */
  readonly used: number | null
}

// a thread of the gateway loads it too
if (isMainThread) watch()

function watch (): void {
  const loops = { 'held': monitorEventLoopDelay({ resolution: 1 }), 'held in all': monitorEventLoopDelay({ resolution: 1 }) }
  for (const loop of Object.values(loops)) loop.enable()
  const turns = new TurnWatch()
  process.on('message', what => {
    if (what !== 'held' && what !== 'held in all') return void process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
    const loop = loops[what]
    const held: Held = { most: loop.max / 1e6, p999: loop.percentile(99.9) / 1e6, used: what === 'held' ? turns.take() : null }
    loop.reset()
    process.send!(held)
  })
  // the gateway ends as it does without this
  process.channel?.unref()
}
