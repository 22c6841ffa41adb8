import t from 'tap'
import { core } from '../../../kernel/contract/index.js'
import { ownServices } from '../../../kernel/host/start/owned-services.js'

const listening = [
  ['config', 'onChange'], ['models', 'onChange'], ['upstreams', 'onModels'],
  ['tools', 'onChange'], ['tools', 'addServer'], ['tools', 'useGate'], ['tools', 'useAgents']
] as const

for (const [name, method] of listening) {
  t.test(`${name}.${method} of a plugin that goes is taken back, once, by whichever of the two ends it`, async t => {
    const given: Array<() => void> = []
    let removed = 0
    const service = { [method]: (listener: () => void) => {
      given.push(listener)
      return () => { removed++ }
    } }
    const own = new AbortController()
    const { it } = ownServices({ it: service }, { it: core[name] }, own.signal)
    const listen = (it as Record<string, (listener: () => void) => () => void>)[method]!
    const listener = (): void => {}
    const remove = listen(listener)
    t.same(given, [listener], 'it is the plugin that hears')
    remove()
    t.equal(removed, 1)
    listen(() => {})
    own.abort()
    t.equal(removed, 2, 'the first one was taken back already')
    listen(() => {})
    t.equal(removed, 3, 'a plugin that is gone leaves nothing')
  })
}
