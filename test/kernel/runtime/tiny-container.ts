import type { ContainerForm, EngineSpec } from '../../../kernel/runtime/container-runtime.js'
import type { EngineWish } from './conformance.js'
import { more, TINY_ENGINE } from './tiny-engine.js'

export function tinyContainer (image: string, wish: EngineWish): EngineSpec & { readonly form: ContainerForm } {
  const host = wish.network === 'host'
  return {
    name: wish.name,
    labels: wish.labels,
    env: { PORT: String(wish.port), HOST: host ? '127.0.0.1' : '0.0.0.0', ...more(wish), ...wish.env },
    port: wish.port,
    ...(wish.ports === undefined ? {} : { ports: wish.ports }),
    form: {
      kind: 'container',
      image,
      digest: null,
      entrypoint: null,
      command: ['node', '-e', TINY_ENGINE],
      mounts: [],
      devices: [],
      cdiDevices: [],
      groups: [],
      network: host ? 'host' : 'bridge',
      publishHost: host ? null : wish.network === 'everywhere' ? '0.0.0.0' : '127.0.0.1',
      ipc: 'private',
      shmSizeBytes: null,
      ulimits: {},
      securityOpts: [],
      workingDir: null
    }
  }
}
