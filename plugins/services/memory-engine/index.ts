import { join } from 'node:path'
import { core, definePlugin } from 'svc-gateway/plugin'
import { EmbeddedEngine } from './embedded-engine.js'
import { abilitiesOf, runErrand } from './errands.js'
import { embeddedMemoryRef } from './ref.js'

const fileIn = (state: string): string => join(state, 'memory', 'memory.db')

/** Memory that needs nothing beside the gateway: banks, retain and recall in a database of its own. */
export default definePlugin({
  name: 'memory-engine',
  kind: 'service',
  apiVersion: 1,
  requires: { config: core.config, dispatch: core.dispatch, upstreams: core.upstreams },
  provides: [embeddedMemoryRef],
  databases: [{ path: ({ state }) => fileIn(state), upgrade: async path => (await import('./store/open.js')).openStore(path).close() }],
  register (ctx) {
    const { config, dispatch, upstreams } = ctx.services
    let errands = 0
    const engine = new EmbeddedEngine({
      path: () => fileIn(config.paths.state),
      abilities: () => abilitiesOf(config.snapshot, (model, surface) => dispatch.target(model, surface)),
      run: (errand, signal) => runErrand({ dispatch, config }, `memory-${++errands}`, errand, signal),
      log: (level, message, fields) => ctx.log[level](fields, message)
    })
    ctx.provide(embeddedMemoryRef, engine)
    let follows: ReadonlyArray<() => void> = []
    ctx.onStart(() => {
      follows = [config.onChange(() => engine.abilitiesChanged()), upstreams.onModels(() => engine.modelsChanged())]
    })
    ctx.onStop(async () => {
      for (const end of follows) end()
      await engine.close()
    })
  }
})
