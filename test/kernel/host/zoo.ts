/** Plugins that misbehave, each in one way, as third-party packages. Text, because they are installed, not imported. */
export interface ZooPackage {
  readonly svc?: unknown
  readonly code: string
}

const plugin = (name: string, body: string, kind = 'routes'): string => `
import { createServiceRef, definePlugin, defineRoute, defineProvider, core } from 'svc-gateway/plugin'
const route = (url, answer = { ok: '${name}' }) => defineRoute({ method: 'GET', url, summary: 'zoo', handler: () => answer })
export default definePlugin({ name: '${name}', kind: '${kind}', apiVersion: 1, ${body} })
`

export const zoo: Readonly<Record<string, ZooPackage>> = {
  'zoo-import-error': { code: 'throw new Error("boom at import")' },
  'zoo-missing-import': { code: 'import "a-package-that-is-not-there"' },
  'zoo-no-plugin': { code: 'export default { name: "zoo-no-plugin", register () {} }' },
  'zoo-wrong-api': { svc: { apiVersion: 99, kind: 'routes' }, code: 'globalThis.zooWrongApiWasImported = true; process.exit(99)' },
  'zoo-no-manifest': { svc: null, code: 'process.exit(98)' },
  'zoo-bad-config': {
    code: `import { z } from '${import.meta.resolve('zod')}'\n` + plugin('zoo-bad-config',
      'configSchema: z.strictObject({ limit: z.int(), nested: z.strictObject({ on: z.boolean() }) }), register (ctx) { ctx.addRoute(route("/api/zoo/bad-config")) }')
  },
  'zoo-throws': { code: plugin('zoo-throws', 'register (ctx) { ctx.addRoute(route("/api/zoo/throws")); throw new Error("after staging") }') },
  'zoo-hangs': { code: plugin('zoo-hangs', 'register (ctx) { ctx.addRoute(route("/api/zoo/hangs")); return new Promise(() => {}) }') },
  'zoo-missing-service': { code: plugin('zoo-missing-service', 'requires: { x: createServiceRef("nobody.service") }, register () {}') },
  'zoo-consumer': {
    code: plugin('zoo-consumer', 'requires: { bell: createServiceRef("zoo.bell") }, register (ctx) { ctx.addRoute(route("/api/zoo/consumer", { bell: ctx.services.bell.ring() })) }')
  },
  'zoo-provider': {
    code: plugin('zoo-provider', 'provides: [createServiceRef("zoo.bell")], register (ctx) { ctx.provide(createServiceRef("zoo.bell"), { ring: () => "ding" }) }', 'service')
  },
  'zoo-cycle-a': {
    code: plugin('zoo-cycle-a', 'requires: { b: createServiceRef("cycle.b") }, provides: [createServiceRef("cycle.a")], register () {}')
  },
  'zoo-cycle-b': {
    code: plugin('zoo-cycle-b', 'requires: { a: createServiceRef("cycle.a") }, provides: [createServiceRef("cycle.b")], register () {}')
  },
  'zoo-cycle-guest': { code: plugin('zoo-cycle-guest', 'requires: { a: createServiceRef("cycle.a") }, register () {}') },
  'zoo-broken-promise': { code: plugin('zoo-broken-promise', 'provides: [createServiceRef("zoo.never")], register () {}', 'service') },
  'zoo-duplicate-route': { code: plugin('zoo-duplicate-route', 'register (ctx) { ctx.addRoute(route("/api/zoo/good/:other")) }') },
  'zoo-duplicate-scope': {
    code: plugin('zoo-duplicate-scope', 'register (ctx) { ctx.configureScope(app => { app.get("/api/zoo/good/:third", () => "mine") }) }')
  },
  'zoo-invalid-url': { code: plugin('zoo-invalid-url', 'register (ctx) { ctx.addRoute(route("no-slash")); ctx.addRoute(route("/api/zoo/invalid-url")) }') },
  'zoo-bad-schema': {
    code: plugin('zoo-bad-schema', 'register (ctx) { ctx.addRoute(defineRoute({ method: "POST", url: "/api/zoo/bad-schema", summary: "x", schema: { body: { type: "nonsense" } }, handler: () => 1 })) }')
  },
  'zoo-bad-fastify-schema': {
    code: plugin('zoo-bad-fastify-schema', 'register (ctx) { ctx.configureScope(app => { app.post("/api/zoo/bad-fastify", { schema: { body: { type: "nonsense" } } }, () => 1) }) }')
  },
  'zoo-late-call': { code: plugin('zoo-late-call', 'register (ctx) { ctx.onStart(() => ctx.addRoute(route("/api/zoo/late"))) }') },
  'zoo-nested': { code: plugin('zoo-nested', 'register (ctx) { ctx.addRoute(route("/api/zoo/nested")); void Promise.reject(new Error("nobody waits for me")) }') },
  'zoo-nested-scope': {
    code: plugin('zoo-nested-scope', 'register (ctx) { ctx.addRoute(route("/api/zoo/nested-scope")); ctx.configureScope(app => { app.register(async () => { throw new Error("nested scope") }) }) }')
  },
  'zoo-leaky': {
    code: plugin('zoo-leaky', 'register (ctx) { ctx.configureScope(app => { app.addHook("onSend", (q, reply, p, done) => { reply.header("x-leak", "1"); done() }); throw new Error("after the hook") }) }')
  },
  'zoo-failing-start': {
    code: plugin('zoo-failing-start', 'register (ctx) { ctx.addRoute(route("/api/zoo/failing-start")); ctx.onStart(async () => { throw new Error("no disk") }) }')
  },
  'zoo-failing-stop': { code: plugin('zoo-failing-stop', 'register (ctx) { ctx.addRoute(route("/api/zoo/failing-stop")); ctx.onStop(() => { throw new Error("will not stop") }) }') },
  'zoo-uncaught': {
    code: plugin('zoo-uncaught', 'register (ctx) { ctx.addRoute(route("/api/zoo/uncaught")); ctx.onStart(() => { setTimeout(() => { throw new Error("from a timer") }, 1) }) }')
  },
  'zoo-watcher': {
    code: plugin('zoo-watcher', `requires: { events: core.events }, register (ctx) {
      const watch = async work => { for await (const event of ctx.services.events.subscribe({ since: 0 }, new AbortController().signal)) await work(event) }
      ctx.onStart(() => {
        void watch(() => { throw new Error("from a watcher") })
        void watch(() => new Promise(() => {}))
        ctx.services.events.subscribe({}, new AbortController().signal)
      })
      ctx.addHealth(() => { throw new Error("from a health probe") })
      ctx.addRoute(route("/api/zoo/watcher"))
    }`)
  },
  'zoo-own-hook': {
    code: plugin('zoo-own-hook', 'register (ctx) { ctx.configureScope(app => { app.addHook("onSend", (q, reply, p, done) => { reply.header("x-own-hook", "1"); done() }) }); ctx.addRoute(route("/api/zoo/own-hook")) }')
  },
  'zoo-disabled': { code: plugin('zoo-disabled', 'register () {}') },
  'zoo-good': { code: plugin('zoo-good', 'register (ctx) { ctx.addRoute(route("/api/zoo/good/:id")) }') }
}
