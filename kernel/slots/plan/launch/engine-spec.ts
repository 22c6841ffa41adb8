import { randomBytes } from 'node:crypto'
import {
  LABEL_CONFIG, LABEL_GENERATION, LABEL_INSTANCE, LABEL_PLACE, LABEL_SLOT, type EngineSpec
} from '../../../contract/provider/engine-runtime.js'
import type { EffectiveSlot } from '../effective-slot.js'
import { placeLabel } from './engine-place.js'
import { allPorts, portLabels, type EnginePorts } from './engine-ports.js'

export interface EngineOfSlot extends Pick<EngineSpec, 'env' | 'form'> {
  /** Of the gateway. */
  readonly instance: string
  readonly effective: EffectiveSlot
  readonly generation: number
  readonly configHash: string
  readonly ports: EnginePorts
  /** The name of the driver that the slot asks for; null: whichever takes its form. */
  readonly driver: string | null
}

/** An engine as its driver is to start it, with the labels by which a later gateway knows it. */
export function engineSpec ({ instance, effective, generation, configHash, ports, driver, env, form }: EngineOfSlot): EngineSpec {
  const { provider, slot: { name, runtime_options: options } } = effective
  const named = allPorts(provider, ports)
  return {
    name: `svc-${instance.slice(0, 8)}-${name}-${generation}-${randomBytes(3).toString('hex')}`,
    labels: {
      [LABEL_INSTANCE]: instance,
      [LABEL_SLOT]: name,
      [LABEL_CONFIG]: configHash,
      [LABEL_GENERATION]: String(generation),
      [LABEL_PLACE]: placeLabel(effective),
      ...portLabels(ports.port, named)
    },
    env,
    port: ports.port,
    ...(driver === null ? {} : { runtime: driver }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
    ...(provider.ports === undefined ? {} : { ports: named }),
    form
  }
}
