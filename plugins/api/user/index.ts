import { core, definePlugin, defineRoute, madeWhenRead } from 'svc-gateway/plugin'
import { z } from 'zod'
import { layoutError } from './errors.js'
import { LayoutFile } from './layout-file.js'
import { layoutSchema, reconciled, type Layout } from './layout.js'

/** What is wrong is told with a code of its own, so this schema documents and checks nothing. */
const bodySchema = z.record(z.string(), z.unknown())
  .meta(madeWhenRead(() => ({ description: 'A layout of the dashboard', ...z.toJSONSchema(layoutSchema, { io: 'input' }) as Record<string, unknown> })))

const savedSchema = z.union([
  z.strictObject({
    v: z.literal(2),
    order: z.array(z.string()),
    enabled: z.record(z.string(), z.boolean()),
    spans: z.record(z.string(), z.int()),
    pinned: z.array(z.string())
  }),
  z.strictObject({}).meta({ description: 'None was saved' })
])

/** `/api/user`: what the dashboard remembers. */
export default definePlugin({
  name: 'api-user',
  kind: 'routes',
  apiVersion: 1,
  errors: layoutError,
  requires: { activity: core.activity, config: core.config, slots: core.slots },
  register (ctx) {
    const { activity, config, slots } = ctx.services
    const file = new LayoutFile(config, ctx.log)
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/user/dashboard-layout',
      tag: 'Dashboard',
      summary: 'The saved layout of the dashboard',
      description: 'Pins of deleted slots are left out.',
      schema: { response: savedSchema },
      handler: async () => {
        const layout = await file.read()
        return layout === null ? {} : reconciled(layout, slots.names())
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'PUT',
      url: '/api/user/dashboard-layout',
      tag: 'Dashboard',
      summary: 'Save the layout of the dashboard',
      schema: { body: bodySchema },
      example: { v: 2, order: ['slots', 'memory'], spans: { slots: 6 } },
      handler: ({ body, actor, requestId }) => activity.audited({
        category: 'settings', action: 'settings.dashboard_layout', target: 'dashboard-layout', actor, request_id: requestId
      }, async () => { await file.write(checked(body)) })
    }))
  }
})

/** Throws `layout.invalid` with what is wrong, field by field. */
function checked (body: unknown): Layout {
  const { data, error } = layoutSchema.safeParse(body)
  if (data !== undefined) return data
  const problems = error.issues.flatMap(issue => issue.code === 'unrecognized_keys'
    ? issue.keys.map(key => [[...issue.path, key].join('.'), 'is not part of a layout'] as const)
    : [[issue.path.join('.'), issue.message] as const])
  const [field, message] = problems[0]!
  throw layoutError('layout.invalid', `the layout is not valid: ${field} ${message}`, { param: field, details: Object.fromEntries(problems) })
}
