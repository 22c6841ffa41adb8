import t from 'tap'
import { z } from 'zod'
import {
  core, createServiceRef, definePlugin, defineProvider, defineRoute, defineTool, svcError, type ErrorCode, type NewEvent,
  type SlotConfig, type SlotConfigInput
} from '../../../kernel/contract/index.js'

/** Whether two types are the same, so that an `any` that creeps in fails the build. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
function same<A, B> (_: Same<A, B>): void {}

interface Bell { ring (): string }
const bell = createServiceRef<Bell>('test.bell')
const provider = defineProvider({
  name: 'typed',
  title: 'Typed',
  family: 'typed',
  devices: ['cpu'],
  slotTypes: ['llm'],
  cli: false,
  needsModel: false,
  surfaces: { chat: { path: '/chat', streaming: true, body: 'json' } },
  health: { path: '/health' },
  exclusivity: 'standard',
  containerSpec: input => {
    same<typeof input.argv, readonly string[]>(true)
    same<typeof input.contextSize, number | null>(true)
    return { command: [...input.argv] }
  }
})
const route = defineRoute({ method: 'GET', url: '/x', summary: 'x', handler: () => 1 })
const tool = defineTool({
  server: 'admin', name: 'x', description: 'x', input: z.object({ n: z.coerce.number() }), handler: async call => {
    same<typeof call.input, { n: number }>(true)
    return call.input.n
  }
})

/** Never called: that it compiles, and that the lines marked so do not, is the test. */
function compiled (): unknown {
  const wantsRoutes = definePlugin({
    name: 'typed-routes',
    kind: 'routes',
    apiVersion: 1,
    requires: { bell, slots: core.slots },
    provides: [bell],
    configSchema: z.strictObject({ limit: z.coerce.number().default(3) }),
    register: ctx => {
      same<typeof ctx.services.bell, Bell>(true)
      same<typeof ctx.config, { limit: number }>(true)
      same<ReturnType<typeof ctx.services.slots.names>, readonly string[]>(true)
      ctx.addRoute(route)
      ctx.configureScope(app => { void app.hasRoute({ method: 'GET', url: '/' }) })
      ctx.provide(bell, { ring: () => 'ding' })
      ctx.onStart(_signal => { same<typeof _signal, AbortSignal>(true) })
      // @ts-expect-error a plugin of routes brings no provider
      ctx.addProvider(provider)
      // @ts-expect-error nor a tool
      ctx.addTool(tool)
      // @ts-expect-error what is not required is not there
      void ctx.services.config
      // @ts-expect-error what is offered must be what the ref says
      ctx.provide(bell, { ring: () => 1 })
      // @ts-expect-error services cannot be replaced
      ctx.services.bell = { ring: () => 'dong' }
      // @ts-expect-error the configuration has what its schema says
      void ctx.config.other
    }
  })

  definePlugin({
    name: 'typed-provider', kind: 'provider', apiVersion: 1, register: ctx => {
      ctx.addProvider(provider)
      // @ts-expect-error a provider brings no routes
      ctx.addRoute(route)
      // @ts-expect-error without a schema nothing is known of the configuration
      void ctx.config.anything
    }
  })

  definePlugin({
    name: 'typed-mcp', kind: 'mcp', apiVersion: 1, register: ctx => {
      ctx.addTool(tool)
      ctx.addRoute(route)
      // @ts-expect-error a tool server brings no provider
      ctx.addProvider(provider)
    }
  })

  definePlugin({
    name: 'typed-service', kind: 'service', apiVersion: 1, register: ctx => {
      ctx.onStop(() => {})
      ctx.addHealth(() => ({ fine: true }))
      // @ts-expect-error a service has no routes
      ctx.addRoute(route)
      // @ts-expect-error health is told as an object
      ctx.addHealth(() => 1)
    }
  })

  // @ts-expect-error there is no such kind
  definePlugin({ name: 'typed-nothing', kind: 'nothing', apiVersion: 1, register: () => {} })
  // @ts-expect-error a plugin registers
  definePlugin({ name: 'typed-empty', kind: 'service', apiVersion: 1 })

  defineRoute({
    method: 'PUT',
    url: '/typed/:id',
    summary: 'types follow the schema',
    schema: {
      params: z.object({ id: z.coerce.number() }), querystring: z.object({ dry: z.stringbool().default(false) }),
      body: z.strictObject({ size: z.int().default(1) })
    },
    handler: call => {
      same<typeof call.params, { id: number }>(true)
      same<typeof call.query, { dry: boolean }>(true)
      same<typeof call.body, { size: number }>(true)
      same<typeof call.signal, AbortSignal>(true)
      // @ts-expect-error the path has no such parameter
      void call.params.name
      // @ts-expect-error the body is what its schema says
      void call.body.siez
    }
  })
  defineRoute({
    method: 'POST',
    url: '/typed',
    summary: 'bytes',
    bodyKind: 'buffer',
    handler: call => {
      same<typeof call.body, Buffer>(true)
      // @ts-expect-error no schema, no parameters
      void call.params.id
    }
  })
  defineRoute({ method: 'GET', url: '/typed', summary: 'no body', handler: _call => { same<typeof _call.body, unknown>(true) } })
  // @ts-expect-error there is no such method
  defineRoute({ method: 'TRACE', url: '/typed', summary: 'x', handler: () => 1 })
  // @ts-expect-error a route says what it is for
  defineRoute({ method: 'GET', url: '/typed', handler: () => 1 })

  // @ts-expect-error a code that is not in the table has no status
  svcError('no.such_code', 'x')
  same<ErrorCode extends string ? true : false, true>(true)
  same<NewEvent['severity'], 'info' | 'warn' | 'error' | undefined>(true)
  const least: SlotConfigInput = {}
  same<SlotConfig['workers'], number>(true)
  // @ts-expect-error a device is one of the table
  const wrong: SlotConfigInput = { device: 'toaster' }
  // @ts-expect-error a surface is one of the contract
  defineProvider({ ...provider, surfaces: { telepathy: { path: '/x', streaming: true, body: 'json' } } })
  return [wantsRoutes, least, wrong]
}

t.test('the types of the contract hold', async t => {
  t.type(compiled, 'function')
})

t.test('a form is streamed, so nothing can adapt it', async t => {
  const adapt = async () => ({ status: 200, headers: {}, body: Buffer.alloc(0) })
  const surfaces = { transcription: { path: '/x', streaming: false, body: 'multipart' as const, adapt } }
  t.throws(() => defineProvider({ ...provider, surfaces }), /surfaces\.transcription is multipart/)
})
