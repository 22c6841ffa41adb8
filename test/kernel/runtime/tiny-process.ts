import type { EngineSpec } from '../../../kernel/runtime/container-runtime.js'
import type { EngineWish } from './conformance.js'
import { more, TINY_ENGINE } from './tiny-engine.js'

export function tinyProcess (wish: EngineWish): EngineSpec {
  const bindHost = wish.network === 'everywhere' ? '0.0.0.0' : '127.0.0.1'
  return {
    name: wish.name,
    labels: wish.labels,
    env: { PORT: String(wish.port), HOST: bindHost, ...more(wish), ...wish.env },
    port: wish.port,
    ...(wish.ports === undefined ? {} : { ports: wish.ports }),
    form: { kind: 'process', command: process.execPath, args: ['-e', TINY_ENGINE], workingDir: null, bindHost, label: 'tiny' }
  }
}
