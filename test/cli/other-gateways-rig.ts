import type { Test } from 'tap'
import { AheadClock } from '../ahead-clock.js'
import slots from '../../plugins/api/slots/index.js'
import status from '../../plugins/api/status/index.js'
import upstreams from '../../plugins/api/upstreams/index.js'
import { wireGateway, type WireGateway, type WireOptions } from '../wire/wire-gateway.js'

type Row = Record<string, unknown> & { readonly name: string }

export interface Rig extends WireGateway {
  get (path: string): Promise<Row[]>
  /** Lets the last look at other gateways grow old. */
  look (): void
}

/** A gateway with slot `agent` and what `svc status` asks for. */
export async function freshGateway (t: Test, options: Pick<WireOptions, 'files'> = {}): Promise<Rig> {
  const clock = new AheadClock()
  const gateway = await wireGateway(t, { ...options, clock, plugins: [slots, status, upstreams] })
  return Object.assign(gateway, {
    get: async (path: string) => await (await gateway.fetch(path)).json() as Row[],
    look: () => clock.jump(1_001)
  })
}
