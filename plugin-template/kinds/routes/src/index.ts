import { core, definePlugin, defineRoute, svcError, type Timer } from 'svc-gateway/plugin'
import { z } from 'zod'

/** `[plugins.config.example]` of svc.toml. Everything needs a default: most gateways have no such table. */
const configSchema = z.strictObject({
  remind_after_s: z.int().min(1).default(3600).meta({ description: 'How long after a note the reminder comes' })
})

const noteSchema = z.object({ text: z.string().min(1).max(2000), at: z.string() })
const nameSchema = z.object({ name: z.string().regex(/^[\w-]{1,64}$/, { error: 'must be 1 to 64 letters, digits, - or _' }) })

export default definePlugin({
  name: 'example',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, events: core.events },
  configSchema,
  // declares only: what needs I/O belongs in ctx.onStart
  register (ctx) {
    const { clock, events } = ctx.services
    const timers = new Map<string, Timer>()
    const source = 'plugin:example'

    const remind = (name: string): void => {
      timers.get(name)?.cancel()
      timers.set(name, clock.setTimer(ctx.config.remind_after_s * 1000, () => {
        timers.delete(name)
        ctx.log.debug({ note: name }, 'a reminder is due')
        events.emit({ type: 'example.reminder', source, message: `note '${name}' wants attention`, data: { name } })
      }))
    }

    ctx.addRoute(defineRoute({
      method: 'PUT',
      url: '/api/example/:name',
      summary: 'Keep a note',
      schema: { params: nameSchema, body: z.strictObject({ text: noteSchema.shape.text }), response: noteSchema },
      handler: ({ params: { name }, body: { text } }) => {
        const note = { text, at: new Date(clock.now()).toISOString() }
        // on the disk when it returns
        ctx.table.set(name, note)
        remind(name)
        events.emit({ type: 'example.kept', source, message: `note '${name}' is kept`, data: { name } })
        return note
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/example/:name',
      summary: 'Read a note',
      schema: { params: nameSchema, response: noteSchema },
      handler: ({ params: { name } }) => {
        const note = ctx.table.get(name)
        if (note !== undefined) return noteSchema.parse(note)
        throw svcError('system.http_404', `there is no note '${name}'; PUT /api/example/${name} keeps one`)
      }
    }))

    ctx.addHealth(() => ({ notes: ctx.table.keys().length }))
    // a timer does not outlive the gateway: what is kept is reminded of again after a start
    ctx.onStart(() => ctx.table.keys().forEach(remind))
    ctx.onStop(() => timers.forEach(timer => timer.cancel()))
  }
})
