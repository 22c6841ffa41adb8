import { core, definePlugin } from 'svc-gateway/plugin'
import { identityOf, memoryRef } from '../../services/memory/ref.js'
import { requireOwnPage } from '../omni/ref.js'
import { RememberingChat } from './answer.js'
import { memoryWish } from './wish.js'

/** What is being remembered when the gateway stops has this long; the host gives a plugin no more than 10 s. */
const LAST_RETAIN_MS = 5000

/** Chat requests with `memory: true`: memories go before them, and they are remembered. See README.md. */
export default definePlugin({
  name: 'v1-memory',
  kind: 'service',
  apiVersion: 1,
  requires: { clock: core.clock, config: core.config, dispatch: core.dispatch, memory: memoryRef },
  register (ctx) {
    const { clock, config, dispatch, memory } = ctx.services
    const leaving = new AbortController()
    const working = new Set<Promise<unknown>>()
    const behind = (work: Promise<unknown>): void => {
      working.add(work)
      void work.finally(() => working.delete(work))
    }
    let stop = (): void => {}
    ctx.onStart(() => {
      stop = dispatch.intercept('chat', 'memory', (call, options) => {
        const wish = options.dialect === undefined ? memoryWish(call.body) : null
        if (wish === null) return null
        requireOwnPage(call.request.headers, config.snapshot.svc.server.allowed_origins)
        const identity = identityOf(call.request.headers)
        const deps = { clock, dispatch, memory, log: ctx.log, behind, leaving: leaving.signal }
        const chat = new RememberingChat(deps, call, options, wish, identity)
        return { stream: wish.stream, answer: signal => chat.answer(signal) }
      }, { first: true })
    })
    ctx.onStop(async () => {
      stop()
      const timer = clock.setTimer(LAST_RETAIN_MS, () => leaving.abort(new Error('the gateway stops')))
      await Promise.all(working)
      timer.cancel()
    })
  }
})
