import type { AgentCatalog, CircuitView, ConfigSnapshot, ThroughputService } from './contract/index.js'
import type { Connections } from './dispatch/call/connections.js'
import { GatewayDispatcher } from './dispatch/dispatcher.js'
import { newGatewayToken } from './dispatch/requests/loop-guard.js'
import { RequestHistory } from './dispatch/requests/request-history.js'
import { RequestList } from './dispatch/requests/request-list.js'
import { createThroughputService } from './dispatch/requests/throughput-history.js'
import { UpstreamMeters } from './dispatch/requests/upstream-meters.js'
import { Catalog } from './dispatch/route/catalog.js'
import { spoolFolder } from './dispatch/upload/spool-file.js'
import { Breakers } from './dispatch/upstream/breakers.js'
import { UpstreamPool } from './dispatch/upstream/upstream-pool.js'
import { GatewayUpstreamService } from './dispatch/upstream/upstream-service.js'
import type { KernelServices } from './kernel-services.js'
import type { SlotManager } from './slots/slot-manager.js'

/** What requests go through, to slots and to upstreams. */
export interface Routing {
  readonly dispatcher: GatewayDispatcher
  readonly requests: RequestList
  readonly throughput: ThroughputService
  readonly catalog: Catalog
  readonly upstreams: UpstreamPool
  readonly upstreamService: GatewayUpstreamService
  /** Follows a change of configuration, once the slots have. */
  readonly follow: (next: ConfigSnapshot, previous: ConfigSnapshot) => void
}

export function createRouting (
  kernel: KernelServices, agents: AgentCatalog, slots: SlotManager, connections: Connections
): Routing {
  const { config, models, clock, events, log } = kernel
  const token = newGatewayToken()
  const breakers = new Breakers({ clock, changed: (name, circuit) => tellCircuit(kernel, name, circuit) })
  const upstreams: UpstreamPool = new UpstreamPool({
    config,
    clock,
    events,
    log,
    token,
    dispatcher: (origin, connectTimeoutMs) => connections.to(origin, connectTimeoutMs),
    changed: () => catalog.invalidate(),
    replaced: name => breakers.reset(name),
    left: ({ origin, connectTimeoutMs }) => connections.forget(origin, connectTimeoutMs)
  })
  const catalog: Catalog = new Catalog({ clock, config, models, slots, upstreams: () => upstreams })
  const meters = new UpstreamMeters(clock)
  const history = new RequestHistory(clock)
  const dispatcher = new GatewayDispatcher({
    clock,
    config,
    connections,
    slots,
    meters,
    history,
    catalog,
    upstreams,
    breakers,
    log,
    token,
    spool: spoolFolder(config.paths.state)
  })
  return {
    dispatcher,
    requests: new RequestList({ active: dispatcher.active, agents, clock, slots, history }),
    throughput: createThroughputService({ clock, slots: () => slots.throughputs(), upstreams: () => meters.all() }),
    catalog,
    upstreams,
    upstreamService: new GatewayUpstreamService({ clock, config, pool: upstreams, breakers }),
    follow: (next, previous) => {
      upstreams.follow(next, previous)
      meters.keep(new Set(upstreams.views().map(({ name }) => name)))
      catalog.invalidate()
    }
  }
}

function tellCircuit ({ events, log }: KernelServices, upstream: string, circuit: CircuitView): void {
  const { state, failures, retry_in_ms: waitMs } = circuit
  const isWell = state === 'closed'
  const message = isWell ? 'answers again' : `failed ${failures} times in a row and is not used for ${Math.ceil(waitMs / 1000)} s`
  log[isWell ? 'info' : 'warn']({ upstream }, `upstream '${upstream}' ${message}`)
  events.emit({
    type: isWell ? 'system.upstream_healthy' : 'system.upstream_unhealthy',
    severity: isWell ? 'info' : 'warn',
    source: `upstream:${upstream}`,
    message,
    data: { upstream, circuit: state }
  })
}
