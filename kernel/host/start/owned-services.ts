import { core, type Clock, type ConfigService, type EventBus, type ModelRegistry, type Requires, type Timer, type ToolCatalogue, type UpstreamService } from '../../contract/index.js'

/**
 * The services of a plugin that may go while the gateway runs: what it leaves behind in them, timers, subscriptions to
 * events and listeners, ends with `own`, whether it clears them itself or not.
 */
export function ownServices (
  services: Readonly<Record<string, unknown>>, requires: Requires, own: AbortSignal
): Record<string, unknown> {
  const wrap = new Map<string, (service: never) => object>([
    [core.clock.id, (clock: Clock) => over(clock, { setTimer: (ms: number, fn: () => void) => ownTimer(clock, ms, fn, own) })],
    [core.events.id, (events: EventBus) => over(events, {
      subscribe: (filter: object, signal: AbortSignal) => events.subscribe(filter, AbortSignal.any([signal, own]))
    })],
    [core.config.id, (config: ConfigService) => over(config, {
      onChange: (listener: never) => ownListener(config.onChange(listener), own)
    })],
    [core.models.id, (models: ModelRegistry) => over(models, {
      onChange: (listener: never) => ownListener(models.onChange(listener), own)
    })],
    [core.upstreams.id, (upstreams: UpstreamService) => over(upstreams, {
      onModels: (listener: never) => ownListener(upstreams.onModels(listener), own)
    })],
    [core.tools.id, (tools: ToolCatalogue) => over(tools, {
      onChange: (listener: never) => ownListener(tools.onChange(listener), own),
      addServer: (source: never) => ownListener(tools.addServer(source), own),
      useGate: (gate: never) => ownListener(tools.useGate(gate), own),
      useAgents: (files: never) => ownListener(tools.useAgents(files), own)
    })]
  ])
  return Object.freeze(Object.fromEntries(Object.entries(services).map(([key, service]) => {
    const wrapper = wrap.get(requires[key]!.id)
    return [key, wrapper === undefined ? service : wrapper(service as never)]
  })))
}

function ownTimer (clock: Clock, ms: number, fn: () => void, own: AbortSignal): Timer {
  if (own.aborted) return { cancel: () => {} }
  const end = (): void => timer.cancel()
  const timer = clock.setTimer(ms, () => {
    own.removeEventListener('abort', end)
    fn()
  })
  own.addEventListener('abort', end, { once: true })
  return {
    cancel: () => {
      own.removeEventListener('abort', end)
      timer.cancel()
    }
  }
}

function ownListener (remove: () => void, own: AbortSignal): () => void {
  if (own.aborted) remove()
  else own.addEventListener('abort', remove, { once: true })
  return () => {
    own.removeEventListener('abort', remove)
    remove()
  }
}

/** The service with some of its methods replaced. The others keep their own object: they may use its private state. */
function over<T extends object> (service: T, replaced: Partial<Record<keyof T, unknown>>): T {
  // not a proxy of the service itself, which may be frozen and then shows nothing but its own methods
  return new Proxy({} as T, {
    get (_, key) {
      if (Object.hasOwn(replaced, key)) return replaced[key as keyof T]
      const value: unknown = Reflect.get(service, key, service)
      return typeof value === 'function' ? value.bind(service) as unknown : value
    },
    has: (_, key) => key in service
  })
}
