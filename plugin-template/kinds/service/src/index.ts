import { core, createServiceRef, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'

/** What other plugins get. They import the ref below, name it in `requires`, and find this in `ctx.services`. */
export interface Greeter {
  /** Says hello, and how often it has done so since the plugin was first added. */
  greet (who: string): string
}

export const greeterRef = createServiceRef<Greeter>('example.greeter')

/** `[plugins.config.example]` of svc.toml. */
const configSchema = z.strictObject({
  greeting: z.string().min(1).default('Hello').meta({ description: 'The word that a greeting begins with' })
})

export default definePlugin({
  name: 'example',
  kind: 'service',
  apiVersion: 1,
  requires: { events: core.events },
  provides: [greeterRef],
  configSchema,
  // declares only: what needs I/O belongs in ctx.onStart
  register (ctx) {
    const { events } = ctx.services
    ctx.provide(greeterRef, {
      greet: who => {
        const count = Number(ctx.table.get('count') ?? 0) + 1
        ctx.table.set('count', count)
        ctx.log.debug({ who, count }, 'greeting')
        return `${ctx.config.greeting}, ${who} (${count})`
      }
    })
    const left = new AbortController()
    // follows the slots for as long as the gateway runs
    const follow = async (): Promise<void> => {
      for await (const event of events.subscribe({ type: 'slot.*' }, left.signal)) {
        ctx.log.debug({ event: event.type }, event.message)
      }
    }
    let following = Promise.resolve()
    ctx.onStart(() => { following = follow() })
    ctx.onStop(async () => {
      left.abort()
      await following
    })
  }
})
